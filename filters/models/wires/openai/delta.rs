//! What a choice says: the members of its `message` or `delta`.

use std::borrow::Cow;

use super::calls::Calls;
use super::parts::content_parts;
use super::template::{Plain, TemplateMember};
use crate::json::{Error, Str, Type, Walker};
use crate::models::chat::delta::{Delta, Finish, ToolDelta};
use crate::models::reply::Sink;
use crate::models::wires::opaque::tag;
use crate::models::wires::scan::{arguments, inside, list, text};

/// The members of `message` or `delta`.
#[derive(Default)]
pub(super) struct Message<'a> {
    /// The texts and lists.
    delta: Delta<'a>,
    content_reasoning: Option<Str<'a>>,
    /// `content`, where it is a list of parts.
    parts: Option<&'a str>,
    /// `reasoning_details`, with its brackets.
    pub(super) details: Option<&'a str>,
    /// `tool_calls`, whose keys depend on the choice's index.
    calls: Option<&'a str>,
    /// `function_call`, the old form of the only call.
    only_call: Option<&'a str>,
    extra: Vec<(Cow<'a, str>, &'a str)>,
}

/// The provider's own state, as it goes out.
#[derive(Clone, Copy)]
pub(super) struct Tags<'t> {
    pub(super) origin: &'t str,
    /// The tagged `reasoning_details`; empty: none.
    pub(super) details: &'t str,
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
        let delta = &mut self.delta;
        match &*key {
            "role" => _ = walk.skip()?,
            "content" if walk.peek()? == Type::Array => self.parts = Some(walk.skip()?),
            "content" => delta.content = text(walk)?,
            "reasoning_content" => self.content_reasoning = text(walk)?,
            "reasoning" => delta.reasoning = text(walk)?,
            "refusal" => delta.refusal = text(walk)?,
            "reasoning_details" if walk.peek()? == Type::Array => {
                let items = walk.skip()?;
                self.details = Some(items);
                delta.reasoning_details = Some(inside(items));
            }
            "annotations" => delta.annotations = list(walk)?,
            "images" if walk.peek()? == Type::Array => {
                let items = walk.skip()?;
                Walker::over(items).array(|walk, _| {
                    delta.image_count += 1;
                    walk.skip().map(|_| ())
                })?;
                delta.images = Some(inside(items));
            }
            "tool_calls" if walk.peek()? == Type::Array => self.calls = Some(walk.skip()?),
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

    /// Hands the members to `sink` with those of the choice, in `end`, and state with its tags. Returns the text where there
    /// is nothing else.
    pub(super) fn hand_out(
        self,
        end: Delta<'a>,
        tags: Tags<'_>,
        finish: Option<Finish>,
        calls: &mut Calls,
        sink: &mut dyn Sink,
    ) -> Result<Option<Plain<'a>>, Error> {
        let mut tools: Vec<ToolDelta<'_>> = Vec::new();
        if let Some(list) = self.calls {
            Walker::over(list).array(|walk, _| {
                tools.push(tool(walk, end.index, calls)?);
                Ok::<(), Error>(())
            })?;
        }
        if let Some(call) = self.only_call.filter(|_| tools.is_empty()) {
            let mut delta = ToolDelta::default();
            called(&mut Walker::over(call), &mut delta)?;
            tools.push(keyed(delta, end.index, Some(0), calls));
        }
        let signed = sign(&tools, tags.origin);
        for (tool, signed) in tools.iter_mut().zip(&signed) {
            tool.extra_content = signed.as_deref();
        }
        let mut delta = Delta {
            index: end.index,
            logprobs: end.logprobs,
            ..self.delta
        };
        let plain = plain(&delta, self.content_reasoning, &tools, &self.extra)
            .filter(|_| self.parts.is_none());
        // Where both spellings came, they say the same.
        delta.reasoning = self
            .content_reasoning
            .filter(|text| !text.is_empty())
            .or(delta.reasoning);
        if let Some(parts) = self.parts {
            content_parts(parts, delta.index, sink)?;
        }
        let extra = self.extra.iter().filter_map(|(key, value)| {
            let value = match &**key {
                EXTRA_CONTENT => Cow::Owned(tag(value, tags.origin)?),
                _ => Cow::Borrowed(*value),
            };
            Some((&**key, value))
        });
        let extra: Vec<(&str, Cow<'_, str>)> = extra.collect();
        let extra: Vec<(&str, &str)> = extra.iter().map(|(key, value)| (*key, &**value)).collect();
        let details = Some(tags.details).filter(|details| !details.is_empty());
        sink.delta(&Delta {
            reasoning_details: details.or(delta.reasoning_details),
            tools: &tools,
            extra: &extra,
            finish,
            ..delta
        });
        Ok(plain)
    }
}

/// Returns the state beside each call, tagged; nothing if there is none.
fn sign(tools: &[ToolDelta<'_>], origin: &str) -> Vec<Option<String>> {
    if tools.iter().all(|tool| tool.extra_content.is_none()) {
        return Vec::new();
    }
    let tagged = |tool: &ToolDelta<'_>| tag(tool.extra_content?, origin);
    tools.iter().map(tagged).collect()
}

/// The one text of a delta that holds nothing else.
fn plain<'a>(
    delta: &Delta<'a>,
    content_reasoning: Option<Str<'a>>,
    tools: &[ToolDelta<'_>],
    extra: &[(Cow<'_, str>, &str)],
) -> Option<Plain<'a>> {
    let lists = [delta.reasoning_details, delta.annotations, delta.images];
    let has_more = delta.refusal.is_some()
        || delta.logprobs.is_some()
        || lists.iter().any(Option::is_some)
        || !tools.is_empty()
        || !extra.is_empty();
    let (member, text) = match (delta.content, delta.reasoning, content_reasoning) {
        _ if has_more => return None,
        (Some(text), None, None) => (TemplateMember::Content, text),
        (None, Some(text), None) | (None, None, Some(text)) => (TemplateMember::Reasoning, text),
        _ => return None,
    };
    match text {
        Str::Raw(text) => Some(Plain {
            index: delta.index,
            member,
            text,
        }),
        Str::Plain(_) => None,
    }
}

fn tool<'a>(walk: &mut Walker<'a>, choice: u32, calls: &mut Calls) -> Result<ToolDelta<'a>, Error> {
    let mut delta = ToolDelta::default();
    let mut index = None;
    walk.object(|walk, key| {
        match &*key {
            "id" => delta.id = text(walk)?,
            "index" => index = walk.skip()?.parse().ok(),
            EXTRA_CONTENT => {
                delta.extra_content = Some(walk.skip()?).filter(|v| v.starts_with('{'))
            }
            "function" if walk.peek()? == Type::Object => called(walk, &mut delta)?,
            _ => _ = walk.skip()?,
        }
        Ok::<(), Error>(())
    })?;
    Ok(keyed(delta, choice, index, calls))
}

/// Reads the object that holds a call's name and arguments.
fn called<'a>(walk: &mut Walker<'a>, delta: &mut ToolDelta<'a>) -> Result<(), Error> {
    walk.object(|walk, key| {
        match &*key {
            "name" => delta.name = text(walk)?,
            "arguments" => delta.arguments = arguments(walk)?,
            _ => _ = walk.skip()?,
        }
        Ok(())
    })
}

/// Finds the call that a piece belongs to.
fn keyed<'a>(
    delta: ToolDelta<'a>,
    choice: u32,
    index: Option<u64>,
    calls: &mut Calls,
) -> ToolDelta<'a> {
    let has_name = delta.name.is_some_and(|name| !name.is_empty());
    let key = calls.key(choice, delta.id, index, has_name);
    ToolDelta { key, ..delta }
}
