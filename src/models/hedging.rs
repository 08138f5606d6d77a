//! The parts that all hedges share. Each exchange runs its own hedge.

use std::sync::Arc;
use std::time::Duration;

use crate::proxy::hedge::HedgeConnector;

/// The parts that all hedges share.
pub struct Hedging {
    /// How long a stream may be silent before a hedge begins.
    pub after: Duration,
    pub connector: Arc<HedgeConnector>,
}

impl Hedging {
    /// Returns the parts of hedges that begin after this silence. The connections of previous ones go on.
    pub fn new(after: Duration, previous: Option<&Self>) -> Self {
        Self {
            after,
            connector: previous.map_or_else(Arc::default, |it| Arc::clone(&it.connector)),
        }
    }
}
