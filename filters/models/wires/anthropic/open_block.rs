//! One content block of an answer on its way into a sink, whole or in pieces. Source: docs/facts/wire-formats.md 3.4, 3.5.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::{Error, Str, Walker};
use crate::models::chat::piece::{Citation, Finish, Piece, StateOf, StatePiece};
use crate::models::chat::text::Text;
use crate::models::dialects::Dialect;
use crate::models::reply::Sink;

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
    pub(super) stop_sequence: Option<&'a RawValue>,
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
#[derive(Debug, Default)]
pub(super) struct SaidBlocks {
    /// Characters of text.
    chars: u64,
    searches: u64,
    /// Whether the input of the first call is the answer.
    is_called: bool,
    has_answer: bool,
}

impl SaidBlocks {
    /// Returns the blocks of an answer that has not begun; `is_called`: it is the input of a call.
    pub(super) fn of_answer(is_called: bool) -> Self {
        Self {
            is_called,
            ..Self::default()
        }
    }

    /// Returns how the answer ends: a call that was one is none to the client.
    pub(super) fn finish_of<'f>(&self, finish: Finish<'f>) -> Finish<'f> {
        match finish {
            Finish::ToolCalls if self.has_answer => Finish::Stop,
            other => other,
        }
    }

    /// Returns the kind of a block as the client gets it. There is one answer: further calls are not for it.
    fn kind_of(&mut self, kind: BlockKind) -> BlockKind {
        match kind {
            BlockKind::Tool if self.is_called => {
                match std::mem::replace(&mut self.has_answer, true) {
                    false => BlockKind::Answer,
                    true => BlockKind::Other,
                }
            }
            kind => kind,
        }
    }

    /// Hands out a piece of text.
    fn say(&mut self, text: &str, sink: &mut dyn Sink) {
        if !text.is_empty() {
            self.chars += text.chars().count() as u64;
            sink.text(0, Str::Plain(text));
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
    /// A call whose input is the text of the answer.
    Answer,
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
        said: &mut SaidBlocks,
        sink: &mut dyn Sink,
    ) -> serde_json::Result<Self> {
        let block: ReplyBlock<'_> = serde_json::from_str(raw.get())?;
        let kind = said.kind_of(BlockKind::find(&block.kind));
        let mut open = Self {
            index,
            kind,
            offset: said.chars,
            thinking: String::new(),
            signature: String::new(),
            input: None,
            sources: Vec::new(),
            native: String::new(),
        };
        match kind {
            BlockKind::Tool => open.begin_call(&block, sink),
            BlockKind::Answer => {
                let input = block.input.map(RawValue::get).filter(|raw| *raw != "null");
                open.input = Some(input.unwrap_or("{}").to_owned());
            }
            BlockKind::Native => {
                raw.get().clone_into(&mut open.native);
                if &*block.kind == "server_tool_use" && block.name.as_deref() == Some("web_search")
                {
                    said.searches += 1;
                    sink.searches(said.searches);
                }
            }
            _ => {}
        }
        open.sources
            .extend(block.citations.iter().flatten().filter_map(named));
        open.delta(&block, said, sink);
        Ok(open)
    }

    fn begin_call(&mut self, block: &ReplyBlock<'_>, sink: &mut dyn Sink) {
        let is_given = |raw: &&RawValue| raw.get().trim() != "{}" && raw.get() != "null";
        self.input = block.input.filter(is_given).map(|raw| raw.get().to_owned());
        let call = Piece::Call {
            key: self.index,
            id: block.id.as_deref().map(Str::Plain),
            name: block.name.as_deref().map(Str::Plain),
        };
        sink.pieces(0, &[call]);
    }

    /// Takes a piece.
    pub(super) fn delta(
        &mut self,
        delta: &ReplyBlock<'_>,
        said: &mut SaidBlocks,
        sink: &mut dyn Sink,
    ) {
        match self.kind {
            BlockKind::Text => {
                self.sources.extend(delta.citation.iter().filter_map(named));
                said.say(delta.text.as_deref().unwrap_or_default(), sink);
            }
            BlockKind::Answer => {
                let piece = delta.partial_json.as_deref().unwrap_or_default();
                if !piece.is_empty() {
                    self.input = None;
                    said.say(piece, sink);
                }
            }
            BlockKind::Thinking => {
                self.signature
                    .push_str(delta.signature.as_deref().unwrap_or_default());
                let thinking = delta.thinking.as_deref().unwrap_or_default();
                if !thinking.is_empty() {
                    self.thinking.push_str(thinking);
                    sink.pieces(0, &[Piece::Reasoning(Str::Plain(thinking))]);
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
    pub(super) fn finish(&mut self, said: &mut SaidBlocks, sink: &mut dyn Sink) {
        let of = match self.kind {
            BlockKind::Tool => {
                if let Some(input) = self.input.take() {
                    self.arguments(&input, sink);
                }
                return sink.pieces(0, &[Piece::CallEnd { key: self.index }]);
            }
            BlockKind::Answer => {
                return said.say(&self.input.take().unwrap_or_default(), sink);
            }
            BlockKind::Text => return self.cite(said, sink),
            BlockKind::Native => return self.hand_out_native(sink),
            BlockKind::Thinking if !self.signature.is_empty() => {
                StateOf::Reasoning(Str::Plain(&self.thinking))
            }
            BlockKind::Redacted => StateOf::Redacted,
            BlockKind::Thinking | BlockKind::Other => return,
        };
        let state = StatePiece {
            of,
            dialect: Dialect::Messages,
            number: self.index,
            data: Str::Plain(&self.signature),
        };
        sink.pieces(0, &[Piece::State(state)]);
    }

    /// The whole block rests on its sources.
    fn cite(&self, said: &SaidBlocks, sink: &mut dyn Sink) {
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

    fn hand_out_native(&self, sink: &mut dyn Sink) {
        let input = self.input.as_deref().filter(|input| is_json(input));
        let whole = input.and_then(|input| with_input(&self.native, input).ok());
        let block = Piece::Native {
            dialect: Dialect::Messages,
            number: self.index,
            json: whole.as_deref().unwrap_or(&self.native),
        };
        sink.pieces(0, &[block]);
    }

    fn arguments(&self, piece: &str, sink: &mut dyn Sink) {
        let (key, json) = (self.index, Str::Plain(piece));
        sink.pieces(0, &[Piece::Arguments { key, json }]);
    }
}

/// Returns a block whose input has come in pieces.
fn with_input(block: &str, input: &str) -> Result<String, Error> {
    let mut out = Vec::with_capacity(block.len() + input.len());
    Walker::over(block).object(|walk, key| {
        let value = walk.skip()?;
        out.push(if out.is_empty() { b'{' } else { b',' });
        Str::Plain(&key).write(&mut out);
        out.push(b':');
        let value = if key == "input" { input } else { value };
        out.extend_from_slice(value.as_bytes());
        Ok::<(), Error>(())
    })?;
    out.push(b'}');
    Ok(String::from_utf8(out).unwrap_or_default())
}

fn named(source: &Source<'_>) -> Option<(String, String)> {
    let title = source.title.as_deref().unwrap_or_default();
    Some((source.url.as_deref()?.to_owned(), title.to_owned()))
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}
