//! From a request and its prompt to the body of a usual request.

use bytes::Bytes;

use super::{GivenVariable, ManagedRequest};
use crate::fault::{Fault, FaultKind};
use crate::json::{Str, Type, Walker};
use crate::models::prompts::library::FoundPrompt;
use crate::models::prompts::origin::Managed;
use crate::models::prompts::prompt::PromptParameter;
use crate::models::prompts::reference::PREFIX;
use crate::models::prompts::template::PromptValue;
use crate::models::request::RequestMember;

/// A body that names no prompt any more.
#[derive(Clone, Debug)]
pub struct Expansion {
    /// The body.
    pub body: Bytes,
    /// What the prompt has made of it.
    pub managed: Managed,
}

impl ManagedRequest {
    /// Returns the body with the messages of the prompt, and with its model and parameters where the caller left them
    /// unset. Null counts as unset.
    ///
    /// Errors: 400 naming a variable; 400 if neither names a model; 413 over `max_bytes`. Cost: one copy of the body.
    pub fn expand(&self, found: &FoundPrompt, max_bytes: usize) -> Result<Expansion, Fault> {
        let prompt = &found.prompt;
        let given = self.variables.iter();
        let values = prompt.bind(given.map(|given| (&*given.name, self.value(given))))?;
        let bytes = self.source.body.len();
        let bytes = bytes.saturating_add(prompt.rendered_bytes(&values));
        if bytes > max_bytes {
            return Err(too_large(found, max_bytes));
        }
        let fills = prompt.parameters.iter().filter(|it| self.is_unset(it));
        let fills: Vec<_> = fills.collect();
        let model = self.filled_model(found)?;
        let filled_bytes: usize = fills.iter().map(|it| it.json.len() + 32).sum();
        let mut out = Vec::with_capacity(bytes + filled_bytes + 64);
        out.extend_from_slice(b"{\"messages\":[");
        prompt.render(&values, &mut out);
        self.write_rest(model, &fills, &mut out);
        // Escapes may have made it longer than expected.
        if out.len() > max_bytes {
            return Err(too_large(found, max_bytes));
        }
        let filled = fills.iter().map(|filled| filled.key.clone());
        let filled = filled.chain(model.map(|_| "model".into())).collect();
        Ok(Expansion {
            body: out.into(),
            managed: Managed::new(found, self.model.clone(), filled),
        })
    }

    /// Writes what follows the prompt's messages: those of the caller, and the other members.
    fn write_rest(&self, model: Option<&str>, fills: &[&PromptParameter], out: &mut Vec<u8>) {
        let own = self.own_messages();
        if !own.is_empty() {
            out.push(b',');
            out.extend_from_slice(own);
        }
        out.push(b']');
        if let Some(model) = model {
            out.extend_from_slice(b",\"model\":");
            Str::Plain(model).write(out);
        }
        let is_filled = |key: &str| fills.iter().any(|filled| &*filled.key == key);
        let members = self.source.members.iter();
        let kept = members.filter(|member| match &*member.key {
            "messages" | "prompt" => false,
            "model" => model.is_none(),
            key => !is_filled(key),
        });
        for member in kept {
            let whole = self.source.body.get(member.whole.clone());
            out.push(b',');
            out.extend_from_slice(whole.unwrap_or_default());
        }
        for filled in fills {
            out.push(b',');
            Str::Plain(&filled.key).write(out);
            out.push(b':');
            out.extend_from_slice(filled.json.as_bytes());
        }
        out.push(b'}');
    }

    fn value(&self, given: &GivenVariable) -> PromptValue<'_> {
        let text = self
            .source
            .body
            .get(given.value.clone())
            .unwrap_or_default();
        let text = std::str::from_utf8(text).unwrap_or_default();
        let inner = text
            .strip_prefix('"')
            .and_then(|text| text.strip_suffix('"'));
        match (inner, text) {
            (Some(inner), _) => PromptValue::Text(Str::Raw(inner)),
            (None, "true" | "false") => PromptValue::Bool(text == "true"),
            (None, number) => PromptValue::Number(number),
        }
    }

    /// Returns the model that the prompt gives, or `None` if the caller names one.
    fn filled_model<'f>(&self, found: &'f FoundPrompt) -> Result<Option<&'f str>, Fault> {
        if self
            .model
            .as_ref()
            .is_some_and(|model| !model.starts_with(PREFIX))
        {
            return Ok(None);
        }
        let missing = || {
            let message = format!(
                "`model` is missing, and version {} of the prompt `{}` names none; accepted is a model id",
                found.version, found.name
            );
            Fault::invalid("model", message).with_code("invalid_parameters")
        };
        found.prompt.model.as_deref().ok_or_else(missing).map(Some)
    }

    /// Returns the caller's messages without the brackets around them.
    fn own_messages(&self) -> &[u8] {
        let member = self.source.member("messages");
        let value = member.map_or(&b""[..], |member| self.source.value(member));
        let inner = value
            .strip_prefix(b"[")
            .and_then(|value| value.strip_suffix(b"]"));
        inner.map_or(&b""[..], <[u8]>::trim_ascii)
    }

    /// Returns whether the caller has said nothing of what a parameter says, in no spelling.
    fn is_unset(&self, parameter: &PromptParameter) -> bool {
        let is_set = |key: &str| {
            let member = self.source.member(key);
            member.is_some_and(|member: &RequestMember| !self.source.is_null(member))
        };
        !is_set(&parameter.key)
            && match &*parameter.key {
                "max_tokens" => !is_set("max_completion_tokens"),
                "max_completion_tokens" => !is_set("max_tokens"),
                "reasoning_effort" => !self.has_inner_effort,
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

fn too_large(found: &FoundPrompt, max_bytes: usize) -> Fault {
    let message = format!(
        "the request with the prompt `{}` in it is longer than {max_bytes} bytes, the most that a request may have",
        found.name
    );
    Fault::new(FaultKind::TooLarge, message).with_param("prompt")
}
