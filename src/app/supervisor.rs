//! What the service manager is told, if there is one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sd_notify::NotifyState;

/// The way to the service manager. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Supervisor {
    /// Whether another process speaks to it in place of this one.
    is_silent: Arc<AtomicBool>,
}

impl Supervisor {
    /// Tells it something.
    pub(super) fn notify(&self, states: &[NotifyState<'_>]) {
        if self.is_silent() {
            return;
        }
        if let Err(error) = sd_notify::notify(states) {
            log::warn!("the service manager was not told: {error}");
        }
    }

    /// Tells it nothing more, because another process has taken the place of this one.
    pub(super) fn fall_silent(&self) {
        self.is_silent.store(true, Ordering::Relaxed);
    }

    /// Returns whether it is told nothing more.
    pub(super) fn is_silent(&self) -> bool {
        self.is_silent.load(Ordering::Relaxed)
    }
}
