//! Which addresses are of the public Internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

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
}
