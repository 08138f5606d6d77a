//! One content block of an answer on its way into a sink, whole or in pieces. Source: docs/facts/wire-formats.md 5.2.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::Str;
use crate::models::chat::piece::{Citation, Piece, StateOf, StatePiece};
use crate::models::chat::text::Text;
use crate::models::dialects::Dialect;
use crate::models::reply::Sink;

/// A content block, the start of one, or a delta; one of the members is set.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ReplyBlock<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    tool_use: Option<ReplyCall<'a>>,
    #[serde(borrow)]
    reasoning_content: Option<ReplyReasoning<'a>>,
    /// A text that came whole with what it rests on.
    #[serde(borrow)]
    citations_content: Option<CitedText<'a>>,
    /// What a text that comes in pieces rests on.
    #[serde(borrow)]
    citation: Option<Source<'a>>,
}

/// A call, or a piece of its input.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ReplyCall<'a> {
    #[serde(borrow)]
    tool_use_id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    /// An object, or in pieces a string.
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

/// Reasoning: whole in an object of its own, or a piece.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ReplyReasoning<'a> {
    #[serde(borrow)]
    reasoning_text: Option<SignedText<'a>>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    signature: Option<Text<'a>>,
    #[serde(borrow)]
    redacted_content: Option<Text<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SignedText<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    signature: Option<Text<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CitedText<'a> {
    #[serde(borrow)]
    content: Vec<TextPart<'a>>,
    #[serde(borrow)]
    citations: Vec<Source<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TextPart<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
}

/// What a text rests on. Only pages have an address.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Source<'a> {
    #[serde(borrow)]
    title: Option<Text<'a>>,
    #[serde(borrow)]
    location: Option<Location<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Location<'a> {
    #[serde(borrow)]
    web: Option<Page<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Page<'a> {
    #[serde(borrow)]
    url: Option<Text<'a>>,
}

/// What all blocks of an answer have in common.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Characters of text so far.
    chars: u64,
    /// The names of functions, by those that the wire says in their place.
    names: HashMap<String, String>,
}

impl Said {
    pub(super) fn new(names: HashMap<String, String>) -> Self {
        Self { chars: 0, names }
    }
}

/// A content block that is being read.
#[derive(Debug)]
pub(super) struct OpenBlock {
    index: u64,
    /// Characters of text before it.
    offset: u64,
    reasoning: String,
    signature: String,
    redacted: String,
    is_call: bool,
    /// Addresses and titles of the sources.
    sources: Vec<(String, String)>,
}

impl OpenBlock {
    /// Begins a block, of which nothing is known yet.
    pub(super) fn new(index: u64, said: &Said) -> Self {
        Self {
            index,
            offset: said.chars,
            reasoning: String::new(),
            signature: String::new(),
            redacted: String::new(),
            is_call: false,
            sources: Vec::new(),
        }
    }

    /// Takes the start of a block, a piece, or all of it.
    pub(super) fn take(&mut self, block: &ReplyBlock<'_>, said: &mut Said, sink: &mut dyn Sink) {
        self.text(block.text.as_ref(), said, sink);
        if let Some(cited) = &block.citations_content {
            for part in &cited.content {
                self.text(part.text.as_ref(), said, sink);
            }
            self.sources
                .extend(cited.citations.iter().filter_map(named));
        }
        self.sources.extend(block.citation.iter().filter_map(named));
        if let Some(call) = &block.tool_use {
            self.call(call, said, sink);
        }
        if let Some(reasoning) = &block.reasoning_content {
            self.reasoning(reasoning, sink);
        }
    }

    fn text(&self, text: Option<&Text<'_>>, said: &mut Said, sink: &mut dyn Sink) {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            said.chars += text.chars().count() as u64;
            sink.text(0, Str::Plain(text));
        }
    }

    fn call(&mut self, call: &ReplyCall<'_>, said: &Said, sink: &mut dyn Sink) {
        let key = self.index;
        if call.tool_use_id.is_some() || call.name.is_some() {
            self.is_call = true;
            let name = call.name.as_deref().unwrap_or_default();
            let name = said.names.get(name).map_or(name, String::as_str);
            let begin = Piece::Call {
                key,
                id: call.tool_use_id.as_deref().map(Str::Plain),
                name: Some(Str::Plain(name)),
            };
            sink.pieces(0, &[begin]);
        }
        let Some(input) = call.input else {
            return;
        };
        let piece: Option<Text<'_>> = serde_json::from_str(input.get()).ok();
        let json = match &piece {
            Some(piece) => piece,
            None if input.get().starts_with('{') => input.get(),
            None => return,
        };
        if !json.is_empty() {
            let json = Str::Plain(json);
            sink.pieces(0, &[Piece::Arguments { key, json }]);
        }
    }

    fn reasoning(&mut self, piece: &ReplyReasoning<'_>, sink: &mut dyn Sink) {
        let whole = piece.reasoning_text.as_ref();
        let text = piece
            .text
            .as_ref()
            .or(whole.and_then(|it| it.text.as_ref()));
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.reasoning.push_str(text);
            sink.pieces(0, &[Piece::Reasoning(Str::Plain(text))]);
        }
        let signature = whole.and_then(|it| it.signature.as_ref());
        if let Some(signature) = piece.signature.as_ref().or(signature) {
            self.signature.push_str(signature);
        }
        if let Some(data) = &piece.redacted_content {
            self.redacted.push_str(data);
        }
    }

    /// Ends the block: hands out what could not go before.
    pub(super) fn finish(&self, said: &Said, sink: &mut dyn Sink) {
        if self.is_call {
            sink.pieces(0, &[Piece::CallEnd { key: self.index }]);
        }
        let state = |of, data| {
            Piece::State(StatePiece {
                of,
                dialect: Dialect::Messages,
                number: self.index,
                data: Str::Plain(data),
            })
        };
        if !self.signature.is_empty() {
            let of = StateOf::Reasoning(Str::Plain(&self.reasoning));
            sink.pieces(0, &[state(of, &self.signature)]);
        }
        if !self.redacted.is_empty() {
            sink.pieces(0, &[state(StateOf::Redacted, &self.redacted)]);
        }
        // The whole block rests on its sources.
        let pages = self.sources.iter().map(|(url, title)| {
            Piece::Citation(Citation::Page {
                url: Str::Plain(url),
                title: Some(Str::Plain(title)),
                start: self.offset,
                end: said.chars,
            })
        });
        let pages: Vec<Piece<'_>> = pages.collect();
        if !pages.is_empty() {
            sink.pieces(0, &pages);
        }
    }
}

fn named(source: &Source<'_>) -> Option<(String, String)> {
    let page = source.location.as_ref()?.web.as_ref()?;
    let title = source.title.as_deref().unwrap_or_default();
    Some((page.url.as_deref()?.to_owned(), title.to_owned()))
}
