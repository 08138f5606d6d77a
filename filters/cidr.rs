//! Blocks of IP addresses.

use core::net::IpAddr;
use std::str::FromStr;

/// A block of IP addresses: `10.0.0.0/8`, `::1`, `192.0.2.7`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cidr {
    network: IpAddr,
    prefix: u8,
}

impl Cidr {
    /// Returns whether the block contains `address`. An IPv4 address mapped into IPv6 counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.network, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => same_prefix(
                network.to_bits().into(),
                address.to_bits().into(),
                self.prefix,
                32,
            ),
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                same_prefix(network.to_bits(), address.to_bits(), self.prefix, 128)
            }
            _ => false,
        }
    }
}

fn same_prefix(network: u128, address: u128, prefix: u8, bits: u8) -> bool {
    let host_bits = u32::from(bits.saturating_sub(prefix));
    (network ^ address).checked_shr(host_bits).unwrap_or(0) == 0
}

impl FromStr for Cidr {
    type Err = String;

    /// Errors: not an address, a prefix longer than the address, or bits set after the prefix, which is nearly always a
    /// typo.
    fn from_str(text: &str) -> Result<Self, String> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let network: IpAddr = address
            .parse()
            .map_err(|_| format!("{address:?} is not an IP address"))?;
        let bits = if network.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => bits,
            Some(digits) => digits
                .parse()
                .ok()
                .filter(|prefix| *prefix <= bits)
                .ok_or_else(|| format!("the prefix {digits:?} is not a number from 0 to {bits}"))?,
        };
        let value = match network {
            IpAddr::V4(address) => u128::from(address.to_bits()),
            IpAddr::V6(address) => address.to_bits(),
        };
        let host_bits = u32::from(bits - prefix);
        let host_mask = 1_u128
            .checked_shl(host_bits)
            .map_or(u128::MAX, |limit| limit - 1);
        if value & host_mask != 0 {
            return Err(format!(
                "{text:?} has bits set behind its prefix of {prefix}"
            ));
        }
        Ok(Self { network, prefix })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn holds(block: &str, address: &str) -> bool {
        block
            .parse::<Cidr>()
            .unwrap()
            .contains(address.parse().unwrap())
    }

    #[test]
    fn a_block_holds_its_own_addresses_only() {
        assert!(holds("10.0.0.0/8", "10.255.1.2"));
        assert!(!holds("10.0.0.0/8", "11.0.0.0"));
        assert!(holds("2001:db8::/32", "2001:db8::7"));
        assert!(!holds("2001:db8::/32", "2001:db9::7"));
    }

    #[test]
    fn a_block_of_no_bits_holds_every_address_of_its_family() {
        assert!(holds("0.0.0.0/0", "203.0.113.9"));
        assert!(holds("::/0", "2001:db8::1"));
        assert!(!holds("::/0", "203.0.113.9"));
    }

    #[test]
    fn a_bare_address_is_a_block_of_one() {
        assert!(holds("192.0.2.7", "192.0.2.7"));
        assert!(!holds("192.0.2.7", "192.0.2.8"));
    }

    #[test]
    fn a_mapped_address_counts_as_its_ipv4_self() {
        assert!(holds("10.0.0.0/8", "::ffff:10.1.1.1"));
    }

    #[test]
    fn what_is_no_block_is_refused() {
        for text in [
            "",
            "10.0.0.0/33",
            "10.0.0.1/8",
            "::/129",
            "example.com",
            "10.0.0.0/-1",
        ] {
            assert!(text.parse::<Cidr>().is_err(), "{text:?}");
        }
    }
}
