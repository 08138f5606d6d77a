//! What a plan reads of a window: atomics alone.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{Lane, NEVER, Number, REMEMBERED_MS, Window, forget, forgiven};
use crate::models::routing::health::{HealthStats, Readiness, Standing, TokenShares};

/// Successes that are assumed of any provider, so that one early failure says little.
const ASSUMED_SUCCESSES: f32 = 3.0;
/// So many attempts that wait at once, while nothing comes, are no accident.
const MIN_WAITING: u32 = 3;

impl Window {
    /// Returns the standing now. Cost: no lock, unless the candidate has just been found silent.
    pub(in crate::models::routing::health) fn standing(&self, now_ms: u64) -> Standing {
        let mut due_ms = self.due_ms.load(Relaxed);
        if due_ms == 0 && self.lanes.iter().any(|lane| self.is_silent(lane, now_ms)) {
            let mut learned = self.learn();
            learned.is_silent = true;
            self.open(&mut learned, now_ms);
            due_ms = self.due_ms.load(Relaxed);
        }
        let rests_until_ms = self.rests_until_ms.load(Relaxed);
        let readiness = match due_ms {
            _ if rests_until_ms > now_ms => Readiness::Later,
            0 => Readiness::Ready,
            due_ms if due_ms <= now_ms => Readiness::TrialDue,
            _ => Readiness::Later,
        };
        Standing {
            stats: self.stats(readiness, now_ms),
            shares: self.shares(),
            readiness,
            due_ms: due_ms.max(rests_until_ms),
            leads: self.leads.load(Relaxed),
        }
    }

    /// Returns the measurements; `None`: none in the last hour.
    pub(in crate::models::routing::health) fn stats(
        &self,
        readiness: Readiness,
        now_ms: u64,
    ) -> Option<HealthStats> {
        let counted_ms = self.counted_ms.load(Relaxed);
        let idle_ms = now_ms.saturating_sub(counted_ms);
        if counted_ms == NEVER || idle_ms > REMEMBERED_MS {
            return None;
        }
        let assumed = HealthStats::default();
        let known = |number: &Number, until_ms: &AtomicU64| {
            let is_known = until_ms.load(Relaxed) > now_ms;
            is_known.then(|| f64::from(number.load()))
        };
        let uptime = match self.failed.load() {
            // A trial shows what the failures before it are still worth.
            _ if readiness == Readiness::TrialDue => 100.0,
            0.0 => 100.0,
            failed => {
                let failed = forget(failed * forgiven(idle_ms));
                let good = self.answered.load() + ASSUMED_SUCCESSES;
                100.0 * f64::from(good / (good + failed))
            }
        };
        Some(HealthStats {
            uptime,
            latency_ms: known(&self.latency_ms, &self.latency_until_ms)
                .unwrap_or(assumed.latency_ms),
            throughput: known(&self.throughput, &self.throughput_until_ms)
                .unwrap_or(assumed.throughput),
        })
    }

    fn shares(&self) -> Option<TokenShares> {
        let [cached, written, output_ratio] = &self.shares;
        let cached = cached.load();
        (!cached.is_nan()).then(|| TokenShares {
            cached,
            written: written.load(),
            output_ratio: output_ratio.load(),
        })
    }

    /// Returns whether attempts wait for longer than replies usually take, and nothing comes.
    fn is_silent(&self, lane: &Lane, now_ms: u64) -> bool {
        if lane.waiting.load(Relaxed) + lane.unheard.load(Relaxed) < MIN_WAITING {
            return false;
        }
        let since_ms = lane.since_ms.load(Relaxed);
        let heard_ms = since_ms.max(self.heard_ms.load(Relaxed));
        now_ms > heard_ms.saturating_add(lane.patience_ms.load(Relaxed))
    }
}
