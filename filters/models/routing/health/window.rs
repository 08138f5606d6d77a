//! What is known of one candidate: its measurements, and whether it may be tried.
//!
//! Readers load atomics alone ([`standing`]), because every plan reads every candidate. Who records an outcome takes a lock,
//! and publishes what changed ([`publishing`]). [`sharing`] is between processes.

mod publishing;
mod sharing;
mod standing;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::histogram::Histogram;
use super::others::Others;
use super::token_use::TokenUse;

/// Failures in a row after which a candidate cools down.
const MAX_FAILURES: u32 = 3;
/// The first cool-down. Each trial doubles it.
const MIN_COOL_DOWN_MS: u64 = 5_000;
/// The longest one: with the next request that comes, a provider that works again is back within a minute.
const MAX_COOL_DOWN_MS: u64 = 50_000;
/// How many attempts the uptime remembers.
pub(super) const REMEMBERED_ATTEMPTS: f32 = 30.0;
/// A candidate that was not asked for this long is forgiven: its failures halve in each further period of this length,
/// for good if the next attempt succeeds.
const FORGIVING_MS: u64 = 20_000;
/// How long measurements count at all.
pub(super) const REMEMBERED_MS: u64 = 3_600_000;
/// The patience with streams, and with whole replies, before any has come.
const UNKNOWN_PATIENCE_MS: [u64; 2] = [30_000, 300_000];
/// A time that never comes, or that never was.
const NEVER: u64 = u64::MAX;

/// Attempts of a kind (whole, streams) that wait for their replies.
#[derive(Debug)]
struct Lane {
    waiting: AtomicU32,
    /// Attempts that were cancelled without a reply since the provider was last heard.
    unheard: AtomicU32,
    /// Since when at least one waits.
    since_ms: AtomicU64,
    patience_ms: AtomicU64,
}

/// A number with a fraction that readers load.
#[derive(Debug, Default)]
struct Number(AtomicU32);

impl Number {
    fn store(&self, number: f32) {
        self.0.store(number.to_bits(), Relaxed);
    }

    fn load(&self) -> f32 {
        f32::from_bits(self.0.load(Relaxed))
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Window {
    latency_ms: Number,
    latency_until_ms: AtomicU64,
    throughput: Number,
    throughput_until_ms: AtomicU64,
    answered: Number,
    failed: Number,
    counted_ms: AtomicU64,
    /// When the next trial is due, while the candidate cools down; else 0.
    due_ms: AtomicU64,
    /// The end of a limit that the provider has told.
    rests_until_ms: AtomicU64,
    /// When the provider was last heard.
    heard_ms: AtomicU64,
    lanes: [Lane; 2],
    /// A bit for each kind of request that the candidate comes first for.
    pub(super) leads: AtomicU8,
    /// What exploration may spend, as the bits of a number. Units: price times tokens.
    pub(super) budget: AtomicU64,
    /// Cached, written and completion tokens of a prompt token; not a number: unknown.
    shares: [Number; 3],
    /// Whether other processes have yet to be told.
    is_changed: AtomicBool,
    learned: Mutex<Learned>,
}

#[derive(Debug, Default)]
struct Learned {
    latency_ms: Histogram,
    throughput: Histogram,
    duration_ms: Histogram,
    tokens: TokenUse,
    answered: f32,
    failed: f32,
    counted_ms: u64,
    failed_in_a_row: u32,
    /// When the attempt began that failed first in this row.
    failing_since_ms: u64,
    /// When the candidate began to cool down.
    opened_ms: Option<u64>,
    is_silent: bool,
    next_cool_down_ms: u64,
    /// When the attempt began that last showed its recovery. What was begun before says nothing any more.
    recovered_ms: u64,
    /// When the attempt began, of all that had content, that began last.
    good_started_ms: Option<u64>,
    /// The cool-down was told by another process, and nothing here has failed since.
    is_adopted: bool,
    adopted_ms: u64,
    /// The recovery that another process has told last, and that was heeded.
    heeded_ms: Option<i64>,
    /// What other processes have told; `None`: nothing.
    others: Option<Box<Others>>,
}

impl Default for Window {
    fn default() -> Self {
        let lane = |patience_ms| Lane {
            waiting: AtomicU32::new(0),
            unheard: AtomicU32::new(0),
            since_ms: AtomicU64::new(0),
            patience_ms: AtomicU64::new(patience_ms),
        };
        let [stream, whole] = UNKNOWN_PATIENCE_MS;
        Self {
            latency_ms: Number::default(),
            latency_until_ms: AtomicU64::new(0),
            throughput: Number::default(),
            throughput_until_ms: AtomicU64::new(0),
            answered: Number::default(),
            failed: Number::default(),
            counted_ms: AtomicU64::new(NEVER),
            due_ms: AtomicU64::new(0),
            rests_until_ms: AtomicU64::new(0),
            heard_ms: AtomicU64::new(0),
            lanes: [lane(whole), lane(stream)],
            leads: AtomicU8::new(0),
            budget: AtomicU64::new(0),
            shares: [f32::NAN; 3].map(|it| Number(AtomicU32::new(it.to_bits()))),
            is_changed: AtomicBool::new(false),
            learned: Mutex::default(),
        }
    }
}

impl Window {
    /// Records the tokens of a call whose prompt may be cached.
    pub(super) fn record_tokens(&self, tokens: [u64; 4], now_ms: u64) {
        let mut learned = self.learn();
        learned.tokens.add(tokens, now_ms);
        self.publish_shares(&learned, now_ms);
        self.mark_changed();
    }

    /// Puts the candidate last until this time.
    pub(super) fn rest(&self, until_ms: u64) {
        self.rests_until_ms.store(until_ms, Relaxed);
    }

    /// Begins an attempt. Returns how long it should wait for a reply at the most, if it is the trial of a candidate that
    /// cools down.
    pub(super) fn begin(&self, is_stream: bool, now_ms: u64) -> Option<u64> {
        let [whole, stream] = &self.lanes;
        let lane = if is_stream { stream } else { whole };
        if lane.waiting.fetch_add(1, Relaxed) == 0 && lane.unheard.load(Relaxed) == 0 {
            lane.since_ms.store(now_ms, Relaxed);
        }
        let due_ms = self.due_ms.load(Relaxed);
        if due_ms != 0 && due_ms <= now_ms {
            let mut learned = self.learn();
            let cool_down_ms = learned.next_cool_down_ms;
            learned.next_cool_down_ms = (cool_down_ms * 2).min(MAX_COOL_DOWN_MS);
            self.due_ms.store(now_ms + cool_down_ms, Relaxed);
            self.mark_changed();
            return Some(lane.patience_ms.load(Relaxed));
        }
        None
    }

    /// Ends the wait of an attempt.
    pub(super) fn end_wait(&self, is_stream: bool) {
        if let Some(lane) = self.lanes.get(usize::from(is_stream)) {
            lane.waiting.fetch_sub(1, Relaxed);
        }
    }

    /// Lets an attempt that is cancelled count as one that waits until the provider is heard.
    pub(super) fn leave_waiting(&self, is_stream: bool) {
        if let Some(lane) = self.lanes.get(usize::from(is_stream)) {
            lane.unheard.fetch_add(1, Relaxed);
        }
    }

    /// Records that the provider has replied.
    pub(super) fn hear(&self, now_ms: u64) {
        self.heard_ms.store(now_ms, Relaxed);
        for lane in &self.lanes {
            if lane.unheard.load(Relaxed) > 0 {
                lane.unheard.store(0, Relaxed);
            }
        }
    }

    /// Records that the first content of a stream had not come after this time.
    ///
    /// Our choice: it counts as the median if less time than that has passed, because it would have come later on either
    /// side of it; else as the time that has passed, because all that a median needs to know is that it is above.
    pub(super) fn record_late_content(&self, started_ms: u64, now_ms: u64) {
        let mut learned = self.learn();
        let waited_ms = now_ms.saturating_sub(started_ms) as f64;
        let usual_ms = learned.latency_ms.quantile(0.5).unwrap_or_default();
        learned
            .latency_ms
            .add(waited_ms.max(f64::from(usual_ms)), now_ms);
        self.publish_times(&learned, true);
        self.mark_changed();
    }

    /// Records the first content of an attempt, which ends the cool-down.
    pub(super) fn record_content(&self, is_stream: bool, started_ms: u64, now_ms: u64) {
        let mut learned = self.learn();
        let latency_ms = now_ms.saturating_sub(started_ms) as f64;
        let histogram = match is_stream {
            true => &mut learned.latency_ms,
            false => &mut learned.duration_ms,
        };
        histogram.add(latency_ms, now_ms);
        self.publish_times(&learned, is_stream);
        learned.good_started_ms = learned.good_started_ms.max(Some(started_ms));
        self.mark_changed();
        // A stream that was begun before the failures shows nothing of what came after them.
        if started_ms >= learned.failing_since_ms {
            learned.failed_in_a_row = 0;
        }
        let is_silent = learned.is_silent;
        let is_proof = |opened_ms| started_ms >= opened_ms || is_silent;
        if learned.opened_ms.is_some_and(is_proof) {
            self.close(&mut learned, started_ms);
        }
    }

    /// Ends a cool-down, because of an attempt that began at this time.
    fn close(&self, learned: &mut Learned, recovered_ms: u64) {
        learned.opened_ms = None;
        learned.is_silent = false;
        learned.is_adopted = false;
        learned.recovered_ms = recovered_ms;
        learned.failed = 0.0;
        self.due_ms.store(0, Relaxed);
    }

    /// Records the end of a good reply.
    pub(super) fn record_answer(&self, throughput: Option<f64>, now_ms: u64) {
        let mut learned = self.learn();
        let idle_ms = now_ms.saturating_sub(learned.counted_ms);
        learned.failed = forget(learned.failed * forgiven(idle_ms));
        learned.count(now_ms);
        learned.answered += 1.0;
        if let Some(throughput) = throughput {
            learned.throughput.add(throughput, now_ms);
            self.publish_throughput(&learned);
        }
        self.publish_counts(&learned);
        self.mark_changed();
    }

    /// Records a failure. One of an attempt that was begun before the provider recovered says nothing.
    pub(super) fn record_failure(&self, started_ms: u64, now_ms: u64) {
        let mut learned = self.learn();
        if started_ms < learned.recovered_ms {
            return;
        }
        learned.count(now_ms);
        learned.failed += 1.0;
        if learned.failed_in_a_row == 0 {
            learned.failing_since_ms = started_ms;
        }
        learned.failed_in_a_row += 1;
        learned.is_adopted = false;
        self.publish_counts(&learned);
        self.mark_changed();
        if learned.failed_in_a_row >= MAX_FAILURES {
            self.open(&mut learned, now_ms);
        }
    }

    /// Begins a cool-down, unless there is one.
    fn open(&self, learned: &mut Learned, now_ms: u64) {
        if learned.opened_ms.is_none() {
            learned.opened_ms = Some(now_ms);
            learned.next_cool_down_ms = 2 * MIN_COOL_DOWN_MS;
            self.due_ms.store(now_ms + MIN_COOL_DOWN_MS, Relaxed);
            self.mark_changed();
        }
    }

    fn learn(&self) -> MutexGuard<'_, Learned> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Learned {
    /// Returns when an attempt of this process counted last.
    fn own_counted_ms(&self) -> Option<u64> {
        (self.answered + self.failed > 0.0).then_some(self.counted_ms)
    }

    /// Makes room for one more attempt.
    fn count(&mut self, now_ms: u64) {
        let kept = (REMEMBERED_ATTEMPTS - 1.0)
            / (self.answered + self.failed).max(REMEMBERED_ATTEMPTS - 1.0);
        self.answered *= kept;
        self.failed *= kept;
        self.counted_ms = now_ms;
    }
}

/// Returns the failures, unless they are less than half a one.
fn forget(failed: f32) -> f32 {
    if failed < 0.5 { 0.0 } else { failed }
}

/// Returns the share of a candidate's failures that still counts after it was not asked for this long.
pub(super) fn forgiven(idle_ms: u64) -> f32 {
    match idle_ms.checked_sub(FORGIVING_MS) {
        None | Some(0) => 1.0,
        Some(over_ms) => (-(over_ms as f32) / FORGIVING_MS as f32).exp2(),
    }
}
