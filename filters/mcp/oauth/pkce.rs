//! Proof Key for Code Exchange, with SHA-256 alone. Source: RFC 7636 4.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The only method.
pub const METHOD: &str = "S256";
/// The characters of a challenge: 32 bytes in base64url.
const CHALLENGE_CHARS: usize = 43;

/// Returns whether a text has the form of a challenge.
pub fn is_challenge(text: &str) -> bool {
    text.len() == CHALLENGE_CHARS && BASE64.decode(text).is_ok()
}

/// Returns whether a text has the form of a verifier: 43 to 128 unreserved characters.
pub fn is_verifier(text: &str) -> bool {
    let is_unreserved =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    (43..=128).contains(&text.len()) && text.bytes().all(is_unreserved)
}

/// Returns whether a verifier belongs to a challenge. The comparison takes constant time.
pub fn verify(challenge: &str, verifier: &str) -> bool {
    let made = BASE64.encode(Sha256::digest(verifier));
    made.as_bytes().ct_eq(challenge.as_bytes()).into()
}
