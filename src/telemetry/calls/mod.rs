//! The last calls of models, and those that run: what an operator looks at while they happen.
//!
//! A call that ends leaves the bytes of its line of the log, and some members beside it, in a [`ring`] in memory. Nothing is parsed before
//! somebody looks ([`line`](mod@line)), and nobody is told of a call: a [`Viewer`] asks the ring for what is new, so one that is slow or
//! frozen costs calls nothing. Calls that run are listed in [`open_calls`]. [`bodies`] of requests and answers are here for organizations
//! alone that allow it, as long as they do.
//! What is kept belongs to one process, and goes with it.
//! Source: docs/interface.md, Calls in memory

mod bodies;
mod filter;
mod line;
mod open_calls;
mod ring;
mod sessions;
mod viewers;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwapOption;
use filters::accounts::Caller;
use http::HeaderValue;

pub use self::filter::{CallFilter, FILTER_FIELDS, InvalidFilter, StatusFilter};
pub use self::line::{
    KeptAttempt, KeptCall, KeptFault, KeptLeftOut, KeptQuota, KeptUsage, SessionCall,
};
pub use self::open_calls::{OpenCall, OpenCallFacts};
pub use self::sessions::{
    AgentSummary, CallTotals, SessionSummary, SessionTable, agents, sessions,
};
pub use self::viewers::{EndedCalls, MAX_VIEWERS, TooManyViewers, Viewer};

use self::bodies::KeptBodies;
use self::open_calls::OpenCalls;
use self::ring::{ReadSlot, Ring};
use self::viewers::Viewers;

/// The maximum bytes of a kept line. Of a call with a longer one the members of the core are kept.
pub const MAX_LINE_BYTES: usize = 16 << 10;

/// The calls of this process that are kept in memory.
pub struct RecentCalls {
    /// The calls that have ended; `None`: none are kept.
    ring: ArcSwapOption<Ring>,
    /// The number of the last call that has ended, from 1.
    last: AtomicU64,
    /// Tells its numbers from those of another process.
    epoch: u64,
    open: Arc<OpenCalls>,
    bodies: KeptBodies,
    viewers: Viewers,
}

impl RecentCalls {
    /// Returns an empty memory of this many calls; 0: none are kept, and those that run are not listed.
    pub fn new(keep: usize) -> Self {
        Self {
            ring: ArcSwapOption::from_pointee(Ring::new(keep)),
            last: AtomicU64::new(0),
            epoch: fastrand::u64(..),
            open: Arc::default(),
            bodies: KeptBodies::default(),
            viewers: Viewers::default(),
        }
    }

    /// Changes how many calls are kept. The newest ones stay.
    pub fn set(&self, keep: usize) {
        let current = self.ring.load_full();
        if current.as_ref().map_or(0, |ring| ring.len()) == keep {
            return;
        }
        let next = Ring::new(keep);
        if let Some((next, current)) = next.as_ref().zip(current) {
            let last = self.last.load(Ordering::Acquire);
            next.copy_newest(&current, last);
        }
        self.ring.store(next.map(Arc::new));
    }

    /// Returns whether calls are kept. Cost: one load.
    pub fn is_on(&self) -> bool {
        self.ring.load().is_some()
    }

    /// Returns how many calls are kept at most.
    pub fn capacity(&self) -> usize {
        self.ring.load().as_ref().map_or(0, |ring| ring.len())
    }

    /// Returns the number that tells this memory from that of another process.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the number of the last call that has ended.
    pub fn ended(&self) -> u64 {
        self.last.load(Ordering::Acquire)
    }

    /// Keeps the line of a call that has ended, of at most [`MAX_LINE_BYTES`]; a longer one is dropped. Returns the number of the call.
    ///
    /// Cost: one lock that nobody else wants, unless a reader is at the oldest call; one copy, which allocates only until the place has
    /// had a line as long.
    pub fn keep(&self, line: &[u8]) -> Option<u64> {
        let ring = self.ring.load();
        let ring = ring.as_ref().filter(|_| line.len() <= MAX_LINE_BYTES)?;
        let number = self.last.fetch_add(1, Ordering::AcqRel) + 1;
        ring.write(number, line);
        Some(number)
    }

    /// Keeps what was asked and answered in a call, a JSON object, until this time in unix milliseconds.
    pub fn keep_bodies(&self, (number, until_ms): (u64, i64), bodies: &[u8], now_ms: i64) {
        self.bodies.keep((number, until_ms), bodies, now_ms);
    }

    /// Returns what was asked and answered in a call, if it is kept.
    pub fn find_bodies(&self, number: u64, now_ms: i64) -> Option<Vec<u8>> {
        self.bodies.find(number, now_ms)
    }

    /// Forgets the bodies whose time is over.
    pub fn forget_old_bodies(&self, now_ms: i64) {
        self.bodies.forget_old(now_ms);
    }

    /// Calls `read` with the numbers and lines of the kept calls before `before`, newest first, until it breaks.
    pub fn read_newest(
        &self,
        before: Option<u64>,
        mut read: impl FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) {
        let Some(ring) = self.ring.load_full() else {
            return;
        };
        let mut line = Vec::new();
        let last = self.ended();
        let oldest = last.saturating_sub(ring.len() as u64);
        let newest = before.map_or(last, |before| last.min(before.saturating_sub(1)));
        for number in (oldest + 1..=newest).rev() {
            let is_there = ring.read(number, &mut line) == ReadSlot::Copied;
            if is_there && read(number, &line).is_break() {
                return;
            }
        }
    }

    /// Returns the newest calls that match and have a number below `before`, newest first and at most `most`.
    pub fn find(&self, filter: &CallFilter, before: Option<u64>, most: usize) -> Vec<KeptCall> {
        let mut found = Vec::new();
        self.read_newest(before, |number, line| {
            if found.len() >= most {
                return ControlFlow::Break(());
            }
            let call = filter
                .may_match(line)
                .then(|| KeptCall::parse(number, line));
            found.extend(call.flatten().filter(|call| filter.matches(call)));
            ControlFlow::Continue(())
        });
        found
    }

    /// Lists a call that begins to run. It is listed until the return value is dropped. `None`: calls are not kept.
    ///
    /// Cost: one lock of this thread.
    pub fn open(
        &self,
        request_id: &HeaderValue,
        route: &'static str,
        caller: Option<&Arc<Caller>>,
        started_unix_us: u64,
    ) -> Option<OpenCall> {
        self.is_on().then(|| {
            self.open.add(OpenCallFacts {
                request_id: request_id.clone(),
                route,
                caller: caller.cloned(),
                started_unix_us,
                model: None,
                provider: None,
                attempts: 0,
                has_content: false,
            })
        })
    }

    /// Returns the calls that run, oldest first.
    pub fn running(&self) -> Vec<OpenCallFacts> {
        self.open.all()
    }

    /// Returns whether somebody follows the calls. Cost: one load.
    pub fn is_followed(&self) -> bool {
        self.viewers.are_some()
    }

    /// Returns a viewer who sees the calls that have a higher number than `seen`.
    ///
    /// Errors: there are [`MAX_VIEWERS`] of them, who all look.
    pub fn follow(self: &Arc<Self>, seen: u64) -> Result<Viewer, TooManyViewers> {
        Viewer::new(self, seen.min(self.ended()))
    }
}

#[cfg(test)]
mod tests;
