//! What a window is counted under: whose requests, of which kind.

use core::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// Whose requests are counted.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Subject {
    /// A tenant or an organization, by id.
    Named(Arc<str>),
    /// Callers without a credential that counts, by the address they come from.
    Address(Address),
}

impl Subject {
    /// A tenant, or the address of a client without one. Source: docs/decisions.md 27.
    pub fn of(tenant: Option<&Arc<str>>, address: IpAddr) -> Self {
        match tenant {
            Some(tenant) => Self::Named(Arc::clone(tenant)),
            None => Self::from(address),
        }
    }
}

impl From<IpAddr> for Subject {
    fn from(address: IpAddr) -> Self {
        Self::Address(Address::from(address))
    }
}

/// An IPv4 address, or the first 64 bits of an IPv6 address.
///
/// Our choice: one IPv6 subscriber is given a whole /64, and with a window for each of its addresses would have no
/// limit. An IPv4 address written as IPv6 is the IPv4 address.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Address(u64);

/// Where no client's IPv6 address begins: it is of multicast.
const V4: u64 = 0xffff_ffff_0000_0000;

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self(V4 | u64::from(Ipv4Addr::to_bits(address))),
            IpAddr::V6(address) => Self((address.to_bits() >> 64) as u64),
        }
    }
}

/// Which kind of request is counted: an operation of one method, or a group of endpoints.
///
/// It is made from a name, so that it survives a reload that moves rows about, and so that every process gives it the
/// same number. Two names share a number once in 2^64.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RowId(u64);

impl RowId {
    /// The number of a name.
    pub fn of(name: &str) -> Self {
        use sha2::{Digest, Sha256};
        let digest = Sha256::digest(name.as_bytes());
        let first = digest.iter().take(8);
        Self(first.fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}

/// What one window is counted under. Source: docs/graph-limits.md 8.1.2; docs/model-gateway.md 8.1.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct WindowKey {
    /// Whose requests.
    pub who: Subject,
    /// Of which kind.
    pub row: RowId,
}

impl WindowKey {
    /// Its name, the same in every process. Shape: 16 hex digits of the row, then `:name:ID` or `:address:` and 16
    /// hex digits.
    pub fn write(&self, out: &mut Vec<u8>) {
        hex(self.row.0, out);
        match &self.who {
            Subject::Named(id) => {
                out.extend_from_slice(b":name:");
                out.extend_from_slice(id.as_bytes());
            }
            Subject::Address(Address(bits)) => {
                out.extend_from_slice(b":address:");
                hex(*bits, out);
            }
        }
    }
}

fn hex(number: u64, out: &mut Vec<u8>) {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let digits = (0..16).rev().map(|place| number >> (place * 4) & 15);
    out.extend(digits.filter_map(|digit| DIGITS.get(digit as usize)));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn who(address: &str) -> Subject {
        Subject::from(address.parse::<IpAddr>().unwrap())
    }

    #[test]
    fn an_ipv4_address_is_the_same_in_both_notations() {
        assert_eq!(who("192.0.2.1"), who("::ffff:192.0.2.1"));
        assert_ne!(who("192.0.2.1"), who("192.0.2.2"));
    }

    #[test]
    fn an_ipv6_address_counts_with_its_64() {
        assert_eq!(who("2001:db8::1"), who("2001:db8::ffff:1"));
        assert_ne!(who("2001:db8::1"), who("2001:db8:0:1::1"));
        assert_ne!(who("::1"), who("127.0.0.1"));
    }

    #[test]
    fn a_tenant_named_like_an_address_is_a_tenant() {
        assert_ne!(Subject::Named("192.0.2.1".into()), who("192.0.2.1"));
    }

    #[test]
    fn who_has_no_tenant_counts_for_the_address() {
        let address: IpAddr = "192.0.2.1".parse().unwrap();
        assert_eq!(Subject::of(None, address), who("192.0.2.1"));
        assert_eq!(
            Subject::of(Some(&"t1".into()), address),
            Subject::Named("t1".into())
        );
    }

    #[test]
    fn the_names_of_keys_tell_tenants_from_addresses() {
        let name = |who| {
            let (row, mut name) = (RowId::of("POST /content/v2"), Vec::new());
            WindowKey { who, row }.write(&mut name);
            String::from_utf8(name).unwrap()
        };
        let named = name(Subject::Named("a:b".into()));
        assert_eq!(named, "0b2593db4165dac7:name:a:b");
        let address = name(who("2001:db8::1"));
        assert_eq!(address, "0b2593db4165dac7:address:20010db800000000");
    }

    #[test]
    fn a_key_takes_24_bytes() {
        assert_eq!(size_of::<WindowKey>(), 24);
    }

    /// The first 16 digits that `printf 'POST /content/v2' | sha256sum` prints.
    #[test]
    fn a_name_has_one_number_forever() {
        assert_eq!(RowId::of("POST /content/v2"), RowId(0x0b25_93db_4165_dac7));
    }
}
