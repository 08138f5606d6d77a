//! Pieces of an answer that do not go out.

use pingora::protocols::http::HttpTask;
use pingora::{Error, Result};

use super::session::ATTEMPT_ABORTED;

/// Takes an answer for which nobody waits any more; tells whether it has ended.
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

/// An answer that ended before it began.
pub(super) fn empty() -> Box<Error> {
    let mut error = Error::explain(ATTEMPT_ABORTED, "the answer is empty").into_up();
    error.set_retry(true);
    error
}
