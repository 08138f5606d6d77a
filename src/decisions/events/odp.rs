//! Events that segments are made of, on their way to the customer-data platform: a bounded queue, sent in batches.
//!
//! Source: docs/facts/decision-engine.md E: up to ten at a time, a second apart at most. What the platform does not
//! take is tried again a
//! few times and then dropped, which the metric tells.

use std::sync::Arc;
use std::time::Duration;

use pingora::server::ShutdownWatch;
use serde_json::Value;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::Instant;

use crate::telemetry::metrics::Metrics;

const QUEUE: usize = 10_000;
const MAX_BATCH: usize = 10;
const FLUSH: Duration = Duration::from_secs(1);
const ODP_TIMEOUT: Duration = Duration::from_secs(10);
const TRIES: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// Where an event goes: host and key.
pub type OdpTarget = (Box<str>, Box<str>);

type OdpItem = (OdpTarget, Value);

/// The queue.
pub struct OdpEvents {
    queue: Sender<OdpItem>,
    metrics: Arc<Metrics>,
}

impl OdpEvents {
    /// A queue, and who empties it.
    ///
    /// Errors: no HTTP client can be made.
    pub fn new(metrics: &Arc<Metrics>) -> reqwest::Result<(Self, OdpDispatcher)> {
        let (queue, items) = channel(QUEUE);
        let teller = OdpDispatcher {
            items,
            client: reqwest::Client::builder().timeout(ODP_TIMEOUT).build()?,
            metrics: Arc::clone(metrics),
        };
        let metrics = Arc::clone(metrics);
        Ok((Self { queue, metrics }, teller))
    }

    /// Queues an event.
    pub fn send(&self, place: OdpTarget, event: Value) {
        let outcome = match self.queue.try_send((place, event)) {
            Ok(()) => "segments_queued",
            Err(_) => "segments_full",
        };
        self.metrics.count_events(outcome, 1);
    }
}

/// Empties the queue.
pub struct OdpDispatcher {
    items: Receiver<OdpItem>,
    client: reqwest::Client,
    metrics: Arc<Metrics>,
}

impl OdpDispatcher {
    /// Sends until it is asked to stop, and then what waits.
    pub async fn run(mut self, mut stop: ShutdownWatch) {
        let mut held = None;
        loop {
            let first = match held.take() {
                Some(item) => Some(item),
                None => self.next(&mut stop).await,
            };
            let Some((place, event)) = first else { return };
            let mut batch = vec![event];
            let due = Instant::now() + FLUSH;
            while batch.len() < MAX_BATCH && held.is_none() {
                let more = tokio::time::timeout_at(due, self.next(&mut stop)).await;
                match more.ok().flatten() {
                    Some((other, event)) if other == place => batch.push(event),
                    Some(item) => held = Some(item),
                    None => break,
                }
            }
            self.tell(&place, &batch).await;
        }
    }

    /// The next one; none once it is asked to stop and nothing waits any more.
    async fn next(&mut self, stop: &mut ShutdownWatch) -> Option<OdpItem> {
        if !self.items.is_closed() {
            tokio::select! {
                item = self.items.recv() => return item,
                // Not `changed`, which tells of a stop once.
                _ = stop.wait_for(|is_asked| *is_asked) => self.items.close(),
            }
        }
        self.items.recv().await
    }

    async fn tell(&self, (host, key): &OdpTarget, batch: &[Value]) {
        let body = serde_json::json!(batch).to_string();
        let url = format!("{}/v3/events", host.trim_end_matches('/'));
        let mut pause = FIRST_PAUSE;
        for _ in 0..TRIES {
            let request = self.client.post(&url).header("x-api-key", &**key);
            let request = request
                .header("content-type", "application/json")
                .body(body.clone());
            match request.send().await {
                Ok(answer) if answer.status().is_success() => {
                    return self
                        .metrics
                        .count_events("segments_sent", batch.len() as u64);
                }
                // What is wrong with it stays wrong.
                Ok(answer) if answer.status().is_client_error() => {
                    log::warn!("events for segments: {}", answer.status());
                    break;
                }
                Ok(answer) => log::warn!("events for segments: {}", answer.status()),
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

    /// A queue with one event for a platform that is not there, and its teller while it gathers more.
    async fn gathering(stop: ShutdownWatch) -> (OdpEvents, tokio::task::JoinHandle<()>) {
        _ = rustls::crypto::ring::default_provider().install_default();
        let (queue, teller) = OdpEvents::new(&Arc::new(Metrics::new().unwrap())).unwrap();
        queue.send(
            ("http://127.0.0.1:1".into(), "key".into()),
            Value::from("event"),
        );
        let telling = tokio::spawn(teller.run(stop));
        tokio::task::yield_now().await;
        (queue, telling)
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_while_a_batch_is_gathered_is_not_missed() {
        let (stop, asked) = watch::channel(false);
        let (queue, telling) = gathering(asked).await;
        stop.send_replace(true);
        let ended = tokio::time::timeout(Duration::from_secs(3600), telling).await;
        assert!(matches!(ended, Ok(Ok(()))), "{ended:?}");
        drop(queue);
    }
}
