//! The item that is open, and the JSON of an item of its kind.

use super::super::tools::CallForm;
use crate::json::{Object, Str};
use crate::models::fronts::sequencer::BlockKind;

/// The open item.
#[derive(Debug)]
pub(super) struct OpenItem {
    pub(super) id: String,
    /// Its text, or the arguments of its call: the inside of a JSON string.
    pub(super) text: Vec<u8>,
    /// The inside of the array of its annotations.
    pub(super) annotations: Vec<u8>,
    /// How many these are.
    pub(super) cited: u64,
    pub(super) phase: Option<Box<str>>,
    pub(super) call: Option<OpenCall>,
}

/// A call. `id` is the inside of a JSON string.
#[derive(Debug)]
pub(super) struct OpenCall {
    pub(super) id: Box<str>,
    pub(super) name: Box<str>,
    pub(super) namespace: Option<Box<str>>,
    pub(super) form: CallForm,
}

/// Returns JSON that `write` writes.
pub(super) fn json(write: impl FnOnce(&mut Object<'_>)) -> String {
    let mut out = Vec::new();
    let mut object = Object::open(&mut out);
    write(&mut object);
    object.close();
    String::from_utf8(out).unwrap_or_default()
}

impl OpenItem {
    /// Returns how the call of the item is said; that of a function where it is none.
    pub(super) fn form(&self) -> CallForm {
        self.call
            .as_ref()
            .map_or(CallForm::Arguments, |call| call.form)
    }

    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.text).unwrap_or_default()
    }

    /// Returns the part of a message that its text is.
    pub(super) fn part(&self, kind: BlockKind) -> String {
        json(|part| match kind {
            BlockKind::Refusal => {
                part.text("type", "refusal");
                part.value("refusal", |out| Str::Raw(self.text()).write(out));
            }
            _ => {
                part.text("type", "output_text");
                part.value("text", |out| Str::Raw(self.text()).write(out));
                part.value("annotations", |out| {
                    out.push(b'[');
                    out.extend_from_slice(&self.annotations);
                    out.push(b']');
                });
                part.raw("logprobs", "[]");
            }
        })
    }

    /// Returns the item. `content` is the inside of the array of its content.
    pub(super) fn message(&self, status: &str, content: &str) -> String {
        json(|item| {
            item.text("id", &self.id);
            item.text("type", "message");
            item.text("status", status);
            item.value("content", |out| {
                out.push(b'[');
                out.extend_from_slice(content.as_bytes());
                out.push(b']');
            });
            item.text("role", "assistant");
            if let Some(phase) = &self.phase {
                item.value("phase", |out| Str::Raw(phase).write(out));
            }
        })
    }

    pub(super) fn reasoning(&self, summary: &str, state: Option<&str>) -> String {
        json(|item| {
            item.text("id", &self.id);
            item.text("type", "reasoning");
            item.value("summary", |out| {
                out.push(b'[');
                out.extend_from_slice(summary.as_bytes());
                out.push(b']');
            });
            item.optional_text("encrypted_content", state);
        })
    }

    /// Returns the part of the summary that its text is.
    pub(super) fn summary(&self) -> String {
        json(|part| {
            part.text("type", "summary_text");
            part.value("text", |out| Str::Raw(self.text()).write(out));
        })
    }

    /// Returns the item of a call, with what it takes so far.
    pub(super) fn call(&self, call: &OpenCall, status: &str, input: &str) -> String {
        json(|item| {
            item.text("id", &self.id);
            item.text("type", call.form.item_type());
            item.text("status", status);
            item.value("call_id", |out| Str::Raw(&call.id).write(out));
            match call.form {
                CallForm::Search => {
                    item.text("execution", "client");
                    item.raw("arguments", if input.is_empty() { "{}" } else { input });
                    return;
                }
                CallForm::Arguments => item.value("arguments", |out| Str::Raw(input).write(out)),
                CallForm::Text => item.value("input", |out| Str::Plain(input).write(out)),
            }
            item.text("name", &call.name);
            item.optional_text("namespace", call.namespace.as_deref());
        })
    }
}

impl CallForm {
    pub(super) fn item_type(self) -> &'static str {
        match self {
            Self::Arguments => "function_call",
            Self::Text => "custom_tool_call",
            Self::Search => "tool_search_call",
        }
    }

    pub(super) fn id_kind(self) -> &'static str {
        match self {
            Self::Arguments => "fc",
            Self::Text => "ctc",
            Self::Search => "tsc",
        }
    }
}
