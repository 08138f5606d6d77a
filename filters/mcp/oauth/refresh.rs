//! Refresh tokens: the id of a grant and a number, signed. The store has the number of the last one and nothing of its text.
//!
//! So the same number has the same text: a client whose answer was lost, or two processes of one client that ask at once, can
//! be given the same token again.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The beginning of each text.
const PREFIX: &str = "wgr_";
/// The bytes of a signature.
const SIGNATURE_BYTES: usize = 32;
/// The bytes of a number.
const NUMBER_BYTES: usize = 8;

/// Signs refresh tokens. It has no `Debug`, because it holds a key.
#[derive(Clone)]
pub struct RefreshTokens(Hmac<Sha256>);

impl RefreshTokens {
    /// Makes one of a key.
    ///
    /// Errors: never; a key may have any length.
    pub fn new(key: &[u8; 32]) -> Option<Self> {
        Hmac::<Sha256>::new_from_slice(key).ok().map(Self)
    }

    /// Returns the text of the token with this number of a grant.
    pub fn write(&self, grant_id: &str, number: i64) -> String {
        let signed = [&number.to_be_bytes(), grant_id.as_bytes()].concat();
        let signature = self.mac(&signed).finalize().into_bytes();
        let text = BASE64.encode([&signature[..], &signed].concat());
        format!("{PREFIX}{text}")
    }

    /// Returns the grant and the number of a token, if it is one of this server.
    pub fn read(&self, text: &str) -> Option<(String, i64)> {
        let bytes = BASE64.decode(text.strip_prefix(PREFIX)?).ok()?;
        let (signature, signed) = bytes.split_at_checked(SIGNATURE_BYTES)?;
        self.mac(signed).verify_slice(signature).ok()?;
        let (number, grant_id) = signed.split_first_chunk::<NUMBER_BYTES>()?;
        let grant_id = String::from_utf8(grant_id.to_vec()).ok()?;
        Some((grant_id, i64::from_be_bytes(*number)))
    }

    fn mac(&self, signed: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(signed);
        mac
    }
}

/// What is to be done with a genuine refresh token.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RefreshVerdict {
    /// It is the last one: the next one takes its place.
    Rotate,
    /// The last one is given again.
    Repeat,
    /// It was used before: the grant ends.
    Reused,
    /// It is of a store that was replaced by its backup.
    Unknown,
}

/// How long after a rotation the token before it is still good, in milliseconds: so long an answer may be on its way. Our
/// choice: without it, each lost answer would send the person back to the page, and so would two processes of a client.
pub const REPEAT_MS: i64 = 30_000;

/// Returns what is to be done with the token of a number, if the last one has the number `last` and came at `rotated_at_ms`.
pub fn judge(number: i64, last: i64, rotated_at_ms: i64, now_ms: i64) -> RefreshVerdict {
    let age_ms = now_ms.saturating_sub(rotated_at_ms);
    match last.saturating_sub(number) {
        0 => RefreshVerdict::Rotate,
        1 if age_ms <= REPEAT_MS => RefreshVerdict::Repeat,
        1.. => RefreshVerdict::Reused,
        _ => RefreshVerdict::Unknown,
    }
}
