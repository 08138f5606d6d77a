//! RSA keys of service accounts, as their files write them.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;

/// Reads the PEM text of an RSA key. Returns the key's PKCS #1 form, which the signer takes.
pub(super) fn read_rsa(pem: &str) -> Option<Vec<u8>> {
    let (_, rest) = pem.split_once("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    let (body, _) = rest.split_once("-----END ")?;
    let body: String = body.split_ascii_whitespace().collect();
    let der = BASE64_STANDARD.decode(body).ok()?;
    match label {
        "RSA PRIVATE KEY" => Some(der),
        "PRIVATE KEY" => inner_key(&der).map(<[u8]>::to_vec),
        _ => None,
    }
}

/// Returns the key inside PKCS #8: a sequence of the version, the algorithm and the key's octets.
/// Source: RFC 5208, 5.
fn inner_key(der: &[u8]) -> Option<&[u8]> {
    let (inside, _) = element(der, SEQUENCE)?;
    let (_, rest) = element(inside, INTEGER)?;
    let (_, rest) = element(rest, SEQUENCE)?;
    let (key, _) = element(rest, OCTETS)?;
    Some(key)
}

/// Splits an element of this tag from what follows it. Returns its content and the rest.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match *first {
        short @ 0..=0x7f => (usize::from(short), rest),
        long => {
            let (bytes, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
            // No key has a length of more than four bytes.
            let is_possible = !bytes.is_empty() && bytes.len() <= 4;
            let length = bytes
                .iter()
                .fold(0_usize, |sum, byte| sum << 8 | usize::from(*byte));
            (is_possible.then_some(length)?, rest)
        }
    };
    let split = rest.split_at_checked(length)?;
    (*found == tag).then_some(split)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_keys_are_refused_at_every_cut() {
        let der = [
            0x30, 0x0a, 0x02, 0x01, 0x00, 0x30, 0x01, 0x06, 0x04, 0x02, 0xaa, 0xbb,
        ];
        assert_eq!(inner_key(&der), Some(&[0xaa, 0xbb][..]));
        for end in 0..der.len() {
            assert_eq!(inner_key(&der[..end]), None, "{end}");
        }
        for bad in [
            "",
            "-----BEGIN PRIVATE KEY-----",
            "-----BEGIN EC PRIVATE KEY-----AAAA-----END ",
        ] {
            assert!(read_rsa(bad).is_none(), "{bad}");
        }
        let huge = [SEQUENCE, 0x88, 1, 1, 1, 1, 1, 1, 1, 1];
        assert_eq!(inner_key(&huge), None);
    }
}
