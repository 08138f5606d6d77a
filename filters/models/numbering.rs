//! Numbers for what a reply names by keys of its own, in the order of their first sight.

use std::collections::BTreeMap;

/// The numbers of keys. A reply of any length has each number in logarithmic time.
#[derive(Debug)]
pub(super) struct Numbering<K>(BTreeMap<K, usize>);

impl<K> Default for Numbering<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord> Numbering<K> {
    /// Returns the number of a key, if it was seen.
    pub(super) fn get(&self, key: &K) -> Option<usize> {
        self.0.get(key).copied()
    }

    /// Returns the number of a key, and whether this is its first sight.
    pub(super) fn see(&mut self, key: K) -> (usize, bool) {
        let next = self.0.len();
        let number = *self.0.entry(key).or_insert(next);
        (number, number == next)
    }
}
