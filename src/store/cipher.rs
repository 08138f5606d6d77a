//! Encrypts callers' secrets at rest with ChaCha20-Poly1305, under a key derived from the store's secret.
//!
//! Layout: a nonce of 12 bytes, then the ciphertext with its tag. The row's id is the associated data, so a ciphertext
//! moved to another row does not decrypt.

use filters::accounts::Pepper;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use super::StoreError;

/// The purpose of the derived key. With another purpose, stored secrets could not be decrypted.
const PURPOSE: &str = "sealing provider keys, version 1";

/// Encrypts and decrypts. It has no `Debug`, because it holds a key.
pub(super) struct Cipher(LessSafeKey);

impl Cipher {
    /// Makes the cipher of a pepper. Errors: never, because the key has the cipher's length.
    pub(super) fn new(pepper: &Pepper) -> Result<Self, StoreError> {
        let key = UnboundKey::new(&CHACHA20_POLY1305, &pepper.derive(PURPOSE));
        let key = key.map_err(|_| StoreError::Damaged("secret"))?;
        Ok(Self(LessSafeKey::new(key)))
    }

    /// Encrypts `text` for the row with this id. Errors: [`StoreError::Randomness`].
    pub(super) fn encrypt(&self, id: &str, text: &str) -> Result<Vec<u8>, StoreError> {
        let mut nonce_bytes = [0_u8; NONCE_LEN];
        getrandom::fill(&mut nonce_bytes).map_err(|_| StoreError::Randomness)?;
        let mut sealed = text.as_bytes().to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce_bytes);
        self.0
            .seal_in_place_append_tag(nonce, Aad::from(id), &mut sealed)
            .map_err(|_| StoreError::Damaged("sealed"))?;
        Ok([&nonce_bytes, sealed.as_slice()].concat())
    }

    /// Decrypts a text that was encrypted for the row with this id.
    ///
    /// Errors: [`StoreError::Damaged`] if a byte, the row or the key differs.
    pub(super) fn decrypt(&self, id: &str, sealed: &[u8]) -> Result<String, StoreError> {
        let damaged = || StoreError::Damaged("sealed");
        let (nonce_bytes, sealed) = sealed.split_first_chunk().ok_or_else(damaged)?;
        let nonce = Nonce::assume_unique_for_key(*nonce_bytes);
        let mut text = sealed.to_vec();
        let decrypted = self.0.open_in_place(nonce, Aad::from(id), &mut text);
        let decrypted = decrypted.map_err(|_| damaged())?;
        String::from_utf8(decrypted.to_vec()).map_err(|_| damaged())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    fn cipher(byte: u8) -> Cipher {
        Cipher::new(&Pepper::parse(&[byte; 32]).unwrap()).unwrap()
    }

    #[test]
    fn a_secret_decrypts_only_for_its_row() {
        let sealed = cipher(1).encrypt("pk_1", "sk-secret").unwrap();
        assert_eq!(cipher(1).decrypt("pk_1", &sealed).unwrap(), "sk-secret");
        assert!(cipher(1).decrypt("pk_2", &sealed).is_err());
        assert!(cipher(2).decrypt("pk_1", &sealed).is_err());
    }

    #[test]
    fn any_changed_or_missing_byte_is_noticed() {
        let sealed = cipher(1).encrypt("pk_1", "sk-secret").unwrap();
        for index in 0..sealed.len() {
            let mut other = sealed.clone();
            other[index] ^= 1;
            assert!(cipher(1).decrypt("pk_1", &other).is_err());
            assert!(cipher(1).decrypt("pk_1", &sealed[..index]).is_err());
        }
    }

    #[test]
    fn equal_texts_never_encrypt_alike() {
        let sealed = || cipher(1).encrypt("pk_1", "sk-secret").unwrap();
        assert_ne!(sealed(), sealed());
    }
}
