//! What all hedges share: second attempts beside a silent one, which each exchange runs for itself.

use std::sync::Arc;
use std::time::Duration;

use crate::proxy::hedge::HedgeConnector;

/// What all hedges share.
pub struct Hedging {
    /// How long a stream may say nothing until one begins.
    pub after: Duration,
    pub connector: Arc<HedgeConnector>,
}

impl Hedging {
    /// Returns what hedges need that begin after so much silence.
    pub fn new(after: Duration) -> Self {
        Self {
            after,
            connector: Arc::default(),
        }
    }
}
