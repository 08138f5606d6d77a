//! Tells which addresses belong to the public Internet. Every URL from a caller, a provider or a datafile is checked
//! here, as the HTTP client parses it.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Position, Url};

/// Returns whether an address belongs to the public Internet. Source: the registries of special-purpose addresses,
/// RFC 6890.
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
    // The relays of 6to4, which are no longer in use. Source: RFC 7526.
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
        // IPv4 behind a translator. The well-known prefix has 96 bits; other addresses that begin like it are for
        // local use.
        // Source: RFC 6052, RFC 8215.
        (0x64, 0xff9b) => [c, d, e, f] == [0; 4] && is_public_v4(embedded(high, low)),
        // 6to4.
        (0x2002, _) => is_public_v4(embedded(b, c)),
        // Teredo, and documentation.
        (0x2001, 0 | 0xdb8) => false,
        // Benchmarks, and both versions of ORCHID, which are identifiers and not addresses.
        (0x2001, 2) => c != 0,
        (0x2001, 0x10..=0x2f) => false,
        // Documentation again. Source: RFC 9637.
        (0x3fff, 0..=0xfff) => false,
        // Only addresses in 2000::/3 are assigned.
        _ => a & 0xe000 == 0x2000,
    }
}

/// The reason for which a URL from a stranger must not be requested.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AddressError {
    /// The URL cannot be parsed.
    Unreadable,
    /// The URL contains a user name or a password.
    User,
    /// The scheme is neither `https` nor another accepted one.
    Scheme,
    /// The host is not on the public Internet.
    NotPublic,
}

impl AddressError {
    /// Returns the reason in words that follow the name of a field.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unreadable => "it is no valid address",
            Self::User => "it holds a user name or a password",
            Self::Scheme => "it is no https address",
            Self::NotPublic => "its host is not public",
        }
    }
}

impl core::fmt::Display for AddressError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<AddressError> for String {
    fn from(error: AddressError) -> Self {
        error.as_str().to_owned()
    }
}

/// Returns scheme, user name, host and port of a URL. They decide which server is asked, and as which user.
pub fn read_origin(url: &Url) -> &str {
    &url[..Position::BeforePath]
}

/// Checks a URL from a stranger as the HTTP client parses it, whatever its text looks like: this is the host that
/// would be asked. Host names pass, because only their addresses can be checked.
///
/// Errors: the URL contains a user name, or its host is an address that is not public.
pub fn check(url: &Url) -> Result<(), AddressError> {
    if !url.username().is_empty() || url.password().is_some() {
        return Err(AddressError::User);
    }
    let is_public = match url.host() {
        Some(Host::Ipv4(address)) => is_public_v4(address),
        Some(Host::Ipv6(address)) => is_public_v6(address),
        Some(Host::Domain(_)) => true,
        None => false,
    };
    match is_public {
        true => Ok(()),
        false => Err(AddressError::NotPublic),
    }
}

/// Checks the text of an http or https URL that a provider is to fetch. No name is resolved, but names of private
/// networks are refused. Texts that parsers of URLs read differently are refused, because the provider may use
/// another parser.
///
/// Errors: the URL is not on the public Internet, or has a user name.
pub fn check_text(text: &str) -> Result<(), AddressError> {
    let url = Url::parse(text).map_err(|_| AddressError::Unreadable)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(AddressError::Scheme);
    }
    check(&url)?;
    let (_, rest) = text.split_once("://").ok_or(AddressError::Unreadable)?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_ambiguous = authority.is_empty()
        || authority.contains(['@', '\\', '%'])
        || text.chars().any(|char| char.is_ascii_control());
    if is_ambiguous {
        return Err(AddressError::Unreadable);
    }
    match url.host() {
        Some(Host::Domain(name)) if !is_public_name(name) => Err(AddressError::NotPublic),
        _ => Ok(()),
    }
}

/// Returns whether a name can be public. Names of one label, and those under domains for private networks, are not.
/// Source: RFC 6761, RFC 6762, RFC 8375.
fn is_public_name(host: &str) -> bool {
    const OWN: [&str; 6] = ["localhost", "local", "internal", "lan", "intranet", "arpa"];
    let host = host.strip_suffix('.').unwrap_or(host);
    let last = host.rsplit_once('.').map(|(_, last)| last);
    last.is_some_and(|last| !OWN.iter().any(|own| last.eq_ignore_ascii_case(own)))
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

    /// Spellings of hosts that are not public, and of none.
    const PRIVATE: [&str; 31] = [
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
        "ann@example.com",
        "ann:b@1.1.1.1",
        "exa mple.com",
        "",
        // The brackets are a user name, and the address behind them is asked.
        "[2606:4700::1111]@169.254.169.254",
        "[2606:4700::1111]:80@10.0.0.1:8080",
        "1.1.1.1@10.0.0.1",
        "1.1.1.1:80@10.0.0.1",
        // Digits and full stops of other scripts.
        "\u{ff11}\u{ff16}\u{ff19}.254.169.254",
        "169\u{3002}254\u{3002}169\u{3002}254",
        "\u{ff11}\u{ff12}\u{ff17}.1",
        "\u{2460}\u{2468}\u{2461}.168.0.1",
        // Characters behind percent signs.
        "%31%30.0.0.1",
        "127%2e0%2e0%2e1",
        "127.0.0.1.",
        "2852039166",
        "0xa9fea9fe",
        "[::a9fe:a9fe]",
    ];

    #[test]
    fn the_text_of_an_address_tells_private_hosts_in_any_spelling() {
        let names = [
            "localhost",
            "a.localhost.",
            "printer.LOCAL",
            "metadata.google.internal",
            "intranet",
            "\u{ff4c}ocalhost",
        ];
        for host in PRIVATE.iter().chain(&names) {
            for scheme in ["https", "http", "HTTPS"] {
                let url = format!("{scheme}://{host}/x");
                assert!(check_text(&url).is_err(), "{url}");
            }
        }
        for host in [
            "example.com",
            "1.1.1.1",
            "0x01010101",
            "[2606:4700::1]:8443",
            "a.b.c:80",
            "\u{e9}.fr",
        ] {
            for rest in ["", "/a@b", "?x=http://10.0.0.1", "#c", "/%31\\%20"] {
                let url = format!("https://{host}{rest}");
                assert_eq!(check_text(&url), Ok(()), "{url}");
            }
        }
        for (url, expected) in [
            ("https:example.com", AddressError::Unreadable),
            ("https:///example.com", AddressError::Unreadable),
            ("https://10.0.0.1\\@example.com", AddressError::NotPublic),
            ("https://1.1.1.1\\@10.0.0.1/", AddressError::Unreadable),
            ("https://1.1.1.1\t/", AddressError::Unreadable),
            ("https://exam\nple.com/", AddressError::Unreadable),
            ("https://ann@example.com/", AddressError::User),
            ("ftp://example.com/", AddressError::Scheme),
            ("file:///etc/passwd", AddressError::Scheme),
            ("", AddressError::Unreadable),
        ] {
            assert_eq!(check_text(url), Err(expected), "{url}");
        }
    }

    #[test]
    fn the_host_that_the_client_would_ask_is_judged_and_no_user_is_taken() {
        for host in PRIVATE.into_iter().filter(|host| !host.is_empty()) {
            let read = Url::parse(&format!("https://{host}/x"));
            assert!(read.is_err() || check(&read.unwrap()).is_err(), "{host}");
        }
        let url = Url::parse("https://localhost/").unwrap();
        assert_eq!(check(&url), Ok(()), "its addresses tell");
        let url = Url::parse("https://a:b@Example.com:443/c").unwrap();
        assert_eq!(read_origin(&url), "https://a:b@example.com");
    }
}
