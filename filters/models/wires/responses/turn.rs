//! The order of messages and calls within one turn, which the convention's message does not have: how a reply tells it,
//! and how it is read back. Source: docs/model-gateway.md 2.2, docs/facts/wire-formats.md 2.3.

use crate::json::{Object, Str};

/// The messages and calls of an answer so far.
#[derive(Debug, Default)]
pub(super) struct TurnOrder {
    messages: Vec<SaidMessage>,
    calls: u64,
}

#[derive(Debug)]
struct SaidMessage {
    /// The item's number.
    number: u64,
    /// Contents of a JSON string.
    phase: Option<Box<str>>,
    /// Contents of a JSON string; only of messages with a phase.
    text: Vec<u8>,
    preceding_calls: u64,
    is_said: bool,
}

impl TurnOrder {
    pub(super) fn begin_message(&mut self, number: u64, phase: Option<Str<'_>>) {
        let inside = |phase: Str<'_>| {
            let mut out = Vec::new();
            phase.write_contents(&mut out);
            String::from_utf8(out).unwrap_or_default().into()
        };
        self.messages.push(SaidMessage {
            number,
            phase: phase.filter(|phase| !phase.is_empty()).map(inside),
            text: Vec::new(),
            preceding_calls: self.calls,
            is_said: false,
        });
    }

    pub(super) fn begin_call(&mut self) {
        self.calls += 1;
    }

    /// Takes a piece of a message's text. A message that says nothing does not go back.
    pub(super) fn text(&mut self, number: u64, text: Str<'_>) {
        let mut messages = self.messages.iter_mut().rev();
        if let Some(message) = messages.find(|message| message.number == number) {
            message.is_said = true;
            if message.phase.is_some() {
                text.write_contents(&mut message.text);
            }
        }
    }

    /// Returns how many messages and calls have been said.
    pub(super) fn place(&self) -> u64 {
        self.said().count() as u64 + self.calls
    }

    /// Returns the members of the convention's message that tell the order, as `(key, JSON value)`.
    pub(super) fn into_members(self) -> Vec<(&'static str, String)> {
        let mut members = Vec::new();
        let said: Vec<&SaidMessage> = self.said().collect();
        if let [_, _, ..] = *said
            && said.iter().all(|message| message.phase.is_some())
        {
            members.push(("message_items", items(&said)));
            return members;
        }
        if let [only] = *said
            && let Some(phase) = &only.phase
        {
            members.push(("phase", format!("\"{phase}\"")));
        }
        if let Some(first) = said.first().filter(|_| self.calls > 0) {
            let is_before = first.preceding_calls == 0;
            members.push(("content_before_tool_calls", is_before.to_string()));
        }
        members
    }

    fn said(&self) -> impl Iterator<Item = &SaidMessage> {
        self.messages.iter().filter(|message| message.is_said)
    }
}

fn items(said: &[&SaidMessage]) -> String {
    let mut out = vec![b'['];
    for (at, message) in said.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        let mut item = Object::open(&mut out);
        item.value("text", |out| {
            out.push(b'"');
            out.extend_from_slice(&message.text);
            out.push(b'"');
        });
        let phase = message.phase.as_deref().unwrap_or_default();
        item.value("phase", |out| Str::Raw(phase).write(out));
        item.number("preceding_tool_calls", message.preceding_calls);
        item.close();
    }
    out.push(b']');
    String::from_utf8(out).unwrap_or_default()
}
