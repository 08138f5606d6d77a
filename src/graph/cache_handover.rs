//! What the next process takes over of the response cache.
//!
//! An entry: the milliseconds of its age and those for which it is fresh (8 bytes each), and then its key, its headers as lines, and
//! its body, each behind its length (4 bytes, little-endian).

use std::time::Duration;

use bytes::Bytes;
use filters::graph::CacheKey;
use http::{HeaderName, HeaderValue};
use tokio::time::Instant;

use super::cache::{CachedResponse, ResponseCache};

/// The maximum bytes of all entries. The process that takes them over accepts no more.
const MAX_BYTES: usize = 48 << 20;
/// The bytes of an entry beside its parts.
const HEAD_BYTES: usize = 8 + 8 + 3 * 4;

impl ResponseCache {
    /// Returns the fresh responses, as many as there is room for.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (mut out, now) = (Vec::new(), Instant::now());
        for (key, response) in self.entries() {
            let fresh_for = response.expires.saturating_duration_since(now);
            let mut headers = Vec::new();
            for (name, value) in &response.headers {
                headers.extend_from_slice(name.as_str().as_bytes());
                headers.push(b':');
                headers.extend_from_slice(value.as_bytes());
                headers.push(b'\n');
            }
            let parts = [key.as_bytes(), &headers, &response.body];
            let bytes = HEAD_BYTES + parts.iter().map(|part| part.len()).sum::<usize>();
            if fresh_for.is_zero() || out.len() + bytes > MAX_BYTES {
                continue;
            }
            out.extend(to_ms(response.generated.elapsed()));
            out.extend(to_ms(fresh_for));
            for part in parts {
                out.extend(u32::try_from(part.len()).unwrap_or(u32::MAX).to_le_bytes());
                out.extend_from_slice(part);
            }
        }
        out
    }

    /// Takes in responses of another process, which are fresh for no longer than this one's settings say. Returns how many.
    pub fn take_in(&self, mut bytes: &[u8]) -> usize {
        let (mut count, now) = (0, Instant::now());
        while let Some((key, response, rest)) = read_entry(bytes, now) {
            self.insert(key, response);
            count += 1;
            bytes = rest;
        }
        count
    }
}

fn to_ms(duration: Duration) -> [u8; 8] {
    let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    ms.to_le_bytes()
}

/// Reads the first entry. Returns it and the bytes behind it.
fn read_entry(bytes: &[u8], now: Instant) -> Option<(CacheKey, CachedResponse, &[u8])> {
    let (age, bytes) = read_ms(bytes)?;
    let (fresh_for, bytes) = read_ms(bytes)?;
    let (key, bytes) = read_part(bytes)?;
    let (headers, bytes) = read_part(bytes)?;
    let (body, rest) = read_part(bytes)?;
    let lines = headers.split(|byte| *byte == b'\n');
    let headers = lines.filter(|line| !line.is_empty()).map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = line.split_at_checked(colon)?;
        let name = HeaderName::from_bytes(name).ok()?;
        Some((name, HeaderValue::from_bytes(value.get(1..)?).ok()?))
    });
    let response = CachedResponse {
        headers: headers.collect::<Option<_>>()?,
        // Copies, so that no response keeps the bytes of all.
        body: Bytes::copy_from_slice(body),
        generated: now.checked_sub(age).unwrap_or(now),
        expires: now.checked_add(fresh_for)?,
    };
    Some((
        CacheKey::from_bytes(Bytes::copy_from_slice(key)),
        response,
        rest,
    ))
}

fn read_ms(bytes: &[u8]) -> Option<(Duration, &[u8])> {
    let (ms, rest) = bytes.split_first_chunk()?;
    Some((Duration::from_millis(u64::from_le_bytes(*ms)), rest))
}

fn read_part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}
