//! The tool calls of one choice: numbered densely, opened once, never without arguments.

use std::collections::HashSet;

use super::items::extra_of_call;
use crate::json::Str;
use crate::models::chat::piece::{Finish, Piece};
use crate::models::dialects::state::Maker;
use crate::models::numbering::Numbering;
use crate::models::reply::ReplyIdentity;

/// What pieces that are said together say of one call.
#[derive(Debug, Default)]
pub(super) struct CallPiece<'a> {
    key: u64,
    id: Option<Str<'a>>,
    name: Option<Str<'a>>,
    arguments: Option<Str<'a>>,
    extra_content: Option<String>,
}

impl<'a> CallPiece<'a> {
    /// Returns what pieces say of calls, in their order: a call with the arguments and the state that follow it.
    pub(super) fn read(pieces: &[Piece<'a>], maker: Maker<'_>) -> Vec<Self> {
        let mut calls: Vec<Self> = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Call { key, id, name } => calls.push(Self {
                    key: *key,
                    id: *id,
                    name: *name,
                    ..Self::default()
                }),
                Piece::Arguments { key, json } => match calls.last_mut() {
                    Some(call) if call.key == *key && call.arguments.is_none() => {
                        call.arguments = Some(*json);
                    }
                    _ => calls.push(Self {
                        key: *key,
                        arguments: Some(*json),
                        ..Self::default()
                    }),
                },
                piece => {
                    let state = extra_of_call(piece, maker);
                    let call = calls.last_mut();
                    if let Some(((key, extra), call)) = state.zip(call)
                        && call.key == key
                    {
                        call.extra_content = extra;
                    }
                }
            }
        }
        calls
    }
}

/// The calls of one choice.
#[derive(Debug)]
pub(super) struct Tools {
    calls: Vec<OpenToolCall>,
    numbers: Numbering<u64>,
    opened: usize,
    ids: HashSet<Box<str>>,
    /// The choice's index.
    index: u32,
}

#[derive(Debug)]
struct OpenToolCall {
    /// Its number for the client, once it is opened.
    number: Option<usize>,
    is_closed: bool,
    id: Option<Box<str>>,
    extra_content: Option<Box<str>>,
    /// Arguments that came before the name.
    early: String,
    has_arguments: bool,
}

/// The first piece of a call. `id` and `name` are insides of JSON strings.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) id: Box<str>,
    pub(super) name: Box<str>,
    pub(super) extra_content: Option<Box<str>>,
}

/// The part of a delta that goes out.
#[derive(Debug)]
pub(super) struct ToolCallPiece {
    pub(super) number: usize,
    pub(super) opening: Option<Opening>,
    /// Inside of a JSON string.
    pub(super) arguments: Box<str>,
}

impl Opening {
    /// Writes `,"id":…,"type":"function"` and `extra_content`.
    pub(super) fn write_head(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b",\"id\":\"");
        out.extend_from_slice(self.id.as_bytes());
        out.extend_from_slice(b"\",\"type\":\"function\"");
        if let Some(extra) = &self.extra_content {
            out.extend_from_slice(b",\"extra_content\":");
            out.extend_from_slice(extra.as_bytes());
        }
    }
}

impl Tools {
    pub(super) fn new(index: u32) -> Self {
        Self {
            calls: Vec::new(),
            numbers: Numbering::default(),
            opened: 0,
            ids: HashSet::new(),
            index,
        }
    }

    /// Returns the number of calls of which something has come.
    pub(super) fn count(&self) -> usize {
        self.calls.len()
    }

    /// Takes a piece of a reply with this identity; returns `None` where nothing goes out yet.
    pub(super) fn take(
        &mut self,
        piece: CallPiece<'_>,
        identity: &ReplyIdentity,
    ) -> Option<ToolCallPiece> {
        let at = self.position(piece.key);
        let contents = |text: Str<'_>| Box::<str>::from(text.contents());
        let id = piece.id.filter(|id| !id.is_empty()).map(contents);
        let name = piece.name.filter(|name| !name.is_empty()).map(contents);
        let arguments = piece.arguments.map(contents).unwrap_or_default();
        let call = self.calls.get_mut(at)?;
        if call.is_closed {
            return None;
        }
        if let Some(extra) = piece.extra_content {
            call.extra_content = Some(extra.into());
        }
        if let Some(number) = call.number {
            call.has_arguments |= !arguments.is_empty();
            return (!arguments.is_empty()).then_some(ToolCallPiece {
                number,
                opening: None,
                arguments,
            });
        }
        if id.is_some() {
            call.id = id;
        }
        call.early.push_str(&arguments);
        let name = name?;
        let number = self.opened;
        self.opened += 1;
        call.number = Some(number);
        call.has_arguments = !call.early.is_empty();
        let arguments = std::mem::take(&mut call.early).into_boxed_str();
        let extra_content = call.extra_content.clone();
        let asked = call.id.take();
        let id = self.unique(asked, number, identity);
        Some(ToolCallPiece {
            number,
            opening: Some(Opening {
                id,
                name,
                extra_content,
            }),
            arguments,
        })
    }

    /// Closes one call, or all; returns the numbers of calls without arguments, which become `{}`.
    pub(super) fn close(&mut self, key: Option<u64>) -> Vec<usize> {
        let closed = match key {
            Some(key) => {
                let at = self.numbers.get(&key);
                let call = at.and_then(|at| self.calls.get_mut(at));
                call.map(std::slice::from_mut).unwrap_or_default()
            }
            None => &mut *self.calls,
        };
        let mut empty = Vec::new();
        for call in closed {
            let Some(number) = call.number.filter(|_| !call.is_closed) else {
                continue;
            };
            call.is_closed = true;
            if !call.has_arguments {
                empty.push(number);
            }
        }
        empty
    }

    /// Returns the convention's word for the end, given the calls. Source: docs/facts/wire-formats.md R3.
    pub(super) fn finish_reason(&self, finish: Finish<'_>) -> &'static str {
        match finish {
            Finish::Stop | Finish::Sequence(_) | Finish::ToolCalls if self.opened > 0 => {
                "tool_calls"
            }
            Finish::Stop | Finish::Sequence(_) | Finish::ToolCalls => "stop",
            Finish::Length | Finish::ContextFull | Finish::Paused => "length",
            Finish::Filtered => "content_filter",
        }
    }

    fn position(&mut self, key: u64) -> usize {
        let (at, is_new) = self.numbers.see(key);
        if is_new {
            self.calls.push(OpenToolCall {
                number: None,
                is_closed: false,
                id: None,
                extra_content: None,
                early: String::new(),
                has_arguments: false,
            });
        }
        at
    }

    /// Returns the provider's id, unless it is missing or taken.
    fn unique(
        &mut self,
        asked: Option<Box<str>>,
        number: usize,
        identity: &ReplyIdentity,
    ) -> Box<str> {
        let id = asked
            .filter(|id| &**id != "null" && !self.ids.contains(id))
            .unwrap_or_else(|| make_id(identity, self.index, number));
        self.ids.insert(id.clone());
        id
    }
}

/// Makes up an id, unique to the answer and the choice.
fn make_id(identity: &ReplyIdentity, index: u32, number: usize) -> Box<str> {
    let unique: String = identity
        .id
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect();
    let start = unique.len().saturating_sub(20);
    let unique = unique.get(start..).unwrap_or_default();
    format!("call_{unique}{index}_{number}").into()
}
