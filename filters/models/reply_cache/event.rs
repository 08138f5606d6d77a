//! The pieces of a recorded reply, as bytes.
//!
//! Shape: one [`Event`] after the other in the format of `postcard`. Texts are insides of JSON strings.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::json::Str;
use crate::models::chat::delta::{Delta, Finish, ToolDelta};
use crate::models::reply::Sink;

/// One call of a sink.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum Event<'a> {
    /// [`Sink::text`].
    Text(u32, &'a str),
    /// [`Sink::delta`].
    #[serde(borrow)]
    Delta(StoredDelta<'a>),
    /// [`Sink::tool_done`].
    ToolDone(u32, u64),
    /// [`Sink::member`].
    Member(&'a str, &'a str),
    /// [`Sink::item`].
    Item(&'a str),
}

/// A [`Delta`].
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct StoredDelta<'a> {
    index: u32,
    content: Option<&'a str>,
    reasoning: Option<&'a str>,
    refusal: Option<&'a str>,
    reasoning_details: Option<&'a str>,
    native_blocks: Option<&'a str>,
    annotations: Option<&'a str>,
    images: Option<&'a str>,
    image_count: u64,
    #[serde(borrow)]
    tools: Vec<StoredTool<'a>>,
    logprobs: Option<&'a str>,
    extra: Vec<(&'a str, &'a str)>,
    finish: Option<StoredFinish>,
}

/// A [`ToolDelta`].
#[derive(Debug, Deserialize, Serialize)]
struct StoredTool<'a> {
    key: u64,
    id: Option<&'a str>,
    name: Option<&'a str>,
    arguments: Option<&'a str>,
    extra_content: Option<&'a str>,
}

/// A [`Finish`]; a filtered reply is not stored.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
enum StoredFinish {
    Stop,
    Length,
    ToolCalls,
}

impl<'a> Event<'a> {
    /// Takes the first event off `bytes`.
    pub(super) fn take(bytes: &mut &'a [u8]) -> Option<Self> {
        let (event, rest) = postcard::take_from_bytes(bytes).ok()?;
        *bytes = rest;
        Some(event)
    }

    /// Appends it to `out`; `None`: it cannot be written.
    pub(super) fn write(&self, out: &mut Vec<u8>) -> Option<()> {
        let written = postcard::to_extend(self, std::mem::take(out));
        *out = written.ok()?;
        Some(())
    }

    /// Makes the call.
    pub(super) fn put_into(&self, sink: &mut dyn Sink) {
        match self {
            Event::Text(index, text) => sink.text(*index, Str::Raw(text)),
            Event::Delta(delta) => delta.put_into(sink),
            Event::ToolDone(index, key) => sink.tool_done(*index, *key),
            Event::Member(key, value) => sink.member(key, value),
            Event::Item(item) => sink.item(item.as_bytes()),
        }
    }
}

/// Appends a delta to `out`; `None`: it cannot be written.
pub(super) fn write_delta(delta: &Delta<'_>, out: &mut Vec<u8>) -> Option<()> {
    let [content, reasoning, refusal] =
        [delta.content, delta.reasoning, delta.refusal].map(|text| text.map(inside));
    let tools: Vec<_> = delta
        .tools
        .iter()
        .map(|tool| [tool.id, tool.name, tool.arguments].map(|text| text.map(inside)))
        .collect();
    let tools = delta.tools.iter().zip(&tools);
    let stored = StoredDelta {
        index: delta.index,
        content: content.as_deref(),
        reasoning: reasoning.as_deref(),
        refusal: refusal.as_deref(),
        reasoning_details: delta.reasoning_details,
        native_blocks: delta.native_blocks,
        annotations: delta.annotations,
        images: delta.images,
        image_count: delta.image_count,
        tools: tools
            .map(|(tool, [id, name, arguments])| StoredTool {
                key: tool.key,
                id: id.as_deref(),
                name: name.as_deref(),
                arguments: arguments.as_deref(),
                extra_content: tool.extra_content,
            })
            .collect(),
        logprobs: delta.logprobs,
        extra: delta.extra.to_vec(),
        finish: match delta.finish {
            None => None,
            Some(Finish::Stop) => Some(StoredFinish::Stop),
            Some(Finish::Length) => Some(StoredFinish::Length),
            Some(Finish::ToolCalls) => Some(StoredFinish::ToolCalls),
            Some(Finish::ContentFilter) => return None,
        },
    };
    Event::Delta(stored).write(out)
}

impl StoredDelta<'_> {
    fn put_into(&self, sink: &mut dyn Sink) {
        let tools: Vec<ToolDelta<'_>> = self
            .tools
            .iter()
            .map(|tool| ToolDelta {
                key: tool.key,
                id: tool.id.map(Str::Raw),
                name: tool.name.map(Str::Raw),
                arguments: tool.arguments.map(Str::Raw),
                extra_content: tool.extra_content,
            })
            .collect();
        sink.delta(&Delta {
            index: self.index,
            content: self.content.map(Str::Raw),
            reasoning: self.reasoning.map(Str::Raw),
            refusal: self.refusal.map(Str::Raw),
            reasoning_details: self.reasoning_details,
            native_blocks: self.native_blocks,
            annotations: self.annotations,
            images: self.images,
            image_count: self.image_count,
            tools: &tools,
            logprobs: self.logprobs,
            extra: &self.extra,
            finish: self.finish.map(|finish| match finish {
                StoredFinish::Stop => Finish::Stop,
                StoredFinish::Length => Finish::Length,
                StoredFinish::ToolCalls => Finish::ToolCalls,
            }),
        });
    }
}

/// Returns a text as the inside of a JSON string.
pub(super) fn inside(text: Str<'_>) -> Cow<'_, str> {
    match text {
        Str::Raw(raw) => Cow::Borrowed(raw),
        Str::Plain(_) => {
            let mut escaped = Vec::with_capacity(text.len());
            text.write_contents(&mut escaped);
            // Escaping text makes text.
            Cow::Owned(String::from_utf8(escaped).unwrap_or_default())
        }
    }
}
