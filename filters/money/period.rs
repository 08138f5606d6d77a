//! Periods that limits are counted in, and the cycles of a plan.
//!
//! Our choice: hours, days, weeks and months are those of the calendar in UTC, a week from Monday. Everybody
//! who reads a bill can say which one it is, and processes that never met agree on it.

use std::fmt;
use std::str::FromStr;

use jiff::civil::{DateTime, Weekday};
use jiff::tz::Offset;
use jiff::{Span, Timestamp, ToSpan};

/// A period of the calendar, in UTC.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Period {
    /// From the full hour.
    Hour,
    /// From midnight.
    Day,
    /// From Monday's midnight.
    Week,
    /// From midnight of the first.
    Month,
}

impl Period {
    /// All of them, shortest first; the order of every array over periods.
    pub const ALL: [Self; 4] = [Self::Hour, Self::Day, Self::Week, Self::Month];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    /// When the one that `now_ms` is in began. Units: unix milliseconds.
    pub fn began_ms(self, now_ms: i64) -> i64 {
        unix_ms(self.began(civil(now_ms)))
    }

    /// When the one that `now_ms` is in ends. Units: unix milliseconds.
    pub fn ends_ms(self, now_ms: i64) -> i64 {
        let length = match self {
            Self::Hour => 1.hour(),
            Self::Day => 1.day(),
            Self::Week => 1.week(),
            Self::Month => 1.month(),
        };
        unix_ms(self.began(civil(now_ms)).saturating_add(length))
    }

    fn began(self, now: DateTime) -> DateTime {
        let date = now.date();
        match self {
            Self::Hour => date.at(now.hour(), 0, 0, 0),
            Self::Day => date.at(0, 0, 0, 0),
            Self::Week => {
                let behind = date.weekday().since(Weekday::Monday);
                let monday = date.saturating_sub(Span::new().days(behind));
                monday.at(0, 0, 0, 0)
            }
            Self::Month => date.first_of_month().at(0, 0, 0, 0),
        }
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A word that is no period.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NoPeriod;

impl fmt::Display for NoPeriod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("accepted are hour, day, week, month")
    }
}

impl std::error::Error for NoPeriod {}

impl FromStr for Period {
    type Err = NoPeriod;
    fn from_str(word: &str) -> Result<Self, NoPeriod> {
        let found = Self::ALL.into_iter().find(|period| period.word() == word);
        found.ok_or(NoPeriod)
    }
}

/// The cycle of a plan that `now_ms` is in: when it began, when it ends. Units: unix milliseconds.
///
/// Cycles are months from `since_ms`, each counted from there, so that one begun on the 31st returns to it where
/// the month has one. Before `since_ms` it is the first.
pub fn cycle(since_ms: i64, now_ms: i64) -> (i64, i64) {
    let (since, now) = (civil(since_ms), civil(now_ms));
    let months = (i32::from(now.year()) - i32::from(since.year())) * 12 + i32::from(now.month())
        - i32::from(since.month());
    let after = |months: i32| unix_ms(since.saturating_add(Span::new().months(months)));
    let months = months.max(0);
    // In the month of `now` the day of the beginning may be still to come.
    let months = if months > 0 && after(months) > now_ms {
        months - 1
    } else {
        months
    };
    (after(months), after(months + 1))
}

fn civil(unix_ms: i64) -> DateTime {
    let time = Timestamp::from_millisecond(unix_ms).unwrap_or(Timestamp::UNIX_EPOCH);
    Offset::UTC.to_datetime(time)
}

fn unix_ms(time: DateTime) -> i64 {
    Offset::UTC
        .to_timestamp(time)
        .map_or(0, Timestamp::as_millisecond)
}
