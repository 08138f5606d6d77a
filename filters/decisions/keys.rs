//! The keys of a request without repetitions. Source: docs/decision-agent.md 4, docs/facts/decision-engine.md D, E.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::fault::Fault;

/// The most different keys that one request may name. The keys of a whole project do not count.
pub const MAX_NAMED_KEYS: usize = 1000;
/// Up to this many keys are searched one by one, more of them by a hash.
const MAX_SCANNED_KEYS: usize = 16;

/// Keys and their kinds in the order received. No key occurs twice, even with two kinds.
///
/// Cost: a few keys are neither hashed nor copied.
#[derive(Debug)]
pub struct Keys<'a, K> {
    all: Vec<(K, Cow<'a, str>)>,
    /// The same keys, once there are more than a few.
    seen: HashSet<Cow<'a, str>>,
}

impl<K> Default for Keys<'_, K> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            seen: HashSet::new(),
        }
    }
}

impl<'a, K> Keys<'a, K> {
    /// Adds a key that the request names in `parameter`. Errors: 400 for more than [`MAX_NAMED_KEYS`].
    pub fn name(&mut self, kind: K, key: Cow<'a, str>, parameter: &str) -> Result<(), Fault> {
        self.add(kind, key);
        if self.all.len() <= MAX_NAMED_KEYS {
            return Ok(());
        }
        let message = format!(
            "`{parameter}` names more than {MAX_NAMED_KEYS} different keys; at most {MAX_NAMED_KEYS} are accepted in one call"
        );
        Err(Fault::invalid(parameter, message))
    }

    /// Adds a key unless it is already there.
    pub fn add(&mut self, kind: K, key: Cow<'a, str>) {
        if self.has(&key) {
            return;
        }
        if self.all.len() >= MAX_SCANNED_KEYS {
            if self.seen.is_empty() {
                self.seen = self.all.iter().map(|(_, key)| key.clone()).collect();
            }
            self.seen.insert(key.clone());
        }
        self.all.push((kind, key));
    }

    /// Returns whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns all keys.
    pub fn into_vec(self) -> Vec<(K, Cow<'a, str>)> {
        self.all
    }

    fn has(&self, key: &str) -> bool {
        match self.seen.is_empty() {
            true => self.all.iter().any(|(_, known)| known == key),
            false => self.seen.contains(key),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn every_key_is_kept_once_in_the_order_it_came_however_many_there_are() {
        for most in [
            3,
            MAX_SCANNED_KEYS - 1,
            MAX_SCANNED_KEYS,
            MAX_SCANNED_KEYS + 1,
            100,
        ] {
            let mut keys = Keys::default();
            for round in 0..2 {
                for key in 0..most {
                    keys.add(round, key.to_string().into());
                }
            }
            let expected: Vec<(i32, Cow<'_, str>)> =
                (0..most).map(|key| (0, key.to_string().into())).collect();
            assert_eq!(keys.into_vec(), expected);
        }
    }

    #[test]
    fn a_call_names_a_thousand_keys_and_a_project_has_as_many_as_it_has() {
        let mut keys = Keys::default();
        for key in 0..MAX_NAMED_KEYS {
            keys.name((), key.to_string().into(), "keys").unwrap();
            keys.name((), "0".into(), "keys").unwrap();
        }
        let fault = keys.name((), "more".into(), "keys").unwrap_err();
        assert_eq!(
            (fault.status(), &*fault.message, fault.param.as_deref()),
            (
                400,
                "`keys` names more than 1000 different keys; at most 1000 are accepted in one call",
                Some("keys")
            )
        );
        keys.add((), "own".into());
        assert!(keys.into_vec().len() > MAX_NAMED_KEYS);
    }
}
