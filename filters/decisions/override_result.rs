//! The result of setting or removing an override. Source: docs/decision-agent.md 4 rule 3, docs/facts/decision-engine.md E.

use super::project::Project;
use super::request_body::Override;
use crate::json::{Object, Str};

/// An override that was set or removed.
#[derive(Debug)]
pub struct OverrideResult<'a> {
    asked: &'a Override<'a>,
    previous: Option<&'a str>,
    pub(super) messages: Vec<&'static str>,
}

impl<'a> OverrideResult<'a> {
    /// Makes the result of an override that replaced the variation `previous`.
    pub fn new(asked: &'a Override<'a>, previous: Option<&'a str>, project: &Project) -> Self {
        let (is_experiment, is_variation) =
            project.has_variation(&asked.experiment_key, &asked.variation_key);
        let mut messages = Vec::new();
        match (asked.variation_key.is_empty(), previous.is_some()) {
            (true, true) => messages.push("removing previous override"),
            (true, false) => messages.push("no pre-existing override"),
            (false, _) => {
                if !is_experiment {
                    messages.push("experimentKey not found in configuration");
                } else if !is_variation {
                    messages.push("variationKey not found in configuration");
                }
                if previous.is_some() {
                    messages.push("updating previous override");
                }
            }
        }
        Self {
            asked,
            previous,
            messages,
        }
    }

    /// Writes the result as an object. `write_messages` writes the list of messages.
    pub(super) fn write(&self, out: &mut Vec<u8>, write_messages: impl FnOnce(&mut Object<'_>)) {
        let mut result = Object::open(out);
        result.text("userId", &self.asked.user_id);
        result.text("experimentKey", &self.asked.experiment_key);
        result.text("variationKey", &self.asked.variation_key);
        result.text("prevVariationKey", self.previous.unwrap_or_default());
        write_messages(&mut result);
        result.close();
    }

    pub(super) fn write_messages(&self, result: &mut Object<'_>) {
        result.array("messages", &self.messages, |message, out| {
            Str::Plain(message).write(out);
        });
    }
}
