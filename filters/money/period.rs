//! Calendar periods of limits, and the cycles of a plan.
//!
//! Our choice: hours, days, weeks and months follow the calendar in UTC, and a week starts on Monday. Everyone who
//! reads a bill can tell the period, and processes agree on it without communication.

use std::fmt;
use std::str::FromStr;

use jiff::civil::{DateTime, Weekday};
use jiff::tz::Offset;
use jiff::{Span, Timestamp, ToSpan};

/// A calendar period in UTC.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Period {
    /// From the full hour.
    Hour,
    /// From midnight.
    Day,
    /// From midnight on Monday.
    Week,
    /// From midnight on the first.
    Month,
}

impl Period {
    /// All periods, shortest first. Arrays over periods have this order.
    pub const ALL: [Self; 4] = [Self::Hour, Self::Day, Self::Week, Self::Month];

    /// Returns the period's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    /// Returns when the period around `now_ms` began. Units: unix milliseconds.
    pub fn start_ms(self, now_ms: i64) -> i64 {
        to_unix_ms(self.start(to_civil(now_ms)))
    }

    /// Returns whether a time is certainly in the period that began at `start_ms`. False means that it may be
    /// outside.
    pub fn is_surely_around(self, start_ms: i64, at_ms: i64) -> bool {
        const HOUR_MS: i64 = 3_600_000;
        let least_ms = match self {
            Self::Hour => HOUR_MS,
            Self::Day => 24 * HOUR_MS,
            Self::Week => 7 * 24 * HOUR_MS,
            Self::Month => 28 * 24 * HOUR_MS,
        };
        (start_ms..start_ms.saturating_add(least_ms)).contains(&at_ms)
    }

    /// Returns when the period around `now_ms` ends. Units: unix milliseconds.
    pub fn end_ms(self, now_ms: i64) -> i64 {
        let length = match self {
            Self::Hour => 1.hour(),
            Self::Day => 1.day(),
            Self::Week => 1.week(),
            Self::Month => 1.month(),
        };
        to_unix_ms(self.start(to_civil(now_ms)).saturating_add(length))
    }

    fn start(self, now: DateTime) -> DateTime {
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
        f.write_str(self.as_str())
    }
}

/// The error for a text that is not a period.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct InvalidPeriod;

impl fmt::Display for InvalidPeriod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("accepted are hour, day, week, month")
    }
}

impl std::error::Error for InvalidPeriod {}

impl FromStr for Period {
    type Err = InvalidPeriod;
    fn from_str(text: &str) -> Result<Self, InvalidPeriod> {
        let found = Self::ALL.into_iter().find(|period| period.as_str() == text);
        found.ok_or(InvalidPeriod)
    }
}

/// Returns the start and end of the plan cycle around `now_ms`. Units: unix milliseconds.
///
/// Cycles are months counted from `since_ms`, so a cycle that began on the 31st returns to it in each month that has
/// one. A time before `since_ms` belongs to the first cycle.
pub fn cycle(since_ms: i64, now_ms: i64) -> (i64, i64) {
    let (since, now) = (to_civil(since_ms), to_civil(now_ms));
    let months = (i32::from(now.year()) - i32::from(since.year())) * 12 + i32::from(now.month())
        - i32::from(since.month());
    let after = |months: i32| to_unix_ms(since.saturating_add(Span::new().months(months)));
    let months = months.max(0);
    // The cycle may begin on a day of this month that is still to come.
    let months = if months > 0 && after(months) > now_ms {
        months - 1
    } else {
        months
    };
    (after(months), after(months + 1))
}

fn to_civil(unix_ms: i64) -> DateTime {
    let time = Timestamp::from_millisecond(unix_ms).unwrap_or(Timestamp::UNIX_EPOCH);
    Offset::UTC.to_datetime(time)
}

fn to_unix_ms(time: DateTime) -> i64 {
    Offset::UTC
        .to_timestamp(time)
        .map_or(0, Timestamp::as_millisecond)
}
