//! The key of a window: its subject and the kind of request.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::fmt;
use std::sync::Arc;

/// The party that a window counts requests of.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Subject {
    /// A tenant or an organization, by id.
    Named(Arc<str>),
    /// A client without a valid credential, by address.
    Address(Address),
}

impl Subject {
    /// Returns the subject of a tenant, or of the client's address if there is no tenant. Source: docs/decisions.md 27.
    pub fn from_tenant(tenant: Option<&Arc<str>>, address: IpAddr) -> Self {
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

/// The tenant's or organization's id, or the address.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(id) => f.write_str(id),
            Self::Address(address) => address.fmt(f),
        }
    }
}

/// An IPv4 address, or the first 64 bits of an IPv6 address.
///
/// Our choice: an IPv6 subscriber gets a whole /64, so a window per address would be no limit. An IPv4 address in IPv6
/// notation is the IPv4 address.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Address(u64);

/// A multicast prefix, which no client's IPv6 address has.
const V4_PREFIX: u64 = 0xffff_ffff_0000_0000;

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self(V4_PREFIX | u64::from(Ipv4Addr::to_bits(address))),
            IpAddr::V6(address) => Self((address.to_bits() >> 64) as u64),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match u32::try_from(self.0 ^ V4_PREFIX) {
            Ok(bits) => Ipv4Addr::from_bits(bits).fmt(f),
            Err(_) => write!(f, "{}/64", Ipv6Addr::from_bits(u128::from(self.0) << 64)),
        }
    }
}

/// The kind of request that a window counts: an operation of one method, or a group of endpoints.
///
/// The id is derived from a name, so it survives a reload that reorders rows, and it is the same in each process. Two
/// names collide with a probability of 2^-64.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RowId(u64);

impl RowId {
    /// Returns the id of a name.
    pub fn from_name(name: &str) -> Self {
        use sha2::{Digest, Sha256};
        let digest = Sha256::digest(name.as_bytes());
        let first = digest.iter().take(8);
        Self(first.fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}

/// The key of one window. Source: docs/graph-limits.md 8.1.2; docs/model-gateway.md 8.1.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct WindowKey {
    /// The party whose requests are counted.
    pub subject: Subject,
    pub row: RowId,
}

impl WindowKey {
    /// Appends the key's name, which is the same in each process. Shape: 16 hex digits of the row, then `:name:ID` or
    /// `:address:` and 16 hex digits.
    pub fn write_name(&self, out: &mut Vec<u8>) {
        write_hex(self.row.0, out);
        match &self.subject {
            Subject::Named(id) => {
                out.extend_from_slice(b":name:");
                out.extend_from_slice(id.as_bytes());
            }
            Subject::Address(Address(bits)) => {
                out.extend_from_slice(b":address:");
                write_hex(*bits, out);
            }
        }
    }
}

impl WindowKey {
    /// Returns the key as it passes to another process: the row, the address if the subject is one, and the name otherwise.
    pub(super) fn parts(&self) -> (u64, Option<u64>, &str) {
        match &self.subject {
            Subject::Named(id) => (self.row.0, None, id),
            Subject::Address(Address(bits)) => (self.row.0, Some(*bits), ""),
        }
    }

    /// Returns the key of these parts.
    pub(super) fn from_parts(row: u64, address: Option<u64>, name: &str) -> Self {
        let subject = match address {
            Some(bits) => Subject::Address(Address(bits)),
            None => Subject::Named(name.into()),
        };
        Self {
            subject,
            row: RowId(row),
        }
    }
}

fn write_hex(number: u64, out: &mut Vec<u8>) {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let digits = (0..16).rev().map(|place| number >> (place * 4) & 15);
    out.extend(digits.filter_map(|digit| DIGITS.get(digit as usize)));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn subject(address: &str) -> Subject {
        Subject::from(address.parse::<IpAddr>().unwrap())
    }

    #[test]
    fn an_ipv4_address_is_the_same_in_both_notations() {
        assert_eq!(subject("192.0.2.1"), subject("::ffff:192.0.2.1"));
        assert_ne!(subject("192.0.2.1"), subject("192.0.2.2"));
    }

    #[test]
    fn an_ipv6_address_counts_with_its_64() {
        assert_eq!(subject("2001:db8::1"), subject("2001:db8::ffff:1"));
        assert_ne!(subject("2001:db8::1"), subject("2001:db8:0:1::1"));
        assert_ne!(subject("::1"), subject("127.0.0.1"));
    }

    #[test]
    fn an_address_is_shown_as_it_counts() {
        assert_eq!(subject("::ffff:192.0.2.1").to_string(), "192.0.2.1");
        assert_eq!(subject("2001:db8::1").to_string(), "2001:db8::/64");
        assert_eq!(subject("0.0.0.0").to_string(), "0.0.0.0");
        assert_eq!(subject("::1").to_string(), "::/64");
        assert_eq!(Subject::Named("t1".into()).to_string(), "t1");
    }

    #[test]
    fn a_tenant_named_like_an_address_is_a_tenant() {
        assert_ne!(Subject::Named("192.0.2.1".into()), subject("192.0.2.1"));
    }

    #[test]
    fn a_request_without_a_tenant_counts_for_its_address() {
        let address: IpAddr = "192.0.2.1".parse().unwrap();
        assert_eq!(Subject::from_tenant(None, address), subject("192.0.2.1"));
        assert_eq!(
            Subject::from_tenant(Some(&"t1".into()), address),
            Subject::Named("t1".into())
        );
    }

    #[test]
    fn the_names_of_keys_tell_tenants_from_addresses() {
        let name = |subject| {
            let (row, mut name) = (RowId::from_name("POST /content/v2"), Vec::new());
            WindowKey { subject, row }.write_name(&mut name);
            String::from_utf8(name).unwrap()
        };
        let named = name(Subject::Named("a:b".into()));
        assert_eq!(named, "0b2593db4165dac7:name:a:b");
        let address = name(subject("2001:db8::1"));
        assert_eq!(address, "0b2593db4165dac7:address:20010db800000000");
    }

    #[test]
    fn a_key_takes_24_bytes() {
        assert_eq!(size_of::<WindowKey>(), 24);
    }

    /// The expected number is the first 16 digits of `printf 'POST /content/v2' | sha256sum`.
    #[test]
    fn a_name_has_one_number_forever() {
        assert_eq!(
            RowId::from_name("POST /content/v2"),
            RowId(0x0b25_93db_4165_dac7)
        );
    }
}
