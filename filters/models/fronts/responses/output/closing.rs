//! How an open item ends.

use super::super::tools::{CallForm, text_of};
use super::Output;
use super::open_item::{OpenCall, OpenItem};
use crate::json::Str;
use crate::models::chat::input::object;
use crate::models::dialects::Dialect;
use crate::models::dialects::state::sealed_dialect;
use crate::models::fronts::sequencer::BlockKind;

impl Output {
    pub(super) fn close_message(
        &mut self,
        index: usize,
        kind: BlockKind,
        open: &OpenItem,
        status: &str,
    ) {
        let part = open.part(kind);
        let place = (&*open.id, index);
        let is_refusal = kind == BlockKind::Refusal;
        let (name, key) = match is_refusal {
            true => ("response.refusal.done", "refusal"),
            false => ("response.output_text.done", "text"),
        };
        self.item_event(name, place, |event| {
            event.number("content_index", 0);
            event.value(key, |out| Str::Raw(open.text()).write(out));
            if !is_refusal {
                event.raw("logprobs", "[]");
            }
        });
        self.item_event("response.content_part.done", place, |event| {
            event.number("content_index", 0);
            event.raw("part", &part);
        });
        self.done(index, &open.message(status, &part));
    }

    pub(super) fn begin_summary(&mut self, id: &str, index: usize) {
        let name = "response.reasoning_summary_part.added";
        self.item_event(name, (id, index), |event| {
            event.number("summary_index", 0);
            event.raw("part", r#"{"type":"summary_text","text":""}"#);
        });
    }

    /// Ends reasoning. What its maker signs although it is not shown has an empty summary, by which it is told from what the state
    /// holds.
    pub(super) fn close_reasoning(&mut self, index: usize, open: &OpenItem, state: Option<&str>) {
        let is_signed = state.and_then(sealed_dialect) == Some(Dialect::Messages);
        if open.text.is_empty() && !is_signed {
            return self.done(index, &open.reasoning("", state));
        }
        if open.text.is_empty() {
            self.begin_summary(&open.id, index);
        }
        let (part, place) = (open.summary(), (&*open.id, index));
        self.item_event("response.reasoning_summary_text.done", place, |event| {
            event.number("summary_index", 0);
            event.value("text", |out| Str::Raw(open.text()).write(out));
        });
        self.item_event("response.reasoning_summary_part.done", place, |event| {
            event.number("summary_index", 0);
            event.raw("part", &part);
        });
        self.done(index, &open.reasoning(&part, state));
    }

    pub(super) fn close_call(
        &mut self,
        index: usize,
        open: &OpenItem,
        call: &OpenCall,
        status: &str,
    ) {
        let place = (&*open.id, index);
        let item = match call.form {
            CallForm::Arguments => {
                let name = "response.function_call_arguments.done";
                self.item_event(name, place, |event| {
                    event.value("arguments", |out| Str::Raw(open.text()).write(out));
                });
                open.call(call, status, open.text())
            }
            CallForm::Text => {
                let arguments = Str::Raw(open.text()).unescaped();
                let text = text_of(&arguments);
                let name = "response.custom_tool_call_input";
                self.item_event(&[name, ".delta"].concat(), place, |event| {
                    event.text("delta", &text);
                });
                self.item_event(&[name, ".done"].concat(), place, |event| {
                    event.text("input", &text);
                });
                open.call(call, status, &text)
            }
            CallForm::Search => {
                let arguments = Str::Raw(open.text()).unescaped();
                open.call(call, status, object(&arguments).get())
            }
        };
        self.done(index, &item);
    }
}
