//! Videos after their order: jobs in the store. They are polled until they end, charged once, and reported to their
//! callbacks.
//!
//! [`worker`] does the due work on the jobs of the store. [`provider`]
//! asks the provider of a job, [`content`] passes its bytes, and [`callback`] reports its end.
//! `filters::models::videos` decides about replies, and [`crate::store`] charges once. Source: docs/decisions.md 56,
//! 57.

pub mod callback;
pub mod content;
mod provider;
pub mod worker;

use std::time::Duration;

use filters::fault::{Fault, FaultKind};
use filters::models::videos::order::{JobState, VideoOrder};

use self::callback::Callbacks;
use crate::config::Config;
use crate::outbound::Outbound;
use crate::store::ledger::StoredJob;

/// How long a provider may take to report the status of a job.
const POLL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the bytes of a video may take.
const CONTENT_TIMEOUT: Duration = Duration::from_secs(3600);

/// The clients and settings for video jobs.
pub struct Videos {
    /// Polls providers for the status of jobs.
    polls: Outbound,
    /// Fetches bytes from providers. Its connections belong to the runtime of each request, so they are not reused.
    contents: Outbound,
    /// Reports the end of jobs.
    pub callbacks: Callbacks,
    max_bytes: u64,
    /// The time after which a job is given up.
    job_timeout: Duration,
}

impl Videos {
    /// Creates the clients of a configuration.
    ///
    /// Errors: no HTTP client can be created.
    pub fn new(config: &Config) -> reqwest::Result<Self> {
        let urls = || config.written_provider_urls();
        Ok(Self {
            polls: Outbound::new(POLL_TIMEOUT, urls())?,
            contents: Outbound::direct(CONTENT_TIMEOUT, urls())?,
            callbacks: Callbacks::new(&config.videos.callback_origins)?,
            max_bytes: config.limits.body_bytes.video as u64,
            job_timeout: config.videos.timeout,
        })
    }
}

/// A job of the store, parsed.
pub struct ReadJob {
    pub order: VideoOrder,
    pub state: JobState,
}

impl ReadJob {
    /// Reads a job.
    ///
    /// Errors: a later version has written the job.
    pub fn new(job: &StoredJob) -> Result<Self, Fault> {
        let unreadable = |error: serde_json::Error| {
            Fault::new(FaultKind::Internal, "the job cannot be read").with_detail(error.to_string())
        };
        Ok(Self {
            order: serde_json::from_str(&job.ordered).map_err(unreadable)?,
            state: serde_json::from_str(&job.state).map_err(unreadable)?,
        })
    }
}
