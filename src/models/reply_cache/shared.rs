//! Encrypted replies in Redis. A party with access to Redis can delete replies, but cannot read, make or move them.
//!
//! Key: `weirgate:reply:` and the reply's key in hex. Value: a nonce of 12 bytes, then the reply and its tag,
//! encrypted with ChaCha20-Poly1305. Each reply has its own encryption key, so that nonces never run out.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use filters::models::reply_cache::cached_reply::{CachedReply, FORM_VERSION};
use filters::models::reply_cache::key::ReplyKey;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;

use crate::redis::Redis;
use crate::telemetry::metrics::Metrics;

/// How long a leader waits for Redis: half of the time that a request may wait there, because the leader can call
/// instead.
const FIND_TIMEOUT: Duration = Duration::from_millis(25);
/// The maximum bytes of a value. Larger ones would block the connection, which limits use too.
const MAX_VALUE_BYTES: usize = 1 << 20;

/// Replies in Redis.
pub(super) struct SharedReplies {
    redis: Redis,
    /// Derives the encryption key of each reply.
    sealing: hmac::Key,
    metrics: Arc<Metrics>,
}

impl SharedReplies {
    pub(super) fn new(redis: Redis, secret: &[u8; 32], metrics: &Arc<Metrics>) -> Self {
        Self {
            redis,
            sealing: hmac::Key::new(hmac::HMAC_SHA256, secret),
            metrics: Arc::clone(metrics),
        }
    }

    /// Returns a reply, or `None` if there is none, Redis does not respond in time, or the value was not stored by a
    /// process with our secret.
    pub(super) async fn find(&self, key: ReplyKey) -> Option<CachedReply> {
        let name = name(key);
        let found = self
            .redis
            .get_start(&name, MAX_VALUE_BYTES, FIND_TIMEOUT)
            .await;
        let sealed = found.ok().filter(|value| !value.is_empty())?;
        let reply = open(&self.sealing, key, sealed);
        if reply.is_none() {
            self.metrics.cache_unusable.inc();
        }
        reply
    }

    /// Stores a reply in the background.
    pub(super) fn store(&self, key: ReplyKey, reply: &Arc<CachedReply>, ttl: Duration) {
        if self.redis.is_unavailable() || reply.size() > MAX_VALUE_BYTES {
            return;
        }
        let (redis, reply, sealing) = (self.redis.clone(), Arc::clone(reply), self.sealing.clone());
        self.redis.spawn(async move {
            let sealed = seal(&sealing, key, &reply);
            if let Some(sealed) = sealed.filter(|sealed| sealed.len() <= MAX_VALUE_BYTES) {
                // If this fails, the next process makes its own call.
                _ = redis.set(&name(key), &sealed, Some(ttl)).await;
            }
        });
    }
}

fn name(key: ReplyKey) -> Vec<u8> {
    let mut name = b"weirgate:reply:".to_vec();
    for byte in key.0 {
        let digit = |four: u8| char::from_digit(four.into(), 16).map_or(b'0', |digit| digit as u8);
        name.extend([digit(byte >> 4), digit(byte & 15)]);
    }
    name
}

/// Returns the cipher of a reply.
fn cipher(sealing: &hmac::Key, key: ReplyKey) -> Option<LessSafeKey> {
    let own = hmac::sign(sealing, &[&[FORM_VERSION], key.0.as_slice()].concat());
    let unbound = UnboundKey::new(&CHACHA20_POLY1305, own.as_ref()).ok()?;
    Some(LessSafeKey::new(unbound))
}

fn seal(sealing: &hmac::Key, key: ReplyKey, reply: &CachedReply) -> Option<Vec<u8>> {
    let mut nonce_bytes = [0_u8; NONCE_LEN];
    getrandom::fill(&mut nonce_bytes).ok()?;
    let mut sealed = reply.to_bytes()?;
    let nonce = Nonce::assume_unique_for_key(nonce_bytes);
    cipher(sealing, key)?
        .seal_in_place_append_tag(nonce, Aad::from(key.0), &mut sealed)
        .ok()?;
    Some([&nonce_bytes, sealed.as_slice()].concat())
}

fn open(sealing: &hmac::Key, key: ReplyKey, mut sealed: Vec<u8>) -> Option<CachedReply> {
    let (nonce_bytes, text) = sealed.split_first_chunk_mut()?;
    let nonce = Nonce::assume_unique_for_key(*nonce_bytes);
    let opened = cipher(sealing, key)?.open_in_place(nonce, Aad::from(key.0), text);
    let length = opened.ok()?.len();
    let bytes = Bytes::from(sealed);
    CachedReply::from_bytes(&bytes.slice(NONCE_LEN..NONCE_LEN + length))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use filters::models::metadata::AnswerMembers;
    use filters::models::usage::Usage;

    use super::*;

    const KEY: ReplyKey = ReplyKey([7; 32]);

    fn sealing(byte: u8) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &[byte; 32])
    }

    fn reply() -> CachedReply {
        let members = AnswerMembers::Replayed("\"a\":1");
        CachedReply::new(
            Bytes::new(),
            Usage::default(),
            ("m", "maker", "l"),
            &members,
            5,
        )
    }

    #[test]
    fn a_sealed_reply_opens_under_its_key_and_secret_alone() {
        let sealed = seal(&sealing(1), KEY, &reply()).unwrap();
        assert_eq!(open(&sealing(1), KEY, sealed.clone()), Some(reply()));
        assert_eq!(open(&sealing(1), ReplyKey([8; 32]), sealed.clone()), None);
        assert_eq!(open(&sealing(2), KEY, sealed.clone()), None);
        for index in 0..sealed.len() {
            let mut other = sealed.clone();
            other[index] ^= 1;
            assert_eq!(open(&sealing(1), KEY, other), None, "{index}");
            assert_eq!(open(&sealing(1), KEY, sealed[..index].into()), None);
        }
        for garbage in ["", "garbage", &"x".repeat(5000)] {
            assert_eq!(open(&sealing(1), KEY, garbage.into()), None);
        }
    }

    #[test]
    fn a_name_is_the_key_in_hex() {
        let expected = format!("weirgate:reply:{}", "07".repeat(32));
        assert_eq!(name(KEY), expected.as_bytes());
    }
}
