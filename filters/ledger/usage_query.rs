//! What a request for usage asks: of which hours, how they are summed, and in which order. Source: docs/model-gateway.md 2.18.
//!
//! Usage is kept by the hour, in UTC, so a question is always about whole hours.

use std::borrow::Cow;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::fault::{Fault, quoted};
use crate::fault_code::FaultCode;

/// The length of a usage hour in milliseconds.
const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;
/// The longest time that one question is about, in days.
const MAX_DAYS: i64 = 366;
/// The same where each hour is told.
const MAX_DAYS_BY_HOUR: i64 = 31;
/// The days before its end that a question without a beginning is about.
const USUAL_DAYS: i64 = 30;
/// The most sums of a page, those of a usual one, and the most that may come before it.
const MAX_LIMIT: i64 = 100;
const USUAL_LIMIT: i64 = 10;
const MAX_OFFSET: i64 = 10_000;
/// The whole days before today for which the sums of sessions and tags are kept.
const SESSION_DAYS: i64 = 30;

/// Whole hours, numbered from the beginning of 1970 in UTC.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct UsageHours {
    pub from: i64,
    /// The one after the last.
    pub until: i64,
}

/// The length of the periods that are told.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Granularity {
    /// Days, in UTC.
    Day,
    Hour,
}

/// What sums are made by.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum UsageGroup {
    Provider,
    Model,
    ApiKey,
    /// The sessions of clients.
    Session,
    /// The agents of sessions.
    Agent,
    /// The tags that clients give their calls. A call with two counts in both.
    Tag,
}

/// What sums are sorted by; the greatest comes first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum UsageOrder {
    Requests,
    Cost,
    /// All tokens of prompts and completions.
    Tokens,
}

/// A question about each period of a time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UsageQuery {
    pub hours: UsageHours,
    pub granularity: Granularity,
}

/// A question about the parts of a time's sum.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BreakdownQuery {
    pub hours: UsageHours,
    pub group: UsageGroup,
    pub order: UsageOrder,
    pub limit: i64,
    /// How many parts to leave out first.
    pub offset: i64,
}

impl UsageHours {
    /// Returns when the first hour begins and when the last one ends, as RFC 3339 has it.
    pub fn bounds(self) -> [String; 2] {
        [self.from, self.until].map(hour_text)
    }
}

/// Returns when an hour begins, as RFC 3339 has it.
pub fn hour_text(hour: i64) -> String {
    let time = Timestamp::from_millisecond(hour.saturating_mul(HOUR_MS));
    time.map(|time| time.to_string()).unwrap_or_default()
}

impl Granularity {
    /// Returns its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Hour => "hour",
        }
    }

    /// Returns the hours of a period.
    pub fn hours(self) -> i64 {
        match self {
            Self::Day => DAY_MS / HOUR_MS,
            Self::Hour => 1,
        }
    }

    fn max_days(self) -> i64 {
        match self {
            Self::Day => MAX_DAYS,
            Self::Hour => MAX_DAYS_BY_HOUR,
        }
    }
}

impl UsageGroup {
    /// Returns its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::Model => "model",
            Self::ApiKey => "api_key",
            Self::Session => "session",
            Self::Agent => "agent",
            Self::Tag => "tag",
        }
    }
}

/// Returns the first hour whose sums of sessions and tags are kept. `now_ms` is the time in unix milliseconds.
pub fn first_session_hour(now_ms: i64) -> i64 {
    (now_ms.div_euclid(DAY_MS) - SESSION_DAYS) * (DAY_MS / HOUR_MS)
}

impl UsageOrder {
    /// Returns its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Cost => "cost",
            Self::Tokens => "tokens",
        }
    }
}

impl UsageQuery {
    /// Reads the question of a query, whose last value of a name `value` returns. `now_ms` is the time in unix milliseconds.
    ///
    /// Errors: 400 naming the parameter.
    pub fn parse<'q>(
        value: impl Fn(&str) -> Option<Cow<'q, str>>,
        now_ms: i64,
    ) -> Result<Self, Fault> {
        let words = [Granularity::Day, Granularity::Hour].map(|it| (it.as_str(), it));
        let granularity = one_of("granularity", value("granularity"), &words, "")?;
        Ok(Self {
            hours: hours(&value, granularity.max_days(), now_ms)?,
            granularity,
        })
    }
}

impl BreakdownQuery {
    /// Reads the question of a query, whose last value of a name `value` returns. `now_ms` is the time in unix milliseconds.
    /// A question about sessions or tags is about hours whose sums are kept.
    ///
    /// Errors: 400 naming the parameter.
    pub fn parse<'q>(
        value: impl Fn(&str) -> Option<Cow<'q, str>>,
        now_ms: i64,
    ) -> Result<Self, Fault> {
        let groups = [
            UsageGroup::Model,
            UsageGroup::Provider,
            UsageGroup::ApiKey,
            UsageGroup::Session,
            UsageGroup::Agent,
            UsageGroup::Tag,
        ];
        let groups = groups.map(|it| (it.as_str(), it));
        let group = value("group_by");
        let why = match group.as_deref() {
            Some("app") => "; calls are not kept by app",
            _ => "",
        };
        let orders = [UsageOrder::Cost, UsageOrder::Requests, UsageOrder::Tokens];
        let orders = orders.map(|it| (it.as_str(), it));
        let group = one_of("group_by", group, &groups, why)?;
        let mut hours = hours(&value, MAX_DAYS, now_ms)?;
        if matches!(
            group,
            UsageGroup::Session | UsageGroup::Agent | UsageGroup::Tag
        ) {
            let first = hours.from.max(first_session_hour(now_ms));
            hours.from = first.min(hours.until);
        }
        Ok(Self {
            hours,
            group,
            order: one_of("sort_by", value("sort_by"), &orders, "")?,
            limit: number("limit", value("limit"), (1, MAX_LIMIT), USUAL_LIMIT)?,
            offset: number("offset", value("offset"), (0, MAX_OFFSET), 0)?,
        })
    }
}

/// Returns the value of a word; without one, the first.
fn one_of<T: Copy>(
    name: &'static str,
    word: Option<Cow<'_, str>>,
    words: &[(&'static str, T)],
    why: &str,
) -> Result<T, Fault> {
    let found = match &word {
        None => words.first(),
        Some(word) => words.iter().find(|(known, _)| known == word),
    };
    found.map(|(_, value)| *value).ok_or_else(|| {
        let accepted: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let accepted = format!("one of {}{why}", accepted.join(", "));
        refuse(name, &word.unwrap_or_default(), &accepted)
    })
}

fn number(
    name: &'static str,
    text: Option<Cow<'_, str>>,
    (least, most): (i64, i64),
    usual: i64,
) -> Result<i64, Fault> {
    let Some(text) = text else { return Ok(usual) };
    let number = text.parse().ok();
    let number = number.filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| refuse(name, &text, &format!("an integer from {least} to {most}")))
}

fn refuse(name: &'static str, value: &str, accepted: &str) -> Fault {
    let message = format!("`{name}` is {:?}; accepted is {accepted}", quoted(value));
    Fault::invalid(name, message).with_code(FaultCode::InvalidParameters)
}

/// Returns the hours in which the time of a query lies.
fn hours<'q>(
    value: &impl Fn(&str) -> Option<Cow<'q, str>>,
    max_days: i64,
    now_ms: i64,
) -> Result<UsageHours, Fault> {
    let (from, to) = (value("from"), value("to"));
    let until_ms = match &to {
        None => now_ms,
        Some(text) => time("to", text, true)?,
    };
    let from_ms = match &from {
        None => until_ms - USUAL_DAYS * DAY_MS,
        Some(text) => time("from", text, false)?,
    };
    if from_ms >= until_ms {
        let accepted = match to {
            Some(to) => format!("a time before `to`, which is {:?}", quoted(&to)),
            None => "a time before now".to_owned(),
        };
        return Err(refuse("from", &from.unwrap_or_default(), &accepted));
    }
    if until_ms - from_ms > max_days * DAY_MS {
        let accepted = format!("a time at most {max_days} days before `to`");
        return Err(refuse("from", &from.unwrap_or_default(), &accepted));
    }
    Ok(UsageHours {
        from: from_ms.div_euclid(HOUR_MS),
        until: until_ms.div_euclid(HOUR_MS) + i64::from(until_ms.rem_euclid(HOUR_MS) > 0),
    })
}

/// Returns a time in unix milliseconds: an instant, or the beginning of a day in UTC, for an end that day's own end.
fn time(name: &'static str, text: &str, is_end: bool) -> Result<i64, Fault> {
    let of_date = |date: Date| {
        let day = if is_end { date.tomorrow() } else { Ok(date) };
        let begins = day.ok()?.to_zoned(TimeZone::UTC).ok()?;
        Some(begins.timestamp().as_millisecond())
    };
    let read = match text.len() {
        10 => text.parse().ok().and_then(of_date),
        _ => text
            .parse::<Timestamp>()
            .ok()
            .map(Timestamp::as_millisecond),
    };
    let accepted = "a time such as 2026-11-01T00:00:00Z, or a day such as 2026-11-01";
    read.ok_or_else(|| refuse(name, text, accepted))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    /// 2026-11-23T07:30:00Z.
    const NOW_MS: i64 = 1_795_419_000_000;

    fn value<'q>(pairs: &'q [(&str, &str)]) -> impl Fn(&str) -> Option<Cow<'q, str>> {
        move |name| {
            let found = pairs.iter().find(|(known, _)| *known == name)?;
            Some(found.1.into())
        }
    }

    fn bounds(pairs: &[(&str, &str)]) -> [String; 2] {
        let query = UsageQuery::parse(value(pairs), NOW_MS).unwrap();
        query.hours.bounds()
    }

    /// Contract: model-gateway 2.18 from
    /// Contract: model-gateway 2.18 to
    #[test]
    fn a_time_is_told_in_whole_hours_and_a_day_to_its_end() {
        for (from, to, expected) in [
            (
                "2026-11-01T10:20:00+02:00",
                "2026-11-01T10:00:01Z",
                ["2026-11-01T08:00:00Z", "2026-11-01T11:00:00Z"],
            ),
            (
                "2026-11-01",
                "2026-11-30",
                ["2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z"],
            ),
            (
                "2024-02-28T23:00:00Z",
                "2024-02-29",
                ["2024-02-28T23:00:00Z", "2024-03-01T00:00:00Z"],
            ),
        ] {
            assert_eq!(bounds(&[("from", from), ("to", to)]), expected);
        }
        assert_eq!(
            bounds(&[]),
            ["2026-10-24T07:00:00Z", "2026-11-23T08:00:00Z"]
        );
    }

    /// Contract: model-gateway 2.18 to
    #[test]
    fn a_time_is_as_long_as_its_periods_allow() {
        let year = [("from", "2026-01-01"), ("to", "2027-01-01")];
        let query = UsageQuery::parse(value(&year), NOW_MS).unwrap();
        assert_eq!(query.hours.until - query.hours.from, 366 * 24);
        let month = |to| {
            [
                ("granularity", "hour"),
                ("from", "2026-01-01T00:00:00Z"),
                ("to", to),
            ]
        };
        assert!(UsageQuery::parse(value(&month("2026-02-01T00:00:00Z")), NOW_MS).is_ok());
        let longer = UsageQuery::parse(value(&month("2026-02-01T00:00:01Z")), NOW_MS);
        let longer = longer.unwrap_err();
        assert!(longer.message.contains("31 days"), "{longer}");
    }

    #[test]
    fn what_is_not_understood_is_refused_by_its_name() {
        for (name, text) in [
            ("from", "yesterday"),
            ("from", ""),
            ("from", "2026-13-01"),
            ("from", "2026-11-23T07:30:00Z"),
            ("from", "2027-01-01"),
            ("from", "2020-01-01"),
            ("from", "-009999-01-01T00:00:00Z"),
            ("to", "9999-12-31"),
            ("to", "2026-11-1"),
            ("granularity", "week"),
            ("granularity", "Day"),
        ] {
            let fault = UsageQuery::parse(value(&[(name, text)]), NOW_MS).unwrap_err();
            assert_eq!(fault.status(), 400);
            assert_eq!(fault.param.as_deref(), Some(name), "{text}: {fault}");
        }
        for (name, text) in [
            ("group_by", "app"),
            ("group_by", "day"),
            ("sort_by", "name"),
            ("limit", "0"),
            ("limit", "101"),
            ("limit", "1.5"),
            ("offset", "-1"),
            ("offset", "10001"),
            ("from", "2020-01-01"),
        ] {
            let fault = BreakdownQuery::parse(value(&[(name, text)]), NOW_MS).unwrap_err();
            assert_eq!(fault.param.as_deref(), Some(name), "{text}: {fault}");
        }
    }

    #[test]
    fn a_breakdown_by_session_is_of_the_days_that_are_kept() {
        let bounds = |group, from, to| {
            let pairs = [("group_by", group), ("from", from), ("to", to)];
            let query = BreakdownQuery::parse(value(&pairs), NOW_MS).unwrap();
            query.hours.bounds()
        };
        let kept = "2026-10-24T00:00:00Z";
        for group in ["session", "agent"] {
            let of_year = bounds(group, "2026-01-01", "2026-11-22");
            assert_eq!(of_year, [kept, "2026-11-23T00:00:00Z"]);
            let of_week = bounds(group, "2026-11-16", "2026-11-22");
            assert_eq!(of_week[0], "2026-11-16T00:00:00Z");
            let before = bounds(group, "2026-01-01", "2026-01-31");
            assert_eq!(before, ["2026-02-01T00:00:00Z"; 2]);
        }
        assert_eq!(hour_text(first_session_hour(NOW_MS)), kept);
        assert_eq!(
            bounds("api_key", "2026-01-01", "2026-11-22")[0],
            "2026-01-01T00:00:00Z"
        );
    }

    #[test]
    fn a_breakdown_is_of_models_by_cost_unless_it_says_otherwise() {
        let usual = BreakdownQuery::parse(value(&[]), NOW_MS).unwrap();
        assert_eq!(
            (usual.group, usual.order, usual.limit, usual.offset),
            (UsageGroup::Model, UsageOrder::Cost, 10, 0)
        );
        let asked = [
            ("group_by", "api_key"),
            ("sort_by", "tokens"),
            ("limit", "100"),
            ("offset", "10000"),
        ];
        let asked = BreakdownQuery::parse(value(&asked), NOW_MS).unwrap();
        assert_eq!(
            (asked.group, asked.order, asked.limit, asked.offset),
            (UsageGroup::ApiKey, UsageOrder::Tokens, 100, 10_000)
        );
    }
}
