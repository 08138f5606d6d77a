//! Encryption with ChaCha20-Poly1305, of what only this server and its fellows with the same secret may read or make.
//!
//! Layout: a nonce of 12 bytes, then the ciphertext with its tag.

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;

/// Encrypts and decrypts. It has no `Debug`, because it holds a key.
pub struct Seal(LessSafeKey);

/// Why something could not be encrypted or decrypted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SealError {
    /// The operating system gave no random bytes.
    Randomness,
    /// A byte, the context or the key differs.
    Damaged,
}

impl Seal {
    /// Makes one of a key. Errors: never, because the key has the cipher's length.
    pub fn new(key: &[u8; 32]) -> Result<Self, SealError> {
        let key = UnboundKey::new(&CHACHA20_POLY1305, key).map_err(|_| SealError::Damaged)?;
        Ok(Self(LessSafeKey::new(key)))
    }

    /// Encrypts `bytes`, which decrypt with the same `context` alone.
    ///
    /// Errors: [`SealError::Randomness`].
    pub fn encrypt(&self, context: &[u8], bytes: &[u8]) -> Result<Vec<u8>, SealError> {
        let mut nonce_bytes = [0_u8; NONCE_LEN];
        getrandom::fill(&mut nonce_bytes).map_err(|_| SealError::Randomness)?;
        self.encrypt_with(nonce_bytes, context, bytes)
    }

    fn encrypt_with(
        &self,
        nonce_bytes: [u8; NONCE_LEN],
        context: &[u8],
        bytes: &[u8],
    ) -> Result<Vec<u8>, SealError> {
        let mut sealed = bytes.to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce_bytes);
        self.0
            .seal_in_place_append_tag(nonce, Aad::from(context), &mut sealed)
            .map_err(|_| SealError::Damaged)?;
        Ok([&nonce_bytes, sealed.as_slice()].concat())
    }

    /// Decrypts what was encrypted with the same `context`.
    ///
    /// Errors: [`SealError::Damaged`].
    pub fn decrypt(&self, context: &[u8], sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let (nonce_bytes, sealed) = sealed.split_first_chunk().ok_or(SealError::Damaged)?;
        let nonce = Nonce::assume_unique_for_key(*nonce_bytes);
        let mut bytes = sealed.to_vec();
        let decrypted = self.0.open_in_place(nonce, Aad::from(context), &mut bytes);
        let decrypted = decrypted.map_err(|_| SealError::Damaged)?;
        Ok(decrypted.to_vec())
    }
}

/// A [`Seal`] whose ciphertext of the same bytes is the same each time: the nonce is their keyed hash. So who sees two
/// ciphertexts learns whether the bytes were equal, and nothing else.
pub struct StableSeal {
    seal: Seal,
    nonces: hmac::Key,
    context: &'static [u8],
}

impl StableSeal {
    /// Makes one of two keys. What it encrypts decrypts with the same `context` alone. Errors: never, because the key has the
    /// cipher's length.
    pub fn new(
        key: &[u8; 32],
        nonce_key: &[u8; 32],
        context: &'static [u8],
    ) -> Result<Self, SealError> {
        Ok(Self {
            seal: Seal::new(key)?,
            nonces: hmac::Key::new(hmac::HMAC_SHA256, nonce_key),
            context,
        })
    }

    /// Encrypts `bytes`. Errors: never, because no text of a request is too long for the cipher.
    pub fn encrypt(&self, bytes: &[u8]) -> Result<Vec<u8>, SealError> {
        let hash = hmac::sign(&self.nonces, bytes);
        let nonce = hash.as_ref().first_chunk().ok_or(SealError::Damaged)?;
        self.seal.encrypt_with(*nonce, self.context, bytes)
    }

    /// Decrypts what was encrypted by one of the same keys.
    ///
    /// Errors: [`SealError::Damaged`].
    pub fn decrypt(&self, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        self.seal.decrypt(self.context, sealed)
    }
}
