//! The counters of one deployment. A look-up by labels costs a hash, a lock and an allocation, so it happens once.

use std::sync::{Arc, OnceLock};

use filters::models::metadata::AttemptRecord;
use filters::models::routing::catalog::{Mapping, Model};
use filters::models::usage::{Settlement, Usage};
use prometheus::{Counter, Histogram, HistogramVec, IntCounter};

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
    first_byte_seconds: OnceLock<Histogram>,
    output_token_seconds: OnceLock<Histogram>,
    cached_prompt_ratio: OnceLock<Histogram>,
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
            first_byte_seconds: OnceLock::new(),
            output_token_seconds: OnceLock::new(),
            cached_prompt_ratio: OnceLock::new(),
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
        let all = &self.all.first_event_seconds;
        self.observe(&self.first_event_seconds, all, seconds);
    }

    /// Records the time from the beginning of an attempt to the first byte of its answer.
    pub fn observe_first_byte(&self, seconds: f64) {
        let all = &self.all.first_byte_seconds;
        self.observe(&self.first_byte_seconds, all, seconds);
    }

    /// Records the time per token of a stream.
    pub fn observe_output_token(&self, seconds: f64) {
        let all = &self.all.output_token_seconds;
        self.observe(&self.output_token_seconds, all, seconds);
    }

    /// Records a value in a histogram, which is looked up when it is first used.
    fn observe(&self, own: &OnceLock<Histogram>, all: &HistogramVec, value: f64) {
        own.get_or_init(|| all.with_label_values(&self.labels))
            .observe(value);
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
        if let Some(share) = cached_share(&settlement.usage) {
            self.observe(
                &self.cached_prompt_ratio,
                &self.all.cached_prompt_ratio,
                share,
            );
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

/// Returns the share of the prompt's tokens that were read from the provider's cache. `None`: the provider has not reported
/// them, or the prompt has none.
fn cached_share(usage: &Usage) -> Option<f64> {
    let is_reported = usage.prompt > 0 && !usage.estimated;
    is_reported.then(|| usage.cached.min(usage.prompt) as f64 / usage.prompt as f64)
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
