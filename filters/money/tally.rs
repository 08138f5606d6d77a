//! What was spent so far, as far as limits and plans look at it.
//!
//! A tally forgets a period when the next one begins, so that it stays this small for ever. Charges may come a
//! little out of order, as they do where a journal is replayed or several processes write: a late one counts in
//! the period it fell into while that is the current one, and in the total always.

use super::period::{Period, cycle};
use super::usd::Usd;

/// How long the window of premium models is. Source: docs/facts/model-gateway.md 5.3.
pub const PREMIUM_WINDOW_MS: i64 = 7 * 24 * 3_600_000;
/// How long the window of daily pacing is. Source: docs/facts/model-gateway.md 5.3.
pub const DAILY_WINDOW_MS: i64 = 24 * 3_600_000;

/// What a key or a member spent.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Tally {
    total: Usd,
    periods: [Stretch; 4],
}

/// What a [`Tally`] says at one moment.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Spent {
    /// Ever.
    pub total: Usd,
    /// In the current hour, day, week and month.
    pub periods: [Usd; 4],
}

/// What an organization spent of its plan.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PlanTally {
    cycle: Stretch,
    premium: Stretch,
    daily: Stretch,
}

/// What a [`PlanTally`] says at one moment.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PlanSpent {
    /// In the current cycle.
    pub cycle: Usd,
    /// On premium models in the current window.
    pub premium: Usd,
    /// When that window ends, in unix milliseconds; `None`: none is open.
    pub premium_resets_ms: Option<i64>,
    /// In the current 24 hours.
    pub daily: Usd,
    /// When they end, in unix milliseconds; `None`: none are running.
    pub daily_resets_ms: Option<i64>,
}

/// A sum since a moment. Units: unix milliseconds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Stretch {
    began_ms: i64,
    spent: Usd,
}

impl Tally {
    /// Adds what was spent at `at_ms`.
    pub fn charge(&mut self, usd: Usd, at_ms: i64) {
        self.total = self.total.plus(usd);
        for (period, stretch) in Period::ALL.into_iter().zip(&mut self.periods) {
            stretch.charge(usd, period.began_ms(at_ms));
        }
    }

    /// What counts at `now_ms`.
    pub fn spent(&self, now_ms: i64) -> Spent {
        let mut periods = [Usd::ZERO; 4];
        let pairs = Period::ALL.into_iter().zip(&self.periods);
        for (spent, (period, stretch)) in periods.iter_mut().zip(pairs) {
            *spent = stretch.since(period.began_ms(now_ms));
        }
        Spent {
            total: self.total,
            periods,
        }
    }
}

impl PlanTally {
    /// Adds what calls cost that ended between the two moments of `ended`, of a plan that began at `since_ms`.
    ///
    /// What an earlier plan paid is in no cycle of this one; the windows run on from plan to plan. Where a plan or a
    /// window begins between the moments, all of it counts in the later one: nothing that was spent is forgotten.
    pub fn charge(&mut self, usd: Usd, is_premium: bool, ended: (i64, i64), since_ms: i64) {
        let (_, last_ms) = ended;
        if last_ms >= since_ms {
            self.cycle.charge(usd, cycle(since_ms, last_ms).0);
        }
        self.daily.extend(usd, ended, DAILY_WINDOW_MS);
        if is_premium {
            self.premium.extend(usd, ended, PREMIUM_WINDOW_MS);
        }
    }

    /// What counts at `now_ms` of a plan that began at `since_ms`. A window that has ended counts nothing.
    pub fn spent(&self, now_ms: i64, since_ms: i64) -> PlanSpent {
        let (premium, premium_resets_ms) = self.premium.open(now_ms, PREMIUM_WINDOW_MS);
        let (daily, daily_resets_ms) = self.daily.open(now_ms, DAILY_WINDOW_MS);
        PlanSpent {
            cycle: self.cycle.since(cycle(since_ms, now_ms).0),
            premium,
            premium_resets_ms,
            daily,
            daily_resets_ms,
        }
    }
}

impl Stretch {
    /// Adds to the period that began at `began_ms`; a new one starts from nothing, an old one is past.
    fn charge(&mut self, usd: Usd, began_ms: i64) {
        if began_ms > self.began_ms {
            *self = Self {
                began_ms,
                spent: usd,
            };
        } else if began_ms == self.began_ms {
            self.spent = self.spent.plus(usd);
        }
    }

    fn since(&self, began_ms: i64) -> Usd {
        if self.began_ms == began_ms {
            self.spent
        } else {
            Usd::ZERO
        }
    }

    /// Adds to a window that begins with its first charge.
    fn extend(&mut self, usd: Usd, (first_ms, last_ms): (i64, i64), length_ms: i64) {
        let ends_ms = match self.began_ms {
            0 => first_ms,
            began_ms => began_ms.saturating_add(length_ms),
        };
        if last_ms >= ends_ms {
            *self = Self {
                began_ms: first_ms.max(ends_ms),
                spent: usd,
            };
        } else {
            self.spent = self.spent.plus(usd);
        }
    }

    /// What is in the window, and when it ends; nothing where it has ended.
    fn open(&self, now_ms: i64, length_ms: i64) -> (Usd, Option<i64>) {
        let ends_ms = self.began_ms.saturating_add(length_ms);
        if self.began_ms == 0 || now_ms >= ends_ms {
            (Usd::ZERO, None)
        } else {
            (self.spent, Some(ends_ms))
        }
    }
}
