//! What a window tells other processes, and what it makes of what they tell.
//!
//! A candidate that cools down in one process cools down in those that know nothing better. They let the process that
//! told it try first, so that a fleet makes about as many trials as one process, but none of them waits for another for
//! long: what one process cannot reach, others perhaps can. A recovery ends what was adopted; a process that has seen
//! failures itself tries once, at once.

use std::sync::atomic::Ordering::Relaxed;

use super::{Learned, MIN_COOL_DOWN_MS, Window};
use crate::models::routing::health::measurements::{CoolDown, Measurements, age_ms, due_in_ms};
use crate::models::routing::health::others::{PeerState, ToldCoolDown};

/// How much later than the process that has told it a candidate is tried: longer than its outcome takes to come.
const TRIAL_DELAY_MS: u64 = 2_000;
/// How long after a cool-down was adopted a process tries for itself at the latest.
const ADOPTED_MS: u64 = 20_000;
/// Times of recoveries that are no further apart are of one: each telling rounds anew.
const SAME_MS: i64 = 2_000;

impl Window {
    /// Returns what was measured here, if it has changed since this was last asked.
    pub(in crate::models::routing::health) fn changed(&self, now_ms: u64) -> Option<Measurements> {
        if !self.is_changed.swap(false, Relaxed) {
            return None;
        }
        let measured = self.measured(&self.learn(), now_ms);
        (!measured.is_empty()).then_some(measured)
    }

    /// Lets [`Self::changed`] return everything again.
    pub(in crate::models::routing::health) fn mark_changed(&self) {
        self.is_changed.store(true, Relaxed);
    }

    fn measured(&self, learned: &Learned, now_ms: u64) -> Measurements {
        let opened_ms = learned.opened_ms.filter(|_| !learned.is_adopted);
        let cool_down = opened_ms.map(|opened_ms| CoolDown {
            opened_age_ms: age_ms(opened_ms, now_ms),
            failing_age_ms: match learned.is_silent {
                true => age_ms(opened_ms, now_ms),
                false => age_ms(learned.failing_since_ms, now_ms),
            },
            due_in_ms: due_in_ms(self.due_ms.load(Relaxed), now_ms),
        });
        let recovered_ms = Some(learned.recovered_ms).filter(|at_ms| *at_ms > 0);
        Measurements {
            latency_ms: learned.latency_ms.weights(now_ms),
            throughput: learned.throughput.weights(now_ms),
            duration_ms: learned.duration_ms.weights(now_ms),
            tokens: learned.tokens.sums(now_ms),
            answered: learned.answered,
            failed: learned.failed,
            counted_age_ms: learned.own_counted_ms().map(|at_ms| age_ms(at_ms, now_ms)),
            cool_down,
            recovered_age_ms: recovered_ms.map(|at_ms| age_ms(at_ms, now_ms)),
        }
    }

    /// Takes in what another process has told.
    pub(in crate::models::routing::health) fn take_in(&self, told: PeerState, now_ms: u64) {
        let mut learned = self.learn();
        let (recovered_ms, cool_down) = (told.recovered_ms(), told.cool_down());
        let others = learned.others.get_or_insert_default();
        if !others.take_in(told, now_ms) {
            return;
        }
        if let Some(recovered_ms) = recovered_ms {
            self.heed_recovery(&mut learned, recovered_ms, now_ms);
        }
        if let Some(cool_down) = cool_down {
            self.heed_cool_down(&mut learned, cool_down, now_ms);
        }
        self.publish_times(&learned, true);
        self.publish_times(&learned, false);
        self.publish_throughput(&learned);
        self.publish_shares(&learned, now_ms);
        self.publish_counts(&learned);
    }

    fn heed_recovery(&self, learned: &mut Learned, recovered_ms: i64, now_ms: u64) {
        let opened_ms = learned.opened_ms;
        if opened_ms.is_none_or(|opened_ms| recovered_ms < signed(opened_ms)) {
            return;
        }
        if learned.is_adopted {
            self.close(learned, u64::try_from(recovered_ms).unwrap_or_default());
            return;
        }
        let heeded_ms = learned.heeded_ms;
        if heeded_ms.is_none_or(|heeded_ms| recovered_ms > heeded_ms.saturating_add(SAME_MS)) {
            learned.heeded_ms = Some(recovered_ms);
            self.due_ms.fetch_min(now_ms.max(1), Relaxed);
        }
    }

    fn heed_cool_down(&self, learned: &mut Learned, told: ToldCoolDown, now_ms: u64) {
        let answered_ms = learned.good_started_ms.map(signed);
        let own_recovery = Some(learned.recovered_ms).filter(|at_ms| *at_ms > 0);
        let others = learned.others.as_ref();
        let recovered_ms = others.and_then(|it| it.recovered_ms);
        let recovered_ms = recovered_ms.max(own_recovery.map(signed));
        let works = answered_ms.is_some_and(|at_ms| at_ms >= told.failing_ms)
            || recovered_ms.is_some_and(|at_ms| at_ms >= told.opened_ms);
        if works {
            return;
        }
        let due_ms = u64::try_from(told.due_ms).unwrap_or_default();
        let due_ms = due_ms.saturating_add(TRIAL_DELAY_MS);
        if learned.opened_ms.is_none() {
            // It may have begun before the start of our clock.
            learned.opened_ms = Some(u64::try_from(told.opened_ms).unwrap_or_default());
            learned.is_adopted = true;
            learned.adopted_ms = now_ms;
            learned.next_cool_down_ms = 2 * MIN_COOL_DOWN_MS;
        } else if !learned.is_adopted {
            return;
        }
        let latest_ms = learned.adopted_ms.saturating_add(ADOPTED_MS);
        self.due_ms.fetch_max(due_ms.min(latest_ms).max(1), Relaxed);
    }
}

fn signed(at_ms: u64) -> i64 {
    i64::try_from(at_ms).unwrap_or(i64::MAX)
}
