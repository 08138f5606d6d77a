//! API keys: their format, their checksum, and the keyed hash that is stored for each.
//!
//! A key is `wg_`, 37 random base62 characters (220 bits), and six more: the CRC-32 (IEEE 802.3, reflected) of those 37
//! as a base62 number, most significant digit first, padded with `0`. A CRC-32 detects every single wrong character and
//! every swap of two neighbours, so a typo is told from a revoked key without a look-up. It does not prove that a key
//! was issued; the hash does.
//!
//! Source: docs/decisions.md 7.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// Prefix of every key.
const PREFIX: &[u8] = b"wg_";
/// Number of random characters in a key.
const RANDOM_LEN: usize = 37;
/// Number of checksum characters in a key.
const CHECKSUM_LEN: usize = 6;
/// Length of a key.
const KEY_LEN: usize = 3 + RANDOM_LEN + CHECKSUM_LEN;
/// Minimum length of a pepper, in bytes.
const MIN_PEPPER_LEN: usize = 32;
/// The base62 digits in the order of their values.
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The letters between `wg` and `_` in what OAuth issues: access tokens, codes, refresh tokens and secrets of
/// clients.
const OAUTH_KINDS: &[u8] = b"acrs";

/// Returns whether `text` contains an API key, a secret of [`OAUTH_KINDS`], or most of one. A mistyped key counts
/// too, because most of it is right.
pub fn holds_api_key(text: &[u8]) -> bool {
    memchr::memmem::find_iter(text, b"wg").any(|start| {
        let rest = text.get(start + 2..).unwrap_or_default();
        match rest.split_first() {
            Some((b'_', rest)) => has_digits(rest, |_| false),
            Some((kind, rest)) if OAUTH_KINDS.contains(kind) => rest
                .strip_prefix(b"_")
                .is_some_and(|rest| has_digits(rest, |byte| matches!(byte, b'-' | b'_'))),
            _ => false,
        }
    })
}

/// Returns whether a text begins with as many digits as a key has. `is_more` accepts further characters.
fn has_digits(text: &[u8], is_more: impl Fn(u8) -> bool) -> bool {
    let digits = text
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || is_more(**byte));
    digits.take(RANDOM_LEN).count() == RANDOM_LEN
}

/// The text is not an API key: the format is wrong or the checksum does not match.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MalformedKey;

/// The pepper has fewer than 32 bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ShortPepper;

/// A well-formed key as presented, borrowed. It has no `Debug`, because it is a secret.
#[derive(Clone, Copy)]
pub struct ApiKey<'a>(&'a [u8]);

impl<'a> ApiKey<'a> {
    /// Checks form and checksum.
    ///
    /// Errors: [`MalformedKey`] for any other length, prefix, character or checksum. Cost: no allocation.
    pub fn parse(text: &'a [u8]) -> Result<Self, MalformedKey> {
        if text.len() != KEY_LEN {
            return Err(MalformedKey);
        }
        let body = text.strip_prefix(PREFIX).ok_or(MalformedKey)?;
        let (random, checksum_part) = body.split_at_checked(RANDOM_LEN).ok_or(MalformedKey)?;
        let is_base62 = random.iter().all(u8::is_ascii_alphanumeric);
        if is_base62 && checksum_part == checksum(random) {
            Ok(Self(text))
        } else {
            Err(MalformedKey)
        }
    }

    /// Returns the last four characters, by which people recognise a key in a list.
    pub fn last_four(self) -> String {
        let from = self.0.len().saturating_sub(4);
        let tail = self.0.get(from..).unwrap_or_default();
        String::from_utf8_lossy(tail).into_owned()
    }
}

/// The text of a new key. It is shown once; it has no `Debug`, no `Display` and no `Clone`.
pub struct KeyText(String);

impl KeyText {
    /// Makes a key from 32 random bytes. The same bytes make the same key.
    ///
    /// The bytes are one number, converted to base62. Of its 43 digits the lower 37 are used; their bias is below
    /// 2^-35.
    pub fn from_entropy(entropy: &[u8; 32]) -> Self {
        let mut number = *entropy;
        let mut random = [b'0'; RANDOM_LEN];
        for slot in random.iter_mut().rev() {
            *slot = to_digit(divide_in_place(&mut number, 62));
        }
        let mut text = Vec::with_capacity(KEY_LEN);
        text.extend_from_slice(PREFIX);
        text.extend_from_slice(&random);
        text.extend_from_slice(&checksum(&random));
        Self(text.into_iter().map(char::from).collect())
    }

    /// Returns the text, to be printed once and never stored.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Borrows the text as a key that can be hashed.
    pub fn to_api_key(&self) -> ApiKey<'_> {
        ApiKey(self.0.as_bytes())
    }
}

/// The server's pepper, ready to hash. It has no `Debug`, because it is a secret.
///
/// Messages for key hashes begin with `wg_`, other messages do not, so other uses of the same secret never collide with
/// the hash of a key.
#[derive(Clone)]
pub struct Pepper(Hmac<Sha256>);

impl Pepper {
    /// Prepares the secret: every byte of its file, including a line end.
    ///
    /// Errors: [`ShortPepper`] below 32 bytes. Cost: two blocks of SHA-256, once per process instead of once per
    /// request.
    pub fn parse(secret: &[u8]) -> Result<Self, ShortPepper> {
        if secret.len() < MIN_PEPPER_LEN {
            return Err(ShortPepper);
        }
        let mac = Hmac::<Sha256>::new_from_slice(secret).map_err(|_| ShortPepper)?;
        Ok(Self(mac))
    }

    /// Returns the hash that the store and the snapshot hold for a key.
    ///
    /// Cost: two blocks of SHA-256, no allocation.
    pub fn hash(&self, key: ApiKey<'_>) -> KeyHash {
        self.mac(key.0)
    }

    /// Returns the hash that the store holds for another secret, such as the secret of an OAuth client.
    pub fn hash_secret(&self, secret: &[u8]) -> KeyHash {
        self.mac(&[b"hash of ", secret].concat())
    }

    /// Returns a fingerprint of the pepper, by which a store recognises the pepper of its hashes. It reveals nothing
    /// about the pepper.
    pub fn fingerprint(&self) -> [u8; 32] {
        self.mac(b"mark of the pepper").0
    }

    /// Derives a key for another purpose. It reveals nothing about the pepper or the keys of other purposes.
    pub fn derive(&self, purpose: &str) -> [u8; 32] {
        // Neither an API key nor the fingerprint's message begins with this text.
        self.mac(format!("key for {purpose}").as_bytes()).0
    }

    fn mac(&self, message: &[u8]) -> KeyHash {
        let mut mac = self.0.clone();
        mac.update(message);
        KeyHash(mac.finalize().into_bytes().into())
    }
}

/// HMAC-SHA256 of a key under the pepper.
#[derive(Clone, Copy)]
pub struct KeyHash([u8; 32]);

impl KeyHash {
    /// Wraps a hash read from the store.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes to store.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Compares in constant time, so that the duration of the look-up's last step reveals nothing.
impl std::fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(hidden)")
    }
}

impl PartialEq for KeyHash {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for KeyHash {}

impl std::hash::Hash for KeyHash {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        // The bytes are uniform, so the first eight distinguish keys as well as all 32.
        let head = self.0.first_chunk::<8>().copied().unwrap_or_default();
        state.write_u64(u64::from_le_bytes(head));
    }
}

/// Divides a big-endian number in place and returns the remainder.
fn divide_in_place(number: &mut [u8], divisor: u16) -> u8 {
    let mut remainder = 0_u16;
    for byte in number {
        let part = (remainder << 8) | u16::from(*byte);
        *byte = (part / divisor).to_le_bytes()[0];
        remainder = part % divisor;
    }
    remainder.to_le_bytes()[0]
}

fn to_digit(value: u8) -> u8 {
    DIGITS.get(usize::from(value)).copied().unwrap_or(b'0')
}

/// Returns the six characters that follow `random`.
fn checksum(random: &[u8]) -> [u8; CHECKSUM_LEN] {
    let mut number = crc32(random).to_be_bytes();
    let mut digits = [b'0'; CHECKSUM_LEN];
    for slot in digits.iter_mut().rev() {
        *slot = to_digit(divide_in_place(&mut number, 62));
    }
    digits
}

fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = crc_table();
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        let [low, ..] = crc.to_le_bytes();
        let row = usize::from(low ^ byte);
        (crc >> 8) ^ TABLE.get(row).copied().unwrap_or_default()
    })
}

const fn crc_table() -> [u32; 256] {
    let mut table = [0_u32; 256];
    let mut row = 0_usize;
    while row < 256 {
        let mut value = row as u32;
        let mut bit = 0;
        while bit < 8 {
            let mask = if value & 1 == 1 { 0xEDB8_8320 } else { 0 };
            value = (value >> 1) ^ mask;
            bit += 1;
        }
        #[expect(
            clippy::indexing_slicing,
            reason = "in bounds, and checked when compiled"
        )]
        {
            table[row] = value;
        }
        row += 1;
    }
    table
}

#[cfg(test)]
#[path = "api_key_tests.rs"]
mod tests;
