//! Events on their way to the customer-data platform, which makes segments of them: a bounded queue, sent in batches.
//!
//! A batch has up to ten events and waits a second at most. A batch that the platform does not take is sent again a few
//! times and then dropped, which the metric counts. Source: docs/facts/decision-engine.md E.

use std::sync::Arc;
use std::time::Duration;

use pingora::server::ShutdownWatch;
use serde_json::Value;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::Instant;

use crate::telemetry::metrics::Metrics;

const MAX_QUEUED: usize = 10_000;
const MAX_BATCH_EVENTS: usize = 10;
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);
const ODP_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_TRIES: u32 = 3;
const FIRST_RETRY_PAUSE: Duration = Duration::from_millis(200);

/// Where an event goes: host and key.
pub type OdpTarget = (Box<str>, Box<str>);

type OdpItem = (OdpTarget, Value);

/// The queue.
pub struct OdpEvents {
    queue: Sender<OdpItem>,
    metrics: Arc<Metrics>,
}

impl OdpEvents {
    /// A queue and its dispatcher.
    ///
    /// Errors: no HTTP client can be made.
    pub fn new(metrics: &Arc<Metrics>) -> reqwest::Result<(Self, OdpDispatcher)> {
        let (queue, items) = channel(MAX_QUEUED);
        let dispatcher = OdpDispatcher {
            items,
            client: reqwest::Client::builder().timeout(ODP_TIMEOUT).build()?,
            metrics: Arc::clone(metrics),
        };
        let metrics = Arc::clone(metrics);
        Ok((Self { queue, metrics }, dispatcher))
    }

    /// Queues an event.
    pub fn send(&self, target: OdpTarget, event: Value) {
        let outcome = match self.queue.try_send((target, event)) {
            Ok(()) => "segments_queued",
            Err(_) => "segments_full",
        };
        self.metrics.count_events(outcome, 1);
    }
}

/// Sends the queued events.
pub struct OdpDispatcher {
    items: Receiver<OdpItem>,
    client: reqwest::Client,
    metrics: Arc<Metrics>,
}

impl OdpDispatcher {
    /// Sends until it is asked to stop, then drains the queue.
    pub async fn run(mut self, mut stop: ShutdownWatch) {
        let mut next = None;
        loop {
            let first = match next.take() {
                Some(item) => Some(item),
                None => self.next(&mut stop).await,
            };
            let Some((target, event)) = first else { return };
            let mut batch = vec![event];
            let due = Instant::now() + FLUSH_INTERVAL;
            while batch.len() < MAX_BATCH_EVENTS && next.is_none() {
                let more = tokio::time::timeout_at(due, self.next(&mut stop)).await;
                match more.ok().flatten() {
                    Some((other, event)) if other == target => batch.push(event),
                    Some(item) => next = Some(item),
                    None => break,
                }
            }
            self.deliver(&target, &batch).await;
        }
    }

    /// Waits for the next event. Returns `None` once it is asked to stop and the queue is empty.
    async fn next(&mut self, stop: &mut ShutdownWatch) -> Option<OdpItem> {
        if !self.items.is_closed() {
            tokio::select! {
                item = self.items.recv() => return item,
                // `changed` would report a stop only once.
                _ = stop.wait_for(|is_asked| *is_asked) => self.items.close(),
            }
        }
        self.items.recv().await
    }

    async fn deliver(&self, (host, key): &OdpTarget, batch: &[Value]) {
        let body = serde_json::json!(batch).to_string();
        let url = format!("{}/v3/events", host.trim_end_matches('/'));
        let mut pause = FIRST_RETRY_PAUSE;
        for _ in 0..MAX_TRIES {
            let request = self.client.post(&url).header("x-api-key", &**key);
            let request = request
                .header("content-type", "application/json")
                .body(body.clone());
            match request.send().await {
                Ok(reply) if reply.status().is_success() => {
                    return self
                        .metrics
                        .count_events("segments_sent", batch.len() as u64);
                }
                // The same body would be refused again.
                Ok(reply) if reply.status().is_client_error() => {
                    log::warn!("events for segments: {}", reply.status());
                    break;
                }
                Ok(reply) => log::warn!("events for segments: {}", reply.status()),
                Err(error) => log::warn!("events for segments: {}", error.without_url()),
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        self.metrics
            .count_events("segments_dropped", batch.len() as u64);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use tokio::sync::watch;

    use super::*;

    /// A queue with one event for a platform that is not there, and its dispatcher while it collects more.
    async fn gathering(stop: ShutdownWatch) -> (OdpEvents, tokio::task::JoinHandle<()>) {
        _ = rustls::crypto::ring::default_provider().install_default();
        let (queue, dispatcher) = OdpEvents::new(&Arc::new(Metrics::new().unwrap())).unwrap();
        queue.send(
            ("http://127.0.0.1:1".into(), "key".into()),
            Value::from("event"),
        );
        let dispatching = tokio::spawn(dispatcher.run(stop));
        tokio::task::yield_now().await;
        (queue, dispatching)
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_while_a_batch_is_gathered_is_not_missed() {
        let (stop, asked) = watch::channel(false);
        let (queue, dispatching) = gathering(asked).await;
        stop.send_replace(true);
        let ended = tokio::time::timeout(Duration::from_secs(3600), dispatching).await;
        assert!(matches!(ended, Ok(Ok(()))), "{ended:?}");
        drop(queue);
    }
}
