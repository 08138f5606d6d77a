//! Discards the pieces of a reply that are not sent to the client.

use pingora::protocols::http::HttpTask;
use pingora::{Error, Result};

use super::error_types::ATTEMPT_ABORTED;

/// Discards pieces for a disconnected client. Returns whether the reply has ended.
pub(super) fn discard(tasks: Vec<HttpTask>) -> Result<bool> {
    let mut is_end = false;
    for task in tasks {
        is_end |= task.is_end();
        if let HttpTask::Failed(error) = task {
            return Err(error);
        }
    }
    Ok(is_end)
}

/// Returns the error of a reply that ended without content. It lets Pingora start another attempt.
pub(super) fn empty_reply() -> Box<Error> {
    let mut error = Error::explain(ATTEMPT_ABORTED, "the reply is empty").into_up();
    error.set_retry(true);
    error
}
