//! Encrypts callers' secrets at rest, under a key derived from the store's secret.
//!
//! The row's id is the context of the [`Seal`], so a ciphertext moved to another row does not decrypt.

use filters::accounts::Pepper;

use super::StoreError;
use crate::encryption::{Seal, SealError};

/// The purpose of the derived key. With another purpose, stored secrets could not be decrypted.
const PURPOSE: &str = "sealing provider keys, version 1";

/// Encrypts and decrypts. It has no `Debug`, because it holds a key.
pub(super) struct Cipher(Seal);

impl Cipher {
    /// Makes the cipher of a pepper. Errors: never, because the key has the cipher's length.
    pub(super) fn new(pepper: &Pepper) -> Result<Self, StoreError> {
        let seal = Seal::new(&pepper.derive(PURPOSE));
        Ok(Self(seal.map_err(|_| StoreError::Damaged("secret"))?))
    }

    /// Encrypts `text` for the row with this id. Errors: [`StoreError::Randomness`].
    pub(super) fn encrypt(&self, id: &str, text: &str) -> Result<Vec<u8>, StoreError> {
        let sealed = self.0.encrypt(id.as_bytes(), text.as_bytes());
        sealed.map_err(|error| match error {
            SealError::Randomness => StoreError::Randomness,
            SealError::Damaged => StoreError::Damaged("sealed"),
        })
    }

    /// Decrypts a text that was encrypted for the row with this id.
    ///
    /// Errors: [`StoreError::Damaged`] if a byte, the row or the key differs.
    pub(super) fn decrypt(&self, id: &str, sealed: &[u8]) -> Result<String, StoreError> {
        let damaged = || StoreError::Damaged("sealed");
        let text = self.0.decrypt(id.as_bytes(), sealed);
        String::from_utf8(text.map_err(|_| damaged())?).map_err(|_| damaged())
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
