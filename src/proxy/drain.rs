//! The end of a process: what still runs ends, and nothing new begins.
//!
//! From the start of a drain each response of HTTP/1 closes its connection, so that clients open the next one elsewhere. At
//! the deadline each attempt ends as if its provider had taken too long: a stream gets its error event, and is charged.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::time::Instant;

/// The drain of this process. Clones share it.
#[derive(Clone, Default)]
pub struct Drain(Arc<DrainState>);

#[derive(Default)]
struct DrainState {
    has_begun: AtomicBool,
    deadline: OnceLock<Instant>,
}

impl Drain {
    /// Lets connections close after their response.
    pub fn begin(&self) {
        self.0.has_begun.store(true, Ordering::Relaxed);
    }

    /// Sets when everything that runs has to end, once.
    pub fn set_deadline(&self, deadline: Instant) {
        _ = self.0.deadline.set(deadline);
    }

    /// Returns whether connections close after their response.
    pub fn has_begun(&self) -> bool {
        self.0.has_begun.load(Ordering::Relaxed)
    }

    /// Returns when everything that runs has to end, if the process stops.
    pub fn deadline(&self) -> Option<Instant> {
        self.0.deadline.get().copied()
    }
}
