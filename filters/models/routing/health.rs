//! The health of each candidate, as real requests measure it.
//!
//! Our choice, in place of the averages of docs/facts/model-gateway.md 3.5: latency and throughput are medians of
//! histograms that forget; the uptime is that of the last attempts; and a candidate that fails three times in a row, or
//! says nothing while several attempts wait, cools down until one request, the trial, shows that it works again.

mod histogram;
mod measurements;
mod others;
mod token_use;
mod window;

#[cfg(test)]
mod sharing_tests;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

pub use self::measurements::{MAX_BYTES, Measurements};
pub use self::others::PeerState;
use self::window::Window;

/// Measurements of one candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HealthStats {
    /// Percent of attempts that answered.
    pub uptime: f64,
    /// To the first content of streams.
    pub latency_ms: f64,
    /// Completion tokens a second.
    pub throughput: f64,
}

impl Default for HealthStats {
    /// The assumption about a provider without measurements.
    fn default() -> Self {
        Self {
            uptime: 100.0,
            latency_ms: 1000.0,
            throughput: 50.0,
        }
    }
}

/// Which shares the tokens of a candidate's calls have, of all prompt tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenShares {
    /// Prompt tokens read from a cache.
    pub cached: f32,
    /// Prompt tokens written to a cache.
    pub written: f32,
    /// Completion tokens.
    pub output_ratio: f32,
}

/// Whether a candidate should be tried now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Readiness {
    /// It should.
    Ready,
    /// It has failed, and one request should try whether it works again.
    TrialDue,
    /// It has failed, or is at a limit that it has told: only after all others.
    Later,
}

/// What the plan of a request needs to know of a candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// The measurements; `None`: none in the last hour.
    pub stats: Option<HealthStats>,
    /// The shares of tokens of calls whose prompts may be cached; `None`: too few were seen.
    pub shares: Option<TokenShares>,
    /// Whether it should be tried.
    pub readiness: Readiness,
    /// When a candidate that is not ready may be tried again.
    pub due_ms: u64,
    /// A bit for each kind of request for which it came first in the last plan.
    pub(super) leads: u8,
}

/// What is known of all candidates, by their index. Memory is bounded by the catalogue: 1 KB for each, and at most 64 KB
/// where other processes have told theirs.
#[derive(Debug)]
pub struct Health {
    windows: Vec<Arc<Window>>,
}

/// An attempt that runs. If it is dropped without an outcome, as when the client leaves, it says nothing of the provider.
#[derive(Debug)]
pub struct RunningAttempt {
    /// `None` outside the catalogue.
    window: Option<Arc<Window>>,
    started_ms: u64,
    is_stream: bool,
    is_waiting: bool,
    /// When the first content came.
    content_ms: Option<u64>,
    trial_patience_ms: Option<u64>,
}

impl Health {
    /// Knows nothing of this many candidates.
    pub fn new(candidates: usize) -> Self {
        Self {
            windows: (0..candidates).map(|_| Arc::default()).collect(),
        }
    }

    /// Returns what is known of the candidates of another catalogue: each shares the measurements that it has here, under the
    /// index in `before`, so that attempts on either count for both.
    #[must_use]
    pub fn following(&self, before: impl IntoIterator<Item = Option<usize>>) -> Self {
        let known = |index: usize| self.windows.get(index).map(Arc::clone);
        let windows = before.into_iter();
        let windows = windows.map(|index| index.and_then(known).unwrap_or_default());
        Self {
            windows: windows.collect(),
        }
    }

    /// Returns the standing of a candidate. Cost: some loads, no lock.
    pub fn standing(&self, candidate: usize, now_ms: u64) -> Standing {
        match self.windows.get(candidate) {
            Some(window) => window.standing(now_ms),
            None => Standing {
                stats: None,
                shares: None,
                readiness: Readiness::Ready,
                due_ms: 0,
                leads: 0,
            },
        }
    }

    /// Begins an attempt. If the candidate's trial is due, this is it, and the next is due after a longer cool-down.
    pub fn begin(&self, candidate: usize, is_stream: bool, now_ms: u64) -> RunningAttempt {
        let window = self.windows.get(candidate).cloned();
        RunningAttempt {
            trial_patience_ms: window.as_ref().and_then(|it| it.begin(is_stream, now_ms)),
            is_waiting: window.is_some(),
            window,
            started_ms: now_ms,
            is_stream,
            content_ms: None,
        }
    }

    /// Puts a candidate after all others until this time, because its provider has told that its limit is reached.
    pub fn rest(&self, candidate: usize, until_ms: u64) {
        if let Some(window) = self.windows.get(candidate) {
            window.rest(until_ms);
        }
    }

    /// Returns the candidates, by their index.
    pub fn candidates(&self) -> std::ops::Range<usize> {
        0..self.windows.len()
    }

    /// Returns what this process has measured of a candidate, if it has changed since this was last asked.
    pub fn changed(&self, candidate: usize, now_ms: u64) -> Option<Measurements> {
        self.windows.get(candidate)?.changed(now_ms)
    }

    /// Lets [`Self::changed`] return a candidate again, because the other processes were not told.
    pub fn mark_changed(&self, candidate: usize) {
        if let Some(window) = self.windows.get(candidate) {
            window.mark_changed();
        }
    }

    /// Takes in what another process has measured of a candidate. Cost: a lock of the candidate for some microseconds.
    pub fn take_in(&self, candidate: usize, told: PeerState, now_ms: u64) {
        if let Some(window) = self.windows.get(candidate) {
            window.take_in(told, now_ms);
        }
    }

    /// Notes whether a candidate comes first for a kind of request.
    pub(super) fn set_leading(&self, candidate: usize, lane: u8, is_first: bool) {
        let Some(window) = self.windows.get(candidate) else {
            return;
        };
        match is_first {
            true => window.leads.fetch_or(lane, Relaxed),
            false => window.leads.fetch_and(!lane, Relaxed),
        };
    }

    /// Adds to what exploration in place of this candidate may spend, up to a maximum; returns the sum. Requests at the
    /// same time may lose some of it.
    pub(super) fn earn(&self, candidate: usize, amount: f64, max: f64) -> f64 {
        let Some(window) = self.windows.get(candidate) else {
            return 0.0;
        };
        let sum = (f64::from_bits(window.budget.load(Relaxed)) + amount).min(max);
        window.budget.store(sum.to_bits(), Relaxed);
        sum
    }
}

impl RunningAttempt {
    /// Returns how long the trial of a candidate that cools down should wait for a reply; `None`: it is not a trial.
    pub fn trial_patience_ms(&self) -> Option<u64> {
        self.trial_patience_ms
    }

    /// Records that a reply has begun.
    pub fn record_reply(&mut self, now_ms: u64) {
        if let Some(window) = &self.window {
            window.hear(now_ms);
        }
        self.end_wait();
    }

    /// Records the first content that the client gets, once.
    pub fn record_content(&mut self, now_ms: u64) {
        if self.content_ms.is_some() {
            return;
        }
        self.content_ms = Some(now_ms);
        self.record_reply(now_ms);
        if let Some(window) = &self.window {
            window.record_content(self.is_stream, self.started_ms, now_ms);
        }
    }

    /// Returns how many tokens the provider has made until its first content, or until now, at the throughput that was
    /// measured, else at the one that is assumed.
    pub fn silent_tokens(&self, now_ms: u64) -> u64 {
        let window = self.window.as_ref();
        let stats = window.and_then(|window| window.stats(Readiness::Ready, now_ms));
        let until_ms = self.content_ms.unwrap_or(now_ms);
        let seconds = until_ms.saturating_sub(self.started_ms) as f64 / 1000.0;
        (stats.unwrap_or_default().throughput * seconds) as u64
    }

    /// Records the tokens of a call whose prompt may be cached: of the prompt, those read from and written to a cache among
    /// them, and of the completion.
    pub fn record_tokens(&self, tokens: [u64; 4], now_ms: u64) {
        if let Some(window) = &self.window {
            window.record_tokens(tokens, now_ms);
        }
    }

    /// Records a complete reply, and its completion tokens a second where they were measured.
    pub fn record_answer(mut self, throughput: Option<f64>, now_ms: u64) {
        self.record_content(now_ms);
        if let Some(window) = &self.window {
            window.record_answer(throughput, now_ms);
        }
    }

    /// Records that the attempt was cancelled, because another one beside it answered first. That is not a failure, but its
    /// first content would have come later than now. An attempt without a reply counts as one that waits until the
    /// provider is heard again, so that a provider which says nothing is found silent although no attempt waits for long.
    pub fn record_cancelled(self, now_ms: u64) {
        let Some(window) = self.window.as_ref().filter(|_| self.content_ms.is_none()) else {
            return;
        };
        if self.is_waiting {
            window.leave_waiting(self.is_stream);
        }
        if self.is_stream {
            window.record_late_content(self.started_ms, now_ms);
        }
    }

    /// Records a failure that is the provider's. What is the caller's fault is recorded by nothing at all.
    pub fn record_failure(self, now_ms: u64) {
        if let Some(window) = &self.window {
            window.record_failure(self.started_ms, now_ms);
        }
    }

    fn end_wait(&mut self) {
        if let Some(window) = self.window.as_ref().filter(|_| self.is_waiting) {
            window.end_wait(self.is_stream);
        }
        self.is_waiting = false;
    }
}

impl Drop for RunningAttempt {
    fn drop(&mut self) {
        self.end_wait();
    }
}
