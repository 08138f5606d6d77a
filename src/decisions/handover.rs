//! What the next process takes over of the flag decisions: forced decisions, and profiles in memory.
//!
//! Both are JSON, an array for each user. What does not arrive is lost, as in a restart.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::DecisionService;

/// The maximum bytes of one part. The process that takes them over accepts no more.
pub(super) const MAX_BYTES: usize = 48 << 20;

/// The pairs of a user: experiments and variations.
#[derive(Deserialize, Serialize)]
pub(super) struct UserEntry {
    pub(super) sdk_key: Box<str>,
    pub(super) user: Box<str>,
    /// In the order in which they were set.
    pub(super) variations: Vec<(Box<str>, Box<str>)>,
}

/// Writes entries, as many as there is room for.
pub(super) fn write(entries: impl Iterator<Item = impl Serialize>) -> Vec<u8> {
    let mut out = Vec::new();
    for entry in entries {
        let before = out.len();
        // Texts and maps of texts are always JSON.
        _ = serde_json::to_writer(&mut out, &entry);
        out.push(b'\n');
        if out.len() > MAX_BYTES {
            out.truncate(before);
            break;
        }
    }
    out
}

/// Reads entries. Those that are no entries are left out.
pub(super) fn read<T: DeserializeOwned>(bytes: &[u8]) -> impl Iterator<Item = T> {
    let lines = bytes.split(|byte| *byte == b'\n');
    lines.filter_map(|line| serde_json::from_slice(line).ok())
}

impl DecisionService {
    /// Returns the forced decisions.
    pub fn overrides_to_bytes(&self) -> Vec<u8> {
        let overrides = self.overrides.as_ref();
        overrides.map(|it| it.to_bytes()).unwrap_or_default()
    }

    /// Takes in forced decisions of another process. Returns of how many users.
    pub fn take_in_overrides(&self, bytes: &[u8]) -> usize {
        self.overrides.as_ref().map_or(0, |it| it.take_in(bytes))
    }

    /// Returns the profiles in memory.
    pub fn profiles_to_bytes(&self) -> Vec<u8> {
        let profiles = self.profiles.as_ref();
        profiles.map(|it| it.to_bytes()).unwrap_or_default()
    }

    /// Takes in profiles of another process. Returns how many.
    pub fn take_in_profiles(&self, bytes: &[u8]) -> usize {
        self.profiles.as_ref().map_or(0, |it| it.take_in(bytes))
    }
}
