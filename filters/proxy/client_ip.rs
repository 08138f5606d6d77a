//! The client's address, as reported by trusted proxies in front of the server.

use core::net::{IpAddr, SocketAddr};

use http::HeaderValue;

use crate::cidr::Cidr;

/// Returns the client's address: `socket`, or an address that trusted proxies report in the header `values`.
///
/// Each proxy appends the address it received the request from, with or without a port. So the list is walked from its
/// end while a trusted proxy wrote the entry, and the first address that is not a trusted proxy is the client's. An
/// unreadable entry hides the addresses before it, so the walk ends at the proxy that wrote it. Source:
/// docs/decisions.md 27.
pub fn client_address<'v>(
    socket: IpAddr,
    values: impl IntoIterator<Item = &'v HeaderValue, IntoIter: DoubleEndedIterator>,
    trusted: &[Cidr],
) -> IpAddr {
    let is_trusted = |ip| trusted.iter().any(|block| block.contains(ip));
    let entries = values
        .into_iter()
        .rev()
        .flat_map(|value| value.as_bytes().rsplit(|byte| *byte == b','));
    let mut peer = socket;
    for entry in entries {
        if !is_trusted(peer) {
            break;
        }
        match parse_entry(entry) {
            Some(ip) => peer = ip,
            None => break,
        }
    }
    peer
}

/// Parses `1.2.3.4`, `1.2.3.4:5`, `::1`, `[::1]` or `[::1]:5`.
fn parse_entry(entry: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(entry).ok()?.trim();
    if let Ok(with_port) = text.parse::<SocketAddr>() {
        return Some(with_port.ip());
    }
    let in_brackets = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    match in_brackets {
        Some(v6) => v6.parse().ok().map(IpAddr::V6),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use http::HeaderMap;

    use super::*;

    /// Returns the client address of a request from `10.0.0.1` with these headers, if `10.0.0.0/8` is trusted.
    fn client(values: &[&str]) -> String {
        from("10.0.0.1", values)
    }

    fn from(socket: &str, values: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(
                "x-forwarded-for",
                HeaderValue::from_bytes(value.as_bytes()).unwrap(),
            );
        }
        let trusted = [
            "10.0.0.0/8".parse::<Cidr>().unwrap(),
            "fd00::/8".parse::<Cidr>().unwrap(),
        ];
        let values = headers.get_all("x-forwarded-for");
        client_address(socket.parse().unwrap(), values, &trusted).to_string()
    }

    #[test]
    fn the_last_address_that_no_trusted_proxy_has_is_the_clients() {
        assert_eq!(client(&["203.0.113.5"]), "203.0.113.5");
        assert_eq!(client(&["6.6.6.6, 203.0.113.5"]), "203.0.113.5");
        assert_eq!(
            client(&["6.6.6.6", "203.0.113.5,10.0.0.2", "10.0.0.3"]),
            "203.0.113.5"
        );
        assert_eq!(client(&["10.0.0.3, 10.0.0.2"]), "10.0.0.3");
        assert_eq!(client(&[]), "10.0.0.1");
    }

    #[test]
    fn nobody_else_is_believed() {
        assert_eq!(from("192.0.2.1", &["203.0.113.5"]), "192.0.2.1");
        assert_eq!(from("192.0.2.1", &["203.0.113.5, 10.0.0.2"]), "192.0.2.1");
    }

    #[test]
    fn an_address_may_have_a_port() {
        for (entry, address) in [
            ("203.0.113.5:4711", "203.0.113.5"),
            ("2001:db8::1", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("[2001:db8::1]:4711", "2001:db8::1"),
        ] {
            assert_eq!(client(&[&format!("6.6.6.6, {entry}")]), address);
            assert_eq!(client(&["6.6.6.6", entry, "[fd00::1]:80"]), address);
        }
    }

    #[test]
    fn what_cannot_be_read_hides_what_stands_in_front_of_it() {
        for entry in [
            "unknown",
            "",
            "_hidden",
            "1.2.3.4.5",
            "[203.0.113.5]",
            "203.0.113.5:x",
            "[::1",
            "\u{e9}",
        ] {
            assert_eq!(
                client(&[&format!("6.6.6.6, {entry}")]),
                "10.0.0.1",
                "{entry}"
            );
            assert_eq!(
                client(&["6.6.6.6", entry, "10.0.0.2"]),
                "10.0.0.2",
                "{entry}"
            );
        }
    }
}
