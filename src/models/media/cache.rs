//! Fetched images, for a short time and up to a bound of bytes: the turns of a conversation name the same ones.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use filters::models::chat::inlined::InlinedImage;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

/// How long an image is used again. Our choice: what stands at an address may change.
const CACHE_TTL: Duration = Duration::from_secs(300);

/// A digest of the organization and the address: what one organization fetched, no other gets.
pub(super) type ImageKey = [u8; 32];

/// Returns the key of an address.
pub(super) fn image_key(organization: &str, url: &str) -> ImageKey {
    let mut digest = Sha256::new();
    digest.update(organization.as_bytes());
    digest.update([0]);
    digest.update(url.as_bytes());
    digest.finalize().into()
}

/// See the module.
pub(super) struct ImageCache {
    max_bytes: usize,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    images: HashMap<ImageKey, Entry>,
    bytes: usize,
}

struct Entry {
    image: Arc<InlinedImage>,
    stored: Instant,
    used: Instant,
}

impl ImageCache {
    /// Creates an empty cache; with a bound of 0 it stays empty.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            entries: Mutex::default(),
        }
    }

    /// Returns an image that was stored a short time ago.
    pub(super) fn find(&self, key: &ImageKey, now: Instant) -> Option<Arc<InlinedImage>> {
        let mut entries = self.lock();
        let entry = entries.images.get_mut(key)?;
        if now.duration_since(entry.stored) < CACHE_TTL {
            entry.used = now;
            return Some(Arc::clone(&entry.image));
        }
        entries.remove(key);
        None
    }

    /// Stores an image; the ones used longest ago make room.
    pub(super) fn store(&self, key: ImageKey, image: &Arc<InlinedImage>, now: Instant) {
        if image.url.len() > self.max_bytes {
            return;
        }
        let mut entries = self.lock();
        entries.remove(&key);
        while entries.bytes + image.url.len() > self.max_bytes {
            let oldest = entries.images.iter().min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(key, _)| *key) else {
                break;
            };
            entries.remove(&oldest);
        }
        entries.bytes += image.url.len();
        let entry = Entry {
            image: Arc::clone(image),
            stored: now,
            used: now,
        };
        entries.images.insert(key, entry);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Entries> {
        self.entries
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Entries {
    fn remove(&mut self, key: &ImageKey) {
        if let Some(entry) = self.images.remove(key) {
            self.bytes -= entry.image.url.len();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn image() -> Arc<InlinedImage> {
        Arc::new(InlinedImage::read(b"GIF89a\x01\x00").unwrap())
    }

    #[test]
    fn images_are_kept_for_their_organization_up_to_the_bound_and_a_short_time() {
        let bytes = image().url.len();
        let cache = ImageCache::new(2 * bytes);
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        let keys = ["a", "b", "c"].map(|url| image_key("org", url));
        cache.store(keys[0], &image(), start);
        cache.store(keys[1], &image(), later(1));
        assert!(cache.find(&keys[0], later(2)).is_some());
        assert!(cache.find(&image_key("other", "a"), later(2)).is_none());
        cache.store(keys[2], &image(), later(3));
        let found = keys.map(|key| cache.find(&key, later(4)).is_some());
        assert_eq!(found, [true, false, true]);
        assert_eq!(cache.lock().bytes, 2 * bytes);
        assert!(cache.find(&keys[0], later(300)).is_none());
        assert_eq!(cache.lock().bytes, bytes);
    }

    #[test]
    fn a_cache_without_room_keeps_nothing() {
        let cache = ImageCache::new(0);
        let key = image_key("org", "a");
        cache.store(key, &image(), Instant::now());
        assert!(cache.find(&key, Instant::now()).is_none());
    }
}
