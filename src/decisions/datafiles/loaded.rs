//! A datafile in force.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use filters::decisions::ofrep;
use filters::decisions::{EvaluationRules, Project};

/// A datafile in force.
pub struct LoadedDatafile {
    /// The indexed datafile.
    pub project: Project,
    /// The text as received.
    pub text: Bytes,
    /// The tag of the text.
    pub etag: Arc<str>,
    /// The time at which it was read.
    pub loaded_at: Instant,
}

impl LoadedDatafile {
    /// Indexes a datafile. Cost: milliseconds for a large one, so it runs on a thread for blocking work.
    ///
    /// Errors: the text is no usable datafile, in words for the log.
    pub(super) fn parse(text: Bytes, rules: EvaluationRules) -> Result<Self, String> {
        let project = Project::parse(&text, rules).map_err(|error| error.to_string())?;
        Ok(Self {
            project,
            etag: ofrep::flag_config_etag(&text).into(),
            loaded_at: Instant::now(),
            text,
        })
    }
}
