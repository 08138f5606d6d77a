//! The counters of one deployment. A look-up by labels costs a hash, a lock and an allocation, so it happens once.

use std::sync::{Arc, OnceLock};

use filters::models::metadata::AttemptRecord;
use filters::models::routing::catalog::{Mapping, Model};
use filters::models::usage::{Settlement, Usage};
use prometheus::{Counter, Histogram, IntCounter};

use super::providers::Provider;
use crate::telemetry::metrics::Metrics;

/// The kinds of tokens, as a label.
const TOKEN_KINDS: [&str; 5] = ["prompt", "completion", "cached", "cache_write", "reasoning"];

/// The counters of one deployment. Each appears when it first counts.
pub struct DeploymentMetrics {
    all: Arc<Metrics>,
    /// The labels for provider and model.
    labels: [Arc<str>; 2],
    successes: OnceLock<IntCounter>,
    first_event_seconds: OnceLock<Histogram>,
    tokens: [OnceLock<IntCounter>; TOKEN_KINDS.len()],
    cost: OnceLock<Counter>,
}

impl DeploymentMetrics {
    /// Creates the counters of a model at a provider. All ids outside the catalogue have the label `other`, so that
    /// labels stay bounded.
    pub(super) fn new(
        all: &Arc<Metrics>,
        provider: &Provider,
        model: &Model,
        mapping: &Mapping,
    ) -> Self {
        let model = if mapping.index == usize::MAX {
            "other".into()
        } else {
            Arc::clone(&model.id)
        };
        Self {
            all: Arc::clone(all),
            labels: [Arc::clone(&provider.name), model],
            successes: OnceLock::new(),
            first_event_seconds: OnceLock::new(),
            tokens: Default::default(),
            cost: OnceLock::new(),
        }
    }

    /// Counts an ended attempt.
    pub fn count_attempt(&self, attempt: &AttemptRecord) {
        let counter = |outcome: &str| {
            let [provider, model] = &self.labels;
            let labels: [&str; 3] = [provider, model, outcome];
            self.all.attempts.with_label_values(&labels)
        };
        if attempt.succeeded {
            self.successes.get_or_init(|| counter("ok")).inc();
        } else {
            counter(attempt.error_type).inc();
        }
    }

    /// Records the time to the first content.
    pub fn observe_first_event(&self, seconds: f64) {
        let histogram = || {
            let all = &self.all.first_event_seconds;
            all.with_label_values(&self.labels)
        };
        self.first_event_seconds
            .get_or_init(histogram)
            .observe(seconds);
    }

    /// Counts the tokens of a call, and its cost.
    pub fn count_usage(&self, settlement: &Settlement) {
        let [provider, model] = &self.labels;
        let counts = counts(&settlement.usage);
        for ((cached, kind), tokens) in self.tokens.iter().zip(TOKEN_KINDS).zip(counts) {
            if tokens > 0 {
                let labels: [&str; 3] = [provider, model, kind];
                let counter = || self.all.tokens.with_label_values(&labels);
                cached.get_or_init(counter).inc_by(tokens);
            }
        }
        if settlement.usage.set_aside > 0 {
            let counter = self.all.usage_set_aside.with_label_values(&self.labels);
            counter.inc_by(settlement.usage.set_aside);
        }
        if let Some(cost) = &settlement.cost {
            let counter = || self.all.cost.with_label_values(&self.labels);
            let usd = cost.total.to_f64_for_metrics();
            self.cost.get_or_init(counter).inc_by(usd);
        }
    }
}

/// Returns the tokens of each of [`TOKEN_KINDS`].
fn counts(usage: &Usage) -> [u64; TOKEN_KINDS.len()] {
    [
        usage.prompt,
        usage.completion,
        usage.cached,
        usage.cache_write,
        usage.reasoning.unwrap_or(0),
    ]
}
