//! Secrets of callers at rest: sealed with ChaCha20-Poly1305 under a key derived from the store's secret.
//!
//! Layout: 12 bytes of nonce, then the ciphertext with its tag. The row's id is sealed in as associated data: a
//! ciphertext moved to another row does not open.

use filters::accounts::Pepper;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use super::StoreError;

/// What the key is derived for. Another word would make what is sealed unreadable.
const PURPOSE: &str = "sealing provider keys, version 1";

/// Seals and opens. It has no `Debug`: it holds a key.
pub(super) struct Cipher(LessSafeKey);

impl Cipher {
    /// The seal under a pepper. Errors: none that can happen: the key has the cipher's length.
    pub(super) fn new(pepper: &Pepper) -> Result<Self, StoreError> {
        let key = UnboundKey::new(&CHACHA20_POLY1305, &pepper.derive(PURPOSE));
        let key = key.map_err(|_| StoreError::Damaged("secret"))?;
        Ok(Self(LessSafeKey::new(key)))
    }

    /// Seals `text` for the row of this id. Errors: [`StoreError::Randomness`].
    pub(super) fn close(&self, id: &str, text: &str) -> Result<Vec<u8>, StoreError> {
        let mut nonce = [0_u8; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(|_| StoreError::Randomness)?;
        let mut sealed = text.as_bytes().to_vec();
        let under = Nonce::assume_unique_for_key(nonce);
        self.0
            .seal_in_place_append_tag(under, Aad::from(id), &mut sealed)
            .map_err(|_| StoreError::Damaged("sealed"))?;
        Ok([&nonce, sealed.as_slice()].concat())
    }

    /// Opens what was sealed for the row of this id.
    ///
    /// Errors: [`StoreError::Damaged`] where a byte, the row or the key is another.
    pub(super) fn open(&self, id: &str, sealed: &[u8]) -> Result<String, StoreError> {
        let damaged = || StoreError::Damaged("sealed");
        let (nonce, sealed) = sealed.split_first_chunk().ok_or_else(damaged)?;
        let under = Nonce::assume_unique_for_key(*nonce);
        let mut text = sealed.to_vec();
        let opened = self.0.open_in_place(under, Aad::from(id), &mut text);
        let opened = opened.map_err(|_| damaged())?;
        String::from_utf8(opened.to_vec()).map_err(|_| damaged())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    fn seal(byte: u8) -> Cipher {
        Cipher::new(&Pepper::parse(&[byte; 32]).unwrap()).unwrap()
    }

    #[test]
    fn what_is_sealed_opens_for_its_row_alone() {
        let sealed = seal(1).close("pk_1", "sk-secret").unwrap();
        assert_eq!(seal(1).open("pk_1", &sealed).unwrap(), "sk-secret");
        assert!(seal(1).open("pk_2", &sealed).is_err());
        assert!(seal(2).open("pk_1", &sealed).is_err());
    }

    #[test]
    fn any_changed_or_missing_byte_is_noticed() {
        let sealed = seal(1).close("pk_1", "sk-secret").unwrap();
        for at in 0..sealed.len() {
            let mut other = sealed.clone();
            other[at] ^= 1;
            assert!(seal(1).open("pk_1", &other).is_err());
            assert!(seal(1).open("pk_1", &sealed[..at]).is_err());
        }
    }

    #[test]
    fn the_same_text_is_never_sealed_alike() {
        let sealed = || seal(1).close("pk_1", "sk-secret").unwrap();
        assert_ne!(sealed(), sealed());
    }
}
