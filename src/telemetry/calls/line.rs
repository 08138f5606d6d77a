//! A kept line as it is read: what pages show of a call.
//!
//! A member that is absent has its default. Members that nobody shows by themselves stay in the line.

use std::borrow::Cow;
use std::collections::BTreeMap;

use filters::money::Usd;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A call that has ended.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct KeptCall {
    /// When it ended, RFC 3339.
    pub time: String,
    pub request_id: String,
    pub route: String,
    pub path: String,
    pub client_ip: String,
    pub user_agent: String,
    pub organization: String,
    pub project: String,
    pub key_id: String,
    /// The owner's name for the key.
    pub key_label: String,
    pub client_id: String,
    pub tool: String,
    pub status: u16,
    pub outcome: String,
    pub duration_ms: f64,
    pub shared_wait_ms: f64,
    pub request_bytes: u64,
    pub response_bytes: u64,
    /// The model that was asked for.
    pub model: String,
    pub log_id: String,
    pub session_id: String,
    pub agent_id: String,
    pub parent_agent_id: String,
    pub used_model: String,
    pub provider: String,
    pub stream: bool,
    /// Whether a stored reply was replayed.
    pub cached: bool,
    pub attempts: Vec<KeptAttempt>,
    pub left_out: Vec<KeptLeftOut>,
    /// `None`: no content went out.
    pub first_event_ms: Option<f64>,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub cached_tokens: u64,
    pub estimated: bool,
    /// `None`: nothing was charged, or the price is unknown.
    #[serde(deserialize_with = "usd")]
    pub cost: Option<Usd>,
    pub error: Option<KeptFault>,
    /// Tokens and cost by part, as the response tells them.
    pub usage: Option<KeptUsage>,
    /// What was left of the quota of requests.
    pub quota: Option<KeptQuota>,
    /// Why the providers were chosen: the plan of docs/routing.md, where it was made.
    pub plan: Option<Box<RawValue>>,
    /// Whether the line was too long, so that it has the members of the core alone.
    pub cut: bool,
    /// Its number among the calls of the process that have ended.
    #[serde(skip)]
    pub number: u64,
    /// The line itself.
    #[serde(skip)]
    pub line: String,
}

/// An attempt at a provider.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct KeptAttempt {
    pub provider: String,
    pub model: String,
    pub region: String,
    /// 0: it had no reply.
    pub status_code: u16,
    pub error_type: String,
    pub succeeded: bool,
    #[serde(rename = "credentialSource")]
    pub credential_source: String,
    #[serde(rename = "providerKeyLabel")]
    pub provider_key_label: String,
    /// Why it failed.
    pub cause: String,
    /// Since the request began.
    pub begun_ms: Option<f64>,
    /// When the head of the reply came, since the request began.
    pub answered_ms: Option<f64>,
    /// Since the request began.
    pub ended_ms: Option<f64>,
}

/// A candidate that could not serve the request.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct KeptLeftOut {
    pub provider: String,
    pub model: String,
    pub param: String,
    pub reason: String,
}

/// What the client was told in place of an answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct KeptFault {
    #[serde(rename = "type")]
    pub error_type: String,
    pub code: Option<String>,
    pub param: Option<String>,
    pub message: String,
    pub detail: String,
}

/// Tokens and cost by part.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct KeptUsage {
    pub reasoning_tokens: u64,
    pub prompt_tokens_details: serde_json::Map<String, serde_json::Value>,
    pub completion_tokens_details: serde_json::Map<String, serde_json::Value>,
    /// The parts that are not zero, by the names of `usage.cost_details`.
    #[serde(deserialize_with = "parts")]
    pub cost_details: BTreeMap<String, Usd>,
}

/// What was left of a quota when the call was admitted.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct KeptQuota {
    pub limit: u64,
    pub remaining: u64,
    pub reset_ms: u64,
    pub window_ms: u64,
}

impl KeptCall {
    /// Reads the line of the call with this number; `None`: it is none.
    pub fn parse(number: u64, line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?;
        let call: Self = serde_json::from_str(line).ok()?;
        Some(Self {
            number,
            line: line.to_owned(),
            ..call
        })
    }

    /// Returns whether it came to no whole answer. A client that left is no failure.
    pub fn has_failed(&self) -> bool {
        has_failed(&self.outcome)
    }

    /// Returns the share of the prompt that a provider had cached; `None`: it had no prompt.
    pub fn cached_share(&self) -> Option<f64> {
        cached_share(self.cached_tokens, self.prompt_tokens)
    }
}

/// What a session counts of a call, borrowed from its line: to list the sessions, all lines are read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct SessionCall<'l> {
    #[serde(borrow)]
    pub(super) time: Cow<'l, str>,
    #[serde(borrow)]
    pub(super) organization: Cow<'l, str>,
    #[serde(borrow)]
    pub(super) session_id: Cow<'l, str>,
    #[serde(borrow)]
    pub(super) agent_id: Cow<'l, str>,
    #[serde(borrow)]
    pub(super) outcome: Cow<'l, str>,
    pub(super) prompt_tokens: u64,
    pub(super) cached_tokens: u64,
    pub(super) completion_tokens: u64,
    #[serde(deserialize_with = "usd")]
    pub(super) cost: Option<Usd>,
}

impl<'l> SessionCall<'l> {
    /// Reads the line of a call; `None`: it is none, or of no session.
    pub fn parse(line: &'l [u8]) -> Option<Self> {
        memchr::memmem::find(line, b"\"session_id\":")?;
        let line = std::str::from_utf8(line).ok()?;
        let call: Self = serde_json::from_str(line).ok()?;
        (!call.session_id.is_empty()).then_some(call)
    }

    /// Returns whether it came to no whole answer. A client that left is no failure.
    pub(super) fn has_failed(&self) -> bool {
        has_failed(&self.outcome)
    }
}

impl<'c> From<&'c KeptCall> for SessionCall<'c> {
    fn from(call: &'c KeptCall) -> Self {
        Self {
            time: Cow::Borrowed(&call.time),
            organization: Cow::Borrowed(&call.organization),
            session_id: Cow::Borrowed(&call.session_id),
            agent_id: Cow::Borrowed(&call.agent_id),
            outcome: Cow::Borrowed(&call.outcome),
            prompt_tokens: call.prompt_tokens,
            cached_tokens: call.cached_tokens,
            completion_tokens: call.completion_tokens,
            cost: call.cost,
        }
    }
}

fn has_failed(outcome: &str) -> bool {
    matches!(outcome, "refused" | "failed" | "broken")
}

/// Returns the share of tokens that were cached; `None`: there were none.
pub(super) fn cached_share(cached: u64, prompt: u64) -> Option<f64> {
    (prompt > 0).then(|| cached as f64 / prompt as f64)
}

/// Reads an amount in quotes.
fn usd<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Usd>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.and_then(|text| Usd::parse_signed(&text).ok()))
}

/// Reads amounts that are numbers, exactly.
fn parts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, Usd>, D::Error> {
    let parts = BTreeMap::<String, Box<RawValue>>::deserialize(deserializer)?;
    let exact = |(name, number): (String, Box<RawValue>)| {
        let amount = Usd::parse_signed(number.get()).ok()?;
        (!amount.is_zero()).then_some((name, amount))
    };
    Ok(parts.into_iter().filter_map(exact).collect())
}
