//! How far a response has come that is made in the background.

use serde::{Deserialize, Serialize};

use crate::json::members::with_member;
use crate::json::{Error, quoted};
use crate::ledger::SessionNames;

/// What the store keeps of a request that is answered in the background, beside its body.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct BackgroundOrder {
    /// The public id of the response that it goes on with.
    pub previous: Option<Box<str>>,
    /// Whether the client refuses a fallback.
    pub no_fallback: bool,
    /// The session in whose usage the call is.
    pub session: Option<SessionNames>,
}

/// The words of the state of a response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ResponseStatus {
    Queued,
    InProgress,
    Completed,
    Incomplete,
    Failed,
    Cancelled,
}

impl ResponseStatus {
    const ALL: [Self; 6] = [
        Self::Queued,
        Self::InProgress,
        Self::Completed,
        Self::Incomplete,
        Self::Failed,
        Self::Cancelled,
    ];

    /// Returns the word of the public shape.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns the status of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Returns whether a conversation goes on with such a response.
    pub fn has_output(self) -> bool {
        matches!(self, Self::Completed | Self::Incomplete)
    }

    /// Returns whether it is still being made.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Queued | Self::InProgress)
    }
}

/// Returns a response with this status.
///
/// Errors: it is no JSON object.
pub fn with_status(response: &str, status: ResponseStatus) -> Result<String, Error> {
    with_member(response, "status", &quoted(status.as_str()))
}

/// Returns a response that was made at this unix second.
///
/// Errors: it is no JSON object.
pub fn with_created(response: &str, created_s: i64) -> Result<String, Error> {
    with_member(response, "created_at", &created_s.to_string())
}

/// Returns a response that has failed for this reason: a JSON object.
///
/// Errors: it is no JSON object.
pub fn failed(response: &str, error: &str) -> Result<String, Error> {
    let failed = with_status(response, ResponseStatus::Failed)?;
    with_member(&failed, "error", error)
}
