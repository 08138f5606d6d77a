//! Conditions of audiences and rules: compiled once, evaluated to true, false or unknown.
//! Source: docs/facts/decision-engine.md C.

use serde_json::Value;

use super::evaluation_rules::{EvaluationRules, OperatorString};
use super::matcher::{Leaf, UserAttributes};

/// The maximum nesting of lists. Deeper conditions are unknown.
const MAX_DEPTH: usize = 100;

/// A condition. Its result is `None` if it is unknown.
#[derive(Debug)]
pub(super) enum Condition {
    And(Vec<Condition>),
    Or(Vec<Condition>),
    /// The negation of the first child. Without a child the result is unknown.
    Not(Option<Box<Condition>>),
    /// The audience with this index.
    Audience(usize),
    /// An audience id that the datafile does not contain.
    Missing(Box<str>),
    Leaf(Leaf),
    /// A condition that cannot be read.
    Unknown,
}

/// The reason for which a condition is unknown.
#[derive(Clone, Copy, Debug)]
pub(super) enum Doubt<'c> {
    /// The conditions of the audience with this index are unknown.
    Audience(usize),
    /// The datafile does not contain the audience with this id.
    Missing(&'c str),
    /// A condition has this type, which no SDK knows.
    Type(&'c str),
    /// A condition has this `match`, which no SDK knows.
    Match(&'c str),
}

#[derive(Clone, Copy)]
enum Operator {
    And,
    Or,
    Not,
}

impl Operator {
    fn parse(word: &str) -> Option<Self> {
        match word {
            "and" => Some(Self::And),
            "or" => Some(Self::Or),
            "not" => Some(Self::Not),
            _ => None,
        }
    }

    fn apply(self, children: Vec<Condition>) -> Condition {
        match self {
            Self::And => Condition::And(children),
            Self::Or => Condition::Or(children),
            Self::Not => Condition::Not(children.into_iter().next().map(Box::new)),
        }
    }
}

/// Compiles the conditions of an audience: a list, an object, or a string that contains one of them.
pub(super) fn compile_audience(conditions: &Value, rules: EvaluationRules) -> Condition {
    match conditions {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner @ (Value::Array(_) | Value::Object(_))) => {
                compile_audience_part(&inner, rules, 0)
            }
            _ => Condition::Unknown,
        },
        Value::Array(_) | Value::Object(_) => compile_audience_part(conditions, rules, 0),
        _ => Condition::Unknown,
    }
}

fn compile_audience_part(value: &Value, rules: EvaluationRules, depth: usize) -> Condition {
    match value {
        _ if depth > MAX_DEPTH => Condition::Unknown,
        Value::Object(_) => Condition::Leaf(Leaf::new(value, rules)),
        Value::Array(items) => {
            let child = |value: &Value| compile_audience_part(value, rules, depth + 1);
            match rules.operator {
                OperatorString::First => with_first_operator(items, child),
                OperatorString::Last => with_last_operator(items, child),
            }
        }
        _ => Condition::Unknown,
    }
}

/// Compiles a list whose first item names the operator. Without an operator there it is "or".
fn with_first_operator(items: &[Value], mut child: impl FnMut(&Value) -> Condition) -> Condition {
    let Some(first) = items.first() else {
        return Condition::Unknown;
    };
    let named = first.as_str().and_then(Operator::parse);
    let children = items.iter().skip(usize::from(named.is_some()));
    named
        .unwrap_or(Operator::Or)
        .apply(children.map(&mut child).collect())
}

/// Compiles a list whose last string names the operator. An unknown string means "or". A list without strings is
/// unknown.
fn with_last_operator(items: &[Value], mut child: impl FnMut(&Value) -> Condition) -> Condition {
    let Some(word) = items.iter().rev().find_map(Value::as_str) else {
        return Condition::Unknown;
    };
    let children = items.iter().filter(|item| !item.is_string());
    Operator::parse(word)
        .unwrap_or(Operator::Or)
        .apply(children.map(&mut child).collect())
}

/// Compiles the condition of a rule. Returns `None` for a rule without one, which every user meets.
///
/// `conditions` precede `ids`; `audience` returns the index of an id.
pub(super) fn compile_rule(
    conditions: &Value,
    ids: &[String],
    audience: &impl Fn(&str) -> Option<usize>,
) -> Option<Condition> {
    let missing = |id: &str| Condition::Missing(id.into());
    let refer = |id: &str| audience(id).map_or_else(|| missing(id), Condition::Audience);
    match conditions {
        Value::Null if ids.is_empty() => None,
        Value::Null => Some(Condition::Or(ids.iter().map(|id| refer(id)).collect())),
        Value::String(id) if id.is_empty() => None,
        Value::String(id) => Some(refer(id)),
        Value::Array(items) if items.is_empty() => None,
        Value::Array(items) => Some(compile_rule_part(items, &refer, 0)),
        _ => None,
    }
}

fn compile_rule_part(
    items: &[Value],
    refer: &impl Fn(&str) -> Condition,
    depth: usize,
) -> Condition {
    if depth > MAX_DEPTH {
        return Condition::Unknown;
    }
    with_first_operator(items, |item| match item {
        Value::String(id) => refer(id),
        Value::Array(items) => compile_rule_part(items, refer, depth + 1),
        _ => Condition::Unknown,
    })
}

impl Condition {
    /// Returns whether `user` meets the condition. `tell` gets the doubts of the evaluated conditions, in order.
    /// Cost: no allocation.
    pub(super) fn evaluate<F: FnMut(Doubt<'_>)>(
        &self,
        user: &UserAttributes<'_>,
        audiences: &[Condition],
        rules: EvaluationRules,
        tell: &mut F,
    ) -> Option<bool> {
        let mut child = |condition: &Self| condition.evaluate(user, audiences, rules, &mut *tell);
        let (holds, doubt) = match self {
            Self::And(children) => return all(children.iter().map(child), rules),
            Self::Or(children) => return any(children.iter().map(child)),
            Self::Not(inner) => return inner.as_deref().and_then(child).map(|holds| !holds),
            // Audiences do not refer to audiences, so the recursion ends.
            Self::Audience(index) => {
                let holds = audiences.get(*index).and_then(&mut child);
                (holds, Some(Doubt::Audience(*index)))
            }
            Self::Missing(id) => (None, Some(Doubt::Missing(id))),
            Self::Leaf(leaf) => (leaf.evaluate(user, rules), leaf.doubt()),
            Self::Unknown => (None, None),
        };
        if holds.is_none() {
            doubt.into_iter().for_each(tell);
        }
        holds
    }

    /// Collects the indices of the audiences that the condition names.
    pub(super) fn audiences(&self, found: &mut Vec<usize>) {
        match self {
            Self::And(children) | Self::Or(children) => {
                children.iter().for_each(|child| child.audiences(found));
            }
            Self::Not(Some(inner)) => inner.audiences(found),
            Self::Audience(at) => found.push(*at),
            Self::Leaf(_) | Self::Not(None) | Self::Missing(_) | Self::Unknown => {}
        }
    }

    /// Collects the segments that the condition tests.
    pub(super) fn segments<'c>(&'c self, found: &mut Vec<&'c str>) {
        match self {
            Self::And(children) | Self::Or(children) => {
                children.iter().for_each(|child| child.segments(found));
            }
            Self::Not(Some(inner)) => inner.segments(found),
            Self::Leaf(leaf) => found.extend(leaf.segment()),
            Self::Not(None) | Self::Audience(_) | Self::Missing(_) | Self::Unknown => {}
        }
    }
}

/// Combines results with "and". Stops at the first false one, and if `rules` say so at the first unknown one.
fn all(results: impl Iterator<Item = Option<bool>>, rules: EvaluationRules) -> Option<bool> {
    let mut holds = Some(true);
    for result in results {
        match result {
            Some(true) => {}
            Some(false) => return Some(false),
            None if rules.and_stops_at_unknown => return None,
            None => holds = None,
        }
    }
    holds
}

fn any(results: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut holds = Some(false);
    for result in results {
        match result {
            Some(true) => return Some(true),
            Some(false) => {}
            None => holds = None,
        }
    }
    holds
}
