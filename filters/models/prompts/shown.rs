//! Prompts as callers are shown them, and rendered for those who send them elsewhere. Source: docs/prompts.md.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Number, Value, json};

use super::library::{FoundPrompt, PromptEntry};
use super::prompt::{DefaultValue, Prompt, PromptVariable, VariableKind};
use super::reference::VersionReference;
use super::template::PromptValue;
use crate::fault::{Fault, FaultKind, quoted};
use crate::fault_code::FaultCode;
use crate::json::{Object, Str};

/// The member of a body that holds the values of variables.
const VARIABLES: &str = "variables";
/// The prefix of the names of variables in the errors of chat requests.
const OF_CHAT: &str = "prompt.variables.";

/// The values of variables, as a body has them.
#[derive(Debug, Default)]
pub struct GivenValues(BTreeMap<String, Box<RawValue>>);

impl GivenValues {
    /// Reads the body `{variables?}`.
    ///
    /// Errors: 400 naming the member.
    pub fn parse(body: &[u8]) -> Result<Self, Fault> {
        let refuse = |member: &str, said: &str| {
            let message = format!("`{}` {said}", quoted(member));
            Err(Fault::invalid(quoted(member), message).with_code(FaultCode::InvalidParameters))
        };
        let members = serde_json::from_slice::<BTreeMap<String, Box<RawValue>>>(body);
        let Ok(mut members) = members else {
            let message = "the body is no JSON object";
            return Err(Fault::new(FaultKind::Invalid, message));
        };
        let variables = members.remove(VARIABLES);
        if let Some(unknown) = members.keys().next() {
            return refuse(unknown, "is unknown; accepted is `variables`");
        }
        let Some(variables) = variables else {
            return Ok(Self::default());
        };
        let Ok(values) = serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(variables.get())
        else {
            return refuse(
                VARIABLES,
                "is no object; accepted is an object of values by name",
            );
        };
        for (name, value) in &values {
            if value.get().starts_with(['{', '[', 'n']) {
                let said = "is no text, number or boolean; accepted is one of these";
                return refuse(&format!("{VARIABLES}.{name}"), said);
            }
        }
        Ok(Self(values))
    }

    /// Returns the messages of a prompt with these values, as JSON without the brackets around them. A value may be written as a
    /// text where its variable is a number or a boolean.
    ///
    /// Errors: 400 naming a variable, 413 over `max_bytes`.
    fn render(&self, prompt: &Prompt, max_bytes: usize) -> Result<Vec<u8>, Fault> {
        let kinds = prompt.variables().iter();
        let kinds: BTreeMap<&str, Option<VariableKind>> =
            kinds.map(|it| (&*it.name, it.kind)).collect();
        let given = self.0.iter().map(|(name, value)| {
            let kind = kinds.get(&**name).copied().flatten();
            (&**name, typed(value.get(), kind))
        });
        let values = prompt.bind(given).map_err(|mut fault| {
            let own = format!("{VARIABLES}.");
            fault.message = fault.message.replace(OF_CHAT, &own).into();
            fault.param = fault.param.map(|param| param.replace(OF_CHAT, &own));
            fault
        })?;
        let mut out = Vec::new();
        if prompt.rendered_bytes(&values) <= max_bytes {
            prompt.render(&values, &mut out);
        }
        if out.len() > max_bytes || prompt.rendered_bytes(&values) > max_bytes {
            let message = format!("the prompt with its values is longer than {max_bytes} bytes");
            return Err(Fault::new(FaultKind::TooLarge, message).with_param(VARIABLES));
        }
        Ok(out)
    }
}

/// Returns a value of JSON, or what its text says where a number or a boolean is wanted.
fn typed(json: &str, kind: Option<VariableKind>) -> PromptValue<'_> {
    let text = json.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    match (kind, text) {
        (Some(VariableKind::Number), Some(text))
            if serde_json::from_str::<Number>(text).is_ok() =>
        {
            PromptValue::Number(text.trim_ascii())
        }
        (Some(VariableKind::Boolean), Some(word @ ("true" | "false"))) => {
            PromptValue::Bool(word == "true")
        }
        _ => PromptValue::from_json(json),
    }
}

/// Returns the entry of a prompt in a list: `{name, version, labels, versions, model, variables}`. `version`, `model` and
/// `variables` are those of the version that a request gets by the name alone; null and empty without one.
pub fn listed(entry: &PromptEntry) -> Value {
    let version = entry.number(&VersionReference::default());
    let prompt = version.and_then(|version| entry.versions.get(&version));
    let labels = entry.labels.iter();
    let labels: Map<String, Value> = labels
        .map(|(label, version)| (label.to_string(), (*version).into()))
        .collect();
    json!({
        "name": entry.name,
        "version": version,
        "labels": labels,
        "versions": entry.versions.keys().collect::<Vec<_>>(),
        "model": prompt.and_then(|prompt| prompt.model.as_deref()),
        "variables": prompt.map_or_else(Vec::new, |prompt| variables(prompt)),
    })
}

/// Returns a version as it was written: `{name, version, label?, model, parameters, variables, messages}`.
pub fn shown(found: &FoundPrompt) -> Vec<u8> {
    let prompt = &found.prompt;
    let names = prompt.variables().iter();
    let names: Vec<String> = names.map(|it| format!("{{{{{}}}}}", it.name)).collect();
    let names: Vec<PromptValue<'_>> = names
        .iter()
        .map(|name| PromptValue::Text(Str::Plain(name)))
        .collect();
    let mut messages = Vec::new();
    prompt.render(&names, &mut messages);
    write(found, &messages, true)
}

/// Returns a version with the values of its variables: `{name, version, label?, model, parameters, messages}`.
///
/// Errors: 400 naming a variable, 413 over `max_bytes`.
pub fn rendered(
    found: &FoundPrompt,
    given: &GivenValues,
    max_bytes: usize,
) -> Result<Vec<u8>, Fault> {
    let messages = given.render(&found.prompt, max_bytes)?;
    Ok(write(found, &messages, false))
}

fn write(found: &FoundPrompt, messages: &[u8], with_variables: bool) -> Vec<u8> {
    let prompt = &found.prompt;
    let mut out = Vec::with_capacity(messages.len() + 256);
    let mut body = Object::open(&mut out);
    body.text("name", &found.name);
    body.number("version", found.version);
    body.optional_text("label", found.label.as_deref());
    body.text_or_null("model", prompt.model.as_deref());
    body.object("parameters", |parameters| {
        for parameter in &prompt.parameters {
            parameters.foreign(&parameter.key, &parameter.json);
        }
    });
    if with_variables {
        body.raw(VARIABLES, &Value::from(variables(prompt)).to_string());
    }
    body.value("messages", |out| {
        out.push(b'[');
        out.extend_from_slice(messages);
        out.push(b']');
    });
    body.close();
    out
}

/// Returns the variables: `{name, type?, required, default?, description?}` each.
fn variables(prompt: &Prompt) -> Vec<Value> {
    prompt.variables().iter().map(variable).collect()
}

fn variable(variable: &PromptVariable) -> Value {
    let mut members = Map::new();
    let mut add = |name: &str, value: Value| members.insert(name.to_owned(), value);
    add("name", (&*variable.name).into());
    if let Some(kind) = variable.kind {
        add("type", kind.as_str().into());
    }
    add("required", variable.default.is_none().into());
    match &variable.default {
        None => {}
        Some(DefaultValue::Text(text)) => _ = add("default", (&**text).into()),
        Some(DefaultValue::Bool(flag)) => _ = add("default", (*flag).into()),
        Some(DefaultValue::Number(number)) => {
            let number = serde_json::from_str(number);
            add("default", number.unwrap_or_default());
        }
    }
    if let Some(description) = variable.description.as_deref() {
        add("description", description.into());
    }
    members.into()
}
