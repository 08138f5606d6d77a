//! The reasons of a decision, as the SDKs word them. Source: docs/facts/decision-engine.md D.

use serde_json::Value;

use super::borrowed_object::BorrowedValue;
use super::inputs::Forced;

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

pub(super) fn no_flag(key: &str) -> String {
    format!("No flag was found for key \"{key}\".")
}

pub(super) fn forced(is_valid: bool, forced: &Forced, user: &str) -> String {
    let rule = match forced.rule_key.as_deref() {
        Some(rule) => format!(", rule ({rule})"),
        None => String::new(),
    };
    let (flag, variation) = (&forced.flag_key, &forced.variation_key);
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

pub(super) fn bad_bucketing_id(rule: &str, given: &BorrowedValue<'_>) -> String {
    let shown = given
        .as_str()
        .map_or_else(|| Value::from(given.clone()).to_string(), str::to_owned);
    format!(
        "Error computing bucketing ID for experiment \"{rule}\": \"invalid bucketing ID provided: \\\"{shown}\\\"\""
    )
}
