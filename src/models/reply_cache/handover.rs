//! The replies in memory, as they pass to the process that takes the place of this one.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use filters::models::reply_cache::cached_reply::CachedReply;
use filters::models::reply_cache::key::ReplyKey;

use super::{ReplyCache, to_ms};

/// The maximum bytes of replies that pass. Our choice: more would take longer than a cache is worth.
const MAX_BYTES: usize = 48 << 20;
const KEY_BYTES: usize = 32;

impl ReplyCache {
    /// Returns replies as bytes, up to a bound. Shape: for each its key, the time in milliseconds that it stays (u64), the
    /// length of its bytes (u32), both little-endian, and these.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (key, entry) in &self.replies {
            let stays = entry.stays.saturating_sub(entry.stored.elapsed());
            let Some(bytes) = entry.reply.to_bytes().filter(|_| !stays.is_zero()) else {
                continue;
            };
            if out.len() + bytes.len() > MAX_BYTES {
                break;
            }
            out.extend(key.0);
            out.extend(to_ms(stays).to_le_bytes());
            out.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
            out.extend(bytes);
        }
        out
    }

    /// Takes in replies of another process with the same secrets. Returns how many.
    pub fn take_in(&self, bytes: Vec<u8>) -> usize {
        let (bytes, mut at, mut taken) = (Bytes::from(bytes), 0, 0);
        while let Some((key, stays, length)) = bytes.get(at..).and_then(read_head) {
            at += HEAD_BYTES;
            let end = at.saturating_add(length);
            if end > bytes.len() {
                break;
            }
            // A copy, so that one reply does not keep the bytes of all.
            let reply = Bytes::copy_from_slice(&bytes.slice(at..end));
            if let Some(reply) = CachedReply::from_bytes(&reply) {
                self.store_in_memory(key, &Arc::new(reply), stays);
                taken += 1;
            }
            at = end;
        }
        taken
    }
}

/// The size of what stands before the bytes of a reply.
const HEAD_BYTES: usize = KEY_BYTES + 8 + 4;

fn read_head(bytes: &[u8]) -> Option<(ReplyKey, Duration, usize)> {
    let (key, bytes) = bytes.split_first_chunk::<KEY_BYTES>()?;
    let (stays_ms, bytes) = bytes.split_first_chunk()?;
    let (length, _) = bytes.split_first_chunk()?;
    let stays = Duration::from_millis(u64::from_le_bytes(*stays_ms));
    Some((ReplyKey(*key), stays, u32::from_le_bytes(*length) as usize))
}
