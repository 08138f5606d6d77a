//! A cache of fetched images, for a short time and up to a bound of bytes. The turns of a conversation refer to the
//! same images.
//! Images leave in the order in which they came, because they expire or because others need their room. So neither
//! case searches the whole cache.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use filters::models::chat::inlined::InlinedImage;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

/// How long an image is reused. Our choice: the image at an address may change.
const CACHE_TTL: Duration = Duration::from_secs(300);

/// The size of an entry without its data URL: its key twice, pointers and lengths. Our choice, rounded up.
const ENTRY_BYTES: usize = 256;

/// A digest of organization and address. So no organization gets an image that another one fetched.
pub(super) type ImageKey = [u8; 32];

/// Returns the key of an address.
pub(super) fn image_key(organization: &str, url: &str) -> ImageKey {
    let mut digest = Sha256::new();
    digest.update(organization.as_bytes());
    digest.update([0]);
    digest.update(url.as_bytes());
    digest.finalize().into()
}

/// A cache of fetched images.
pub(super) struct ImageCache {
    max_bytes: usize,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    images: HashMap<ImageKey, CachedImage>,
    /// The keys by the numbers of their entries. Numbers grow, so the first key is the oldest.
    order: BTreeMap<u64, ImageKey>,
    next_number: u64,
    bytes: usize,
}

struct CachedImage {
    image: Arc<InlinedImage>,
    stored: Instant,
    number: u64,
}

impl ImageCache {
    /// Creates an empty cache. With a bound of 0 it stays empty.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            entries: Mutex::default(),
        }
    }

    /// Returns an image that was stored recently.
    pub(super) fn find(&self, key: &ImageKey, now: Instant) -> Option<Arc<InlinedImage>> {
        let mut entries = self.lock();
        entries.sweep(now);
        let entry = entries.images.get(key)?;
        Some(Arc::clone(&entry.image))
    }

    /// Stores an image. The oldest ones make room.
    ///
    /// Cost: a lock, and a logarithm of the entries for each removed one.
    pub(super) fn store(&self, key: ImageKey, image: &Arc<InlinedImage>, now: Instant) {
        let weight = weight(image);
        if weight > self.max_bytes {
            return;
        }
        let mut entries = self.lock();
        entries.sweep(now);
        entries.remove(&key);
        while entries.bytes + weight > self.max_bytes {
            let Some(oldest) = entries.oldest() else {
                break;
            };
            entries.remove(&oldest);
        }
        let number = entries.next_number;
        entries.next_number += 1;
        entries.bytes += weight;
        entries.order.insert(number, key);
        let entry = CachedImage {
            image: Arc::clone(image),
            stored: now,
            number,
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
    fn oldest(&self) -> Option<ImageKey> {
        self.order.first_key_value().map(|(_, key)| *key)
    }

    /// Removes the expired entries, which are the oldest.
    fn sweep(&mut self, now: Instant) {
        while let Some(oldest) = self.oldest() {
            let entry = self.images.get(&oldest);
            if entry.is_some_and(|entry| now.duration_since(entry.stored) < CACHE_TTL) {
                break;
            }
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, key: &ImageKey) {
        if let Some(entry) = self.images.remove(key) {
            self.order.remove(&entry.number);
            self.bytes -= weight(&entry.image);
        }
    }
}

fn weight(image: &InlinedImage) -> usize {
    image.url.len() + ENTRY_BYTES
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
        let bytes = image().url.len() + 256;
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
        assert_eq!(found, [false, true, true]);
        assert_eq!(cache.lock().bytes, 2 * bytes);
        assert!(cache.find(&keys[1], later(301)).is_none());
        assert_eq!(cache.lock().bytes, bytes);
    }

    #[test]
    fn what_is_over_leaves_when_anything_else_comes() {
        let bytes = image().url.len() + 256;
        let cache = ImageCache::new(10 * bytes);
        let start = Instant::now();
        let [old, again, new] = ["a", "b", "c"].map(|url| image_key("org", url));
        cache.store(old, &image(), start);
        cache.store(again, &image(), start);
        cache.store(again, &image(), start + Duration::from_secs(200));
        cache.store(new, &image(), start + Duration::from_secs(301));
        let entries = cache.lock();
        assert!(!entries.images.contains_key(&old));
        assert!(entries.images.contains_key(&again));
        assert_eq!((entries.bytes, entries.order.len()), (2 * bytes, 2));
    }

    #[test]
    fn a_cache_without_room_keeps_nothing() {
        let cache = ImageCache::new(0);
        let key = image_key("org", "a");
        cache.store(key, &image(), Instant::now());
        assert!(cache.find(&key, Instant::now()).is_none());
    }
}
