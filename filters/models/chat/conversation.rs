//! A chat as turns of typed blocks: what a front has read, for the wires of other dialects.
//!
//! Order is position: what a message says beside its text stands where it was said. Everything borrows from the body. State
//! and native blocks go to their maker alone, so a wire takes out those of others first.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::text::{BlockText, Text};
use super::tools::{Tool, ToolChoice};
use crate::fault::Fault;
use crate::json;
use crate::models::dialects::{Dialect, NamedMember};
use crate::models::parameter::Parameter;

/// A chat.
#[derive(Debug)]
pub struct Conversation<'a> {
    /// The dialect of the body, in which faults name its places.
    pub dialect: Dialect,
    pub body: &'a str,
    pub turns: Vec<Turn<'a>>,
    pub tools: Vec<Tool<'a>>,
    /// `None`: the request does not say it.
    pub choice: Option<ToolChoice<'a>>,
    pub form: AnswerForm<'a>,
    pub stop: Vec<Text<'a>>,
    /// Other members that a mapping's table treats, as they came.
    pub options: Vec<(Parameter, Cow<'a, RawValue>)>,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    System,
    Developer,
    /// The user, and the results of calls.
    User,
    Assistant,
}

/// One message of the history.
#[derive(Clone, Debug)]
pub struct Turn<'a> {
    pub role: Role,
    /// The speaker's name; of a result that names no call, that of its function.
    pub name: Option<Text<'a>>,
    /// Whether it is a comment or the answer.
    pub phase: Option<Text<'a>>,
    /// The offset in the body.
    pub at: u32,
    pub blocks: Vec<Block<'a>>,
    /// The same turn for a wire that has phases and refusals: its messages and calls in their order. Empty: there is no other
    /// order than that of the blocks. Source: docs/model-gateway.md 2.2 ("stripped for other providers").
    pub divided: Vec<Turn<'a>>,
}

/// A part of a turn.
#[derive(Clone, Debug)]
pub struct Block<'a> {
    pub kind: BlockKind<'a>,
    /// The offset in the body; pieces of one text have the same.
    pub at: u32,
    pub marks: CacheMarks<'a>,
    /// State of the providers that made it. A history may have been said by several.
    pub states: Vec<State<'a>>,
}

/// What a block says.
#[derive(Clone, Debug)]
pub enum BlockKind<'a> {
    Text(BlockText<'a>),
    Refusal(BlockText<'a>),
    Media(Media<'a>),
    /// Reasoning whose state is its signature.
    Reasoning(Text<'a>),
    /// Reasoning that its state holds.
    Redacted,
    Native(Native<'a>),
    Call {
        id: Text<'a>,
        name: Text<'a>,
        /// JSON text, as the model wrote it: perhaps empty, perhaps not JSON.
        input: Text<'a>,
    },
    Result {
        /// The id of the call; `None`: the name of the turn says which function was called, or else the order.
        call: Option<Text<'a>>,
        content: Vec<Block<'a>>,
        /// Whether the call failed.
        is_error: bool,
    },
}

/// An image, a document or a sound.
#[derive(Clone, Debug)]
pub struct Media<'a> {
    pub kind: MediaKind,
    pub source: MediaSource<'a>,
    pub name: Option<Text<'a>>,
    /// How closely an image is looked at.
    pub detail: Option<Text<'a>>,
}

/// What media are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MediaKind {
    Image,
    /// An image that the model has drawn.
    Drawn,
    Document,
    Audio,
}

/// Where media come from.
#[derive(Clone, Debug)]
pub enum MediaSource<'a> {
    /// An address or a data URL, perhaps empty.
    Url(Text<'a>),
    /// The id of a file at a provider.
    Id(Text<'a>),
    Data {
        /// Base64.
        data: Text<'a>,
        format: Text<'a>,
    },
}

/// A block that only its provider can read.
#[derive(Clone, Debug)]
pub struct Native<'a> {
    /// `None`: that of whoever knows the block.
    pub dialect: Option<Dialect>,
    /// The seal of its maker; `None`: it is of any provider.
    pub seal: Option<Text<'a>>,
    pub json: Box<RawValue>,
}

/// State that only its maker can read.
#[derive(Clone, Debug)]
pub struct State<'a> {
    /// The dialect of its maker; `None`: it lacks the seal that it would have, so it goes to nobody.
    pub dialect: Option<Dialect>,
    /// The state with its maker's seal; without one it goes to all that speak the dialect. A wire opens it, and writes it as the
    /// maker has said it.
    pub text: Text<'a>,
    /// The item of reasoning that it stands in, as JSON; empty where it stands in none.
    pub item: &'a str,
}

/// Ends of the prefix that a provider shall cache, as JSON objects.
#[derive(Clone, Copy, Debug, Default)]
pub struct CacheMarks<'a> {
    /// For providers that are told how long.
    pub control: Option<&'a RawValue>,
    /// For those that are told where alone.
    pub breakpoint: Option<&'a RawValue>,
}

/// The form of the answer.
#[derive(Debug, Default)]
pub enum AnswerForm<'a> {
    #[default]
    Text,
    /// Any JSON object.
    Json,
    /// JSON that fits a schema.
    Schema(AnswerSchema<'a>),
}

/// A schema that the answer has to fit.
#[derive(Debug)]
pub struct AnswerSchema<'a> {
    pub name: Text<'a>,
    pub description: Option<Text<'a>>,
    pub schema: Cow<'a, RawValue>,
    pub strict: Option<bool>,
    /// The offset of the schema in the body.
    pub at: u32,
}

impl<'a> Turn<'a> {
    /// Returns a turn of these blocks without a name, at `at` in the body.
    pub fn new(role: Role, at: u32, blocks: Vec<Block<'a>>) -> Self {
        Self {
            role,
            name: None,
            phase: None,
            at,
            blocks,
            divided: Vec::new(),
        }
    }
}

impl<'a> Block<'a> {
    /// Returns a block without marks and state.
    pub fn new(kind: BlockKind<'a>, at: u32) -> Self {
        Self {
            kind,
            at,
            marks: CacheMarks::default(),
            states: Vec::new(),
        }
    }

    /// Appends the next block, if both are pieces of one text; returns whether they are.
    fn append(&mut self, next: &mut Self) -> bool {
        let (BlockKind::Text(text), BlockKind::Text(more)) = (&mut self.kind, &next.kind) else {
            return false;
        };
        if self.at == next.at {
            text.push(more);
            self.states.append(&mut next.states);
        }
        self.at == next.at
    }
}

impl Turn<'_> {
    /// Joins the pieces of a text between which nothing is left.
    pub fn join_texts(&mut self) {
        self.blocks.dedup_by(|next, block| block.append(next));
    }
}

impl<'a> Conversation<'a> {
    /// Leaves out the state and the native blocks for which `open` and `is_native` return false, and reasoning without state.
    /// Pieces of a text between which nothing is left are joined.
    pub fn retain(
        &mut self,
        open: impl Fn(&mut State<'_>) -> bool,
        is_native: impl Fn(&Native<'_>) -> bool,
    ) {
        let keep = |block: &mut Block<'_>| {
            block.states.retain_mut(&open);
            match &block.kind {
                BlockKind::Reasoning(_) | BlockKind::Redacted => !block.states.is_empty(),
                BlockKind::Native(native) => is_native(native),
                _ => true,
            }
        };
        for turn in &mut self.turns {
            turn.blocks.retain_mut(keep);
            turn.join_texts();
            for part in &mut turn.divided {
                part.blocks.retain_mut(keep);
            }
        }
    }

    /// Returns the functions among the tools.
    pub fn functions(&self) -> impl Iterator<Item = &super::tools::Function<'a>> {
        self.tools.iter().filter_map(|tool| match tool {
            Tool::Function(function) => Some(function),
            Tool::WebSearch(_) | Tool::ToolSearch(_) => None,
        })
    }

    /// Returns the web search among the tools.
    pub fn web_search(&self) -> Option<&super::tools::WebSearchTool<'a>> {
        self.tools.iter().rev().find_map(|tool| match tool {
            Tool::WebSearch(search) => Some(search),
            Tool::Function(_) | Tool::ToolSearch(_) => None,
        })
    }

    /// Returns the value of a member that a mapping's table treats.
    pub fn option(&self, parameter: Parameter) -> Option<&RawValue> {
        let mut options = self.options.iter();
        let (_, value) = options.find(|(option, _)| *option == parameter)?;
        Some(value)
    }

    /// Returns such a value that is a text.
    pub fn option_text(&self, parameter: Parameter) -> Option<Cow<'_, str>> {
        let text: Text<'_> = serde_json::from_str(self.option(parameter)?.get()).ok()?;
        Some(text.0)
    }

    /// Returns the path to a place of the body, or to a member of it.
    pub fn path(&self, at: u32, member: Option<NamedMember>) -> String {
        let mut path = self.dialect.path(json::path_at(self.body, at as usize));
        if let Some(member) = member {
            path.extend([".", self.dialect.name_of(member)]);
        }
        path
    }

    /// Returns the fault of a place of the body, or of a member of it, which `said` is true of.
    pub fn fault(&self, at: u32, member: Option<NamedMember>, said: &str) -> Fault {
        let path = self.path(at, member);
        let message = format!("`{path}` {said}");
        Fault::invalid(path, message)
    }

    /// Returns the fault of the whole history.
    pub fn fault_of_all(&self, said: &str) -> Fault {
        let path = self.dialect.name_of(NamedMember::Turns);
        Fault::invalid(path, format!("`{path}` {said}"))
    }
}
