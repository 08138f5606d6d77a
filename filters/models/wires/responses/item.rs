//! The parts of a reply: the response itself, its output items, and their parts. All of them borrow from the text.

use crate::json::{Error, Str, Type, Walker};
use crate::models::wires::scan::{arguments, seconds, text};

/// A response: the body of a whole reply, or what some events hold. Lists and objects are JSON texts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Response<'a> {
    pub(super) status: Option<Str<'a>>,
    pub(super) created: Option<u64>,
    pub(super) error: Option<&'a str>,
    /// Why it is incomplete.
    pub(super) reason: Option<Str<'a>>,
    pub(super) output: Option<&'a str>,
    pub(super) usage: Option<&'a str>,
    pub(super) service_tier: Option<&'a str>,
    pub(super) tool_usage: Option<&'a str>,
}

impl<'a> Response<'a> {
    /// Reads the next value.
    pub(super) fn read(walk: &mut Walker<'a>) -> Result<Self, Error> {
        let mut read = Self::default();
        members(walk, |walk, key| {
            match key {
                "status" => read.status = text(walk)?,
                "created_at" => read.created = seconds(walk)?,
                "error" => read.error = some(walk)?,
                "incomplete_details" => members(walk, |walk, key| {
                    match key {
                        "reason" => read.reason = text(walk)?,
                        _ => _ = walk.skip()?,
                    }
                    Ok(())
                })?,
                "output" if walk.peek()? == Type::Array => read.output = some(walk)?,
                "usage" => read.usage = some(walk)?,
                "tool_usage" => read.tool_usage = some(walk)?,
                "service_tier" if walk.peek()? == Type::String => read.service_tier = some(walk)?,
                _ => _ = walk.skip()?,
            }
            Ok(())
        })?;
        Ok(read)
    }
}

/// What an output item is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum ItemKind {
    Message,
    Reasoning,
    Call,
    Image,
    /// A look at the web: a search, or a page that it found.
    Search,
    /// Run by the provider, or unknown: nothing for the client.
    #[default]
    Other,
}

/// An output item, as far as it is read. Lists are JSON texts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Item<'a> {
    pub(super) kind: ItemKind,
    pub(super) json: &'a str,
    /// It is a call of a tool that stands in a namespace.
    pub(super) has_namespace: bool,
    pub(super) id: Option<Str<'a>>,
    pub(super) call_id: Option<Str<'a>>,
    pub(super) name: Option<Str<'a>>,
    pub(super) arguments: Option<Str<'a>>,
    pub(super) phase: Option<Str<'a>>,
    /// A limit or a filter has cut it off.
    pub(super) is_cut: bool,
    pub(super) content: Option<&'a str>,
    pub(super) summary: Option<&'a str>,
    pub(super) encrypted_content: Option<Str<'a>>,
    /// An image as base64.
    pub(super) result: Option<Str<'a>>,
    pub(super) output_format: Option<Str<'a>>,
    /// What a look at the web does.
    pub(super) action: Option<Str<'a>>,
}

impl<'a> Item<'a> {
    /// Reads an item.
    pub(super) fn read(json: &'a str) -> Result<Self, Error> {
        let mut read = Self {
            json,
            ..Self::default()
        };
        members(&mut Walker::over(json), |walk, key| {
            match key {
                "type" => {
                    let kind = text(walk)?.map(Str::unescaped);
                    read.kind = match kind.as_deref() {
                        Some("message") => ItemKind::Message,
                        Some("reasoning") => ItemKind::Reasoning,
                        Some("function_call") => ItemKind::Call,
                        Some("image_generation_call") => ItemKind::Image,
                        Some("web_search_call") => ItemKind::Search,
                        _ => ItemKind::Other,
                    };
                }
                "id" => read.id = text(walk)?,
                "call_id" => read.call_id = text(walk)?,
                "name" => read.name = text(walk)?,
                "arguments" => read.arguments = arguments(walk)?,
                "phase" => read.phase = text(walk)?,
                "namespace" => {
                    read.has_namespace = walk.peek()? == Type::String && text(walk)?.is_some()
                }
                "status" => {
                    let status = text(walk)?.map(Str::unescaped);
                    read.is_cut = status.as_deref() == Some("incomplete");
                }
                "content" if walk.peek()? == Type::Array => read.content = some(walk)?,
                "summary" if walk.peek()? == Type::Array => read.summary = some(walk)?,
                "action" => members(walk, |walk, key| {
                    match key {
                        "type" => read.action = text(walk)?,
                        _ => _ = walk.skip()?,
                    }
                    Ok(())
                })?,
                "encrypted_content" => read.encrypted_content = text(walk)?,
                "result" => read.result = text(walk)?,
                "output_format" => read.output_format = text(walk)?,
                _ => _ = walk.skip()?,
            }
            Ok(())
        })?;
        Ok(read)
    }

    /// Returns whether the item is a search that is billed. Looks at pages that a search found are not.
    pub(super) fn is_search(&self) -> bool {
        let action = self.action.map(Str::unescaped);
        self.kind == ItemKind::Search
            && !matches!(action.as_deref(), Some("open_page" | "find_in_page"))
    }
}

/// A part of a message or of its reasoning.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ItemPart<'a> {
    pub(super) text: Option<Str<'a>>,
    pub(super) refusal: Option<Str<'a>>,
    pub(super) annotations: Option<&'a str>,
}

impl<'a> ItemPart<'a> {
    /// Reads the parts of a list; `take` gets the index of each.
    pub(super) fn each(
        list: Option<&'a str>,
        mut take: impl FnMut(u64, Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Some(list) = list else { return Ok(()) };
        Walker::over(list).array(|walk, index| {
            let mut read = Self::default();
            members(walk, |walk, key| {
                match key {
                    "text" => read.text = text(walk)?,
                    "refusal" => read.refusal = text(walk)?,
                    "annotations" if walk.peek()? == Type::Array => read.annotations = some(walk)?,
                    _ => _ = walk.skip()?,
                }
                Ok(())
            })?;
            take(index as u64, read)
        })
    }
}

/// Walks an object; anything else is skipped.
pub(super) fn members<'a>(
    walk: &mut Walker<'a>,
    mut member: impl FnMut(&mut Walker<'a>, &str) -> Result<(), Error>,
) -> Result<(), Error> {
    if walk.peek()? != Type::Object {
        return walk.skip().map(|_| ());
    }
    walk.object(|walk, key| member(walk, &key))
}

/// The text of the next value, unless it is null.
pub(super) fn some<'a>(walk: &mut Walker<'a>) -> Result<Option<&'a str>, Error> {
    let value = walk.skip()?;
    Ok((value != "null").then_some(value))
}
