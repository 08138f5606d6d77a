//! Events on their way to the analytics backend: a bounded queue, batches by size and time, repeated until taken or refused.
//!
//! Deciding never waits for it: a full queue drops and counts. What waits is on disk within [`SPOOL_INTERVAL`], so that a
//! kill loses what was queued since; a batch that is sent again carries the same ids.
//! Source: docs/decisions.md 23, docs/facts/decision-engine.md G.

use std::collections::VecDeque;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use filters::decisions::event::Head;
use futures::future::{BoxFuture, FutureExt, OptionFuture};
use reqwest::StatusCode;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::spool::{self, Left, Spool};
use crate::config::DecisionsConfig;
use crate::telemetry::metrics::Metrics;

/// How long the backend may take.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(10);
/// The first pause after a failure; each one is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How long a stopping process goes on sending.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// How often what waits is put on disk.
const SPOOL_INTERVAL: Duration = Duration::from_millis(500);

/// A larger event takes a place for each of these many bytes, so that the queue bounds memory too.
const PLACE_BYTES: usize = 16 << 10;

/// One event.
struct QueuedEvent {
    head: Head,
    visitor: Vec<u8>,
    /// What it takes of the queue, given back once the backend has taken the event.
    _places: OwnedSemaphorePermit,
}

#[derive(Clone)]
struct Queue {
    items: UnboundedSender<QueuedEvent>,
    /// The places that are free.
    room: Arc<Semaphore>,
    /// All places.
    most: usize,
}

/// The queue.
#[derive(Clone)]
pub struct EventQueue {
    queue: Option<Queue>,
    metrics: Arc<Metrics>,
}

impl EventQueue {
    /// The queue of a configuration, and who empties it; nobody where events go nowhere.
    ///
    /// Errors: no HTTP client can be made.
    pub fn new(
        decisions: &DecisionsConfig,
        state_dir: &Path,
        metrics: &Arc<Metrics>,
    ) -> reqwest::Result<(Self, Option<Dispatcher>)> {
        let (mut queue, mut dispatcher) = (None, None);
        if let Some(url) = &decisions.event_url {
            let (sender, items) = unbounded_channel();
            let (spool, left) = Spool::open(state_dir);
            queue = Some(Queue {
                items: sender,
                room: Arc::new(Semaphore::new(decisions.event_queue)),
                most: decisions.event_queue,
            });
            dispatcher = Some(Dispatcher {
                items,
                backend: Backend {
                    url: url.clone(),
                    client: reqwest::Client::builder()
                        .timeout(DELIVERY_TIMEOUT)
                        .build()?,
                    metrics: Arc::clone(metrics),
                },
                most: decisions.event_batch,
                flush: decisions.event_flush,
                waiting: QueueState::default(),
                left: left.into(),
                spool,
            });
        }
        let metrics = Arc::clone(metrics);
        Ok((Self { queue, metrics }, dispatcher))
    }

    /// Whether events go anywhere. Where they do not, they need not be made: [`Self::count_unsent`] counts them.
    pub fn is_on(&self) -> bool {
        self.queue.is_some()
    }

    /// Counts events that nobody is to be told.
    pub fn count_unsent(&self, count: u64) {
        self.metrics.event("off", count);
    }

    /// Queues an event.
    pub fn send(&self, head: Head, visitor: Vec<u8>) {
        let Some(queue) = &self.queue else {
            return self.count_unsent(1);
        };
        // One that is larger than the whole queue may wait alone.
        let places = visitor.len().div_ceil(PLACE_BYTES).clamp(1, queue.most);
        let places = u32::try_from(places).unwrap_or(u32::MAX);
        let Ok(places) = Arc::clone(&queue.room).try_acquire_many_owned(places) else {
            return self.metrics.event("full", 1);
        };
        let item = QueuedEvent {
            head,
            visitor,
            _places: places,
        };
        let outcome = match queue.items.send(item) {
            Ok(()) => "queued",
            Err(_) => "full",
        };
        self.metrics.event(outcome, 1);
    }
}

/// The backend.
#[derive(Clone)]
struct Backend {
    url: String,
    client: reqwest::Client,
    metrics: Arc<Metrics>,
}

impl Backend {
    /// Sends a body until the backend has it, or says that it never will.
    async fn deliver(self, body: Vec<u8>, count: u64) {
        let mut pause = FIRST_PAUSE;
        while !self.post(&body, count).await {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Answers whether there is no more to do.
    async fn post(&self, body: &[u8], count: u64) -> bool {
        let request = self.client.post(&self.url);
        let request = request.header("content-type", "application/json");
        let outcome = match request.body(body.to_vec()).send().await {
            Ok(answer) if answer.status().is_success() => "sent",
            // What is wrong with it stays wrong, and others wait behind it.
            Ok(answer) if is_final(answer.status()) => {
                log::error!("events: the backend refuses a batch: {}", answer.status());
                "refused"
            }
            Ok(answer) => {
                log::warn!("events: {}", answer.status());
                "repeated"
            }
            Err(error) => {
                log::warn!("events: {}", error.without_url());
                "repeated"
            }
        };
        self.metrics.event(outcome, count);
        outcome != "repeated"
    }
}

/// Whether the same body would be refused again.
fn is_final(status: StatusCode) -> bool {
    let is_for_now = matches!(
        status,
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS
    );
    status.is_client_error() && !is_for_now
}

/// Events in the order in which they were queued, numbered from 1.
#[derive(Default)]
struct QueueState {
    items: VecDeque<QueuedEvent>,
    /// How many have been taken by the backend: the number of the last one.
    taken: u64,
    /// The number of the last one on disk.
    spooled: u64,
    /// When the oldest came.
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

    /// How many of the oldest but `skip` go into one batch: of one head, and `most` at the most.
    fn batch(&self, skip: usize, most: usize) -> usize {
        let mut items = self.items.iter().skip(skip).take(most);
        let Some(first) = items.next() else {
            return 0;
        };
        1 + items.take_while(|item| item.head == first.head).count()
    }

    /// The body of `count` events behind the first `skip`, which are of one head.
    fn body(&self, skip: usize, count: usize) -> Option<Vec<u8>> {
        let items = self.items.iter().skip(skip).take(count);
        let head = &self.items.get(skip)?.head;
        Some(head.batch(items.map(|item| item.visitor.as_slice())))
    }

    /// Whether the next batch need not wait for more: it is full, it has waited long enough, or something else came.
    /// Cost: does not depend on how many wait.
    fn is_ready(&self, most: usize, flush: Duration) -> bool {
        let (Some(first), Some(last)) = (self.items.front(), self.items.back()) else {
            return false;
        };
        let is_due = self.since.is_some_and(|since| since.elapsed() >= flush);
        is_due || self.items.len() >= most || last.head != first.head
    }

    /// The bodies of all events behind the first `skip`.
    fn bodies(&self, mut skip: usize, most: usize) -> Vec<Vec<u8>> {
        let mut bodies = Vec::new();
        while let Some(body) = self.body(skip, self.batch(skip, most)) {
            bodies.push(body);
            skip += self.batch(skip, most);
        }
        bodies
    }

    /// The first `count` have been taken.
    fn took(&mut self, count: usize) {
        self.items.drain(..count);
        self.taken += count as u64;
        // What comes behind them may already have waited for as long.
        if self.items.is_empty() {
            self.since = None;
        }
    }
}

/// What is on its way, and how many of those that wait are in it; none: what an earlier process left.
struct InFlightBatch {
    count: usize,
    delivery: BoxFuture<'static, ()>,
}

/// Empties the queue.
pub struct Dispatcher {
    items: UnboundedReceiver<QueuedEvent>,
    backend: Backend,
    most: usize,
    flush: Duration,
    waiting: QueueState,
    left: VecDeque<Left>,
    spool: Spool,
}

impl Dispatcher {
    /// Sends until it is asked to stop, and what waits then.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut spooling = interval(SPOOL_INTERVAL);
        spooling.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut flying: Option<InFlightBatch> = None;
        while !*stop.borrow() {
            if flying.is_none() {
                flying = self.launch();
            }
            let due = self.waiting.since.map(|since| since + self.flush);
            let is_idle = flying.is_none();
            let delivery = flying.as_mut().map(|flying| Pin::new(&mut flying.delivery));
            tokio::select! {
                Some(item) = self.items.recv() => self.waiting.push(item),
                Some(()) = OptionFuture::from(delivery) => self.landed(flying.take()),
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if is_idle && due.is_some() => {}
                _ = spooling.tick() => self.spool(),
                _ = stop.changed() => {}
            }
        }
        drop(flying);
        self.last_words().await;
    }

    /// Sends the next body: what an earlier process left first.
    fn launch(&mut self) -> Option<InFlightBatch> {
        while let Some(left) = self.left.front_mut() {
            if let Some(body) = left.bodies.first().cloned() {
                let delivery = self.backend.clone().deliver(body, 1).boxed();
                return Some(InFlightBatch { count: 0, delivery });
            }
            spool::remove(&left.path);
            self.left.pop_front();
        }
        if !self.waiting.is_ready(self.most, self.flush) {
            return None;
        }
        let count = self.waiting.batch(0, self.most);
        let body = self.waiting.body(0, count)?;
        let delivery = self.backend.clone().deliver(body, count as u64).boxed();
        Some(InFlightBatch { count, delivery })
    }

    fn landed(&mut self, flying: Option<InFlightBatch>) {
        match flying {
            Some(InFlightBatch { count: 0, .. }) => {
                if let Some(left) = self.left.front_mut() {
                    left.bodies.remove(0);
                }
            }
            Some(InFlightBatch { count, .. }) => {
                self.waiting.took(count);
                self.spool.taken(self.waiting.taken);
            }
            None => {}
        }
    }

    /// Puts what waits on disk, as far as it is not there.
    fn spool(&mut self) {
        let waiting = &mut self.waiting;
        let last = waiting.last();
        let known = waiting.spooled.saturating_sub(waiting.taken);
        let bodies = waiting.bodies(usize::try_from(known).unwrap_or(usize::MAX), self.most);
        if bodies.is_empty() {
            return;
        }
        let spool = &mut self.spool;
        match tokio::task::block_in_place(|| spool.append(&bodies, last)) {
            Ok(()) => {
                waiting.spooled = last;
                self.backend.metrics.event("spooled", bodies.len() as u64);
            }
            Err(error) => log::error!("events cannot be put on disk: {error}"),
        }
    }

    /// What waits is sent as far as there is time; the rest is on disk.
    async fn last_words(mut self) {
        self.items.close();
        while let Ok(item) = self.items.try_recv() {
            self.waiting.push(item);
        }
        self.spool();
        let until = Instant::now() + DRAIN_TIMEOUT;
        self.flush = Duration::ZERO;
        while let Some(mut flying) = self.launch() {
            let sent = tokio::time::timeout_at(until, &mut flying.delivery).await;
            if sent.is_err() {
                return;
            }
            self.landed(Some(flying));
        }
    }
}
