//! What a choice says: the members of its `message` or `delta`.

use std::borrow::Cow;

use super::calls::Calls;
use super::parts::content_parts;
use super::template::{Plain, TemplateMember};
use crate::json::{Error, Str, Type, Walker};
use crate::models::chat::piece::{Citation, Finish, Image, Piece, StateOf, StatePiece};
use crate::models::dialects::Dialect;
use crate::models::reply::Sink;
use crate::models::wires::scan::{arguments, inside, list, text};

/// The members of `message` or `delta`. Lists are insides of arrays.
#[derive(Default)]
pub(super) struct Message<'a> {
    content: Option<Str<'a>>,
    /// `content`, where it is a list of parts.
    parts: Option<&'a str>,
    reasoning: Option<Str<'a>>,
    content_reasoning: Option<Str<'a>>,
    refusal: Option<Str<'a>>,
    details: Option<&'a str>,
    annotations: Option<&'a str>,
    images: Option<Image<'a>>,
    /// `tool_calls`, with its brackets.
    calls: Option<&'a str>,
    /// `function_call`, the old form of the only call.
    only_call: Option<&'a str>,
    extra: Vec<(Cow<'a, str>, &'a str)>,
}

/// What stands beside the message of a choice.
#[derive(Clone, Copy)]
pub(super) struct Choice<'a> {
    pub(super) index: u32,
    pub(super) logprobs: Option<&'a str>,
    pub(super) finish: Option<Finish<'a>>,
    /// Its `reasoning_details` go back to the provider.
    pub(super) takes_details: bool,
}

/// The member that holds state beside a call or a message.
const EXTRA_CONTENT: &str = "extra_content";

impl<'a> Message<'a> {
    /// Reads the next value; anything but an object holds nothing.
    pub(super) fn read(walk: &mut Walker<'a>) -> Result<Self, Error> {
        let mut message = Self::default();
        if walk.peek()? != Type::Object {
            walk.skip()?;
            return Ok(message);
        }
        walk.object(|walk, key| message.member(walk, key))?;
        Ok(message)
    }

    fn member(&mut self, walk: &mut Walker<'a>, key: Cow<'a, str>) -> Result<(), Error> {
        match &*key {
            "role" => _ = walk.skip()?,
            "content" if walk.peek()? == Type::Array => self.parts = Some(walk.skip()?),
            "content" => self.content = text(walk)?,
            "reasoning_content" => self.content_reasoning = text(walk)?,
            "reasoning" => self.reasoning = text(walk)?,
            "refusal" => self.refusal = text(walk)?,
            "reasoning_details" if walk.peek()? == Type::Array => {
                self.details = Some(inside(walk.skip()?));
            }
            "annotations" => self.annotations = list(walk)?,
            "images" if walk.peek()? == Type::Array => {
                let array = walk.skip()?;
                let mut count = 0;
                Walker::over(array).array(|walk, _| {
                    count += 1;
                    walk.skip().map(|_| ())
                })?;
                let items = inside(array);
                self.images = Some(Image::Said { items, count });
            }
            "tool_calls" if walk.peek()? == Type::Array => {
                self.calls = Some(walk.skip()?).filter(|calls| !inside(calls).is_empty());
            }
            "function_call" => {
                self.only_call = Some(walk.skip()?).filter(|call| call.starts_with('{'));
            }
            _ => {
                let value = walk.skip()?;
                if value != "null" {
                    self.extra.push((key, value));
                }
            }
        }
        Ok(())
    }

    /// Reads a member of a choice that is no message, but a text beside other members.
    pub(super) fn text_member(
        &mut self,
        walk: &mut Walker<'a>,
        key: Cow<'a, str>,
        text_key: &str,
    ) -> Result<(), Error> {
        if key == text_key {
            self.content = text(walk)?;
            return Ok(());
        }
        let value = walk.skip()?;
        if value != "null" {
            self.extra.push((key, value));
        }
        Ok(())
    }

    /// Hands the members to `sink` with those of the choice. Returns the text where there is nothing else.
    pub(super) fn hand_out(
        self,
        choice: Choice<'_>,
        calls: &mut Calls,
        sink: &mut dyn Sink,
    ) -> Result<Option<Plain<'a>>, Error> {
        let plain = self.plain(&choice);
        if let Some(parts) = self.parts {
            content_parts(parts, choice.index, sink)?;
        }
        let mut pieces = Vec::new();
        self.push_said(&choice, &mut pieces);
        self.push_calls(choice.index, calls, &mut pieces)?;
        for (key, json) in &self.extra {
            pieces.push(match &**key {
                EXTRA_CONTENT => state(StateOf::Extra(None), json),
                key => Piece::Other { key, json },
            });
        }
        pieces.extend(choice.finish.map(Piece::Finish));
        match *pieces {
            [Piece::Text(text)] if !text.is_empty() => sink.text(choice.index, text),
            _ => sink.pieces(choice.index, &pieces),
        }
        Ok(plain)
    }

    /// The texts and lists.
    fn push_said<'p>(&self, choice: &Choice<'p>, pieces: &mut Vec<Piece<'p>>)
    where
        'a: 'p,
    {
        // Where both spellings came, they say the same.
        let spelled = self.content_reasoning.filter(|text| !text.is_empty());
        let details = self.details.map(|items| match choice.takes_details {
            true => state(StateOf::Details, items),
            false => Piece::Details(items),
        });
        let said = [
            self.content.map(Piece::Text),
            spelled.or(self.reasoning).map(Piece::Reasoning),
            self.refusal.map(Piece::Refusal),
            details,
            self.annotations.map(Citation::Said).map(Piece::Citation),
            self.images.map(Piece::Image),
            choice.logprobs.map(Piece::Logprobs),
        ];
        pieces.extend(said.into_iter().flatten());
    }

    fn push_calls<'p>(
        &self,
        choice: u32,
        calls: &mut Calls,
        pieces: &mut Vec<Piece<'p>>,
    ) -> Result<(), Error>
    where
        'a: 'p,
    {
        let mut has_calls = false;
        if let Some(list) = self.calls {
            Walker::over(list).array(|walk, _| {
                has_calls = true;
                ToolCall::read(walk)?.push(choice, calls, pieces);
                Ok::<(), Error>(())
            })?;
        }
        if let Some(only) = self.only_call.filter(|_| !has_calls) {
            let mut call = ToolCall {
                index: Some(0),
                ..ToolCall::default()
            };
            call.read_function(&mut Walker::over(only))?;
            call.push(choice, calls, pieces);
        }
        Ok(())
    }

    /// The one text of a message that holds nothing else.
    fn plain(&self, choice: &Choice<'_>) -> Option<Plain<'a>> {
        let lists = [self.parts, self.details, self.annotations, self.calls];
        let has_more = self.refusal.is_some()
            || choice.logprobs.is_some()
            || lists.iter().any(Option::is_some)
            || self.images.is_some()
            || self.only_call.is_some()
            || !self.extra.is_empty();
        let (member, text) = match (self.content, self.reasoning, self.content_reasoning) {
            _ if has_more => return None,
            (Some(text), None, None) => (TemplateMember::Content, text),
            (None, Some(text), None) | (None, None, Some(text)) => {
                (TemplateMember::Reasoning, text)
            }
            _ => return None,
        };
        let Str::Raw(text) = text else { return None };
        Some(Plain {
            index: choice.index,
            member,
            text,
        })
    }
}

/// State in the convention's own form.
fn state<'a>(of: StateOf<'a>, json: &'a str) -> Piece<'a> {
    Piece::State(StatePiece {
        of,
        dialect: Dialect::Chat,
        number: 0,
        data: Str::Plain(json),
    })
}

/// A piece of a call.
#[derive(Default)]
struct ToolCall<'a> {
    index: Option<u64>,
    id: Option<Str<'a>>,
    name: Option<Str<'a>>,
    arguments: Option<Str<'a>>,
    /// An object.
    extra_content: Option<&'a str>,
}

impl<'a> ToolCall<'a> {
    fn read(walk: &mut Walker<'a>) -> Result<Self, Error> {
        let mut call = Self::default();
        walk.object(|walk, key| {
            match &*key {
                "id" => call.id = text(walk)?,
                "index" => call.index = walk.skip()?.parse().ok(),
                EXTRA_CONTENT => {
                    call.extra_content = Some(walk.skip()?).filter(|json| json.starts_with('{'));
                }
                "function" if walk.peek()? == Type::Object => call.read_function(walk)?,
                _ => _ = walk.skip()?,
            }
            Ok::<(), Error>(())
        })?;
        Ok(call)
    }

    /// Reads the object that holds the name and the arguments.
    fn read_function(&mut self, walk: &mut Walker<'a>) -> Result<(), Error> {
        walk.object(|walk, key| {
            match &*key {
                "name" => self.name = text(walk)?,
                "arguments" => self.arguments = arguments(walk)?,
                _ => _ = walk.skip()?,
            }
            Ok(())
        })
    }

    fn push<'p>(self, choice: u32, calls: &mut Calls, pieces: &mut Vec<Piece<'p>>)
    where
        'a: 'p,
    {
        let has_name = self.name.is_some_and(|name| !name.is_empty());
        let key = calls.key(choice, self.id, self.index, has_name);
        let (id, name) = (self.id, self.name);
        pieces.push(Piece::Call { key, id, name });
        let arguments = self.arguments.map(|json| Piece::Arguments { key, json });
        let extra = self.extra_content;
        let extra = extra.map(|json| state(StateOf::Extra(Some(key)), json));
        pieces.extend(arguments.into_iter().chain(extra));
    }
}
