//! The signature of a message that announces a new datafile. Source: docs/facts/decision-engine.md E.

use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;

use crate::fault::{Fault, FaultKind};

/// The header of the signature.
pub const SIGNATURE_HEADER: &str = "x-hub-signature";

/// Returns the fault of a message that does not name a project.
pub fn unreadable_message() -> Fault {
    Fault::new(FaultKind::Invalid, "Unable to parse webhook message.")
}

/// Checks in constant time that `given` is `sha1=` and the hex HMAC-SHA1 of the body.
///
/// Errors: 400, even if there is no secret.
pub fn check_signature(secret: Option<&[u8]>, body: &[u8], given: &[u8]) -> Result<(), Fault> {
    if secret.is_some_and(|secret| is_signed(secret, body, given)) {
        return Ok(());
    }
    let message = "Computed signature does not match signature in request. Ignoring message.";
    Err(Fault::new(FaultKind::Invalid, message))
}

fn is_signed(secret: &[u8], body: &[u8], given: &[u8]) -> bool {
    let hex = given.strip_prefix(b"sha1=").unwrap_or_default();
    let (pairs, rest) = hex.as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let bytes: Option<Vec<u8>> = pairs
        .iter()
        .map(|[high, low]| u8::try_from(digit(*high)? * 16 + digit(*low)?).ok())
        .collect();
    let mac = Hmac::<Sha1>::new_from_slice(secret);
    match (mac, bytes) {
        (Ok(mac), Some(bytes)) if rest.is_empty() => {
            mac.chain_update(body).verify_slice(&bytes).is_ok()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_bodys_own_signature_counts() {
        // RFC 2202, test case 2.
        let body = b"what do ya want for nothing?";
        let good = b"sha1=effcdf6ae5eb2fa2d27416d5f184df9c259a7c79";
        assert!(is_signed(b"Jefe", body, good));
        for bad in [
            &b""[..],
            b"sha1=",
            b"effcdf6ae5eb2fa2d27416d5f184df9c259a7c79",
            b"sha1=zz",
            &good[..44],
        ] {
            assert!(!is_signed(b"Jefe", body, bad));
        }
        assert!(!is_signed(b"other", body, good));
    }
}
