//! Refresh tokens: the id of a grant and a number, signed. The store keeps the last number of a grant, and no text of
//! a token.
//!
//! One number always gives the same text. So a token can be given again to a client whose response was lost, or to
//! two processes of one client that ask at the same time.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The prefix of each token.
const PREFIX: &str = "wgr_";
/// The bytes of a signature.
const SIGNATURE_BYTES: usize = 32;
/// The bytes of a number.
const NUMBER_BYTES: usize = 8;

/// Signs refresh tokens. It has no `Debug`, because it holds a key.
#[derive(Clone)]
pub struct RefreshTokens(Hmac<Sha256>);

impl RefreshTokens {
    /// Makes the signer from a key.
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

    /// Returns the grant and the number of a token, if this server has signed it.
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

/// What to do with a genuine refresh token.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RefreshVerdict {
    /// It is the last token. Issue the next one.
    Rotate,
    /// The last token is issued once more.
    Repeat,
    /// It was used before. End the grant.
    Reused,
    /// It comes from a store that was replaced by its backup.
    Unknown,
}

/// How long the previous token stays valid after a rotation, in milliseconds. A response may be on its way for that
/// long. Our choice: otherwise each lost response would send the person back to the consent page, and so would two
/// processes of one client.
pub const REPEAT_MS: i64 = 30_000;

/// Decides about the token with a number. `last` is the last number of its grant, which was issued at
/// `rotated_at_ms`.
pub fn decide(number: i64, last: i64, rotated_at_ms: i64, now_ms: i64) -> RefreshVerdict {
    let age_ms = now_ms.saturating_sub(rotated_at_ms);
    match last.saturating_sub(number) {
        0 => RefreshVerdict::Rotate,
        1 if age_ms <= REPEAT_MS => RefreshVerdict::Repeat,
        1.. => RefreshVerdict::Reused,
        _ => RefreshVerdict::Unknown,
    }
}
