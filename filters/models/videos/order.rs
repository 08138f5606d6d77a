//! What the store keeps of a job: what was ordered, which never changes, and how far it has come.

use serde::{Deserialize, Serialize};

use super::VideoSize;

/// What was ordered, and where.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct VideoOrder {
    /// The model's id in the catalogue.
    pub model: Box<str>,
    /// The provider's name in the configuration.
    pub provider: Box<str>,
    pub upstream_model: Box<str>,
    pub region: Option<Box<str>>,
    /// `provider/model`, with `:region` where one was used.
    pub used_model: Box<str>,
    /// Which endpoint of its provider has it.
    pub endpoint: usize,
    /// The fingerprint of the key that ordered it; `None`: its provider needs none.
    pub key_hash: Option<Box<str>>,
    /// The id of that key, where it is the caller's own.
    pub byok_id: Option<Box<str>>,
    pub job: Box<str>,
    pub seconds: u32,
    pub size: VideoSize,
    /// When it was ordered, in unix milliseconds. Prices are those of this time.
    pub created_ms: u64,
    /// How many attempts its order took.
    pub attempts: u32,
    /// Who is told of its end. The secret of the signatures is kept apart, encrypted.
    pub callback_url: Option<Box<str>>,
}

/// What became of a job.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JobStatus {
    #[default]
    Queued,
    /// It is being made.
    InProgress,
    Completed,
    /// It is not: the provider failed, or a filter has refused it.
    Failed,
    /// It did not come in time.
    Expired,
}

impl JobStatus {
    /// Returns the word of the public shape.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Expired => "expired",
        }
    }
}

/// How far a job has come.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct JobState {
    pub status: JobStatus,
    /// From 0 to 100.
    pub progress: u8,
    /// When it ended, in unix milliseconds.
    pub ended_ms: Option<u64>,
    /// Until when its provider keeps it, where that is known, in unix milliseconds.
    pub expires_ms: Option<u64>,
    pub error: Option<JobError>,
    /// Where its provider has it, if not at the path of the job.
    pub link: Option<Box<str>>,
    /// What it cost in USD, as a decimal, once that is charged.
    pub cost: Option<Box<str>>,
    /// How often its provider was asked.
    pub polls: u32,
    /// How often in a row its provider did not answer.
    pub failures: u32,
    /// How often its callback was told.
    pub told: u32,
}

/// Why a job failed, in words for the client.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct JobError {
    /// A word for programs.
    pub code: Box<str>,
    pub message: Box<str>,
}

impl JobError {
    /// Makes an error.
    pub fn new(code: &str, message: &str) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
        }
    }
}
