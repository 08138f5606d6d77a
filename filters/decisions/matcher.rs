//! Comparisons of an attribute with a value. Source: docs/facts/decision-engine.md C.

use serde_json::Value;

use super::borrowed_object::{BorrowedObject, BorrowedValue};
use super::condition::Doubt;
use super::evaluation_rules::EvaluationRules;
use super::semver::{self, Version};

/// The inputs of a condition.
#[derive(Clone, Copy, Debug)]
pub(super) struct UserAttributes<'a> {
    pub(super) attributes: &'a BorrowedObject<'a>,
    pub(super) segments: &'a [String],
}

/// A comparison.
#[derive(Debug)]
pub(super) struct Leaf {
    attribute: Box<str>,
    test: Test,
}

#[derive(Debug)]
enum Test {
    Exists,
    Text(Box<str>),
    Truth(bool),
    Number(f64),
    Substring(Box<str>),
    Compare(Order, f64),
    Version(Order, Version<'static>),
    Qualified(Box<str>),
    /// A type that no SDK knows.
    UnknownType(Box<str>),
    /// A `match` that no SDK knows.
    UnknownMatch(Box<str>),
    Unknown,
}

#[derive(Clone, Copy, Debug)]
enum Order {
    Equal,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

impl Order {
    fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::Greater => ">",
            Self::GreaterOrEqual => "≥",
            Self::Less => "<",
            Self::LessOrEqual => "≤",
        }
    }

    fn evaluate(self, found: std::cmp::Ordering) -> bool {
        match self {
            Self::Equal => found.is_eq(),
            Self::Greater => found.is_gt(),
            Self::GreaterOrEqual => found.is_ge(),
            Self::Less => found.is_lt(),
            Self::LessOrEqual => found.is_le(),
        }
    }
}

/// The largest number up to which all SDKs compare exactly.
const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_992.0;

impl Leaf {
    /// Compiles `{type, name, match, value}`. An unreadable condition is unknown for every user.
    pub(super) fn new(condition: &Value, rules: EvaluationRules) -> Self {
        let member = |name: &str| condition.get(name).and_then(Value::as_str);
        let is_known = matches!(
            member("type"),
            Some("custom_attribute" | "third_party_dimension")
        );
        let value = condition.get("value").unwrap_or(&Value::Null);
        let test = match is_known {
            true => Test::new(member("match").unwrap_or_default(), value, rules),
            false => Test::UnknownType(member("type").unwrap_or_default().into()),
        };
        Self {
            attribute: member("name").unwrap_or_default().into(),
            test,
        }
    }

    /// Returns whether the comparison holds, or `None` if that is unknown.
    pub(super) fn evaluate(
        &self,
        user: &UserAttributes<'_>,
        rules: EvaluationRules,
    ) -> Option<bool> {
        let found = user.attributes.get(&self.attribute);
        let found = found.unwrap_or(&BorrowedValue::Null);
        match &self.test {
            Test::Unknown | Test::UnknownType(_) | Test::UnknownMatch(_) => None,
            Test::Exists => Some(!found.is_null()),
            Test::Qualified(segment) => Some(user.segments.iter().any(|one| **one == **segment)),
            Test::Text(wanted) => found.as_str().map(|found| *found == **wanted),
            Test::Truth(wanted) => found.as_bool().map(|found| found == *wanted),
            Test::Substring(part) => found.as_str().map(|found| found.contains(&**part)),
            Test::Number(wanted) => comparable(found.as_f64(), rules).map(|found| found == *wanted),
            Test::Compare(order, wanted) => {
                let found = comparable(found.as_f64(), rules)?.partial_cmp(wanted);
                found.map(|found| order.evaluate(found))
            }
            Test::Version(order, wanted) => {
                let found = Version::parse(found.as_str()?)?;
                Some(order.evaluate(semver::compare(&found, wanted, rules.semver_suffix)))
            }
        }
    }

    /// Returns the reason for which the comparison is unknown for every user.
    pub(super) fn doubt(&self) -> Option<Doubt<'_>> {
        match &self.test {
            Test::UnknownType(kind) => Some(Doubt::Type(kind)),
            Test::UnknownMatch(word) => Some(Doubt::Match(word)),
            _ => None,
        }
    }

    /// Returns the comparison in words: `country is "DE"`.
    pub(super) fn describe(&self) -> String {
        let name = &self.attribute;
        match &self.test {
            Test::Exists => format!("{name} is set"),
            Test::Text(text) => format!("{name} is \"{text}\""),
            Test::Truth(truth) => format!("{name} is {truth}"),
            Test::Number(number) => format!("{name} is {number}"),
            Test::Substring(part) => format!("{name} contains \"{part}\""),
            Test::Compare(order, number) => format!("{name} {} {number}", order.as_str()),
            Test::Version(order, version) => {
                format!("{name} {} version {version}", order.as_str())
            }
            Test::Qualified(segment) => format!("the user is in the segment \"{segment}\""),
            Test::UnknownType(kind) => format!("{name} has the unknown type \"{kind}\""),
            Test::UnknownMatch(word) => format!("{name} has the unknown match \"{word}\""),
            Test::Unknown => format!("{name} has a value that cannot be compared"),
        }
    }

    /// Returns the segment that the comparison tests.
    pub(super) fn segment(&self) -> Option<&str> {
        match &self.test {
            Test::Qualified(segment) => Some(segment),
            _ => None,
        }
    }
}

impl Test {
    fn new(word: &str, value: &Value, rules: EvaluationRules) -> Self {
        let text = || value.as_str().map(Box::from);
        let test = match word {
            "exists" => Some(Self::Exists),
            "" | "exact" => exact(value, rules),
            "substring" => text().map(Self::Substring),
            "qualified" => text().map(Self::Qualified),
            "gt" => compare(Order::Greater, value, rules),
            "ge" => compare(Order::GreaterOrEqual, value, rules),
            "lt" => compare(Order::Less, value, rules),
            "le" => compare(Order::LessOrEqual, value, rules),
            "semver_eq" => version(Order::Equal, value),
            "semver_gt" => version(Order::Greater, value),
            "semver_ge" => version(Order::GreaterOrEqual, value),
            "semver_lt" => version(Order::Less, value),
            "semver_le" => version(Order::LessOrEqual, value),
            _ => Some(Self::UnknownMatch(word.into())),
        };
        test.unwrap_or(Self::Unknown)
    }
}

fn exact(value: &Value, rules: EvaluationRules) -> Option<Test> {
    match value {
        Value::String(text) => Some(Test::Text(text.as_str().into())),
        Value::Bool(truth) => Some(Test::Truth(*truth)),
        Value::Number(_) => comparable(value.as_f64(), rules).map(Test::Number),
        _ => None,
    }
}

fn compare(order: Order, value: &Value, rules: EvaluationRules) -> Option<Test> {
    comparable(value.as_f64(), rules).map(|wanted| Test::Compare(order, wanted))
}

fn version(order: Order, value: &Value) -> Option<Test> {
    Version::parse(value.as_str()?).map(|wanted| Test::Version(order, wanted.into_owned()))
}

/// Returns a number that may be compared. Numbers in strings are never converted.
fn comparable(found: Option<f64>, rules: EvaluationRules) -> Option<f64> {
    let number = found?;
    (rules.compares_inexact_numbers || number.abs() <= MAX_SAFE_INTEGER).then_some(number)
}
