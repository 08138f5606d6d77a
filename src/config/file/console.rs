//! `[console]`, as the file has it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the console has of the process.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConsoleConfig {
    /// How many of the last calls of models are kept in memory, up to 16 KiB each, without bodies; 0: none, and none that run are listed.
    #[schemars(range(max = 10_000))]
    pub keep_calls: usize,
}

impl Default for ConsoleConfig {
    fn default() -> Self {
        Self { keep_calls: 1_000 }
    }
}
