//! Which addresses are of the public Internet.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns whether an address is one of the public Internet. Source: the registries of special-purpose addresses, RFC 6890.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_shared = a == 100 && (64..128).contains(&b);
    let is_protocol = a == 192 && b == 0 && c == 0;
    // The relays of 6to4, which nobody runs any more. Source: RFC 7526.
    let is_relay = a == 192 && b == 88 && c == 99;
    let is_benchmark = a == 198 && (18..20).contains(&b);
    !(a == 0
        || a >= 224
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_documentation()
        || is_shared
        || is_protocol
        || is_relay
        || is_benchmark)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, high, low] = address.segments();
    let embedded = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    if let Some(mapped) = address.to_ipv4_mapped() {
        return is_public_v4(mapped);
    }
    match (a, b) {
        // IPv4 behind a translator: its own prefix is one of 96 bits, and what else begins alike is for local use.
        // Source: RFC 6052, RFC 8215.
        (0x64, 0xff9b) => [c, d, e, f] == [0; 4] && is_public_v4(embedded(high, low)),
        // 6to4.
        (0x2002, _) => is_public_v4(embedded(b, c)),
        // Teredo, and documentation.
        (0x2001, 0 | 0xdb8) => false,
        // Benchmarks, and both generations of ORCHID, which are names and no places.
        (0x2001, 2) => c != 0,
        (0x2001, 0x10..=0x2f) => false,
        // Documentation again. Source: RFC 9637.
        (0x3fff, 0..=0xfff) => false,
        // Only 2000::/3 is given out.
        _ => a & 0xe000 == 0x2000,
    }
}

/// Returns whether an http or https address may be one of the public Internet, as far as its text tells: no name is
/// resolved. Numbers count as the addresses that resolvers take them for, however they are spelled. An address with a user
/// name is none.
pub fn may_be_public(url: &str) -> bool {
    let Some((_, rest)) = url.split_once("://") else {
        return false;
    };
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let authority = rest.get(..end).unwrap_or_default();
    if let Some(rest) = authority.strip_prefix('[') {
        let literal = rest.split(']').next().unwrap_or_default();
        return literal.parse().is_ok_and(is_public_v6);
    }
    let host = authority.split(':').next().unwrap_or_default();
    let host = host.strip_suffix('.').unwrap_or(host);
    let is_name = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.') || !byte.is_ascii()
    };
    if host.is_empty() || authority.contains('@') || !host.bytes().all(is_name) {
        return false;
    }
    match spelled_v4(host) {
        Some(address) => is_public_v4(address),
        None => is_public_name(host),
    }
}

/// Names of one label, and those under the domains that are kept for networks of one's own, are not public.
/// Source: RFC 6761, RFC 6762, RFC 8375.
fn is_public_name(host: &str) -> bool {
    const OWN: [&str; 6] = ["localhost", "local", "internal", "lan", "intranet", "arpa"];
    let last = host.rsplit_once('.').map(|(_, last)| last);
    last.is_some_and(|last| !OWN.iter().any(|own| last.eq_ignore_ascii_case(own)))
}

/// Returns the address that one to four numbers spell, each decimal, octal or hexadecimal; the last one fills what is left.
fn spelled_v4(host: &str) -> Option<Ipv4Addr> {
    let numbers: Option<Vec<u32>> = host.split('.').map(spelled_number).collect();
    let numbers = numbers.filter(|numbers| numbers.len() <= 4)?;
    let (last, bytes) = numbers.split_last()?;
    let mut address = u64::from(*last);
    for (place, byte) in bytes.iter().enumerate() {
        address |= u64::from(*byte) << (24 - 8 * place);
    }
    let is_short =
        bytes.iter().all(|byte| *byte < 256) && u64::from(*last) < 1 << (32 - 8 * bytes.len());
    // What is no address may still be taken for one.
    let address = if is_short {
        u32::try_from(address).ok()?
    } else {
        0
    };
    Some(Ipv4Addr::from(address))
}

fn spelled_number(text: &str) -> Option<u32> {
    let lower = text.to_ascii_lowercase();
    let (digits, radix) = match lower.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None if lower.len() > 1 && lower.starts_with('0') => (&*lower, 8),
        None => (&*lower, 10),
    };
    let is_number = digits.chars().all(|digit| digit.is_digit(radix));
    match u32::from_str_radix(digits, radix) {
        Ok(number) => Some(number),
        // `0x` alone is zero to some.
        Err(_) if is_number => Some(if digits.is_empty() && radix == 16 {
            0
        } else {
            u32::MAX
        }),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn special_addresses_are_not_public() {
        for text in [
            "0.0.0.0",
            "10.1.1.1",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:10.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:0:0:0:1:101:101",
            "64:ff9b:1::1.1.1.1",
            "64:ff9b:1:a::1",
            "2002:a00:1::",
            "2001::1",
            "2001:2::1",
            "2001:10::1",
            "2001:1f:ffff::1",
            "2001:20::1",
            "2001:2f::1",
            "2001:db8::1",
            "3fff::1",
            "3fff:fff:ffff::1",
            "fc00::1",
            "fe80::1",
            "ff02::1",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
        for text in [
            "1.1.1.1",
            "100.128.0.1",
            "172.32.0.1",
            "2606:4700::1",
            "64:ff9b::1.1.1.1",
            "192.88.98.1",
            "2001:2:1::1",
            "2001:30::1",
            "3fff:1000::1",
        ] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn the_text_of_an_address_tells_private_hosts_in_any_spelling() {
        for host in [
            "127.0.0.1",
            "2130706433",
            "0x7f.1",
            "0177.0.0.1",
            "127.1",
            "0x7f000001",
            "169.254.169.254",
            "10.0.0.8:8080",
            "256.1.1.1",
            "99999999999",
            "[::1]",
            "[::ffff:10.0.0.1]:443",
            "[fe80::1%25eth0]",
            "localhost",
            "a.localhost.",
            "printer.LOCAL",
            "metadata.google.internal",
            "intranet",
            "ann@example.com",
            "ann:b@1.1.1.1",
            "exa mple.com",
            "",
        ] {
            assert!(!may_be_public(&format!("https://{host}/x")), "{host}");
        }
        for host in [
            "example.com",
            "1.1.1.1",
            "0x01010101",
            "[2606:4700::1]:8443",
            "a.b.c:80",
            "\u{e9}.fr",
        ] {
            for rest in ["", "/a@b", "?x=http://10.0.0.1", "#c"] {
                assert!(
                    may_be_public(&format!("https://{host}{rest}")),
                    "{host}{rest}"
                );
            }
        }
        assert!(
            !may_be_public("https:example.com") && !may_be_public("https://10.0.0.1\\@example.com")
        );
    }
}
