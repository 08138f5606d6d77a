//! Sums of spending for limits and plans.
//!
//! A tally drops a period when the next one begins, so its size is constant. Charges may arrive slightly out of order,
//! because a journal is replayed or several processes write. A late charge counts in its period if that is still the
//! current one, and always in the total.
//!
//! A clock may also jump back, or be behind the clock that dated a charge. So the spending of a period is all
//! spending from its start on, and spending with a later date also counts against the limit.

use std::fmt;
use std::str::FromStr;

use super::period::{Period, cycle};
use super::usd::Usd;

/// The length of the window for premium models. Source: docs/facts/model-gateway.md 5.3.
pub const PREMIUM_WINDOW_MS: i64 = 7 * 24 * 3_600_000;
/// The length of the window for daily pacing. Source: docs/facts/model-gateway.md 5.3.
pub const DAILY_WINDOW_MS: i64 = 24 * 3_600_000;

/// The spending of a key or a member.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Tally {
    total: Usd,
    periods: [PeriodSums; 4],
}

/// The sums of a [`Tally`] at one time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Spent {
    /// Since the beginning.
    pub total: Usd,
    /// In the current hour, day, week and month.
    pub periods: [Usd; 4],
}

/// The spending of an organization from its plan.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PlanTally {
    total: Usd,
    cycle: PeriodSums,
    premium: PeriodSums,
    daily: PeriodSums,
}

/// The sums of a [`PlanTally`] at one time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PlanSpent {
    /// In the current cycle.
    pub cycle: Usd,
    /// On premium models in the current window.
    pub premium: Usd,
    /// When the premium window ends, in unix milliseconds; `None` if none is open.
    pub premium_resets_ms: Option<i64>,
    /// In the current 24 hours.
    pub daily: Usd,
    /// When the 24 hours end, in unix milliseconds; `None` if none are open.
    pub daily_resets_ms: Option<i64>,
}

/// The error for a text that is not a tally.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct InvalidTally;

/// The sum of a period since its start. Units: unix milliseconds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct PeriodSum {
    start_ms: i64,
    spent: Usd,
}

/// The sums of the two latest periods with spending. Earlier spending is known only as part of the total.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct PeriodSums {
    latest: PeriodSum,
    before: PeriodSum,
}

impl Tally {
    /// Adds spending at `at_ms`.
    pub fn charge(&mut self, usd: Usd, at_ms: i64) {
        self.total = self.total.plus(usd);
        for (period, sum) in Period::ALL.into_iter().zip(&mut self.periods) {
            let start_ms = match sum.latest.start_ms {
                // Most charges fall into the period of the sum, and then need no calendar.
                start_ms if start_ms > 0 && period.is_surely_around(start_ms, at_ms) => start_ms,
                _ => period.start_ms(at_ms),
            };
            sum.charge(usd, start_ms);
        }
    }

    /// Returns when the last month with spending began, in unix milliseconds.
    pub fn last_month_ms(&self) -> i64 {
        let [.., month] = self.periods;
        month.latest.start_ms
    }

    /// Returns the sums at `now_ms`.
    pub fn spent(&self, now_ms: i64) -> Spent {
        let mut periods = [Usd::ZERO; 4];
        let pairs = Period::ALL.into_iter().zip(&self.periods);
        for (spent, (period, sum)) in periods.iter_mut().zip(pairs) {
            *spent = sum.since(period.start_ms(now_ms), self.total);
        }
        Spent {
            total: self.total,
            periods,
        }
    }
}

impl PlanTally {
    /// Adds the cost of calls that ended between the two times of `ended`, for a plan that began at `since_ms`.
    ///
    /// Calls of an earlier plan count in no cycle of this one, but windows continue from plan to plan. If a plan or a
    /// window begins between the two times, the whole cost counts in the later one, so that no spending is lost.
    pub fn charge(&mut self, usd: Usd, is_premium: bool, ended: (i64, i64), since_ms: i64) {
        let (_, last_ms) = ended;
        self.total = self.total.plus(usd);
        if last_ms >= since_ms {
            self.cycle.charge(usd, cycle(since_ms, last_ms).0);
        }
        self.daily.charge_window(usd, ended, DAILY_WINDOW_MS);
        if is_premium {
            self.premium.charge_window(usd, ended, PREMIUM_WINDOW_MS);
        }
    }

    /// Returns the sums at `now_ms` for a plan that began at `since_ms`. An ended window counts as zero.
    pub fn spent(&self, now_ms: i64, since_ms: i64) -> PlanSpent {
        let (premium, premium_resets_ms) =
            self.premium
                .read_window(now_ms, PREMIUM_WINDOW_MS, self.total);
        let (daily, daily_resets_ms) = self.daily.read_window(now_ms, DAILY_WINDOW_MS, self.total);
        PlanSpent {
            cycle: self.cycle.since(cycle(since_ms, now_ms).0, self.total),
            premium,
            premium_resets_ms,
            daily,
            daily_resets_ms,
        }
    }
}

impl PeriodSums {
    /// Adds to the period that began at `start_ms`, if it is one of the two latest.
    fn charge(&mut self, usd: Usd, start_ms: i64) {
        let first = PeriodSum {
            start_ms,
            spent: usd,
        };
        if start_ms > self.latest.start_ms {
            self.before = std::mem::replace(&mut self.latest, first);
        } else if start_ms == self.latest.start_ms {
            self.latest.spent = self.latest.spent.plus(usd);
        } else if start_ms > self.before.start_ms {
            self.before = first;
        } else if start_ms == self.before.start_ms {
            self.before.spent = self.before.spent.plus(usd);
        }
    }

    /// Returns the spending from `start_ms` on, or `total` if that spending is not known.
    fn since(&self, start_ms: i64, total: Usd) -> Usd {
        let Self { latest, before } = self;
        if start_ms > latest.start_ms {
            Usd::ZERO
        } else if start_ms > before.start_ms {
            latest.spent
        } else if start_ms == before.start_ms {
            latest.spent.plus(before.spent)
        } else {
            total
        }
    }

    /// Adds to a window that begins with its first charge.
    fn charge_window(&mut self, usd: Usd, (first_ms, last_ms): (i64, i64), length_ms: i64) {
        let end_ms = match self.latest.start_ms {
            0 => first_ms,
            start_ms => start_ms.saturating_add(length_ms),
        };
        if last_ms >= end_ms {
            let next = PeriodSum {
                start_ms: first_ms.max(end_ms),
                spent: usd,
            };
            self.before = std::mem::replace(&mut self.latest, next);
        } else {
            self.latest.spent = self.latest.spent.plus(usd);
        }
    }

    /// Returns the sum of the window around `now_ms` and of all later ones, and their end. The sum is zero if the
    /// last window has ended.
    fn read_window(&self, now_ms: i64, length_ms: i64, total: Usd) -> (Usd, Option<i64>) {
        let Self { latest, before } = self;
        let end_ms = latest.start_ms.saturating_add(length_ms);
        if latest.start_ms == 0 || now_ms >= end_ms {
            return (Usd::ZERO, None);
        }
        let spent = if now_ms >= before.start_ms.saturating_add(length_ms) {
            latest.spent
        } else if now_ms >= before.start_ms {
            latest.spent.plus(before.spent)
        } else {
            total
        };
        (spent, Some(end_ms))
    }
}

// A tally as text: the total, and then for each period or window the start and the sum of the latest and of the
// previous one, separated by spaces.

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.total)?;
        self.periods.iter().try_for_each(|sums| sums.write(f))
    }
}

impl FromStr for Tally {
    type Err = InvalidTally;
    fn from_str(text: &str) -> Result<Self, InvalidTally> {
        let mut words = text.split(' ');
        let mut tally = Self {
            total: parse_usd(words.next())?,
            ..Self::default()
        };
        for sums in &mut tally.periods {
            *sums = PeriodSums::read(&mut words)?;
        }
        check_end(words).map(|()| tally)
    }
}

impl fmt::Display for PlanTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.total)?;
        let all = [&self.cycle, &self.premium, &self.daily];
        all.into_iter().try_for_each(|sums| sums.write(f))
    }
}

impl FromStr for PlanTally {
    type Err = InvalidTally;
    fn from_str(text: &str) -> Result<Self, InvalidTally> {
        let mut words = text.split(' ');
        let tally = Self {
            total: parse_usd(words.next())?,
            cycle: PeriodSums::read(&mut words)?,
            premium: PeriodSums::read(&mut words)?,
            daily: PeriodSums::read(&mut words)?,
        };
        check_end(words).map(|()| tally)
    }
}

impl PeriodSums {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { latest, before } = self;
        write!(f, " {} {}", latest.start_ms, latest.spent)?;
        write!(f, " {} {}", before.start_ms, before.spent)
    }

    fn read<'a>(words: &mut impl Iterator<Item = &'a str>) -> Result<Self, InvalidTally> {
        let mut sum = || {
            let start_ms = words.next().and_then(|word| word.parse().ok());
            Ok(PeriodSum {
                start_ms: start_ms.ok_or(InvalidTally)?,
                spent: parse_usd(words.next())?,
            })
        };
        Ok(Self {
            latest: sum()?,
            before: sum()?,
        })
    }
}

fn parse_usd(word: Option<&str>) -> Result<Usd, InvalidTally> {
    let usd = word.and_then(|word| Usd::parse_signed(word).ok());
    usd.ok_or(InvalidTally)
}

fn check_end<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<(), InvalidTally> {
    match words.next() {
        None => Ok(()),
        Some(_) => Err(InvalidTally),
    }
}

#[cfg(test)]
#[path = "tally_tests.rs"]
mod tests;
