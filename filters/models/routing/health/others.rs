//! What other processes have measured of a candidate, and what all of it together says.
//!
//! Each process counts with its latest state alone, whatever came before or comes again. So states may come in any order,
//! twice, or not at all. All of them together weigh at most as much as the measurements of one process.

use super::histogram::{Histogram, kept_after};
use super::measurements::{CoolDown, Measurements};
use super::token_use::TokenUse;
use super::window::{REMEMBERED_ATTEMPTS, REMEMBERED_MS, forgiven};

/// The processes whose states of one candidate are kept: those that changed last.
const MAX_PROCESSES: usize = 64;

/// A state of another process.
#[derive(Clone, Debug)]
pub struct PeerState {
    /// Who told it: a random number of each start.
    pub process: u128,
    /// The later of two states has the higher one.
    pub version: u64,
    /// When it was measured, by our monotonic clock; negative before its start.
    pub at_ms: i64,
    pub measured: Measurements,
}

/// The times of a cool-down by our clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct ToldCoolDown {
    pub(super) opened_ms: i64,
    pub(super) failing_ms: i64,
    pub(super) due_ms: i64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Others {
    /// By process, so that sums do not depend on the order in which states came.
    told: Vec<PeerState>,
    pub(super) latency_ms: Histogram,
    pub(super) throughput: Histogram,
    pub(super) duration_ms: Histogram,
    pub(super) tokens: [f32; 5],
    pub(super) answered: f32,
    pub(super) failed: f32,
    /// When an attempt counted last; `None`: none has.
    pub(super) counted_ms: Option<u64>,
    /// When the attempt began that last showed a recovery.
    pub(super) recovered_ms: Option<i64>,
    joined_ms: u64,
}

impl PeerState {
    fn ms_ago(&self, age_ms: u32) -> i64 {
        self.at_ms.saturating_sub(age_ms.into())
    }

    pub(super) fn recovered_ms(&self) -> Option<i64> {
        self.measured.recovered_age_ms.map(|age| self.ms_ago(age))
    }

    pub(super) fn cool_down(&self) -> Option<ToldCoolDown> {
        let CoolDown {
            opened_age_ms,
            failing_age_ms,
            due_in_ms,
        } = self.measured.cool_down?;
        Some(ToldCoolDown {
            opened_ms: self.ms_ago(opened_age_ms),
            failing_ms: self.ms_ago(failing_age_ms),
            due_ms: self.at_ms.saturating_add(due_in_ms.into()),
        })
    }
}

/// Returns the milliseconds from a time, which may be before the start of our clock, to a later one.
fn since_ms(at_ms: i64, now_ms: u64) -> u64 {
    let since = i128::from(now_ms) - i128::from(at_ms);
    u64::try_from(since).unwrap_or_default()
}

impl Others {
    /// Takes in a state. Returns whether it is news: the latest of its process, and of those that are kept.
    pub(super) fn take_in(&mut self, told: PeerState, now_ms: u64) -> bool {
        let at = match self
            .told
            .binary_search_by_key(&told.process, |it| it.process)
        {
            Ok(at) => {
                let known = self.told.get_mut(at);
                return match known.filter(|known| known.version < told.version) {
                    Some(known) => {
                        *known = told;
                        self.join(now_ms);
                        true
                    }
                    None => false,
                };
            }
            Err(at) => at,
        };
        let (process, version) = (told.process, told.version);
        self.told.insert(at, told);
        if self.told.len() > MAX_PROCESSES {
            let oldest = self.told.iter().enumerate();
            let oldest = oldest.min_by_key(|(_, it)| (it.version, it.process));
            if let Some((oldest, _)) = oldest {
                self.told.remove(oldest);
            }
        }
        self.join(now_ms);
        let is_it = |it: &PeerState| it.process == process && it.version == version;
        self.told.iter().any(is_it)
    }

    /// Adds up what all processes say.
    fn join(&mut self, now_ms: u64) {
        self.told
            .retain(|it| since_ms(it.at_ms, now_ms) <= REMEMBERED_MS);
        let told = &self.told;
        let histogram = |of: fn(&Measurements) -> &super::histogram::Weights| {
            let others = told.iter().map(|it| {
                let kept = kept_after(since_ms(it.at_ms, now_ms));
                (of(&it.measured), kept)
            });
            Histogram::of_others(others, now_ms)
        };
        self.latency_ms = histogram(|it| &it.latency_ms);
        self.throughput = histogram(|it| &it.throughput);
        self.duration_ms = histogram(|it| &it.duration_ms);
        let mut tokens = TokenUse::default();
        for it in told {
            tokens.add_sums(it.measured.tokens, since_ms(it.at_ms, now_ms));
        }
        self.tokens = tokens.sums(0);
        self.recovered_ms = told.iter().filter_map(PeerState::recovered_ms).max();
        self.joined_ms = now_ms;
        self.count();
    }

    /// Adds up the attempts. Those of a process that has not counted for long fade, and failures before a recovery are
    /// none any more.
    fn count(&mut self) {
        let counted = |it: &PeerState| Some(it.ms_ago(it.measured.counted_age_ms?));
        let last_ms = self.told.iter().filter_map(counted).max();
        // What was before the start of our clock counts as of its start.
        self.counted_ms = last_ms.map(|at_ms| u64::try_from(at_ms).unwrap_or_default());
        let (mut answered, mut failed) = (0.0, 0.0);
        for it in &self.told {
            let (Some(last_ms), Some(counted_ms)) = (last_ms, counted(it)) else {
                continue;
            };
            let idle_ms = last_ms.abs_diff(counted_ms);
            let kept = forgiven(idle_ms);
            answered += it.measured.answered * kept;
            if self.recovered_ms.is_none_or(|at_ms| at_ms <= counted_ms) {
                failed += it.measured.failed * kept;
            }
        }
        let kept = REMEMBERED_ATTEMPTS / (answered + failed).max(REMEMBERED_ATTEMPTS);
        (self.answered, self.failed) = (answered * kept, failed * kept);
    }

    /// Returns the tokens of all processes, this one's among them.
    pub(super) fn all_tokens(&self, own: &TokenUse, now_ms: u64) -> TokenUse {
        let mut all = TokenUse::default();
        all.add_sums(own.sums(now_ms), 0);
        all.add_sums(self.tokens, now_ms.saturating_sub(self.joined_ms));
        all
    }
}
