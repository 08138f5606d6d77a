//! From a request and what completes it to the body of a usual request.

use std::borrow::Cow;

use bytes::Bytes;

use super::variation::Variation;
use super::{GivenVariable, ManagedRequest, messages, responses};
use crate::fault::{Fault, FaultKind};
use crate::fault_code::FaultCode;
use crate::json::{Str, Type, Walker};
use crate::models::dialects::Dialect;
use crate::models::prompts::library::FoundPrompt;
use crate::models::prompts::origin::{FilledBy, Managed};
use crate::models::prompts::prompt::PromptParameter;
use crate::models::prompts::template::PromptValue;

/// A body that names neither a prompt nor a flag any more.
#[derive(Clone, Debug)]
pub struct Expansion {
    pub body: Bytes,
    pub managed: Managed,
}

/// What completes a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filling<'f> {
    /// The variation, which counts before the prompt.
    pub variation: Option<&'f Variation>,
    pub prompt: Option<&'f FoundPrompt>,
}

impl<'f> Filling<'f> {
    /// Yields the parameters and who gives them, those of the variation first.
    pub(super) fn parameters(self) -> impl Iterator<Item = (&'f PromptParameter, FilledBy)> {
        let of_variation = self.variation.into_iter().flat_map(|it| &it.parameters);
        let of_prompt = self.prompt.into_iter().flat_map(|it| &it.prompt.parameters);
        let of_variation = of_variation.map(|it| (it, FilledBy::Variation));
        of_variation.chain(of_prompt.map(|it| (it, FilledBy::Prompt)))
    }

    /// Names what completes a request.
    pub(super) fn describe(self) -> String {
        let variation = self.variation.map(|it| it.names.describe());
        let prompt = self.prompt;
        let prompt = prompt.map(|it| format!("version {} of the prompt `{}`", it.version, it.name));
        let both: Vec<_> = variation.into_iter().chain(prompt).collect();
        both.join(" with ")
    }
}

/// What prompt and variation say, in the words of the request.
pub(super) struct Said {
    /// The instructions with the caller's own, where they stand beside the messages.
    pub(super) system: Option<String>,
    /// Messages, with commas between them.
    pub(super) messages: Vec<u8>,
    /// How many messages these are.
    pub(super) count: usize,
    /// Members, as JSON, and who has filled them.
    pub(super) members: Vec<(Box<str>, String, FilledBy)>,
}

impl ManagedRequest {
    /// Returns the body with the messages of the prompt, and with the model and the members of variation and prompt where the
    /// caller left them unset. Null counts as unset.
    ///
    /// Errors: 400 naming a variable; 400 for a flag that names no model; 413 over `max_bytes`. Cost: one copy of the body.
    pub fn expand(&self, filling: Filling<'_>, max_bytes: usize) -> Result<Expansion, Fault> {
        let values = self.values(filling)?;
        let prompt = filling.prompt.map(|found| &found.prompt);
        let rendered = prompt.map_or(0, |prompt| prompt.rendered_bytes(&values));
        let bytes = self.source.body.len().saturating_add(rendered);
        if bytes > max_bytes {
            return Err(too_large(filling, max_bytes));
        }
        let model = self.filled_model(filling)?;
        let mut written = Vec::with_capacity(rendered);
        if let Some(prompt) = prompt {
            prompt.render(&values, &mut written);
        }
        let said = match self.dialect {
            Dialect::Messages => messages::say(self, &written, filling)?,
            Dialect::Responses => responses::say(self, &written, filling)?,
            _ => self.say(written, filling),
        };
        let out = self.write(model.map(|(model, _)| model), &said);
        // Escapes may have made it longer than expected.
        if out.len() > max_bytes {
            return Err(too_large(filling, max_bytes));
        }
        let filled = said.members.into_iter().map(|(key, _, by)| (key, by));
        let filled = filled.chain(model.map(|(_, by)| ("model".into(), by)));
        let names = filling.variation.map(|variation| &variation.names);
        let requested = self.model.clone();
        let managed = Managed::new(filling.prompt, names, requested, filled.collect());
        Ok(Expansion {
            body: out.into(),
            managed: managed.with_messages(said.count),
        })
    }

    /// Returns what prompt and variation say, in the words of chat completions, in which they are written.
    fn say(&self, messages: Vec<u8>, filling: Filling<'_>) -> Said {
        let fills = self.fills(filling).into_iter();
        let members = fills.map(|(it, by)| (it.key.clone(), it.json.to_string(), by));
        Said {
            system: None,
            messages,
            count: filling.prompt.map_or(0, |found| found.prompt.message_count),
            members: members.collect(),
        }
    }

    /// Returns the body: what was said, and the members of the caller.
    fn write(&self, model: Option<&str>, said: &Said) -> Vec<u8> {
        let filled: usize = said
            .members
            .iter()
            .map(|(_, json, _)| json.len() + 32)
            .sum();
        let capacity = self.source.body.len() + said.messages.len() + filled + 64;
        let mut out = Vec::with_capacity(capacity);
        out.push(b'{');
        if let Some(system) = &said.system {
            out.extend_from_slice(b"\"system\":");
            out.extend_from_slice(system.as_bytes());
            out.push(b',');
        }
        out.push(b'"');
        out.extend_from_slice(self.history().as_bytes());
        out.extend_from_slice(b"\":[");
        let own = self.own_messages();
        let own = &*own;
        out.extend_from_slice(&said.messages);
        if !said.messages.is_empty() && !own.is_empty() {
            out.push(b',');
        }
        out.extend_from_slice(own);
        out.push(b']');
        self.write_rest(model, said, &mut out);
        out
    }

    /// Returns the values of the prompt's variables: those of the caller, else of the variation, else the defaults. Variables of
    /// the flag that the prompt does not have are for other prompts, because every variation has them all.
    fn values<'v>(&'v self, filling: Filling<'v>) -> Result<Vec<PromptValue<'v>>, Fault> {
        let Some(found) = filling.prompt else {
            return Ok(Vec::new());
        };
        let given = self.prompt.iter().flat_map(|prompt| &prompt.variables);
        let mut values: Vec<_> = given.map(|it| (&*it.name, self.value(it))).collect();
        let own = values.len();
        let known = found.prompt.variables();
        let of_variation = filling.variation.into_iter().flat_map(|it| &it.variables);
        for (key, json) in of_variation.filter(|(key, _)| known.iter().any(|it| it.name == *key)) {
            if !values.iter().any(|(given, _)| **given == **key) {
                values.push((key, PromptValue::from_json(json)));
            }
        }
        let (names, of_variation) = (filling.variation, values.get(own..).unwrap_or_default());
        let of_variation: Vec<_> = of_variation.iter().map(|(key, _)| *key).collect();
        found.prompt.bind(values).map_err(|mut fault| {
            let param = fault.param.as_deref().unwrap_or_default();
            let variable = param.strip_prefix("prompt.variables.").unwrap_or_default();
            if let Some(variation) = names.filter(|_| of_variation.contains(&variable)) {
                let given = variation.names.describe();
                fault.message = format!("{} (given by {given})", fault.message).into();
            }
            fault
        })
    }

    /// Writes the members other than messages.
    fn write_rest(&self, model: Option<&str>, said: &Said, out: &mut Vec<u8>) {
        if let Some(model) = model {
            out.extend_from_slice(b",\"model\":");
            Str::Plain(model).write(out);
        }
        let is_filled = |key: &str| said.members.iter().any(|(filled, ..)| **filled == *key);
        let members = self.source.members.iter();
        let kept = members.filter(|member| match &*member.key {
            "prompt" => false,
            key if key == self.history() => false,
            "system" if said.system.is_some() => false,
            "model" => self.has_model,
            key => !is_filled(key),
        });
        for member in kept {
            let whole = self.source.body.get(member.whole.clone());
            out.push(b',');
            out.extend_from_slice(whole.unwrap_or_default());
        }
        for (key, json, _) in &said.members {
            out.push(b',');
            Str::Plain(key).write(out);
            out.push(b':');
            out.extend_from_slice(json.as_bytes());
        }
        out.push(b'}');
    }

    fn value(&self, given: &GivenVariable) -> PromptValue<'_> {
        let text = self.source.body.get(given.value.clone());
        PromptValue::from_json(std::str::from_utf8(text.unwrap_or_default()).unwrap_or_default())
    }

    /// Returns the model that variation or prompt give, or `None` if the caller names one, or nobody does, which is `auto`.
    ///
    /// Errors: 400 for a flag that gives none, because it was asked for one.
    fn filled_model<'f>(&self, filling: Filling<'f>) -> Result<Option<(&'f str, FilledBy)>, Fault> {
        if self.has_model {
            return Ok(None);
        }
        let of_variation = filling.variation.and_then(|it| it.model.as_deref());
        let of_prompt = filling.prompt.and_then(|it| it.prompt.model.as_deref());
        let model = of_variation.map(|model| (model, FilledBy::Variation));
        let model = model.or(of_prompt.map(|model| (model, FilledBy::Prompt)));
        if model.is_none() && filling.variation.is_some() {
            let message = format!(
                "`model` is missing, and {} names none; accepted is a model id",
                filling.describe()
            );
            return Err(Fault::invalid("model", message).with_code(FaultCode::InvalidParameters));
        }
        Ok(model)
    }

    /// Returns what the caller left unset, and the variation what the prompt would fill.
    fn fills<'f>(&self, filling: Filling<'f>) -> Vec<(&'f PromptParameter, FilledBy)> {
        let mut fills: Vec<(&PromptParameter, FilledBy)> = Vec::new();
        for (parameter, by) in filling.parameters() {
            if self.is_unset(parameter, &fills) {
                fills.push((parameter, by));
            }
        }
        fills
    }

    /// Returns the member that holds the history.
    fn history(&self) -> &'static str {
        match self.dialect {
            Dialect::Responses => "input",
            _ => "messages",
        }
    }

    /// Returns the caller's messages without the brackets around them.
    fn own_messages(&self) -> Cow<'_, [u8]> {
        let member = self.source.member(self.history());
        let value = member.map_or(&b""[..], |member| self.source.value(member));
        if value.starts_with(b"\"") {
            // A bare text is a message of the user's.
            return [br#"{"role":"user","content":"#, value, b"}"]
                .concat()
                .into();
        }
        let inner = value
            .strip_prefix(b"[")
            .and_then(|value| value.strip_suffix(b"]"));
        inner.map_or(&b""[..], <[u8]>::trim_ascii).into()
    }

    /// Returns whether the caller has set a member. Null counts as unset.
    pub(super) fn is_set(&self, key: &str) -> bool {
        let member = self.source.member(key);
        member.is_some_and(|member| !self.source.is_null(member))
    }

    /// Returns whether nothing was said of what a parameter says, in no spelling.
    fn is_unset(
        &self,
        parameter: &PromptParameter,
        fills: &[(&PromptParameter, FilledBy)],
    ) -> bool {
        let is_set =
            |key: &str| self.is_set(key) || fills.iter().any(|(filled, _)| &*filled.key == key);
        let has_inner_effort = || {
            let mut reasonings = fills
                .iter()
                .filter(|(filled, _)| &*filled.key == "reasoning");
            self.has_inner_effort || reasonings.any(|(filled, _)| has_effort(&filled.json))
        };
        !is_set(&parameter.key)
            && match &*parameter.key {
                "max_tokens" => !is_set("max_completion_tokens"),
                "max_completion_tokens" => !is_set("max_tokens"),
                "reasoning_effort" => !has_inner_effort(),
                "reasoning" => !(is_set("reasoning_effort") && has_effort(&parameter.json)),
                _ => true,
            }
    }
}

/// Returns whether a value of `reasoning` has an effort.
fn has_effort(reasoning: &str) -> bool {
    let mut has_effort = false;
    let walked = Walker::over(reasoning).object(|walk, key| {
        has_effort |= key == "effort" && walk.peek()? != Type::Null;
        walk.skip().map(|_| ())
    });
    walked.is_ok() && has_effort
}

fn too_large(filling: Filling<'_>, max_bytes: usize) -> Fault {
    let message = format!(
        "the request with {} in it is longer than {max_bytes} bytes, the most that a request may have",
        filling.describe()
    );
    Fault::new(FaultKind::TooLarge, message).with_param("prompt")
}
