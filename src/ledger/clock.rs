//! Times as the ledger records them.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the current time in unix milliseconds.
pub(super) fn unix_ms() -> i64 {
    to_unix_ms(SystemTime::now())
}

/// Returns a time in unix milliseconds.
pub(super) fn to_unix_ms(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
