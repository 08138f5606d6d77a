//! The counters of graph requests, each looked up once. A look-up by labels costs a hash and a lock.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use filters::graph::{GraphOperation, Operations};
use filters::limits::RowId;
use prometheus::IntCounter;

use super::exchange::LimitOutcome;
use crate::telemetry::metrics::Metrics;

/// The counters of graph requests.
pub struct GraphMetrics {
    metrics: Arc<Metrics>,
    decisions: HashMap<RowId, [OnceLock<IntCounter>; LimitOutcome::COUNT]>,
    answered: OnceLock<IntCounter>,
    cache_hits: OnceLock<IntCounter>,
}

impl GraphMetrics {
    /// Creates the counters of these operations. A series appears after its first count.
    pub fn new(metrics: &Arc<Metrics>, operations: &Operations) -> Self {
        let rows = operations.all().map(|operation| operation.id);
        Self {
            metrics: Arc::clone(metrics),
            decisions: rows.map(|row| (row, Default::default())).collect(),
            answered: OnceLock::new(),
            cache_hits: OnceLock::new(),
        }
    }

    /// Counts the limiter's decision about a request.
    pub fn count_decision(&self, operation: &GraphOperation, outcome: LimitOutcome) {
        let labels = [&*operation.name, outcome.as_str()];
        let counter = || self.metrics.limiter_decisions.with_label_values(&labels);
        let counters = self.decisions.get(&operation.id);
        match counters.and_then(|counters| counters.get(outcome as usize)) {
            Some(known) => known.get_or_init(counter).inc(),
            None => counter().inc(),
        }
    }

    /// Counts a response of the service.
    pub fn count_answered(&self) {
        let counter = || self.metrics.graph_upstream.with_label_values(&["answered"]);
        self.answered.get_or_init(counter).inc();
    }

    /// Counts a request to which the service did not respond, by its outcome.
    pub fn count_failed(&self, outcome: &str) {
        self.metrics.count_graph_upstream(outcome);
    }

    /// Counts a response from the cache.
    pub fn count_cache_hit(&self) {
        let counter = || self.metrics.cache_hits.with_label_values(&["graph"]);
        self.cache_hits.get_or_init(counter).inc();
    }
}
