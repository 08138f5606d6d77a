//! Paths, queries, blocks of addresses and the addresses that proxies report.

use std::net::IpAddr;

use filters::cidr::Cidr;
use filters::form::{decode, pairs};
use filters::proxy::{client_address, normalise};
use http::HeaderValue;

use crate::choices::Choices;
use crate::damage;
use crate::run::run;

const PATHS: [&str; 6] = [
    "/",
    "/v1/chat/completions",
    "/content/v2",
    "/api/content/v3/types/a-b_c",
    "/mcp",
    "/v1/batch",
];

/// Another spelling of a path that every server reads the same way.
fn spell(choices: &mut Choices<'_>, path: &str) -> String {
    let mut spelled = String::new();
    for byte in path.bytes() {
        let letter = char::from(byte);
        match (letter, choices.below(8)) {
            ('/', 1) => spelled.push_str("/./"),
            ('/', 2) => spelled.push_str("//"),
            ('/', 3) => spelled.push('\\'),
            ('/', 4) => spelled.push_str(";x=1/"),
            ('/', _) => spelled.push('/'),
            (_, 1) => spelled.push_str(&format!("%{byte:02x}")),
            (_, 2) => spelled.push_str(&format!("%{byte:02X}")),
            (_, 3) => spelled.push(letter.to_ascii_uppercase()),
            _ => spelled.push(letter),
        }
    }
    if choices.once_in(4) {
        spelled.push('/');
    }
    spelled
}

#[test]
fn spellings_of_a_path_are_one_path() {
    run("paths: spellings", |choices| {
        let path = *choices.pick(&PATHS);
        let spelled = spell(choices, path);
        // A parameter in front of the first slash would belong to no segment.
        if !spelled.starts_with(';') {
            assert_eq!(normalise(&spelled).as_deref(), Ok(path), "{spelled}");
        }
    });
}

#[test]
fn a_path_is_refused_or_normal() {
    run("paths: normalise", |choices| {
        let path = *choices.pick(&PATHS);
        let spelled = spell(choices, path);
        let damaged = damage::bytes(choices, spelled.into_bytes());
        let damaged = String::from_utf8_lossy(&damaged);
        let Ok(normal) = normalise(&damaged) else {
            return;
        };
        // A `#` that came encoded is a character of the path.
        if !normal.contains('#') {
            assert_eq!(normalise(&normal).as_deref(), Ok(&*normal), "{damaged}");
        }
        let is_plain =
            |byte: u8| byte.is_ascii() && !byte.is_ascii_control() && !byte.is_ascii_uppercase();
        assert!(
            normal.starts_with('/') && normal.bytes().all(is_plain),
            "{damaged}"
        );
        let is_strange =
            |segment: &str| matches!(segment, "" | "." | "..") || segment.contains([';', '\\']);
        assert!(
            normal == "/" || !normal[1..].split('/').any(is_strange),
            "{damaged}"
        );
    });
}

#[test]
fn a_query_is_read_as_forms_are() {
    run("paths: query", |choices| {
        let mut query = form_urlencoded::Serializer::new(String::new());
        let written: Vec<(String, String)> = (0..choices.below(5))
            .map(|_| (choices.text(), choices.text()))
            .collect();
        query.extend_pairs(&written);
        let query = query.finish();
        let damaged = damage::bytes(choices, query.clone().into_bytes());
        let damaged = String::from_utf8_lossy(&damaged);
        let read = |query: &str| {
            let read = pairs(query).map(|pair| {
                (
                    pair.decoded_name().into_owned(),
                    pair.decoded_value().into_owned(),
                )
            });
            read.collect::<Vec<_>>()
        };
        assert_eq!(read(&query), written);
        let others = form_urlencoded::parse(damaged.as_bytes());
        assert_eq!(
            read(&damaged),
            others.into_owned().collect::<Vec<_>>(),
            "{damaged:?}"
        );
        assert!(decode(&damaged).len() <= 3 * damaged.len());
    });
}

fn address(choices: &mut Choices<'_>) -> IpAddr {
    match choices.below(4) {
        0 => IpAddr::from([10, 0, 0, choices.byte()]),
        1 => IpAddr::from([
            choices.byte(),
            choices.byte(),
            choices.byte(),
            choices.byte(),
        ]),
        2 => IpAddr::from(
            std::net::Ipv4Addr::from([10, 0, 0, choices.byte()])
                .to_ipv6_mapped()
                .octets(),
        ),
        _ => IpAddr::from(
            ((u128::from(choices.number()) << 64) | u128::from(choices.number())).to_be_bytes(),
        ),
    }
}

#[test]
fn a_block_holds_the_addresses_that_share_its_bits() {
    run("paths: blocks of addresses", |choices| {
        let network = address(choices);
        let bits = if network.is_ipv4() { 32 } else { 128 };
        let prefix = choices.below(bits + 1);
        let text = format!("{network}/{prefix}");
        let damaged = damage::bytes(choices, text.into_bytes());
        let Ok(block) = String::from_utf8_lossy(&damaged).parse::<Cidr>() else {
            return;
        };
        let text = String::from_utf8(damaged).unwrap();
        let (network, prefix) = text.split_once('/').unwrap_or((&text, "128"));
        let network: IpAddr = network.parse().unwrap();
        let other = address(choices).to_canonical();
        let bits = |ip: IpAddr| match ip {
            IpAddr::V4(ip) => format!("{:032b}", ip.to_bits()),
            IpAddr::V6(ip) => format!("{:0128b}", ip.to_bits()),
        };
        let (mine, its) = (bits(network), bits(other));
        let prefix = prefix.parse::<usize>().unwrap().min(mine.len());
        let is_inside = mine.len() == its.len() && mine[..prefix] == its[..prefix];
        assert_eq!(block.contains(other), is_inside, "{text} {other}");
    });
}

#[test]
fn only_trusted_proxies_name_the_client() {
    run("paths: addresses of clients", |choices| {
        let trusted: Vec<Cidr> = vec!["10.0.0.0/8".parse().unwrap()];
        let socket = address(choices);
        let entries: Vec<String> = (0..choices.below(4))
            .map(|_| address(choices).to_string())
            .collect();
        let line = damage::bytes(choices, entries.join(", ").into_bytes());
        let Ok(value) = HeaderValue::from_bytes(&line) else {
            return;
        };
        let client = client_address(socket, [&value], &trusted);
        let is_trusted = trusted.iter().any(|block| block.contains(socket));
        assert!(is_trusted || client == socket, "{socket} {line:?}");
    });
}
