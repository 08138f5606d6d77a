//! Nonces of signatures. Each is valid once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};

/// The nonces that were used, kept for as long as their signatures are valid.
///
/// Only verified signatures are recorded, so a client without a secret cannot fill the table.
#[derive(Debug, Default)]
pub struct Nonces(Mutex<HashMap<[u8; 16], i64>>);

impl Nonces {
    /// Records the nonce of this key until `until_ms`. Returns false if it was recorded already.
    ///
    /// Cost: one lock, one hash. Memory: 24 bytes for each signature of the last minutes.
    pub fn spend(&self, key: &str, nonce: &str, until_ms: i64, now_ms: i64) -> bool {
        let digest = digest(key, nonce);
        let mut spent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if spent
            .get(&digest)
            .is_some_and(|until_ms| now_ms <= *until_ms)
        {
            return false;
        }
        if spent.len() == spent.capacity() {
            spent.retain(|_, until_ms| now_ms <= *until_ms);
            let additional = spent.len();
            spent.reserve(additional);
        }
        spent.insert(digest, until_ms);
        true
    }
}

/// Half of a hash: short and of fixed size. The length of the key separates it from the nonce.
fn digest(key: &str, nonce: &str) -> [u8; 16] {
    let mut hash = Sha256::new();
    hash.update((key.len() as u64).to_be_bytes());
    hash.update(key);
    hash.update(nonce);
    let hash: [u8; 32] = hash.finalize().into();
    hash.first_chunk().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_good_once_until_its_signature_expires() {
        let nonces = Nonces::default();
        assert!(nonces.spend("k", "n", 100, 0));
        assert!(!nonces.spend("k", "n", 100, 100));
        assert!(nonces.spend("k", "n", 300, 101));
    }

    #[test]
    fn keys_do_not_share_nonces() {
        let nonces = Nonces::default();
        assert!(nonces.spend("k", "n", 100, 0));
        assert!(nonces.spend("l", "n", 100, 0));
        assert!(nonces.spend("kn", "", 100, 0));
        assert!(nonces.spend("", "kn", 100, 0));
    }

    #[test]
    fn expired_nonces_are_forgotten() {
        let nonces = Nonces::default();
        for now_ms in 0..10_000 {
            nonces.spend("k", &now_ms.to_string(), now_ms + 10, now_ms);
        }
        let held = nonces.0.lock().map_or(0, |spent| spent.len());
        assert!(held < 100, "{held}");
    }
}
