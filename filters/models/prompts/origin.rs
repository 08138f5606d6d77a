//! What of a request a prompt or an experiment has written, for its errors, its `metadata` and its log line.

use std::sync::Arc;

use super::library::FoundPrompt;
use crate::fault::{Fault, quoted};
use crate::fault_code::FaultCode;
use crate::json::Object;
use crate::ledger::ExperimentNames;

/// Who has filled a member.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FilledBy {
    Variation,
    Prompt,
}

/// What has completed a request, and what it has written.
#[derive(Clone, Debug)]
pub struct Managed {
    /// The model string as the caller sent it; `None`: the prompt has named the model.
    pub requested_model: Option<Box<str>>,
    /// Members of `metadata` and of the log line, as JSON without braces around them.
    ///
    /// Shape: `"prompt":{"id","version","label"}`, the label only if the prompt was found by it; and
    /// `"experiment":{"flag","rule","variation"}`. Our choice: the contract leaves open how an answer names them.
    pub members: Box<str>,
    pub experiment: Option<Arc<ExperimentNames>>,
    filled: Vec<(Box<str>, FilledBy)>,
    message_count: usize,
    /// The prompt as messages name it.
    prompt: Box<str>,
    /// The variation as messages name it.
    variation: Box<str>,
}

impl ExperimentNames {
    /// Returns them as messages name them.
    pub fn describe(&self) -> String {
        format!(
            "the variation `{}` of the flag `{}`",
            self.variation, self.flag
        )
    }

    /// Returns the fault of a variable of the flag: 400.
    pub fn fault(&self, variable: &str, said: &str) -> Fault {
        let message = format!(
            "the variable `{}` of {} {said}",
            quoted(variable),
            self.describe()
        );
        Fault::invalid("model", message).with_code(FaultCode::InvalidExperiment)
    }
}

impl Managed {
    /// Notes what prompt and variation have filled.
    pub fn new(
        prompt: Option<&FoundPrompt>,
        experiment: Option<&Arc<ExperimentNames>>,
        requested_model: Option<Box<str>>,
        filled: Vec<(Box<str>, FilledBy)>,
    ) -> Self {
        let name =
            prompt.map(|found| format!("the prompt `{}`, version {}", found.name, found.version));
        let variation = experiment.map(|names| names.describe());
        Self {
            requested_model,
            members: members(prompt, experiment.map(|names| &**names)),
            experiment: experiment.map(Arc::clone),
            filled,
            message_count: prompt.map_or(0, |found| found.prompt.message_count),
            prompt: name.unwrap_or_default().into(),
            variation: variation.unwrap_or_default().into(),
        }
    }

    /// The same, where the prompt has so many messages before the caller's.
    #[must_use]
    pub fn with_messages(self, count: usize) -> Self {
        Self {
            message_count: count,
            ..self
        }
    }

    /// Returns a fault of the request that says what the prompt has written, and that counts the caller's messages as the
    /// caller does.
    #[must_use]
    pub fn explain(&self, mut fault: Fault) -> Fault {
        let Some(param) = fault.param.clone() else {
            return fault;
        };
        let end = param.find(['.', '[']).unwrap_or(param.len());
        let (member, inner) = param.split_at(end);
        let mut filled = self.filled.iter();
        let by = filled.find(|(filled, _)| &**filled == member);
        let mut writer = by.map(|(_, by)| match by {
            FilledBy::Variation => &self.variation,
            FilledBy::Prompt => &self.prompt,
        });
        if matches!(member, "messages" | "input")
            && let Some((index, rest)) = index_of(inner)
        {
            writer = (index < self.message_count).then_some(&self.prompt);
            if writer.is_none() {
                let own = index - self.message_count;
                let own = match inner.starts_with('[') {
                    true => format!("{member}[{own}]{rest}"),
                    false => format!("{member}.{own}{rest}"),
                };
                let message = fault
                    .message
                    .replace(&format!("`{param}`"), &format!("`{own}`"));
                fault.message = message.into();
                fault.param = Some(own);
            }
        }
        if let Some(writer) = writer {
            fault.message = format!("{} (written by {writer})", fault.message).into();
        }
        fault
    }
}

fn members(prompt: Option<&FoundPrompt>, experiment: Option<&ExperimentNames>) -> Box<str> {
    let mut out = Vec::new();
    let mut all = Object::open(&mut out);
    if let Some(found) = prompt {
        all.object("prompt", |object| {
            object.text("id", &found.name);
            object.number("version", found.version);
            object.optional_text("label", found.label.as_deref());
        });
    }
    if let Some(names) = experiment {
        all.object("experiment", |object| {
            object.text("flag", &names.flag);
            object.text("rule", &names.rule);
            object.text("variation", &names.variation);
        });
    }
    all.close();
    let inside = out.get(1..out.len().saturating_sub(1));
    String::from_utf8_lossy(inside.unwrap_or_default()).into()
}

/// Returns the index at the start of a path, and the rest behind it.
fn index_of(path: &str) -> Option<(usize, &str)> {
    if let Some(path) = path.strip_prefix('[') {
        let (index, rest) = path.split_once(']')?;
        return Some((index.parse().ok()?, rest));
    }
    let path = path.strip_prefix('.')?;
    let end = path.find('.').unwrap_or(path.len());
    let (index, rest) = path.split_at(end);
    Some((index.parse().ok()?, rest))
}
