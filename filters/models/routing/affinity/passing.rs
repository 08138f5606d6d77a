//! Bindings as bytes, as they pass to the process that takes the place of this one.
//!
//! Shape: for each binding its key (16 bytes), then the id of its mapping, its cached tokens and the time that it has left in
//! milliseconds (u64 each, little-endian).

use std::sync::PoisonError;

use super::{Binding, Bound, PER_SHARD, SessionAffinity, SessionKey};

/// The size of a binding.
const BYTES: usize = 40;

impl SessionAffinity {
    /// Returns the bindings that count now, as bytes.
    pub fn to_bytes(&self, now_ms: u64) -> Vec<u8> {
        let mut out = Vec::new();
        for shard in self.shards.iter() {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            for (key, bound) in shard.iter().filter(|(_, bound)| bound.until_ms > now_ms) {
                out.extend(key.0);
                let left_ms = bound.until_ms - now_ms;
                for number in [bound.binding.mapping, bound.binding.cached_tokens, left_ms] {
                    out.extend(number.to_le_bytes());
                }
            }
        }
        out
    }

    /// Takes in bindings of another process with the same secret. Those that this one has stay. Returns how many were taken.
    pub fn take_in(&self, bytes: &[u8], now_ms: u64) -> usize {
        let (bindings, _) = bytes.as_chunks::<BYTES>();
        let taken = bindings.iter().filter_map(|bytes| {
            let (key, numbers) = bytes.split_first_chunk::<16>()?;
            let (numbers, _) = numbers.as_chunks::<8>();
            let &[mapping, cached_tokens, left_ms] = numbers else {
                return None;
            };
            let key = SessionKey(*key);
            let left_ms = u64::from_le_bytes(left_ms).min(self.ttl_ms);
            let bound = Bound {
                binding: Binding {
                    mapping: u64::from_le_bytes(mapping),
                    cached_tokens: u64::from_le_bytes(cached_tokens),
                },
                until_ms: now_ms.saturating_add(left_ms),
                // Other processes that share bindings were told by the one before.
                told_ms: Some(now_ms),
            };
            let mut shard = self.shard(key)?;
            (shard.len() < PER_SHARD && !shard.contains_key(&key)).then(|| shard.insert(key, bound))
        });
        taken.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL_MS: u64 = 60_000;

    #[test]
    fn sessions_stay_where_they_are_for_the_time_that_they_have_left() {
        let old = SessionAffinity::new(TTL_MS);
        let binding = |mapping| Binding {
            mapping,
            cached_tokens: mapping * 10,
        };
        for number in 0..200_u8 {
            let key = SessionKey([number; 16]);
            old.bind(key, binding(u64::from(number)), u64::from(number));
        }
        let bytes = old.to_bytes(TTL_MS + 99);
        assert_eq!(bytes.len(), 100 * BYTES, "the others have expired");
        let new = SessionAffinity::new(TTL_MS);
        let own = SessionKey([150; 16]);
        new.bind(own, binding(7), 5);
        assert_eq!(new.take_in(&bytes, 5), 99);
        assert_eq!(new.find(own, 6), Some(binding(7)));
        let last = SessionKey([199; 16]);
        assert_eq!(new.find(last, 104), Some(binding(199)));
        assert_eq!(new.find(last, 105), None);
        assert_eq!(new.find(SessionKey([3; 16]), 5), None);
    }

    #[test]
    fn damage_takes_nothing_in() {
        let new = SessionAffinity::new(TTL_MS);
        assert_eq!(new.take_in(&[1; BYTES - 1], 0), 0);
        assert_eq!(new.take_in(&[255; BYTES + 3], 0), 1);
        let key = SessionKey([255; 16]);
        assert_eq!(
            new.find(key, TTL_MS),
            None,
            "no time is longer than the configured one"
        );
    }
}
