//! Places within one turn: of its blocks in the text, and of its messages among its calls, whose order the convention's
//! message does not have. Source: docs/model-gateway.md 2.2, docs/facts/wire-formats.md 2.3.

use crate::json::{Object, Str};
use crate::models::chat::piece::Piece;
use crate::models::dialects::Dialect;
use crate::models::dialects::state::OwnedMaker;

/// What a choice has said so far, as places count it.
#[derive(Debug)]
pub(super) struct Turn {
    /// Characters of text; 0 where they are not counted.
    pub(super) chars: u64,
    counts: bool,
    pub(super) images: u64,
    messages: Vec<SaidMessage>,
}

#[derive(Debug)]
struct SaidMessage {
    /// Contents of a JSON string.
    phase: Option<Box<str>>,
    /// Contents of a JSON string; only of messages with a phase.
    text: Vec<u8>,
    preceding_calls: u64,
    is_said: bool,
}

impl Turn {
    /// Returns a turn that has said nothing. State in the words of chat completions has no place in the text, so it is not
    /// counted there.
    pub(super) fn new(maker: &OwnedMaker) -> Self {
        Self {
            chars: 0,
            counts: maker.dialect != Some(Dialect::Chat),
            images: 0,
            messages: Vec::new(),
        }
    }

    /// Takes a piece; so many calls have begun.
    pub(super) fn note(&mut self, piece: &Piece<'_>, calls: usize) {
        match piece {
            Piece::Text(text) => self.text(*text),
            Piece::Refusal(text) if !text.is_empty() => self.say(Str::Plain("")),
            Piece::Image(image) => self.images += image.count(),
            Piece::Message { phase } => {
                let phase = phase.filter(|phase| !phase.is_empty());
                self.messages.push(SaidMessage {
                    phase: phase.map(|phase| phase.contents().into()),
                    text: Vec::new(),
                    preceding_calls: calls as u64,
                    is_said: false,
                });
            }
            _ => {}
        }
    }

    /// Takes a part of the text.
    pub(super) fn text(&mut self, text: Str<'_>) {
        if self.counts {
            self.chars += text.count_chars();
        }
        if !text.is_empty() {
            self.say(text);
        }
    }

    /// A message that says nothing does not go back.
    fn say(&mut self, text: Str<'_>) {
        if let Some(message) = self.messages.last_mut() {
            message.is_said = true;
            if message.phase.is_some() {
                text.write_contents(&mut message.text);
            }
        }
    }

    /// Returns the members of the message that tell the order, as `(key, JSON value)`; so many calls have begun.
    pub(super) fn members(&self, calls: usize) -> Vec<(&'static str, String)> {
        let mut members = Vec::new();
        let said = self.messages.iter().filter(|message| message.is_said);
        let said: Vec<&SaidMessage> = said.collect();
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
        if let Some(first) = said.first().filter(|_| calls > 0) {
            let is_before = first.preceding_calls == 0;
            members.push(("content_before_tool_calls", is_before.to_string()));
        }
        members
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
