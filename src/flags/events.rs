//! Events on their way to the analytics backend: a bounded queue, batches by size and time, repetitions.
//!
//! Deciding never waits for it: an event that finds the queue full is dropped and counted. On stop what waits is
//! sent first, for five seconds at most; the rest is spooled and sent after the next start.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use filters::flags::event::Head;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::config::Decisions;
use crate::metrics::Metrics;

/// How long a dispatch may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two tries: doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How long a stopping process goes on sending.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Where the rest waits for the next start: a body per line.
const SPOOL: &str = "events.spool";

/// One event.
struct Item {
    head: Head,
    visitor: Vec<u8>,
}

/// The queue.
#[derive(Clone)]
pub struct Events {
    queue: Option<Sender<Item>>,
    metrics: Arc<Metrics>,
}

impl Events {
    /// The queue of a configuration, and who empties it; nobody where events go nowhere.
    pub fn new(
        decisions: &Decisions,
        state_dir: &Path,
        metrics: &Arc<Metrics>,
    ) -> (Self, Option<Dispatcher>) {
        let (queue, dispatcher) = match &decisions.event_url {
            None => (None, None),
            Some(url) => {
                let (queue, items) = channel(decisions.event_queue);
                let dispatcher = Dispatcher {
                    items,
                    url: url.clone(),
                    most: decisions.event_batch,
                    flush: decisions.event_flush,
                    spool: state_dir.join(SPOOL),
                    metrics: Arc::clone(metrics),
                };
                (Some(queue), Some(dispatcher))
            }
        };
        let events = Self {
            queue,
            metrics: Arc::clone(metrics),
        };
        (events, dispatcher)
    }

    /// Whether events go anywhere. Where they do not, they need not be made: [`Self::off`] counts them.
    pub fn is_on(&self) -> bool {
        self.queue.is_some()
    }

    /// Counts events that nobody is to be told.
    pub fn off(&self, count: u64) {
        self.metrics.event("off", count);
    }

    /// Queues an event.
    pub fn send(&self, head: Head, visitor: Vec<u8>) {
        let Some(queue) = &self.queue else {
            return self.off(1);
        };
        match queue.try_send(Item { head, visitor }) {
            Ok(()) => self.metrics.event("queued", 1),
            Err(_) => self.metrics.event("full", 1),
        }
    }
}

/// Empties the queue.
pub struct Dispatcher {
    items: Receiver<Item>,
    url: String,
    most: usize,
    flush: Duration,
    spool: PathBuf,
    metrics: Arc<Metrics>,
}

/// Events of one head that wait for each other.
#[derive(Default)]
struct Batch {
    head: Option<Head>,
    visitors: Vec<Vec<u8>>,
}

impl Batch {
    fn body(&mut self) -> Option<(Vec<u8>, usize)> {
        let head = self.head.take()?;
        let visitors = std::mem::take(&mut self.visitors);
        let body = head.batch(visitors.iter().map(Vec::as_slice));
        Some((body, visitors.len()))
    }
}

impl Dispatcher {
    /// Sends until it is asked to stop, and what waits then.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let Ok(client) = reqwest::Client::builder().timeout(PATIENCE).build() else {
            return log::error!("events: no HTTP client could be made; nothing is sent");
        };
        let mut unsent = self.unspool();
        for body in std::mem::take(&mut unsent) {
            if !self.deliver(&client, &body, 1, &mut stop).await {
                unsent.push(body);
            }
        }
        if unsent.is_empty() {
            self.clear_spool();
        }
        let mut batch = Batch::default();
        let mut due = Instant::now() + self.flush;
        while !*stop.borrow() {
            let item = tokio::select! {
                item = self.items.recv() => item,
                () = tokio::time::sleep_until(due) => None,
                _ = stop.changed() => None,
            };
            let is_full = self
                .take(item, &mut batch, &mut due, &mut unsent, &client, &mut stop)
                .await;
            if is_full || Instant::now() >= due {
                self.dispatch(&mut batch, &mut unsent, &client, &mut stop)
                    .await;
                due = Instant::now() + self.flush;
            }
        }
        self.last_words(batch, unsent, &client).await;
    }

    /// Adds an event; a batch of another head goes out before it. Answers whether the batch is full.
    async fn take(
        &mut self,
        item: Option<Item>,
        batch: &mut Batch,
        due: &mut Instant,
        unsent: &mut Vec<Vec<u8>>,
        client: &reqwest::Client,
        stop: &mut watch::Receiver<bool>,
    ) -> bool {
        let Some(item) = item else { return false };
        if batch.head.as_ref().is_some_and(|head| *head != item.head) {
            self.dispatch(batch, unsent, client, stop).await;
        }
        if batch.head.is_none() {
            *due = Instant::now() + self.flush;
        }
        batch.head = Some(item.head);
        batch.visitors.push(item.visitor);
        batch.visitors.len() >= self.most
    }

    async fn dispatch(
        &self,
        batch: &mut Batch,
        unsent: &mut Vec<Vec<u8>>,
        client: &reqwest::Client,
        stop: &mut watch::Receiver<bool>,
    ) {
        let Some((body, count)) = batch.body() else {
            return;
        };
        if !self.deliver(client, &body, count, stop).await {
            unsent.push(body);
        }
    }

    /// Sends a body until the backend has it; `false`: the process was asked to stop first.
    async fn deliver(
        &self,
        client: &reqwest::Client,
        body: &[u8],
        count: usize,
        stop: &mut watch::Receiver<bool>,
    ) -> bool {
        let mut pause = FIRST_PAUSE;
        while !*stop.borrow() {
            if self.post(client, body, count).await {
                return true;
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = stop.changed() => {}
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        false
    }

    async fn post(&self, client: &reqwest::Client, body: &[u8], count: usize) -> bool {
        let request = client
            .post(&self.url)
            .header("content-type", "application/json")
            .body(body.to_vec());
        let is_taken = match request.send().await {
            Ok(answer) => answer.status().is_success(),
            Err(error) => {
                log::warn!("events: {}", error.without_url());
                false
            }
        };
        self.metrics
            .event(if is_taken { "sent" } else { "repeated" }, count as u64);
        is_taken
    }

    /// What waits is sent, and what cannot be is spooled.
    async fn last_words(
        mut self,
        mut batch: Batch,
        mut unsent: Vec<Vec<u8>>,
        client: &reqwest::Client,
    ) {
        self.items.close();
        while let Ok(item) = self.items.try_recv() {
            let is_other = batch.head.as_ref().is_some_and(|head| *head != item.head);
            if is_other || batch.visitors.len() >= self.most {
                unsent.extend(batch.body().map(|(body, _)| body));
            }
            batch.head = Some(item.head);
            batch.visitors.push(item.visitor);
        }
        unsent.extend(batch.body().map(|(body, _)| body));
        let until = Instant::now() + LAST_WORDS;
        let mut left = Vec::new();
        for body in unsent {
            let sent = tokio::time::timeout_at(until, self.post(client, &body, 1)).await;
            if !sent.unwrap_or(false) {
                left.push(body);
            }
        }
        self.spool(&left);
    }

    fn spool(&self, bodies: &[Vec<u8>]) {
        if bodies.is_empty() {
            return self.clear_spool();
        }
        let mut text = bodies.join(&b'\n');
        text.push(b'\n');
        match std::fs::write(&self.spool, text) {
            Ok(()) => self.metrics.event("spooled", bodies.len() as u64),
            Err(error) => log::error!("events: {}: {error}", self.spool.display()),
        }
    }

    /// Everything spooled has been taken. It stays until then: a kill sends it twice, under the same ids.
    fn clear_spool(&self) {
        match std::fs::remove_file(&self.spool) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                log::error!("events: {}: {error}", self.spool.display());
            }
            _ => {}
        }
    }

    /// What the last process left, in its order.
    fn unspool(&self) -> Vec<Vec<u8>> {
        let Ok(text) = std::fs::read(&self.spool) else {
            return Vec::new();
        };
        let lines = text.split(|&b| b == b'\n').filter(|line| !line.is_empty());
        lines.map(<[u8]>::to_vec).collect()
    }
}
