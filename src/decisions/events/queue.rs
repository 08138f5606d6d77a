//! Events for the analytics backend: a bounded queue, and batches that are sent until they are accepted or refused.
//!
//! Decisions never wait for the queue: a full queue drops events and counts them. Queued events are on disk within
//! [`SPOOL_INTERVAL`], so a kill only loses later ones. A batch that is sent again has the same ids.
//! Source: docs/decisions.md 23, docs/facts/decision-engine.md G.

use std::collections::VecDeque;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Once, OnceLock};
use std::time::Duration;

use filters::decisions::event;
use filters::decisions::event::EventHead;
use futures::future::{BoxFuture, FutureExt, OptionFuture};
use prometheus::IntCounter;
use reqwest::{Response, StatusCode};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::recent::RecentEvents;
use super::spool::{self, EventSpool, LeftFile};
use crate::config::DecisionsConfig;
use crate::outbound::{self, Outbound};
use crate::proxy::concurrency_limit::{ConcurrencyLimit, ConcurrencyPermit};
use crate::telemetry::metrics::Metrics;

/// The maximum time of a request.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(10);
/// The first pause after a failure. Each pause is twice as long as the previous one.
const FIRST_RETRY_PAUSE: Duration = Duration::from_millis(200);
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(30);
/// How long a stopping process continues to send.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// The interval at which queued events are written to disk.
const SPOOL_INTERVAL: Duration = Duration::from_millis(500);
/// The interval at which files are looked for that another process has left, as one that was upgraded.
const LEFT_INTERVAL: Duration = Duration::from_secs(10);

/// An event takes one permit for each of these many bytes, so that the queue also bounds memory.
const PERMIT_BYTES: usize = 16 << 10;

/// One event.
struct QueuedEvent {
    head: EventHead,
    visitor: Vec<u8>,
    /// The capacity that the event takes until the backend has accepted it.
    _permits: ConcurrencyPermit,
}

/// The way to the dispatcher, which outlives the configuration.
#[derive(Clone)]
struct Queue {
    items: UnboundedSender<QueuedEvent>,
    /// The permits of queued events.
    permits: Arc<ConcurrencyLimit>,
    capacity: usize,
    /// How the dispatcher sends.
    delivery: Arc<watch::Sender<Delivery>>,
    recent: Arc<RecentEvents>,
}

/// How events are sent.
#[derive(Clone)]
struct Delivery {
    backend: Backend,
    max_batch: usize,
    flush_interval: Duration,
}

/// The queue.
#[derive(Clone)]
pub struct EventQueue {
    /// The queue of this configuration or of an earlier one.
    queue: Option<Queue>,
    /// How this configuration sends events; `None`: it does not.
    delivery: Option<Delivery>,
    metrics: Arc<Metrics>,
    /// The counters of almost all events, looked up once.
    queued: OnceLock<IntCounter>,
    unsent: OnceLock<IntCounter>,
}

impl EventQueue {
    /// Returns the queue of a configuration. It goes on with the previous one and its dispatcher, if there is any; else it
    /// comes with a dispatcher of its own, unless events are not sent.
    ///
    /// Errors: no HTTP client can be created.
    pub fn new(
        decisions: &DecisionsConfig,
        state_dir: &Path,
        metrics: &Arc<Metrics>,
        previous: Option<&Self>,
    ) -> reqwest::Result<(Self, Option<Dispatcher>)> {
        let before = previous.and_then(|previous| previous.queue.as_ref());
        let delivery = delivery(decisions, metrics, before)?;
        let capacity = decisions.event_queue;
        let (queue, dispatcher) = match (before, &delivery) {
            (Some(before), _) => (Some(before.resized(capacity)), None),
            (None, Some(delivery)) => {
                let (queue, dispatcher) = open(state_dir, capacity, delivery);
                (Some(queue), Some(dispatcher))
            }
            (None, None) => (None, None),
        };
        let events = Self {
            queue,
            delivery,
            metrics: Arc::clone(metrics),
            queued: OnceLock::new(),
            unsent: OnceLock::new(),
        };
        Ok((events, dispatcher))
    }

    /// Lets the dispatcher send as this configuration says, what is queued already too. If this one sends no events, those are
    /// sent as before.
    pub fn take_over(&self) {
        if let Some((queue, delivery)) = self.queue.as_ref().zip(self.delivery.as_ref()) {
            queue.delivery.send_replace(delivery.clone());
        }
    }

    /// Returns whether events are sent. If not, callers need not make them, and [`Self::count_unsent`] counts them.
    pub fn is_on(&self) -> bool {
        self.delivery.is_some()
    }

    /// Returns the events that were queued last, or `None` if none are sent.
    pub fn recent(&self) -> Option<&RecentEvents> {
        let queue = self.queue.as_ref().filter(|_| self.is_on());
        queue.map(|queue| &*queue.recent)
    }

    /// Counts events that are not sent.
    pub fn count_unsent(&self, count: u64) {
        let counter = || self.metrics.events.with_label_values(&["off"]);
        self.unsent.get_or_init(counter).inc_by(count);
    }

    /// Queues an event.
    pub fn send(&self, head: EventHead, visitor: Vec<u8>) {
        let queue = self.queue.as_ref().filter(|_| self.is_on());
        let Some(queue) = queue else {
            return self.count_unsent(1);
        };
        // An event that is larger than the whole queue may wait alone.
        let permits = visitor
            .len()
            .div_ceil(PERMIT_BYTES)
            .clamp(1, queue.capacity);
        let Some(permits) = queue.permits.try_acquire_many(permits) else {
            return self.metrics.count_events("full", 1);
        };
        let item = QueuedEvent {
            head,
            visitor,
            _permits: permits,
        };
        if queue.items.send(item).is_err() {
            return self.metrics.count_events("full", 1);
        }
        let counter = || self.metrics.events.with_label_values(&["queued"]);
        self.queued.get_or_init(counter).inc();
    }
}

impl Queue {
    /// Returns the same queue with another capacity.
    fn resized(&self, capacity: usize) -> Self {
        Self {
            permits: Arc::new(self.permits.resized(capacity)),
            capacity,
            ..self.clone()
        }
    }
}

/// Returns how a configuration sends events; `None`: it does not. Connections to the same backend go on.
fn delivery(
    decisions: &DecisionsConfig,
    metrics: &Arc<Metrics>,
    previous: Option<&Queue>,
) -> reqwest::Result<Option<Delivery>> {
    let Some(url) = &decisions.event_url else {
        return Ok(None);
    };
    let known = previous.map(|queue| queue.delivery.borrow().backend.clone());
    let backend = match known.filter(|known| known.url == *url) {
        Some(known) => known,
        None => Backend {
            url: url.clone(),
            client: Outbound::new(DELIVERY_TIMEOUT, [url.as_str()])?,
            metrics: Arc::clone(metrics),
            redirect_told: Arc::new(Once::new()),
        },
    };
    Ok(Some(Delivery {
        backend,
        max_batch: decisions.event_batch,
        flush_interval: decisions.event_flush,
    }))
}

/// Returns a new queue and its dispatcher, which begins with what an earlier process has left.
fn open(state_dir: &Path, capacity: usize, delivery: &Delivery) -> (Queue, Dispatcher) {
    let (sender, items) = unbounded_channel();
    let (spool, left) = EventSpool::open(state_dir);
    let (changes, changed) = watch::channel(delivery.clone());
    let recent = Arc::new(RecentEvents::default());
    let queue = Queue {
        items: sender,
        permits: Arc::new(ConcurrencyLimit::new(capacity)),
        capacity,
        delivery: Arc::new(changes),
        recent: Arc::clone(&recent),
    };
    let dispatcher = Dispatcher {
        items,
        delivery: delivery.clone(),
        changed,
        waiting: QueueState::default(),
        left: left.into(),
        spool,
        recent,
    };
    (queue, dispatcher)
}

/// The backend.
#[derive(Clone)]
struct Backend {
    url: String,
    client: Outbound,
    metrics: Arc<Metrics>,
    redirect_told: Arc<Once>,
}

impl Backend {
    /// Sends a body until the backend accepts or finally refuses it.
    async fn deliver(self, body: Vec<u8>, count: u64) {
        let mut pause = FIRST_RETRY_PAUSE;
        while !self.post(&body, count).await {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_RETRY_PAUSE);
        }
    }

    /// Returns the reply to a body, without reading the reply's body.
    async fn send(&self, body: &[u8]) -> Result<Response, String> {
        let request = self.client.post(&self.url)?;
        let request = request.header("content-type", "application/json");
        let reply = request.body(body.to_vec()).send().await;
        reply.map_err(outbound::describe)
    }

    /// Sends a body once. Returns whether it need not be sent again.
    async fn post(&self, body: &[u8], count: u64) -> bool {
        let outcome = match self.send(body).await {
            Ok(reply) if reply.status().is_success() => "sent",
            // The same body would be refused again, and other batches wait behind it.
            Ok(reply) if event::is_final(reply.status()) => {
                self.log_refusal(reply.status());
                "refused"
            }
            Ok(reply) => {
                log::warn!("events: {}", reply.status());
                "repeated"
            }
            Err(error) => {
                log::warn!("events: {error}");
                "repeated"
            }
        };
        self.metrics.count_events(outcome, count);
        outcome != "repeated"
    }

    /// Logs a refusal. A redirect is a mistake in the configuration that affects every batch, so it is logged once.
    fn log_refusal(&self, status: StatusCode) {
        if !status.is_redirection() {
            return log::error!("events: the backend refuses a batch: {status}");
        }
        self.redirect_told.call_once(|| {
            log::error!(
                "events: the backend answers {status}, and no redirect is followed: events are dropped until \
                 decisions.event_url is its final address"
            );
        });
    }
}

/// Events in the order in which they were queued, numbered from 1.
#[derive(Default)]
struct QueueState {
    items: VecDeque<QueuedEvent>,
    /// The number of the last event that the backend has accepted.
    taken: u64,
    /// The number of the last event on disk.
    spooled: u64,
    /// The time at which the oldest event was queued.
    since: Option<Instant>,
}

impl QueueState {
    fn push(&mut self, item: QueuedEvent) {
        self.since.get_or_insert_with(Instant::now);
        self.items.push_back(item);
    }

    fn last(&self) -> u64 {
        self.taken + self.items.len() as u64
    }

    /// Returns how many events after the first `skip` fit into one batch: they have one head, and are at most `max`.
    fn batch_len(&self, skip: usize, max: usize) -> usize {
        let mut items = self.items.iter().skip(skip).take(max);
        let Some(first) = items.next() else {
            return 0;
        };
        1 + items.take_while(|item| item.head == first.head).count()
    }

    /// Returns the body of `count` events after the first `skip`, which have one head.
    fn body(&self, skip: usize, count: usize) -> Option<Vec<u8>> {
        let items = self.items.iter().skip(skip).take(count);
        let head = &self.items.get(skip)?.head;
        Some(head.batch(items.map(|item| item.visitor.as_slice())))
    }

    /// Returns whether the next batch need not wait for more: it is full, it has waited long enough, or events with
    /// another head have come. Cost: independent of the number of waiting events.
    fn is_ready(&self, max: usize, flush_interval: Duration) -> bool {
        let (Some(first), Some(last)) = (self.items.front(), self.items.back()) else {
            return false;
        };
        let is_due = self
            .since
            .is_some_and(|since| since.elapsed() >= flush_interval);
        is_due || self.items.len() >= max || last.head != first.head
    }

    /// Returns the bodies of all events after the first `skip`.
    fn bodies(&self, mut skip: usize, max: usize) -> Vec<Vec<u8>> {
        let mut bodies = Vec::new();
        while let Some(body) = self.body(skip, self.batch_len(skip, max)) {
            bodies.push(body);
            skip += self.batch_len(skip, max);
        }
        bodies
    }

    /// Removes the first `count` events, which the backend has accepted.
    fn remove_taken(&mut self, count: usize) {
        self.items.drain(..count);
        self.taken += count as u64;
        // The remaining events may have waited as long.
        if self.items.is_empty() {
            self.since = None;
        }
    }
}

/// A batch that is being sent, with the number of its queued events, or 0 if an earlier process left the batch.
struct InFlightBatch {
    count: usize,
    delivery: BoxFuture<'static, ()>,
}

/// Sends the queued events.
pub struct Dispatcher {
    items: UnboundedReceiver<QueuedEvent>,
    delivery: Delivery,
    /// Changes of `delivery`.
    changed: watch::Receiver<Delivery>,
    waiting: QueueState,
    left: VecDeque<LeftFile>,
    spool: EventSpool,
    recent: Arc<RecentEvents>,
}

impl Dispatcher {
    /// Sends events until `stop`, then drains the queue.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut spooling = interval(SPOOL_INTERVAL);
        spooling.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut looking = interval(LEFT_INTERVAL);
        looking.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut in_flight: Option<InFlightBatch> = None;
        while !*stop.borrow() {
            if in_flight.is_none() {
                in_flight = self.start_batch();
            }
            let due = self
                .waiting
                .since
                .map(|since| since + self.delivery.flush_interval);
            let is_idle = in_flight.is_none();
            let delivery = in_flight
                .as_mut()
                .map(|batch| Pin::new(&mut batch.delivery));
            tokio::select! {
                Some(item) = self.items.recv() => {
                    self.recent.record(&item.head, &item.visitor);
                    self.waiting.push(item);
                }
                Some(()) = OptionFuture::from(delivery) => self.finish_batch(in_flight.take()),
                Ok(()) = self.changed.changed() => {
                    // A batch for another backend is sent anew, with the same ids.
                    in_flight = in_flight.filter(|_| !self.adopt());
                }
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if is_idle && due.is_some() => {}
                _ = spooling.tick() => self.spool(),
                _ = looking.tick() => self.left.extend(self.spool.find_left()),
                _ = stop.changed() => {}
            }
        }
        drop(in_flight);
        self.drain().await;
    }

    /// Sends as another configuration says. Returns whether the backend has changed.
    fn adopt(&mut self) -> bool {
        let next = self.changed.borrow_and_update().clone();
        let has_moved = next.backend.url != self.delivery.backend.url;
        self.delivery = next;
        has_moved
    }

    /// Starts to send the next batch. Batches of earlier processes come first.
    fn start_batch(&mut self) -> Option<InFlightBatch> {
        while let Some(left) = self.left.front_mut() {
            if let Some(body) = left.bodies.first().cloned() {
                let delivery = self.delivery.backend.clone().deliver(body, 1).boxed();
                return Some(InFlightBatch { count: 0, delivery });
            }
            spool::remove(&left.path);
            self.left.pop_front();
        }
        let settings = &self.delivery;
        let (max_batch, flush_interval) = (settings.max_batch, settings.flush_interval);
        if !self.waiting.is_ready(max_batch, flush_interval) {
            return None;
        }
        let count = self.waiting.batch_len(0, max_batch);
        let body = self.waiting.body(0, count)?;
        let delivery = settings.backend.clone();
        let delivery = delivery.deliver(body, count as u64).boxed();
        Some(InFlightBatch { count, delivery })
    }

    fn finish_batch(&mut self, batch: Option<InFlightBatch>) {
        match batch {
            Some(InFlightBatch { count: 0, .. }) => {
                if let Some(left) = self.left.front_mut() {
                    left.bodies.remove(0);
                }
            }
            Some(InFlightBatch { count, .. }) => {
                self.waiting.remove_taken(count);
                self.spool.remove_taken(self.waiting.taken);
            }
            None => {}
        }
    }

    /// Writes queued events to disk, except those that are there already.
    fn spool(&mut self) {
        let waiting = &mut self.waiting;
        let last = waiting.last();
        let spooled = waiting.spooled.saturating_sub(waiting.taken);
        let bodies = waiting.bodies(
            usize::try_from(spooled).unwrap_or(usize::MAX),
            self.delivery.max_batch,
        );
        if bodies.is_empty() {
            return;
        }
        let spool = &mut self.spool;
        match tokio::task::block_in_place(|| spool.append(&bodies, last)) {
            Ok(()) => {
                waiting.spooled = last;
                self.delivery
                    .backend
                    .metrics
                    .count_events("spooled", bodies.len() as u64);
            }
            Err(error) => log::error!("events cannot be put on disk: {error}"),
        }
    }

    /// Writes the queue to disk, then sends as much of it as the time allows.
    async fn drain(mut self) {
        self.items.close();
        while let Ok(item) = self.items.try_recv() {
            self.waiting.push(item);
        }
        self.spool();
        let deadline = Instant::now() + DRAIN_TIMEOUT;
        self.delivery.flush_interval = Duration::ZERO;
        while let Some(mut batch) = self.start_batch() {
            let sent = tokio::time::timeout_at(deadline, &mut batch.delivery).await;
            if sent.is_err() {
                return;
            }
            self.finish_batch(Some(batch));
        }
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
