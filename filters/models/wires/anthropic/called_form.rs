//! The form of an answer as a call that is forced, for hosts that refuse forms: the schema is that of the input, and the input is the
//! answer. Source: docs/facts/clouds.md 1.2.
//!
//! Such a request has no functions of its own, and the model does not reason, which excludes forced calls: others go elsewhere
//! ([`WireLimits::schema_calls`](crate::models::routing::wire_limits::WireLimits)).

use serde_json::{Value, json};

use super::tools::WireTool;
use crate::fault::Fault;
use crate::json::members::find_text;
use crate::models::chat::conversation::{AnswerForm, AnswerSchema, Conversation};
use crate::models::dialects::Dialect;
use crate::models::request::ModelRequest;
use crate::models::wires::wire::Target;

/// The name of the call where the form has none that a tool may have.
const NAME: &str = "answer";
const MAX_NAME_BYTES: usize = 64;

/// Returns whether the form of the answer to a request is called. Clients of the same dialect read no other answer than they asked for.
pub(super) fn is_called(request: &ModelRequest, target: &Target<'_>) -> bool {
    let is_own = request.front.row().dialect == Some(Dialect::Messages);
    target.body.refuses_forms && request.needs.json_schema && !is_own
}

/// The call that stands for a form.
pub(super) struct FormCall<'a> {
    form: &'a AnswerSchema<'a>,
}

impl<'a> FormCall<'a> {
    /// Returns the call of a chat's form; `None`: it has none, or the host takes forms.
    ///
    /// Errors: 400 naming the schema, which is not that of an object.
    pub(super) fn find(
        request: &ModelRequest,
        chat: &'a Conversation<'a>,
        target: &Target<'_>,
    ) -> Result<Option<Self>, Fault> {
        let AnswerForm::Schema(form) = &chat.form else {
            return Ok(None);
        };
        if !is_called(request, target) {
            return Ok(None);
        }
        if find_text(form.schema.get(), "type").as_deref() != Some("object") {
            let said = "is not of the type `object`, which the chosen provider needs";
            return Err(chat.fault(form.at, None, said));
        }
        Ok(Some(Self { form }))
    }

    /// Returns the tool that is called.
    pub(super) fn tool(&self) -> WireTool<'a> {
        let description = self.form.description.as_deref();
        WireTool::Function {
            name: self.name(),
            description: Some(description.unwrap_or("Gives the answer.")),
            input_schema: self.form.schema.clone().into_owned(),
            strict: None,
            cache_control: None,
            defer_loading: false,
            allowed_callers: None,
        }
    }

    /// Returns what forces the one call.
    pub(super) fn choice(&self) -> Value {
        json!({ "type": "tool", "name": self.name(), "disable_parallel_tool_use": true })
    }

    fn name(&self) -> &'a str {
        let name: &str = &self.form.name;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let is_name =
            !name.is_empty() && name.len() <= MAX_NAME_BYTES && name.bytes().all(is_plain);
        if is_name { name } else { NAME }
    }
}
