//! What a mapping can do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The capabilities of a mapping: a closed list. Source: docs/interface.md, `models.toml`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words say it")]
pub enum Capability {
    Streaming,
    Tools,
    ParallelTools,
    ForcedTools,
    Vision,
    Audio,
    Documents,
    JsonObject,
    JsonSchema,
    Reasoning,
    WebSearch,
    CacheControl,
    Verbosity,
    N,
    Cancellation,
    Dimensions,
    ImageOutput,
    Timestamps,
    Diarization,
}

/// A set of capabilities, a bit for each.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Capabilities(u32);

impl Capabilities {
    /// Returns whether a capability is in the set.
    pub fn contains(self, capability: Capability) -> bool {
        self.0 & (1 << capability as u32) != 0
    }
}

impl FromIterator<Capability> for Capabilities {
    fn from_iter<I: IntoIterator<Item = Capability>>(capabilities: I) -> Self {
        let bits = capabilities.into_iter();
        Self(bits.fold(0, |set, capability| set | (1 << capability as u32)))
    }
}
