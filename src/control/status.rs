//! What a running process is doing, as it tells commands.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The state of a process that serves.
pub const SERVES: &str = "serves";

/// The answer to `status`. Shape: a JSON object, whose absent members an older process does not know.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct ProcessStatus {
    pub version: String,
    /// The process id.
    pub process: u32,
    /// [`SERVES`], or why it does not.
    pub state: String,
    /// Since when it answers commands (RFC 3339).
    pub started_at: String,
    pub uptime_s: u64,
    /// The addresses of the public listener and of the operator's.
    pub listeners: Vec<String>,
    pub load: ProcessLoad,
    pub store: StoreState,
    /// `answers` or `does not answer`; absent: none is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redis: Option<String>,
    pub journal: JournalState,
    pub leases: HeldCredit,
    pub providers: Vec<ProviderState>,
    /// The configuration in force and the last reload, as `/readyz?verbose` has them.
    pub configuration: Value,
}

/// What a process has to do now, and has done since its start.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct ProcessLoad {
    /// All requests that have ended.
    pub requests: u64,
    /// Those that run.
    pub in_flight: i64,
    pub streams: i64,
    /// Open connections of clients.
    pub connections: i64,
    /// Its memory; absent: unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

/// How the store answers.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct StoreState {
    /// Where it is, without credentials.
    pub url: String,
    /// `answers`, `takes no writes` or `does not answer`.
    pub state: String,
    /// How long ago it has confirmed the accounts, in seconds.
    pub confirmed_s: f64,
}

/// The calls that the store does not have yet.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct JournalState {
    pub bytes: i64,
    /// How long the oldest ended call waits, in seconds.
    pub lag_s: f64,
    /// Calls that the store has refused since the start.
    pub refused: u64,
}

/// What the process holds of balances, to spend without queries.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct HeldCredit {
    /// Organizations of which it holds credit.
    pub organizations: usize,
    /// USD that are held and not reserved.
    pub free: String,
    /// USD that running calls may cost.
    pub reserved: String,
}

/// How a provider answers.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct ProviderState {
    pub provider: String,
    /// Ways to serve a model: its models, once for each region.
    pub candidates: usize,
    /// Those that are tried after all others, because they have failed or are at a limit.
    pub resting: usize,
    /// Percent of the attempts of the last hour that answered, on average; absent: none was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uptime: Option<f64>,
    /// Ended attempts since the start.
    pub attempts: u64,
    /// Those that failed.
    pub failed: u64,
}
