//! The task that exports spans in batches.

use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prometheus::{IntCounter, IntCounterVec};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};

use super::exporter::Exporter;
use super::names;
use super::span::attribute;
use crate::config::TelemetryConfig;

/// The maximum number of spans in an export.
const BATCH_SPANS: usize = 512;
/// How long the first span of a batch waits for others.
const BATCH_DELAY: Duration = Duration::from_secs(1);
/// How often an export is tried, and the first pause between two tries, which doubles.
const TRIES: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The least time between two log lines about exports that fail.
const LOG_INTERVAL: Duration = Duration::from_secs(60);
/// The maximum time for the spans that wait when the process stops.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// Exports the spans of one configuration, until the process stops or nothing makes any more.
pub struct SpanExport {
    config: TelemetryConfig,
    waiting: mpsc::Receiver<Span>,
    counts: ExportCounts,
    /// The spans of the export that runs.
    on_the_way: u64,
    /// The time of the last log line about an export that failed.
    logged: Option<Instant>,
}

/// What became of spans.
struct ExportCounts {
    exported: IntCounter,
    rejected: IntCounter,
    failed: IntCounter,
}

impl SpanExport {
    pub(super) fn new(
        config: &TelemetryConfig,
        waiting: mpsc::Receiver<Span>,
        spans: &IntCounterVec,
    ) -> Self {
        let counter = |outcome: &str| spans.with_label_values(&[outcome]);
        Self {
            config: config.clone(),
            waiting,
            counts: ExportCounts {
                exported: counter("exported"),
                rejected: counter("rejected"),
                failed: counter("failed"),
            },
            on_the_way: 0,
            logged: None,
        }
    }

    /// Exports until `stop`, or until no request of its configuration is left. What waits then is still exported, for some
    /// seconds after a stop.
    pub async fn run(mut self, stop: watch::Receiver<bool>) {
        let exporter = match Exporter::new(&self.config) {
            Ok(exporter) => exporter,
            Err(error) => {
                log::error!("traces are not exported: {error}");
                return self.count_all_failed().await;
            }
        };
        let mut given_up = stop.clone();
        let given_up = async {
            stopped(&mut given_up).await;
            sleep(FLUSH_TIMEOUT).await;
        };
        let is_done = tokio::select! {
            () = self.export_all(&exporter, stop) => true,
            () = given_up => false,
        };
        if !is_done {
            let left = self.on_the_way + self.waiting.len() as u64;
            self.counts.failed.inc_by(left);
            log::warn!("the process stops before {left} spans were exported");
        }
    }

    async fn export_all(&mut self, exporter: &Exporter, mut stop: watch::Receiver<bool>) {
        while let Some(batch) = self.next_batch(&mut stop).await {
            self.on_the_way = batch.len() as u64;
            self.export(exporter, batch, &mut stop).await;
            self.on_the_way = 0;
        }
    }

    /// Waits for a batch. Returns `None` if no more comes.
    async fn next_batch(&mut self, stop: &mut watch::Receiver<bool>) -> Option<Vec<Span>> {
        let first = tokio::select! {
            first = self.waiting.recv() => first,
            () = stopped(stop) => {
                // What waits is still received.
                self.waiting.close();
                self.waiting.recv().await
            }
        };
        let mut batch = Vec::with_capacity(BATCH_SPANS);
        batch.push(first?);
        let until = sleep(BATCH_DELAY);
        tokio::pin!(until);
        while batch.len() < BATCH_SPANS {
            let room = BATCH_SPANS - batch.len();
            let received = tokio::select! {
                biased;
                received = self.waiting.recv_many(&mut batch, room) => received,
                () = stopped(stop) => 0,
                () = &mut until => 0,
            };
            if received == 0 {
                break;
            }
        }
        Some(batch)
    }

    /// Exports a batch, and counts what becomes of it.
    async fn export(
        &mut self,
        exporter: &Exporter,
        batch: Vec<Span>,
        stop: &mut watch::Receiver<bool>,
    ) {
        let count = batch.len() as u64;
        let request = self.request(batch);
        let mut pause = FIRST_PAUSE;
        for left in (0..TRIES).rev() {
            match exporter.export(&request).await {
                Ok(rejected) => {
                    let rejected = rejected.min(count);
                    self.counts.rejected.inc_by(rejected);
                    self.counts.exported.inc_by(count - rejected);
                    return;
                }
                Err(error) if error.is_retryable && left > 0 && !*stop.borrow() => {
                    tokio::select! {
                        () = sleep(pause) => {}
                        () = stopped(stop) => {}
                    }
                    pause *= 2;
                }
                Err(error) => {
                    self.counts.failed.inc_by(count);
                    return self.log(&error.text);
                }
            }
        }
    }

    /// Logs that an export failed, at most once a minute.
    fn log(&mut self, why: &str) {
        let now = Instant::now();
        let is_due = |last: Instant| now.duration_since(last) >= LOG_INTERVAL;
        if self.logged.is_none_or(is_due) {
            self.logged = Some(now);
            log::warn!("spans were not exported to telemetry.otlp_endpoint: {why}");
        }
    }

    async fn count_all_failed(&mut self) {
        while self.waiting.recv().await.is_some() {
            self.counts.failed.inc();
        }
    }

    fn request(&self, spans: Vec<Span>) -> ExportTraceServiceRequest {
        let text = |text: &str| Value::StringValue(text.to_owned());
        let version = env!("CARGO_PKG_VERSION");
        let schema_url = names::schema_url(self.config.semconv);
        ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(Resource {
                    attributes: vec![
                        attribute(names::SERVICE_NAME, text(&self.config.service_name)),
                        attribute(names::SERVICE_VERSION, text(version)),
                    ],
                    ..Resource::default()
                }),
                scope_spans: vec![ScopeSpans {
                    scope: Some(InstrumentationScope {
                        name: "weirgate".to_owned(),
                        version: version.to_owned(),
                        ..InstrumentationScope::default()
                    }),
                    spans,
                    schema_url: schema_url.to_owned(),
                }],
                schema_url: String::new(),
            }],
        }
    }
}

/// Waits until the process stops.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // Without its sender nothing runs any more.
    _ = stop.wait_for(|stopped| *stopped).await;
}
