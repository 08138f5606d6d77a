//! Events that segments are made of, on their way to the customer-data platform: a bounded queue, sent in batches.
//!
//! Source: facts E: up to ten at a time, a second apart at most. What the platform does not take is tried again a
//! few times and then dropped, which the metric tells.

use std::sync::Arc;
use std::time::Duration;

use pingora::server::ShutdownWatch;
use serde_json::Value;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::Instant;

use crate::metrics::Metrics;

const QUEUE: usize = 10_000;
const MOST: usize = 10;
const FLUSH: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(10);
const TRIES: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// Where an event goes: host and key.
pub type Place = (Box<str>, Box<str>);

type Item = (Place, Value);

/// The queue.
pub struct SegmentEvents {
    queue: Sender<Item>,
    metrics: Arc<Metrics>,
}

impl SegmentEvents {
    /// A queue, and who empties it.
    ///
    /// Errors: no HTTP client can be made.
    pub fn new(metrics: &Arc<Metrics>) -> reqwest::Result<(Self, Teller)> {
        let (queue, items) = channel(QUEUE);
        let teller = Teller {
            items,
            client: reqwest::Client::builder().timeout(PATIENCE).build()?,
            metrics: Arc::clone(metrics),
        };
        let metrics = Arc::clone(metrics);
        Ok((Self { queue, metrics }, teller))
    }

    /// Queues an event.
    pub fn send(&self, place: Place, event: Value) {
        let outcome = match self.queue.try_send((place, event)) {
            Ok(()) => "segments_queued",
            Err(_) => "segments_full",
        };
        self.metrics.event(outcome, 1);
    }
}

/// Empties the queue.
pub struct Teller {
    items: Receiver<Item>,
    client: reqwest::Client,
    metrics: Arc<Metrics>,
}

impl Teller {
    /// Sends until it is asked to stop, and then what waits.
    pub async fn run(mut self, mut stop: ShutdownWatch) {
        let mut next = None;
        loop {
            let first = match next.take() {
                Some(item) => Some(item),
                None => tokio::select! {
                    item = self.items.recv() => item,
                    _ = stop.changed() => {
                        self.items.close();
                        self.items.try_recv().ok()
                    }
                },
            };
            let Some((place, event)) = first else { return };
            let mut batch = vec![event];
            let due = Instant::now() + FLUSH;
            while batch.len() < MOST && next.is_none() {
                let more = tokio::select! {
                    more = tokio::time::timeout_at(due, self.items.recv()) => more.ok().flatten(),
                    _ = stop.changed() => self.items.try_recv().ok(),
                };
                match more {
                    Some((other, event)) if other == place => batch.push(event),
                    Some(item) => next = Some(item),
                    None => break,
                }
            }
            self.tell(&place, &batch).await;
        }
    }

    async fn tell(&self, (host, key): &Place, batch: &[Value]) {
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
                    return self.metrics.event("segments_sent", batch.len() as u64);
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
        self.metrics.event("segments_dropped", batch.len() as u64);
    }
}
