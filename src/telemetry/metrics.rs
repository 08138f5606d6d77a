//! All metrics in one list, with name, help and labels. Labels are bounded: texts of callers never become labels.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use prometheus::core::Collector;
use prometheus::proto::MetricType;
use prometheus::{
    Counter, CounterVec, Encoder, Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter,
    IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};

use super::load::{LoadHistory, LoadMetrics, LoadSample};
use super::reload::{ReloadMetrics, ReloadStatus};

/// Replies of models take from milliseconds to minutes.
const DURATION_BUCKETS_S: [f64; 14] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 180.0, 600.0,
];

/// Tokens of streams come some milliseconds apart.
const TOKEN_BUCKETS_S: [f64; 14] = [
    0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1.0,
];

/// Most prompts are cached hardly at all or nearly whole.
const SHARE_BUCKETS: [f64; 9] = [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0];

/// All metrics of the process.
pub struct Metrics {
    registry: Registry,
    rows: Vec<MetricRow>,
    /// Ended requests, by route and status class.
    pub requests: IntCounterVec,
    /// The durations of ended requests, by route.
    pub request_seconds: HistogramVec,
    /// Attempts at providers, by provider, model and outcome.
    pub attempts: IntCounterVec,
    /// Time to the first content, by provider and model.
    pub first_event_seconds: HistogramVec,
    /// Time from an attempt's beginning to the first byte of the provider's answer, by provider and model.
    pub first_byte_seconds: HistogramVec,
    /// Time per token of a streamed answer after its first content, by provider and model.
    pub output_token_seconds: HistogramVec,
    /// The share of a prompt's tokens that the provider had cached, by provider and model.
    pub cached_prompt_ratio: HistogramVec,
    /// Tokens, by provider, model and kind.
    pub tokens: IntCounterVec,
    /// Cost in USD, by provider and model.
    pub cost: CounterVec,
    pub in_flight: IntGauge,
    pub streams_open: IntGauge,
    /// Open client connections.
    pub connections: IntGauge,
    /// Client connections that were closed because too many were open.
    pub connections_refused: IntCounter,
    /// Failed TLS handshakes.
    pub tls_failures: IntCounter,
    /// Requests to the graph service, by outcome.
    pub graph_upstream: IntCounterVec,
    /// Requests served from a cache, by route.
    pub cache_hits: IntCounterVec,
    /// Requests without a cached reply in the response cache, by route.
    pub cache_misses: IntCounterVec,
    /// Unusable replies in shared Redis.
    pub cache_unusable: IntCounter,
    /// Health states of providers that processes exchanged over Redis, by outcome.
    pub shared_measurements: IntCounterVec,
    /// Predictions for bandits by outcome.
    pub predictions: IntCounterVec,
    /// Datafiles read, by outcome.
    pub datafiles: IntCounterVec,
    /// Events of decisions, by outcome.
    pub events: IntCounterVec,
    /// Reported usage that is implausible.
    pub usage_set_aside: IntCounterVec,
    /// Ended video jobs, by status.
    pub videos: IntCounterVec,
    /// Ended background responses, by status.
    pub background_responses: IntCounterVec,
    /// Webhooks of videos, by outcome.
    pub video_callbacks: IntCounterVec,
    /// Fetches of clouds' credentials, by provider and outcome.
    pub credential_fetches: IntCounterVec,
    /// Images fetched for providers, by outcome.
    pub media_fetches: IntCounterVec,
    /// Decisions of limits, by operation (or group of model endpoints) and decision.
    pub limiter_decisions: IntCounterVec,
    /// 1 while Redis is configured and unavailable.
    pub limiter_degraded: IntGauge,
    /// Units of shared windows that this process has leased, by state.
    pub limiter_leased_units: IntCounterVec,
    /// The maximum cost of running calls, in USD.
    pub ledger_reserved: Gauge,
    /// The sum of charges to balances, in USD.
    pub ledger_settled: Counter,
    /// The sum of costs beyond balances, in USD.
    pub ledger_shortfall: Counter,
    /// Failed attempts to store calls.
    pub ledger_failures: IntCounter,
    /// Batches of calls that the store confirmed and then lost.
    pub ledger_lost_posts: IntCounter,
    /// The time since the store last confirmed the accounts.
    pub accounts_age: Gauge,
    /// Unreadable rows of accounts.
    pub accounts_unreadable: IntCounter,
    /// Calls that the store refused.
    pub ledger_refused: IntCounter,
    /// Calls on BYOK keys, or free ones, that were not recorded.
    pub ledger_dropped: IntCounter,
    /// Second and later fallbacks that the retry budget refused.
    pub fallbacks_refused: IntCounter,
    pub hedges: IntCounterVec,
    /// The waiting time of the oldest ended call that is not stored.
    pub journal_lag: Gauge,
    pub journal_bytes: IntGauge,
    /// The reloads of the configuration.
    pub reloads: ReloadStatus,
    /// Spans of traces, by outcome.
    pub spans: IntCounterVec,
    /// Log lines dropped because the reader was too slow.
    pub log_dropped: IntCounter,
    pub log_export: LogExportMetrics,
    /// The last hour.
    pub load: LoadHistory,
}

/// The export of logs.
#[derive(Clone)]
pub struct LogExportMetrics {
    /// Lines, by outcome.
    pub lines: IntCounterVec,
    /// Failed tries to send a batch.
    pub failures: IntCounter,
    /// Bytes of lines that wait.
    pub spool_bytes: IntGauge,
    /// How long the oldest line has waited, in seconds.
    pub oldest_seconds: IntGauge,
}

/// A metric, as dashboards and rules may name it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MetricRow {
    pub name: String,
    pub labels: Vec<String>,
    /// Whether its series are those of a histogram: `_bucket` with the label `le`, `_sum` and `_count`.
    pub is_histogram: bool,
}

/// All metrics, while they are made.
#[derive(Default)]
struct MetricTable {
    registry: Registry,
    rows: RefCell<Vec<MetricRow>>,
}

impl MetricTable {
    fn add(&self, metric: impl Collector + 'static) -> prometheus::Result<()> {
        let families = metric.collect();
        let mut types = families.iter().map(|family| family.get_field_type());
        let is_histogram = types.any(|it| it == MetricType::HISTOGRAM);
        let rows = metric.desc().into_iter().map(|desc| MetricRow {
            name: desc.fq_name.clone(),
            labels: desc.variable_labels.clone(),
            is_histogram,
        });
        self.rows.borrow_mut().extend(rows);
        self.registry.register(Box::new(metric))
    }
}

/// The ended attempts at a provider.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct AttemptCounts {
    pub all: u64,
    pub failed: u64,
}

/// The labels of status classes. A request without a response has `none`.
pub(super) const STATUS_CLASSES: [&str; 5] = ["none", "2xx", "3xx", "4xx", "5xx"];

/// The metrics of all routes of a route table, by their index.
pub struct RouteMetrics(Box<[OneRoute]>);

/// The metrics of one route, looked up once: a look-up by labels costs a hash and a lock, more than a small
/// decision.
#[derive(Default)]
struct OneRoute {
    classes: [OnceLock<IntCounter>; STATUS_CLASSES.len()],
    seconds: OnceLock<Histogram>,
}

impl RouteMetrics {
    /// Returns the metrics of a table with these many routes.
    pub fn new(routes: usize) -> Self {
        Self((0..routes).map(|_| OneRoute::default()).collect())
    }
}

impl Metrics {
    /// Makes a registry with all metrics.
    ///
    /// Errors: two metrics with one name, which is a bug.
    #[rustfmt::skip]
    pub fn new() -> prometheus::Result<Self> {
        let r = MetricTable::default();
        #[cfg(target_os = "linux")]
        r.add(prometheus::process_collector::ProcessCollector::for_self())?;
        let build = register(&r, IntGaugeVec::new(Opts::new("weirgate_build_info", "Always 1; the version is a label."), &["version"])?)?;
        build.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        Ok(Self {
            reloads: ReloadStatus::new(reload_metrics(&r)?),
            requests: counters(&r, "weirgate_requests_total", "Requests that ended, by route and class of status.", &["route", "status"])?,
            request_seconds: histogram(&r, "weirgate_request_duration_seconds", "Time from the request's head to the answer's end.", &["route"], &DURATION_BUCKETS_S)?,
            attempts: counters(&r, "weirgate_upstream_attempts_total", "Attempts at providers, by outcome.", &["provider", "model", "outcome"])?,
            first_event_seconds: histogram(&r, "weirgate_first_event_seconds", "Time from the request's head to the first content of the answer.", &["provider", "model"], &DURATION_BUCKETS_S)?,
            first_byte_seconds: histogram(&r, "weirgate_upstream_first_byte_seconds", "Time from the beginning of an attempt to the first byte of the provider's answer with status 200.", &["provider", "model"], &DURATION_BUCKETS_S)?,
            output_token_seconds: histogram(&r, "weirgate_output_token_seconds", "Time per output token of streams, from their first content to their end.", &["provider", "model"], &TOKEN_BUCKETS_S)?,
            cached_prompt_ratio: histogram(&r, "weirgate_cached_prompt_ratio", "Share of the tokens of a prompt that the provider read from its cache, as it reports them.", &["provider", "model"], &SHARE_BUCKETS)?,
            usage_set_aside: counters(&r, "weirgate_usage_set_aside_total", "Tokens, searches and units that providers reported beyond what the model can take, and that were not charged.", &["provider", "model"])?,
            tokens: counters(&r, "weirgate_tokens_total", "Tokens of answers, by kind.", &["provider", "model", "kind"])?,
            cost: register(&r, CounterVec::new(Opts::new("weirgate_cost_usd_total", "Cost of answers in US dollars."), &["provider", "model"])?)?,
            in_flight: register(&r, IntGauge::new("weirgate_requests_in_flight", "Requests being served.")?)?,
            streams_open: register(&r, IntGauge::new("weirgate_streams_open", "Event streams being served.")?)?,
            connections: register(&r, IntGauge::new("weirgate_connections_open", "Client connections open.")?)?,
            connections_refused: register(&r, IntCounter::new("weirgate_connections_refused_total", "Client connections closed at once because listen.max_connections were open.")?)?,
            tls_failures: register(&r, IntCounter::new("weirgate_tls_failures_total", "TLS handshakes of clients that failed or took too long.")?)?,
            cache_hits: counters(&r, "weirgate_cache_hits_total", "Requests answered with what was kept of an earlier answer.", &["route"])?,
            cache_misses: counters(&r, "weirgate_cache_misses_total", "Requests of projects with a response cache that it did not answer.", &["route"])?,
            cache_unusable: register(&r, IntCounter::new("weirgate_cache_unusable_total", "Values in shared.redis that are no reply stored by a process with this secret and version: damaged, foreign or too large.")?)?,
            graph_upstream: counters(&r, "weirgate_graph_upstream_total", "Requests sent to the graph service: answered, upstream_cpu_exhausted (its 503), connect_failed, timeout, broken.", &["outcome"])?,
            predictions: counters(&r, "weirgate_predictions_total", "Predictions asked for bandits: predicted or failed.", &["outcome"])?,
            datafiles: counters(&r, "weirgate_datafiles_total", "Datafiles: loaded, refused (not usable), from_disk (the source does not answer), dropped (too many were fetched).", &["outcome"])?,
            events: counters(&r, "weirgate_decision_events_total", "Events of decisions: queued, full, off (dropped), sent, refused (by the backend: dropped), repeated (tries that failed), spooled (batches).", &["outcome"])?,
            shared_measurements: counters(&r, "weirgate_shared_measurements_total", "States of candidates that processes tell each other over shared.redis: published, taken_in, unusable (none that a process of this version can have written); failed exchanges.", &["outcome"])?,
            videos: counters(&r, "weirgate_videos_total", "Jobs of videos that have ended: completed, failed (the provider, or its filter), expired (videos.timeout_s).", &["status"])?,
            background_responses: counters(&r, "weirgate_background_responses_total", "Responses made in the background that have ended: completed, incomplete, failed, cancelled.", &["status"])?,
            video_callbacks: counters(&r, "weirgate_video_callbacks_total", "Webhooks that told the end of a job: taken, gone (the receiver wants no more: 410), refused (another status, a redirect too), failed (no answer), prohibited (no public address, no https).", &["outcome"])?,
            credential_fetches: counters(&r, "weirgate_credential_fetches_total", "Fetches of short-lived credentials of clouds (credentials of a provider): fetched, failed.", &["provider", "outcome"])?,
            media_fetches: counters(&r, "weirgate_media_fetches_total", "Images named by address that were fetched for a provider: fetched, cached, prohibited (no public address, no https), too_large, too_slow, no_image, failed, busy (media.max_fetches).", &["outcome"])?,
            limiter_decisions: counters(&r, "weirgate_limiter_decisions_total", "Requests that met a limit, by operation or group of model endpoints: admitted, refused, unavailable (nobody could say); of the graph service also hit (answered from the cache, not counted), refunded (a hit in its own cache), uncounted.", &["operation", "decision"])?,
            limiter_degraded: register(&r, IntGauge::new("weirgate_limiter_degraded", "1 while shared.redis is set and does not answer, so that limits follow shared.on_outage.")?)?,
            limiter_leased_units: counters(&r, "weirgate_limiter_leased_units_total", "Units of hot windows that were taken from Redis several at once (limits.shared_exact = false): taken, returned (not needed within 100 ms).", &["state"])?,
            ledger_reserved: register(&r, Gauge::new("weirgate_ledger_reserved_usd", "What running calls may cost at most, in US dollars.")?)?,
            ledger_settled: register(&r, Counter::new("weirgate_ledger_settled_usd_total", "What calls have taken from balances, in US dollars.")?)?,
            ledger_shortfall: register(&r, Counter::new("weirgate_ledger_shortfall_usd_total", "What calls cost beyond what there was, in US dollars.")?)?,
            ledger_failures: register(&r, IntCounter::new("weirgate_ledger_store_failures_total", "Tries of bringing calls to the store that failed.")?)?,
            ledger_lost_posts: register(&r, IntCounter::new("weirgate_ledger_posts_lost_total", "Batches of calls that the store had confirmed and has lost, as after a failover to an older copy of it.")?)?,
            accounts_age: register(&r, Gauge::new("weirgate_accounts_age_seconds", "How long ago the store has confirmed the accounts in memory.")?)?,
            accounts_unreadable: register(&r, IntCounter::new("weirgate_accounts_unreadable_total", "Rows of accounts that could not be read, each time they were read. The keys that need them are refused.")?)?,
            ledger_refused: register(&r, IntCounter::new("weirgate_ledger_calls_refused_total", "Calls that the store refused, set aside in refused_calls.jsonl.")?)?,
            ledger_dropped: register(&r, IntCounter::new("weirgate_ledger_calls_dropped_total", "Calls on own provider keys that were not recorded, because the journal was over store.journal_bytes.")?)?,
            fallbacks_refused: register(&r, IntCounter::new("weirgate_fallbacks_refused_total", "Second and later fallbacks that the retry budget refused.")?)?,
            hedges: counters(&r, "weirgate_hedges_total", "Second attempts beside a silent stream (routing.hedge_after_ms): won (its content came first), lost, took_over (the attempt beside it failed), failed, abandoned (the call ended first), no_budget and no_credit (none was made).", &["outcome"])?,
            journal_lag: register(&r, Gauge::new("weirgate_ledger_journal_lag_seconds", "How long the oldest ended call has waited for the store.")?)?,
            journal_bytes: register(&r, IntGauge::new("weirgate_ledger_journal_bytes", "Bytes of the journal on disk.")?)?,
            spans: counters(&r, "weirgate_spans_total", "Spans of traces (telemetry): exported, rejected (the collector did not take them), failed (no export succeeded), dropped (too many waited).", &["outcome"])?,
            log_dropped: register(&r, IntCounter::new("weirgate_log_lines_dropped_total", "Access lines dropped because the reader of stdout was too slow.")?)?,
            log_export: log_export_metrics(&r)?,
            load: LoadHistory::default(),
            rows: r.rows.into_inner(),
            registry: r.registry,
        })
    }

    /// Counts an ended request to the route with this index and name.
    pub fn record_request(
        &self,
        (routes, index): (&RouteMetrics, usize),
        route: &str,
        status: u16,
        seconds: f64,
    ) {
        let class = match status {
            200..=599 => usize::from(status / 100) - 1,
            _ => 0,
        };
        let counter = || {
            let label = STATUS_CLASSES.get(class).copied().unwrap_or_default();
            self.requests.with_label_values(&[route, label])
        };
        let timer = || self.request_seconds.with_label_values(&[route]);
        let Some(cached) = routes.0.get(index) else {
            counter().inc();
            return timer().observe(seconds);
        };
        if let Some(cached) = cached.classes.get(class) {
            cached.get_or_init(counter).inc();
        }
        cached.seconds.get_or_init(timer).observe(seconds);
    }

    /// Counts a request to the graph service.
    pub fn count_graph_upstream(&self, outcome: &str) {
        self.graph_upstream.with_label_values(&[outcome]).inc();
    }

    /// Counts a datafile.
    pub fn count_datafile(&self, outcome: &str) {
        self.datafiles.with_label_values(&[outcome]).inc();
    }

    /// Counts an ended video job.
    pub fn count_video(&self, status: &str) {
        self.videos.with_label_values(&[status]).inc();
    }

    /// Counts an ended background response.
    pub fn count_background_response(&self, status: &str) {
        let counter = self.background_responses.with_label_values(&[status]);
        counter.inc();
    }

    /// Counts a video webhook.
    pub fn count_video_callback(&self, outcome: &str) {
        self.video_callbacks.with_label_values(&[outcome]).inc();
    }

    /// Counts an attempt to fetch an image.
    pub fn count_media_fetch(&self, outcome: &str) {
        self.media_fetches.with_label_values(&[outcome]).inc();
    }

    /// Counts a prediction for a bandit.
    pub fn count_prediction(&self, outcome: &str) {
        self.predictions.with_label_values(&[outcome]).inc();
    }

    /// Counts events.
    pub fn count_events(&self, outcome: &str, count: u64) {
        self.events.with_label_values(&[outcome]).inc_by(count);
    }

    /// Returns a row for each metric.
    pub fn rows(&self) -> &[MetricRow] {
        &self.rows
    }

    /// Returns the number of ended requests.
    pub fn ended_requests(&self) -> u64 {
        let families = self.requests.collect();
        let series = families.iter().flat_map(|family| family.get_metric());
        series.map(|it| it.get_counter().get_value() as u64).sum()
    }

    /// Returns what was counted of routes and providers since the start. Cost: some microseconds for each series.
    pub fn load_sample(&self) -> LoadSample {
        LoadSample::read(&LoadMetrics {
            requests: &self.requests,
            request_seconds: &self.request_seconds,
            attempts: &self.attempts,
            first_event_seconds: &self.first_event_seconds,
            first_byte_seconds: &self.first_byte_seconds,
            tokens: &self.tokens,
            cost: &self.cost,
        })
    }

    /// Returns the attempts at each provider.
    pub fn attempts_by_provider(&self) -> BTreeMap<String, AttemptCounts> {
        let mut counts: BTreeMap<String, AttemptCounts> = BTreeMap::new();
        let families = self.attempts.collect();
        for series in families.iter().flat_map(|family| family.get_metric()) {
            let label = |name: &str| {
                let labels = series.get_label().iter();
                labels
                    .clone()
                    .find(|it| it.name() == name)
                    .map_or("", |it| it.value())
            };
            let attempts = series.get_counter().get_value() as u64;
            let count = counts.entry(label("provider").to_owned()).or_default();
            count.all += attempts;
            if label("outcome") != "ok" {
                count.failed += attempts;
            }
        }
        counts
    }

    /// Returns all metrics in the text format of Prometheus.
    pub fn render(&self) -> Vec<u8> {
        let mut out = Vec::new();
        // Encoding only fails for an invalid metric, which would be a bug.
        if let Err(error) = TextEncoder::new().encode(&self.registry.gather(), &mut out) {
            log::error!("metrics: {error}");
        }
        out
    }
}

#[rustfmt::skip]
fn log_export_metrics(r: &MetricTable) -> prometheus::Result<LogExportMetrics> {
    Ok(LogExportMetrics {
        lines: counters(r, "weirgate_log_export_lines_total", "Lines of the log export: spooled (on disk), exported (the destination has them); dropped: queue_full (the disk was too slow), spool_full (log_export.spool_bytes), failed (the disk refused them), off (it was switched off).", &["outcome"])?,
        failures: register(r, IntCounter::new("weirgate_log_export_failures_total", "Tries to send a batch of the log export that failed. It is sent again.")?)?,
        spool_bytes: register(r, IntGauge::new("weirgate_log_export_spool_bytes", "Bytes of lines on disk that the destination of the log export does not have yet.")?)?,
        oldest_seconds: register(r, IntGauge::new("weirgate_log_export_oldest_seconds", "How long the oldest batch of the log export has waited since its first line.")?)?,
    })
}

#[rustfmt::skip]
fn reload_metrics(r: &MetricTable) -> prometheus::Result<ReloadMetrics> {
    Ok(ReloadMetrics {
        reloads: counters(r, "weirgate_config_reloads_total", "Tries to reload the configuration: ok, unchanged, refused (it has problems, or needs a restart), failed (it could not be put in force).", &["result"])?,
        last_reload: register(r, IntGauge::new("weirgate_config_last_reload_timestamp_seconds", "When the configuration was last read, with or without success.")?)?,
        is_last_successful: register(r, IntGauge::new("weirgate_config_last_reload_successful", "1 if the configuration that was last read is in force, else 0.")?)?,
        loaded: register(r, IntGauge::new("weirgate_config_loaded_timestamp_seconds", "Since when the configuration in force is in force.")?)?,
        info: register(r, IntGaugeVec::new(Opts::new("weirgate_config_info", "Always 1; the hash of the configuration in force is a label."), &["hash"])?)?,
    })
}

fn register<C: Collector + Clone + 'static>(
    table: &MetricTable,
    metric: C,
) -> prometheus::Result<C> {
    table.add(metric.clone())?;
    Ok(metric)
}

fn counters(
    r: &MetricTable,
    name: &str,
    help: &str,
    labels: &[&str],
) -> prometheus::Result<IntCounterVec> {
    register(r, IntCounterVec::new(Opts::new(name, help), labels)?)
}

fn histogram(
    r: &MetricTable,
    name: &str,
    help: &str,
    labels: &[&str],
    buckets: &[f64],
) -> prometheus::Result<HistogramVec> {
    let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
    register(r, HistogramVec::new(options, labels)?)
}

/// Counts a request in flight until it is dropped, even if the request has no log line.
pub struct InFlight {
    metrics: Arc<Metrics>,
    is_stream: bool,
}

impl InFlight {
    /// Counts one more request.
    pub fn new(metrics: &Arc<Metrics>) -> Self {
        metrics.in_flight.inc();
        Self {
            metrics: Arc::clone(metrics),
            is_stream: false,
        }
    }

    /// Counts the request as an event stream too.
    pub fn mark_stream(&mut self) {
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
