//! Every metric: name, help and labels, in one list. Labels are bounded; nothing a caller writes becomes one.

use std::sync::Arc;

use filters::chat::metadata::Attempted;
use prometheus::{
    Encoder, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts, Registry, TextEncoder,
};

/// Answers of models take from milliseconds to minutes.
const SECONDS: [f64; 14] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 180.0, 600.0,
];

/// All metrics of the process.
pub struct Metrics {
    registry: Registry,
    /// Requests that ended, by route and status class.
    pub requests: IntCounterVec,
    /// How long they took, by route.
    pub request_seconds: HistogramVec,
    /// Attempts at providers, by provider, model and outcome.
    pub attempts: IntCounterVec,
    /// Time to the first content, by provider and model.
    pub first_event_seconds: HistogramVec,
    /// Tokens, by provider, model and kind.
    pub tokens: IntCounterVec,
    /// Cost in USD, by provider and model.
    pub cost: prometheus::CounterVec,
    /// Requests in flight.
    pub in_flight: IntGauge,
    /// Event streams open.
    pub streams_open: IntGauge,
    /// Access lines dropped because nobody read them fast enough.
    pub log_dropped: prometheus::IntCounter,
    /// Reloads of the accounts that failed.
    pub accounts_failures: prometheus::IntCounter,
}

impl Metrics {
    /// A registry with all of them.
    ///
    /// Errors: two metrics of one name, which is a bug.
    pub fn new() -> prometheus::Result<Self> {
        let registry = Registry::new();
        let counters = |name: &str, help: &str, labels: &[&str]| {
            let counter = IntCounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(counter.clone()))?;
            prometheus::Result::Ok(counter)
        };
        let histograms = |name: &str, help: &str, labels: &[&str]| {
            let options = HistogramOpts::new(name, help).buckets(SECONDS.to_vec());
            let histogram = HistogramVec::new(options, labels)?;
            registry.register(Box::new(histogram.clone()))?;
            prometheus::Result::Ok(histogram)
        };
        let gauge = |name: &str, help: &str| {
            let gauge = IntGauge::new(name, help)?;
            registry.register(Box::new(gauge.clone()))?;
            prometheus::Result::Ok(gauge)
        };
        let cost = prometheus::CounterVec::new(
            Opts::new("weirgate_cost_usd_total", "Cost of answers in US dollars."),
            &["provider", "model"],
        )?;
        registry.register(Box::new(cost.clone()))?;
        let counter = |name: &str, help: &str| {
            let counter = prometheus::IntCounter::new(name, help)?;
            registry.register(Box::new(counter.clone()))?;
            prometheus::Result::Ok(counter)
        };
        let build = prometheus::IntGaugeVec::new(
            Opts::new("weirgate_build_info", "Always 1; the version is a label."),
            &["version"],
        )?;
        registry.register(Box::new(build.clone()))?;
        build.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        #[cfg(target_os = "linux")]
        registry.register(Box::new(
            prometheus::process_collector::ProcessCollector::for_self(),
        ))?;
        Ok(Self {
            requests: counters(
                "weirgate_requests_total",
                "Requests that ended, by route and class of status.",
                &["route", "status"],
            )?,
            request_seconds: histograms(
                "weirgate_request_duration_seconds",
                "Time from the request's head to the answer's end.",
                &["route"],
            )?,
            attempts: counters(
                "weirgate_upstream_attempts_total",
                "Attempts at providers, by outcome.",
                &["provider", "model", "outcome"],
            )?,
            first_event_seconds: histograms(
                "weirgate_first_event_seconds",
                "Time from the request's head to the first content of the answer.",
                &["provider", "model"],
            )?,
            tokens: counters(
                "weirgate_tokens_total",
                "Tokens of answers, by kind.",
                &["provider", "model", "kind"],
            )?,
            cost,
            in_flight: gauge("weirgate_requests_in_flight", "Requests being served.")?,
            streams_open: gauge("weirgate_streams_open", "Event streams being served.")?,
            log_dropped: counter(
                "weirgate_log_lines_dropped_total",
                "Access lines dropped because the reader of stdout was too slow.",
            )?,
            accounts_failures: counter(
                "weirgate_accounts_reload_failures_total",
                "Reloads of the accounts that failed; the last good ones stay.",
            )?,
            registry,
        })
    }

    /// Counts one attempt.
    pub fn attempt(&self, attempt: &Attempted, model: &str) {
        let outcome = if attempt.succeeded {
            "ok"
        } else {
            attempt.error_type
        };
        self.attempts
            .with_label_values(&[&*attempt.provider, model, outcome])
            .inc();
    }

    /// All metrics in Prometheus' text format.
    pub fn render(&self) -> Vec<u8> {
        let mut out = Vec::new();
        // Writing into memory fails for a broken metric alone, of which there is none.
        if let Err(error) = TextEncoder::new().encode(&self.registry.gather(), &mut out) {
            log::error!("metrics: {error}");
        }
        out
    }
}

/// Counts one more while it lives: also requests that nobody gets to log end.
pub struct InFlight {
    metrics: Arc<Metrics>,
    is_stream: bool,
}

impl InFlight {
    /// One more request.
    pub fn new(metrics: &Arc<Metrics>) -> Self {
        metrics.in_flight.inc();
        Self {
            metrics: Arc::clone(metrics),
            is_stream: false,
        }
    }

    /// It is an event stream.
    pub fn is_stream(&mut self) {
        if !self.is_stream {
            self.is_stream = true;
            self.metrics.streams_open.inc();
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.metrics.in_flight.dec();
        if self.is_stream {
            self.metrics.streams_open.dec();
        }
    }
}
