//! Events for the customer-data platform, which makes segments of them: a bounded queue, sent in batches.
//!
//! A batch has up to ten events and waits at most a second. A batch that the platform does not accept is sent again a
//! few times and then dropped, which the metric counts. Source: docs/facts/decision-engine.md E.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use pingora::server::ShutdownWatch;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::outbound::{self, Outbound};
use crate::telemetry::metrics::Metrics;

const MAX_QUEUED: usize = 10_000;
/// An event takes one permit for each of these many bytes, so that the queue also bounds memory.
const PLACE_BYTES: usize = 4 << 10;
const MAX_BATCH_EVENTS: usize = 10;
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);
const ODP_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_TRIES: u32 = 3;
const FIRST_RETRY_PAUSE: Duration = Duration::from_millis(200);

/// The destination of an event: host and key.
pub type OdpTarget = (Box<str>, Box<str>);

/// An event as JSON, and the permits that it holds until it is sent or dropped.
struct OdpItem {
    target: OdpTarget,
    json: String,
    _places: OwnedSemaphorePermit,
}

/// The queue.
pub struct OdpEvents {
    queue: UnboundedSender<OdpItem>,
    free: Arc<Semaphore>,
    /// The hosts that the operator wrote, and the client for them and public ones.
    written: Vec<String>,
    client: Arc<Outbound>,
    /// The client of the dispatcher.
    current: Arc<ArcSwap<Outbound>>,
    metrics: Arc<Metrics>,
}

impl OdpEvents {
    /// Creates the queue and its dispatcher, for the configured hosts and public ones. A previous queue goes on, with its
    /// dispatcher.
    ///
    /// Errors: no HTTP client can be created.
    pub fn new<'u>(
        written: impl IntoIterator<Item = &'u str>,
        metrics: &Arc<Metrics>,
        previous: Option<&Self>,
    ) -> reqwest::Result<(Self, Option<OdpDispatcher>)> {
        let written: Vec<String> = written.into_iter().map(str::to_owned).collect();
        let same = previous.filter(|previous| previous.written == written);
        let client = match same {
            Some(same) => Arc::clone(&same.client),
            None => {
                let hosts = written.iter().map(String::as_str);
                Arc::new(Outbound::new(ODP_TIMEOUT, hosts)?)
            }
        };
        if let Some(previous) = previous {
            let events = Self {
                queue: previous.queue.clone(),
                free: Arc::clone(&previous.free),
                written,
                client,
                current: Arc::clone(&previous.current),
                metrics: Arc::clone(metrics),
            };
            return Ok((events, None));
        }
        let (queue, items) = unbounded_channel();
        let current = Arc::new(ArcSwap::new(Arc::clone(&client)));
        let dispatcher = OdpDispatcher {
            items,
            client: Arc::clone(&current),
            metrics: Arc::clone(metrics),
        };
        let events = Self {
            queue,
            free: Arc::new(Semaphore::new(MAX_QUEUED)),
            written,
            client,
            current,
            metrics: Arc::clone(metrics),
        };
        Ok((events, Some(dispatcher)))
    }

    /// Lets the dispatcher reach the hosts of this configuration, with what is queued already too.
    pub fn take_over(&self) {
        self.current.store(Arc::clone(&self.client));
    }

    /// Queues an event.
    pub fn send(&self, target: OdpTarget, event: &Value) {
        let json = event.to_string();
        let places = json.len().div_ceil(PLACE_BYTES).clamp(1, MAX_QUEUED);
        let places = u32::try_from(places).unwrap_or(u32::MAX);
        let places = Arc::clone(&self.free).try_acquire_many_owned(places).ok();
        let item = places.map(|places| OdpItem {
            target,
            json,
            _places: places,
        });
        let is_queued = item.is_some_and(|item| self.queue.send(item).is_ok());
        let outcome = if is_queued {
            "segments_queued"
        } else {
            "segments_full"
        };
        self.metrics.count_events(outcome, 1);
    }
}

/// Sends the queued events.
pub struct OdpDispatcher {
    items: UnboundedReceiver<OdpItem>,
    client: Arc<ArcSwap<Outbound>>,
    metrics: Arc<Metrics>,
}

impl OdpDispatcher {
    /// Sends events until `stop`, then drains the queue.
    pub async fn run(mut self, mut stop: ShutdownWatch) {
        let mut next = None;
        loop {
            let first = match next.take() {
                Some(item) => Some(item),
                None => self.next(&mut stop).await,
            };
            let Some(first) = first else { return };
            let mut batch = vec![first];
            let due = Instant::now() + FLUSH_INTERVAL;
            while batch.len() < MAX_BATCH_EVENTS && next.is_none() {
                let more = tokio::time::timeout_at(due, self.next(&mut stop)).await;
                match more.ok().flatten() {
                    Some(item) if batch.iter().all(|one| one.target == item.target) => {
                        batch.push(item);
                    }
                    Some(item) => next = Some(item),
                    None => break,
                }
            }
            self.deliver(&batch).await;
        }
    }

    /// Waits for the next event. Returns `None` after `stop`, once the queue is empty.
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

    /// Sends the events of one target.
    async fn deliver(&self, batch: &[OdpItem]) {
        let Some((host, key)) = batch.first().map(|item| &item.target) else {
            return;
        };
        let events: Vec<&str> = batch.iter().map(|item| &*item.json).collect();
        let body = format!("[{}]", events.join(","));
        let url = format!("{}/v3/events", host.trim_end_matches('/'));
        let mut pause = FIRST_RETRY_PAUSE;
        for _ in 0..MAX_TRIES {
            let request = match self.client.load().post(&url) {
                Ok(request) => request.header("x-api-key", &**key),
                Err(why) => {
                    log::warn!("events for segments: {why}");
                    break;
                }
            };
            let request = request
                .header("content-type", "application/json")
                .body(body.clone());
            match request.send().await {
                Ok(reply) if reply.status().is_success() => {
                    return self
                        .metrics
                        .count_events("segments_sent", batch.len() as u64);
                }
                // The same body would be refused again, and redirects are not followed.
                Ok(reply)
                    if reply.status().is_client_error() || reply.status().is_redirection() =>
                {
                    log::warn!("events for segments: {}", reply.status());
                    break;
                }
                Ok(reply) => log::warn!("events for segments: {}", reply.status()),
                Err(error) => log::warn!("events for segments: {}", outbound::describe(error)),
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
        let metrics = Arc::new(Metrics::new().unwrap());
        let (queue, dispatcher) = OdpEvents::new([], &metrics, None).unwrap();
        queue.send(
            ("http://127.0.0.1:1".into(), "key".into()),
            &Value::from("event"),
        );
        let dispatching = tokio::spawn(dispatcher.unwrap().run(stop));
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

    #[test]
    fn the_queue_is_bounded_in_bytes() {
        _ = rustls::crypto::ring::default_provider().install_default();
        let metrics = Arc::new(Metrics::new().unwrap());
        let (queue, dispatcher) = OdpEvents::new([], &metrics, None).unwrap();
        let mut dispatcher = dispatcher.unwrap();
        let large = Value::from("x".repeat(MAX_QUEUED * PLACE_BYTES / 4));
        for _ in 0..10 {
            queue.send(("http://127.0.0.1:1".into(), "key".into()), &large);
        }
        let queued = std::iter::from_fn(|| dispatcher.items.try_recv().ok()).count();
        assert_eq!(queued, 3);
    }

    #[test]
    fn the_queue_goes_on_with_its_dispatcher_and_reaches_other_hosts() {
        _ = rustls::crypto::ring::default_provider().install_default();
        let metrics = Arc::new(Metrics::new().unwrap());
        let (old, dispatcher) = OdpEvents::new(["http://127.0.0.1:1"], &metrics, None).unwrap();
        let mut dispatcher = dispatcher.unwrap();
        let hosts = ["http://127.0.0.1:2"];
        let (new, none) = OdpEvents::new(hosts, &metrics, Some(&old)).unwrap();
        assert!(none.is_none());
        for queue in [&old, &new] {
            queue.send(("http://127.0.0.1:2".into(), "key".into()), &Value::from(1));
        }
        let queued = std::iter::from_fn(|| dispatcher.items.try_recv().ok()).count();
        assert_eq!(queued, 2);
        let reaches = |port: u16| {
            let url = format!("http://127.0.0.1:{port}/v3/events");
            dispatcher.client.load().post(&url).is_ok()
        };
        assert_eq!([1, 2].map(reaches), [true, false]);
        new.take_over();
        assert_eq!([1, 2].map(reaches), [false, true]);
    }
}
