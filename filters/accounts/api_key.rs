//! API keys: their form, their checksum, and the keyed hash that stands for one at rest.
//!
//! A key is `wg_`, 37 random base62 characters (220 bits), and six more that are the CRC-32 (IEEE 802.3,
//! reflected) of those 37 as a base62 number, most significant first, padded with `0`. A CRC-32 changes with
//! every single wrong character and with every two neighbours swapped, so a typo is told from a revoked key
//! without a look-up. It proves nothing about who made the key: that is what the hash is for.
//!
//! Source: docs/decisions.md 7.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// What every key begins with.
const PREFIX: &[u8] = b"wg_";
/// Random characters of a key.
const RANDOM_LEN: usize = 37;
/// Characters of the checksum.
const SUM_LEN: usize = 6;
/// The whole length of a key.
const KEY_LEN: usize = 3 + RANDOM_LEN + SUM_LEN;
/// Bytes of a pepper, at least.
const PEPPER_LEN: usize = 32;
/// The digits, in the order of their values.
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The text is not a key of ours: wrong form, or a checksum that does not match.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MalformedKey;

/// The pepper has fewer than 32 bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ShortPepper;

/// A well-formed key as it was presented, borrowed. It has no `Debug`: it is a secret.
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
        let (random, sum) = body.split_at_checked(RANDOM_LEN).ok_or(MalformedKey)?;
        let is_plain = random.iter().all(u8::is_ascii_alphanumeric);
        if is_plain && sum == checksum(random) {
            Ok(Self(text))
        } else {
            Err(MalformedKey)
        }
    }

    /// The last four characters, by which a person recognises a key in a list.
    pub fn last_four(self) -> String {
        let from = self.0.len().saturating_sub(4);
        let tail = self.0.get(from..).unwrap_or_default();
        String::from_utf8_lossy(tail).into_owned()
    }
}

/// The text of a key just made. It exists to be shown once; it has no `Debug`, no `Display` and no `Clone`.
pub struct KeyText(String);

impl KeyText {
    /// A key from 32 random bytes. The same bytes make the same key.
    ///
    /// The bytes are read as one number and written in base62; of its 43 digits the lower 37 are kept, whose
    /// bias is below 2^-35.
    pub fn from_entropy(entropy: &[u8; 32]) -> Self {
        let mut number = *entropy;
        let mut random = [b'0'; RANDOM_LEN];
        for slot in random.iter_mut().rev() {
            *slot = digit(divide(&mut number, 62));
        }
        let mut text = Vec::with_capacity(KEY_LEN);
        text.extend_from_slice(PREFIX);
        text.extend_from_slice(&random);
        text.extend_from_slice(&checksum(&random));
        Self(text.into_iter().map(char::from).collect())
    }

    /// The text, to be printed once and never kept.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The same as a key to hash.
    pub fn key(&self) -> ApiKey<'_> {
        ApiKey(self.0.as_bytes())
    }
}

/// The server's pepper, ready to hash. It has no `Debug`: it is a secret.
///
/// The messages hashed under it begin with `wg_`, so that other uses of the same secret, with messages that do
/// not, can never meet a key's hash.
#[derive(Clone)]
pub struct Pepper(Hmac<Sha256>);

impl Pepper {
    /// Prepares the secret: every byte of its file, a line end at its end included.
    ///
    /// Errors: [`ShortPepper`] below 32 bytes. Cost: two blocks of SHA-256, once per process instead of once per
    /// request.
    pub fn parse(secret: &[u8]) -> Result<Self, ShortPepper> {
        if secret.len() < PEPPER_LEN {
            return Err(ShortPepper);
        }
        let mac = Hmac::<Sha256>::new_from_slice(secret).map_err(|_| ShortPepper)?;
        Ok(Self(mac))
    }

    /// The hash that stands for a key at rest and in the snapshot.
    ///
    /// Cost: two blocks of SHA-256, no allocation.
    pub fn hash(&self, key: ApiKey<'_>) -> KeyHash {
        self.mac(key.0)
    }

    /// A mark by which a store knows the pepper its hashes were made with. It tells nothing about the pepper.
    pub fn mark(&self) -> [u8; 32] {
        self.mac(b"mark of the pepper").0
    }

    /// A key for another purpose, which tells nothing about the pepper or about the keys of other purposes.
    pub fn derive(&self, purpose: &str) -> [u8; 32] {
        // No key of ours begins so, and no mark.
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
    /// The hash as it was stored.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The hash as it is stored.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Equality in constant time, so that the look-up's last step tells nothing by its duration.
impl PartialEq for KeyHash {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for KeyHash {}

impl std::hash::Hash for KeyHash {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        // The bytes are uniform already: the first eight tell two keys apart as well as all 32.
        let head = self.0.first_chunk::<8>().copied().unwrap_or_default();
        state.write_u64(u64::from_le_bytes(head));
    }
}

/// Divides a big-endian number in place and returns the remainder.
fn divide(number: &mut [u8], divisor: u16) -> u8 {
    let mut rest = 0_u16;
    for byte in number {
        let part = (rest << 8) | u16::from(*byte);
        *byte = (part / divisor).to_le_bytes()[0];
        rest = part % divisor;
    }
    rest.to_le_bytes()[0]
}

fn digit(value: u8) -> u8 {
    DIGITS.get(usize::from(value)).copied().unwrap_or(b'0')
}

/// The six characters that follow `random`.
fn checksum(random: &[u8]) -> [u8; SUM_LEN] {
    let mut number = crc32(random).to_be_bytes();
    let mut sum = [b'0'; SUM_LEN];
    for slot in sum.iter_mut().rev() {
        *slot = digit(divide(&mut number, 62));
    }
    sum
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
