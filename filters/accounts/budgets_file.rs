//! Budgets as a key or a project has them stored: the limits of each session, each agent and of tags.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::names::check_tag;
use super::terms::{InvalidTerm, parse_field};
use crate::money::allowance::KeyLimits;
use crate::money::budgets::{BudgetTerms, TagLimits};
use crate::money::{Period, Usd};

/// The most tags that one key or project limits.
const MAX_TAGS: usize = 64;
/// The most calls of a session behind the end of its budget.
const MAX_GRACE_CALLS: u32 = 100;

/// Budgets as stored. Shape: a JSON object. A limit is an amount in USD, for good, or `USD/PERIOD` with an hour, a day, a week or a
/// month of the calendar in UTC.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetsFile {
    /// The most that each session may spend.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub session: Vec<String>,
    /// The most that each agent of a session may spend, with the agents that it asks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agent: Vec<String>,
    /// The most that all calls with a tag may spend together.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, Vec<String>>,
    /// How many calls a session may make when its budget is used up, to end what it does.
    #[serde(skip_serializing_if = "is_zero")]
    pub grace_calls: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl BudgetsFile {
    /// Returns whether no budget is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Checks and converts the budgets.
    ///
    /// Errors: the first invalid one: an amount that is negative or too long, a period, two limits of one period, the name of a
    /// tag, too many tags or calls; calls without a budget of sessions.
    pub fn check(&self) -> Result<BudgetTerms, InvalidTerm> {
        const CALLS: &str = "budgets.grace_calls";
        let session = parse_limits("budgets.session", &self.session)?;
        if self.grace_calls > MAX_GRACE_CALLS {
            let problem = format!(
                "{} came; accepted are 0 to {MAX_GRACE_CALLS}",
                self.grace_calls
            );
            return Err(InvalidTerm {
                field: CALLS,
                problem,
            });
        }
        if self.grace_calls > 0 && session.is_empty() {
            let problem =
                "it needs a budget of sessions, behind whose end the calls are".to_owned();
            return Err(InvalidTerm {
                field: CALLS,
                problem,
            });
        }
        Ok(BudgetTerms {
            session,
            agent: parse_limits("budgets.agent", &self.agent)?,
            tags: self.parse_tags()?,
            grace_calls: self.grace_calls,
        })
    }

    fn parse_tags(&self) -> Result<Box<[TagLimits]>, InvalidTerm> {
        const FIELD: &str = "budgets.tags";
        if self.tags.len() > MAX_TAGS {
            let problem = format!("{} tags came; accepted are {MAX_TAGS}", self.tags.len());
            return Err(InvalidTerm {
                field: FIELD,
                problem,
            });
        }
        let tags = self.tags.iter().map(|(tag, limits)| {
            let tag = parse_field(FIELD, tag, |tag| check_tag(tag).map(Box::from))?;
            Ok((tag, parse_limits(FIELD, limits)?))
        });
        tags.collect()
    }
}

/// Returns a limit with one spelling of its amount.
pub fn normal_limit(text: &str) -> String {
    let (usd, period) = split(text);
    let usd = Usd::parse(usd).map_or_else(|_| usd.to_owned(), |it| it.to_string());
    period.map_or_else(|| usd.clone(), |period| format!("{usd}/{period}"))
}

fn split(text: &str) -> (&str, Option<&str>) {
    match text.split_once('/') {
        Some((usd, period)) => (usd, Some(period)),
        None => (text, None),
    }
}

fn parse_limits(field: &'static str, texts: &[String]) -> Result<KeyLimits, InvalidTerm> {
    let mut limits = KeyLimits::default();
    for text in texts {
        let (usd, period) = split(text);
        let usd = parse_field(field, usd, Usd::parse)?;
        let place = match period {
            None => Some(&mut limits.lifetime),
            Some(period) => {
                let period: Period = parse_field(field, period, str::parse)?;
                let places = Period::ALL.into_iter().zip(&mut limits.periods);
                let mut of = places.filter(|(candidate, _)| *candidate == period);
                of.next().map(|(_, place)| place)
            }
        };
        if place.and_then(|place| place.replace(usd)).is_some() {
            let problem = format!("`{text}` is the second limit of its period");
            return Err(InvalidTerm { field, problem });
        }
    }
    Ok(limits)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use serde_json::{Value, json};

    use super::*;

    fn check(file: Value) -> Result<BudgetTerms, InvalidTerm> {
        let file: BudgetsFile = serde_json::from_value(file).unwrap();
        file.check()
    }

    #[test]
    fn limits_are_for_good_or_for_a_period() {
        let terms = check(json!({
            "session": ["5", "2.50/day"], "agent": ["1/hour"],
            "tags": {"nightly": ["20/month"]}, "grace_calls": 3,
        }));
        let terms = terms.unwrap();
        let usd = |text| Some(Usd::parse(text).unwrap());
        assert_eq!(terms.session.lifetime, usd("5"));
        assert_eq!(terms.session.periods, [None, usd("2.5"), None, None]);
        assert_eq!(terms.agent.periods[0], usd("1"));
        assert_eq!(&*terms.tags[0].0, "nightly");
        assert_eq!(terms.tags[0].1.periods[3], usd("20"));
        assert_eq!(terms.grace_calls, 3);
        assert!(check(json!({})).unwrap().is_empty());
        assert_eq!(normal_limit("2.50/day"), "2.5/day");
        assert_eq!(normal_limit("5.00"), "5");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_field_and_what_is_accepted() {
        let many: BTreeMap<_, _> = (0..65).map(|n| (format!("t{n}"), json!(["1"]))).collect();
        for (file, field, told) in [
            (json!({"session": ["-1"]}), "budgets.session", "-1"),
            (
                json!({"session": ["1/eon"]}),
                "budgets.session",
                "hour, day, week, month",
            ),
            (
                json!({"session": ["1", "2"]}),
                "budgets.session",
                "second limit",
            ),
            (json!({"agent": ["x"]}), "budgets.agent", "x"),
            (json!({"tags": {"a b": ["1"]}}), "budgets.tags", "a b"),
            (json!({"tags": many}), "budgets.tags", "65 tags came"),
            (
                json!({"grace_calls": 3}),
                "budgets.grace_calls",
                "budget of sessions",
            ),
            (
                json!({"session": ["1"], "grace_calls": 101}),
                "budgets.grace_calls",
                "0 to 100",
            ),
        ] {
            let error = check(file.clone()).unwrap_err();
            assert_eq!(error.field, field, "{file}");
            assert!(error.problem.contains(told), "{file}: {}", error.problem);
        }
    }
}
