//! The time of batches and signatures.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the time in unix seconds.
pub(super) fn now_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
