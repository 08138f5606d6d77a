//! The reasons of a decision, as the SDKs word them. Source: docs/facts/decision-engine.md D.

use std::fmt;

use serde_json::Value;

use super::borrowed_object::BorrowedValue;
use super::condition::Doubt;
use super::evaluation_rules::EvaluationRules;
use super::inputs::Forced;
use super::project::Audience;
use crate::fault::quoted;

/// The reasons that were noted.
#[derive(Debug, Default)]
pub(super) struct Reasons {
    wants_all: bool,
    errors: Vec<String>,
    infos: Vec<String>,
}

impl Reasons {
    pub(super) fn new(wants_all: bool) -> Self {
        Self {
            wants_all,
            ..Self::default()
        }
    }

    /// Whether reasons are shown that come on request.
    pub(super) fn wants_all(&self) -> bool {
        self.wants_all
    }

    /// Notes a reason that is shown on request. Cost: nothing without a request.
    pub(super) fn info(&mut self, text: impl FnOnce() -> String) {
        if self.wants_all {
            self.infos.push(text());
        }
    }

    /// Notes a reason that is always shown.
    pub(super) fn error(&mut self, text: String) {
        self.errors.push(text);
    }

    /// All reasons, errors first.
    pub(super) fn into_texts(self) -> Vec<String> {
        let mut texts = self.errors;
        texts.extend(self.infos);
        texts
    }
}

/// A text of the request as a reason quotes it. Cost: nothing until it is written.
#[derive(Clone, Copy)]
pub(super) struct Quoted<'t> {
    text: &'t str,
    is_cut: bool,
}

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_cut {
            true => f.write_str(&quoted(self.text)),
            false => f.write_str(self.text),
        }
    }
}

/// Quotes a text of the request.
pub(super) fn quote(text: &str, rules: EvaluationRules) -> Quoted<'_> {
    Quoted {
        text,
        is_cut: !rules.quotes_in_full,
    }
}

pub(super) fn no_flag(key: &str, rules: EvaluationRules) -> String {
    format!("No flag was found for key \"{}\".", quote(key, rules))
}

/// Why audiences could not be judged.
pub(super) fn doubt(doubt: Doubt<'_>, audiences: &[Audience]) -> String {
    match doubt {
        Doubt::Audience(index) => {
            let id = audiences.get(index).map_or("", |audience| &audience.id);
            format!("an error occurred while evaluating nested tree for audience ID \"{id}\"")
        }
        Doubt::Missing(id) => format!("unable to evaluate nested tree for audience ID \"{id}\""),
        Doubt::Type(kind) => format!("unable to evaluate condition of type \"{kind}\""),
        Doubt::Match(word) => format!("invalid Condition matcher \"{word}\""),
    }
}

pub(super) fn forced(
    is_valid: bool,
    forced: &Forced,
    user: &str,
    rules: EvaluationRules,
) -> String {
    let rule = match forced.rule_key.as_deref() {
        Some(rule) => format!(", rule ({})", quote(rule, rules)),
        None => String::new(),
    };
    let flag = quote(&forced.flag_key, rules);
    let (user, variation) = (quote(user, rules), quote(&forced.variation_key, rules));
    if is_valid {
        format!(
            "Variation ({variation}) is mapped to flag ({flag}){rule} and user ({user}) in the forced decision map."
        )
    } else {
        format!(
            "Invalid variation is mapped to flag ({flag}){rule} and user ({user}) in the forced decision map."
        )
    }
}

pub(super) fn audiences(what: &str, key: &str, holds: bool) -> String {
    format!("Audiences for {what} {key} collectively evaluated to {holds}.")
}

pub(super) fn bad_variable(key: &str) -> String {
    format!("Variable value for key \"{key}\" is invalid or wrong type.")
}

pub(super) fn bad_bucketing_id(
    rule: &str,
    given: &BorrowedValue<'_>,
    rules: EvaluationRules,
) -> String {
    let given = given
        .as_str()
        .map_or_else(|| Value::from(given.clone()).to_string(), str::to_owned);
    let shown = quote(&given, rules);
    format!(
        "Error computing bucketing ID for experiment \"{rule}\": \"invalid bucketing ID provided: \\\"{shown}\\\"\""
    )
}

#[cfg(test)]
#[path = "reason_tests.rs"]
mod tests;
