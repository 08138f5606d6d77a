//! One content block of an answer on its way into a sink, whole or in pieces. Source: docs/facts/wire-formats.md 3.4, 3.5.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::FORMAT;
use crate::json::Str;
use crate::models::chat::delta::{Delta, ToolDelta};
use crate::models::chat::tree::Text;
use crate::models::reply::Sink;
use crate::models::wires::citation::Citation;
use crate::models::wires::opaque::{NativeBlock, TEXT_OFFSET};

/// A content block, a delta of one, or what the end of a message says.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ReplyBlock<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
    #[serde(borrow)]
    signature: Option<Text<'a>>,
    #[serde(borrow)]
    data: Option<Text<'a>>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    partial_json: Option<Text<'a>>,
    /// The sources of a text that came whole.
    #[serde(borrow)]
    citations: Option<Vec<Source<'a>>>,
    /// A source of a text that comes in pieces.
    #[serde(borrow)]
    citation: Option<Source<'a>>,
    #[serde(borrow)]
    pub(super) stop_reason: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) stop_details: Option<StopDetails<'a>>,
    #[serde(borrow)]
    pub(super) safeguard_results: Option<&'a RawValue>,
}

/// Why the model stopped.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StopDetails<'a> {
    #[serde(borrow)]
    pub(super) explanation: Option<Text<'a>>,
}

/// What a text rests on. Only pages have an address.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Source<'a> {
    #[serde(borrow)]
    url: Option<Text<'a>>,
    #[serde(borrow)]
    title: Option<Text<'a>>,
}

/// The blocks of an answer so far.
#[derive(Debug)]
pub(super) struct Turn {
    origin: Box<str>,
    /// Characters of text.
    chars: u64,
    searches: u64,
}

impl Turn {
    /// A turn of this origin, which marks its state.
    pub(super) fn new(origin: &str) -> Self {
        Self {
            origin: origin.into(),
            chars: 0,
            searches: 0,
        }
    }
}

/// A content block that is being read.
#[derive(Debug)]
pub(super) struct OpenBlock {
    index: u64,
    kind: BlockKind,
    /// Characters of text before it.
    offset: u64,
    thinking: String,
    signature: String,
    /// The input of a call, as JSON: what came with the start only counts where no pieces follow.
    input: Option<String>,
    /// Addresses and titles of the sources.
    sources: Vec<(String, String)>,
    /// A block that goes back as it is.
    native: String,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum BlockKind {
    Text,
    Thinking,
    Redacted,
    Tool,
    /// A call that the provider runs, or its result.
    Native,
    /// Unknown: nothing for the client.
    Other,
}

impl BlockKind {
    fn find(kind: &str) -> Self {
        match kind {
            "text" => Self::Text,
            "thinking" => Self::Thinking,
            "redacted_thinking" => Self::Redacted,
            "tool_use" => Self::Tool,
            other if is_native(other) => Self::Native,
            _ => Self::Other,
        }
    }
}

/// Returns whether blocks of this type are calls that the provider runs, or their results.
pub(super) fn is_native(kind: &str) -> bool {
    kind == "server_tool_use" || kind.ends_with("_tool_result")
}

impl OpenBlock {
    /// Begins a block. Errors: it cannot be read.
    pub(super) fn begin(
        index: u64,
        raw: &RawValue,
        turn: &mut Turn,
        sink: &mut dyn Sink,
    ) -> serde_json::Result<Self> {
        let block: ReplyBlock<'_> = serde_json::from_str(raw.get())?;
        let kind = BlockKind::find(&block.kind);
        let mut open = Self {
            index,
            kind,
            offset: turn.chars,
            thinking: String::new(),
            signature: String::new(),
            input: None,
            sources: Vec::new(),
            native: String::new(),
        };
        match kind {
            BlockKind::Tool => open.begin_call(&block, sink),
            BlockKind::Native => {
                raw.get().clone_into(&mut open.native);
                if &*block.kind == "server_tool_use" && block.name.as_deref() == Some("web_search")
                {
                    turn.searches += 1;
                    sink.searches(turn.searches);
                }
            }
            _ => {}
        }
        open.sources
            .extend(block.citations.iter().flatten().filter_map(named));
        open.delta(&block, turn, sink);
        Ok(open)
    }

    fn begin_call(&mut self, block: &ReplyBlock<'_>, sink: &mut dyn Sink) {
        let is_given = |raw: &&RawValue| raw.get().trim() != "{}" && raw.get() != "null";
        self.input = block.input.filter(is_given).map(|raw| raw.get().to_owned());
        let tool = ToolDelta {
            key: self.index,
            id: block.id.as_deref().map(Str::Plain),
            name: block.name.as_deref().map(Str::Plain),
            ..ToolDelta::default()
        };
        sink.delta(&Delta {
            tools: &[tool],
            ..Delta::default()
        });
    }

    /// Takes a piece.
    pub(super) fn delta(&mut self, delta: &ReplyBlock<'_>, turn: &mut Turn, sink: &mut dyn Sink) {
        match self.kind {
            BlockKind::Text => {
                self.sources.extend(delta.citation.iter().filter_map(named));
                let text = delta.text.as_deref().unwrap_or_default();
                if !text.is_empty() {
                    turn.chars += text.chars().count() as u64;
                    sink.text(0, Str::Plain(text));
                }
            }
            BlockKind::Thinking => {
                self.signature
                    .push_str(delta.signature.as_deref().unwrap_or_default());
                let thinking = delta.thinking.as_deref().unwrap_or_default();
                if !thinking.is_empty() {
                    self.thinking.push_str(thinking);
                    sink.delta(&Delta {
                        reasoning: Some(Str::Plain(thinking)),
                        ..Delta::default()
                    });
                }
            }
            BlockKind::Redacted => self
                .signature
                .push_str(delta.data.as_deref().unwrap_or_default()),
            BlockKind::Tool => {
                let piece = delta.partial_json.as_deref().unwrap_or_default();
                if !piece.is_empty() {
                    self.input = None;
                    self.arguments(piece, sink);
                }
            }
            BlockKind::Native => {
                let piece = delta.partial_json.as_deref().unwrap_or_default();
                if !piece.is_empty() {
                    self.input.get_or_insert_default().push_str(piece);
                }
            }
            BlockKind::Other => {}
        }
    }

    /// Ends the block: hands out what could not go before.
    pub(super) fn finish(&mut self, turn: &Turn, sink: &mut dyn Sink) {
        let origin = &*turn.origin;
        let details = match self.kind {
            BlockKind::Tool => {
                if let Some(input) = self.input.take() {
                    self.arguments(&input, sink);
                }
                return sink.tool_done(0, self.index);
            }
            BlockKind::Text => return self.cite(turn, sink),
            BlockKind::Native => return self.hand_out_native(origin, sink),
            BlockKind::Thinking if !self.signature.is_empty() => serde_json::json!({
                "type": "reasoning.text", "format": FORMAT, "model": origin, "index": self.index,
                TEXT_OFFSET: self.offset, "text": self.thinking, "signature": self.signature,
            }),
            BlockKind::Redacted => serde_json::json!({
                "type": "reasoning.encrypted", "format": FORMAT, "model": origin, "index": self.index,
                TEXT_OFFSET: self.offset, "data": self.signature,
            }),
            _ => return,
        };
        sink.delta(&Delta {
            reasoning_details: Some(&details.to_string()),
            ..Delta::default()
        });
    }

    /// The whole block rests on its sources.
    fn cite(&self, turn: &Turn, sink: &mut dyn Sink) {
        let mut list = Vec::new();
        for (url, title) in &self.sources {
            let citation = Citation {
                url: Str::Plain(url),
                title: Some(Str::Plain(title)),
                start: self.offset,
                end: turn.chars,
            };
            citation.write(&mut list);
        }
        let list = String::from_utf8(list).unwrap_or_default();
        if !list.is_empty() {
            sink.delta(&Delta {
                annotations: Some(&list),
                ..Delta::default()
            });
        }
    }

    fn hand_out_native(&self, origin: &str, sink: &mut dyn Sink) {
        let input = self.input.as_deref().filter(|input| is_json(input));
        let changed = input.map(|input| ("input", input));
        let place = (self.index, self.offset);
        let item = NativeBlock::write(&self.native, changed.as_slice(), (FORMAT, origin), place);
        if let Ok(item) = item {
            sink.delta(&Delta {
                native_blocks: Some(&item),
                ..Delta::default()
            });
        }
    }

    fn arguments(&self, piece: &str, sink: &mut dyn Sink) {
        let arguments = Some(Str::Plain(piece));
        let tool = ToolDelta {
            key: self.index,
            arguments,
            ..ToolDelta::default()
        };
        sink.delta(&Delta {
            tools: &[tool],
            ..Delta::default()
        });
    }
}

fn named(source: &Source<'_>) -> Option<(String, String)> {
    let title = source.title.as_deref().unwrap_or_default();
    Some((source.url.as_deref()?.to_owned(), title.to_owned()))
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}
