//! The reasons of a decision, with the texts of the SDKs. Source: docs/facts/decision-engine.md D.

use std::fmt;

use serde_json::Value;

use super::borrowed_object::BorrowedValue;
use super::condition::Doubt;
use super::evaluation_rules::EvaluationRules;
use super::inputs::ForcedDecision;
use super::project::Audience;
use crate::fault::quoted;

/// The recorded reasons.
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

    /// Returns whether the request wants all reasons.
    pub(super) fn wants_all(&self) -> bool {
        self.wants_all
    }

    /// Records a reason that is only returned on request. Cost: nothing if the request does not want it.
    pub(super) fn info(&mut self, text: impl FnOnce() -> String) {
        if self.wants_all {
            self.infos.push(text());
        }
    }

    /// Records a reason that is always returned.
    pub(super) fn error(&mut self, text: String) {
        self.errors.push(text);
    }

    /// Returns all reasons, errors first.
    pub(super) fn into_texts(self) -> Vec<String> {
        let mut texts = self.errors;
        texts.extend(self.infos);
        texts
    }
}

/// A text of the request as quoted in a reason. Cost: nothing until it is written.
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

/// Returns the reason for which audiences could not be evaluated.
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
    forced: &ForcedDecision,
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
