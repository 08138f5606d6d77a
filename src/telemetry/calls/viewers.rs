//! Who follows the calls. A viewer asks for what has ended since it asked last, so it costs nothing while it does not ask; a place that was
//! not used for long goes to the next one who wants to look.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::ring::{ReadSlot, Ring};
use super::{CallFilter, KeptCall, RecentCalls};

/// The maximum number of viewers.
pub const MAX_VIEWERS: usize = 20;
/// A viewer who has not asked for this time is frozen: another one gets its place if none is free.
const FROZEN_AFTER: Duration = Duration::from_secs(30);
/// How many of the calls that have ended since a viewer asked last are read at most: the newest ones. It bounds the time of a step.
const MAX_READ: u64 = 500;

/// The places of viewers.
#[derive(Default)]
pub(super) struct Viewers {
    places: Mutex<ViewerPlaces>,
    /// How many are taken, for those who do not want the lock.
    count: AtomicUsize,
}

#[derive(Default)]
struct ViewerPlaces {
    taken: Vec<ViewerPlace>,
    /// The number of the last viewer.
    last: u64,
}

struct ViewerPlace {
    /// Its number among all viewers that there were.
    viewer: u64,
    asked: Instant,
}

/// Everybody who may look does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TooManyViewers;

impl std::fmt::Display for TooManyViewers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{MAX_VIEWERS} pages follow the calls already: close one of them"
        )
    }
}

impl std::error::Error for TooManyViewers {}

impl Viewers {
    /// Returns whether there is one.
    pub(super) fn are_some(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Takes a place, that of a frozen viewer if no other is free. Returns the number of the viewer.
    pub(super) fn enter(&self, now: Instant) -> Result<u64, TooManyViewers> {
        let mut places = self.lock();
        let ViewerPlaces { taken, last } = &mut *places;
        if taken.len() >= MAX_VIEWERS {
            let is_frozen =
                |at: &ViewerPlace| now.saturating_duration_since(at.asked) > FROZEN_AFTER;
            let oldest = taken.iter().enumerate().min_by_key(|(_, at)| at.asked);
            let frozen = oldest
                .filter(|(_, at)| is_frozen(at))
                .map(|(index, _)| index);
            taken.swap_remove(frozen.ok_or(TooManyViewers)?);
        }
        *last += 1;
        let viewer = *last;
        taken.push(ViewerPlace { viewer, asked: now });
        self.count.store(taken.len(), Ordering::Relaxed);
        Ok(viewer)
    }

    /// Notes that a viewer asks. Returns whether it still has its place.
    fn ask(&self, viewer: u64, now: Instant) -> bool {
        let mut places = self.lock();
        let place = places.taken.iter_mut().find(|at| at.viewer == viewer);
        place.map(|place| place.asked = now).is_some()
    }

    pub(super) fn leave(&self, viewer: u64) {
        let mut places = self.lock();
        places.taken.retain(|at| at.viewer != viewer);
        self.count.store(places.taken.len(), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, ViewerPlaces> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who follows the calls.
pub struct Viewer {
    calls: Arc<RecentCalls>,
    number: u64,
    /// The number of the last call that it has seen.
    seen: u64,
    /// The call whose line was not there when it asked last.
    pending: u64,
}

/// The calls that have ended since a viewer asked last.
#[derive(Debug, Default)]
pub struct EndedCalls {
    /// The newest that match, newest first.
    pub calls: Vec<KeptCall>,
    /// How many others match.
    pub others: u64,
    /// How many were not read, because there were too many.
    pub unread: u64,
}

impl Viewer {
    pub(super) fn new(calls: &Arc<RecentCalls>, seen: u64) -> Result<Self, TooManyViewers> {
        let number = calls.viewers.enter(Instant::now())?;
        Ok(Self {
            calls: Arc::clone(calls),
            number,
            seen,
            pending: 0,
        })
    }

    /// Returns the number of the last call that it has seen.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Returns the memory that it looks into.
    pub fn calls(&self) -> &Arc<RecentCalls> {
        &self.calls
    }

    /// Returns the calls that match and have ended since it asked last, of them `most` whole; or `None` if another viewer has its place, because it
    /// had not asked for long.
    ///
    /// Cost: parses what it returns, and with a filter what may match.
    pub fn ask(&mut self, filter: &CallFilter, most: usize, now: Instant) -> Option<EndedCalls> {
        self.calls
            .viewers
            .ask(self.number, now)
            .then(|| self.read(filter, most))
    }

    fn read(&mut self, filter: &CallFilter, most: usize) -> EndedCalls {
        let mut ended = EndedCalls::default();
        let Some(ring) = self.calls.ring.load_full() else {
            self.seen = self.calls.ended();
            return ended;
        };
        let mut line = Vec::new();
        let last = self.whole_until(&ring);
        let kept = MAX_READ.min(ring.len() as u64);
        let oldest = self.seen.max(last.saturating_sub(kept));
        ended.unread = oldest - self.seen;
        for number in (oldest + 1..=last).rev() {
            match ring.read(number, &mut line) {
                ReadSlot::Copied => ended.add(filter, most, (number, &line)),
                ReadSlot::Pending | ReadSlot::Overwritten => ended.unread += 1,
            }
        }
        self.seen = last;
        ended
    }

    /// Returns the number of the last call up to which all lines are there. A line that has not come between two steps is not waited for.
    fn whole_until(&mut self, ring: &Ring) -> u64 {
        let last = self.calls.ended();
        let begin = self.seen.max(last.saturating_sub(ring.len() as u64)) + 1;
        let is_pending = |number: &u64| ring.look(*number) == ReadSlot::Pending;
        let mut numbers = (begin..=last).filter(|number| *number != self.pending);
        let pending = numbers.find(is_pending);
        self.pending = pending.unwrap_or(0);
        pending.map_or(last, |pending| pending - 1)
    }
}

impl EndedCalls {
    fn add(&mut self, filter: &CallFilter, most: usize, (number, line): (u64, &[u8])) {
        let is_full = self.calls.len() >= most;
        if is_full && filter.is_empty() {
            self.others += 1;
            return;
        }
        let call = filter
            .may_match(line)
            .then(|| KeptCall::parse(number, line))
            .flatten();
        match call.filter(|call| filter.matches(call)) {
            Some(_) if is_full => self.others += 1,
            Some(call) => self.calls.push(call),
            None => {}
        }
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.calls.viewers.leave(self.number);
    }
}
