//! The types of our own errors while an attempt runs.

use pingora::ErrorType;

/// The type of our own errors inside the session. The [`AttemptState`](super::state::AttemptState) has the reason.
pub const ATTEMPT_ABORTED: ErrorType = ErrorType::Custom("attempt aborted");

/// The error of a response that is complete but has no durable record of its cost.
pub const COST_NOT_RECORDED: ErrorType = ErrorType::Custom("cost not recorded");
