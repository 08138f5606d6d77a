//! One message of the history. Source: docs/model-gateway.md 2.2.

use super::carried::{Carried, beside};
use super::part::{content, image};
use super::{each, members, offset, text, value};
use crate::json::{Error, Type, Walker};
use crate::models::chat::conversation::{Block, BlockKind, CacheMarks, MediaKind, Role, Turn};
use crate::models::chat::text::Text;

/// A message, as far as other dialects have words for it.
#[derive(Debug, Default)]
pub(super) struct Message<'a> {
    pub(super) at: u32,
    pub(super) content: Vec<Block<'a>>,
    /// The content is one text, not parts.
    pub(super) is_text: bool,
    pub(super) refusal: Option<Block<'a>>,
    pub(super) name: Option<Text<'a>>,
    pub(super) phase: Option<Text<'a>>,
    pub(super) calls: Vec<Block<'a>>,
    pub(super) images: Vec<Block<'a>>,
    /// State and blocks that stood within the answer. Most messages have none, so it is boxed.
    pub(super) carried: Option<Box<Carried<'a>>>,
    /// The content came behind the calls.
    pub(super) is_after_calls: bool,
    /// Several messages of one turn, in place of the content.
    pub(super) items: Vec<MessageItem<'a>>,
    call: Option<Text<'a>>,
    cache: CacheMarks<'a>,
}

/// One of several messages of a turn.
#[derive(Debug)]
pub(super) struct MessageItem<'a> {
    pub(super) block: Block<'a>,
    pub(super) phase: Option<Text<'a>>,
    /// The number of calls before it: a whole number, which some clients write as `1.0`.
    pub(super) preceding_calls: f64,
}

/// Reads a message.
pub(super) fn read<'a>(walk: &mut Walker<'a>) -> Result<Turn<'a>, Error> {
    let mut message = Message {
        at: offset(walk)?,
        ..Message::default()
    };
    let mut role = None;
    members(walk, |walk, key| {
        match key {
            "role" => role = text(walk)?,
            "content" => {
                message.is_text = walk.peek()? == Type::String;
                message.content = content(walk)?;
            }
            "name" => message.name = text(walk)?,
            "tool_call_id" => message.call = text(walk)?.filter(|id| !id.is_empty()),
            "tool_calls" => each(walk, |walk| {
                message.calls.extend(call(walk)?);
                Ok(())
            })?,
            "tool_result_cache_control" => message.cache.control = value(walk)?,
            _ => said_member(walk, key, &mut message)?,
        }
        Ok(())
    })?;
    let role = role.unwrap_or_default();
    if &*role != "assistant" {
        // State is the model's.
        let content = message.content.iter_mut();
        content.for_each(|block| block.states.clear());
    }
    Ok(match &*role {
        "assistant" => message.into_turn(),
        "tool" | "function" => {
            let kind = BlockKind::Result {
                call: message.call.take(),
                content: std::mem::take(&mut message.content),
                is_error: false,
            };
            message.content = vec![Block {
                marks: message.cache,
                ..Block::new(kind, message.at)
            }];
            message.given(Role::User)
        }
        "system" => message.given(Role::System),
        "developer" => message.given(Role::Developer),
        _ => message.given(Role::User),
    })
}

/// Reads a member that only the assistant's messages have, and few of them. It is out of line to keep the code of all messages small.
#[inline(never)]
fn said_member<'a>(
    walk: &mut Walker<'a>,
    key: &str,
    message: &mut Message<'a>,
) -> Result<(), Error> {
    let at = offset(walk)?;
    match key {
        "refusal" => {
            let refusal = text(walk)?.map(|text| BlockKind::Refusal(text.into()));
            message.refusal = refusal.map(|refusal| Block::new(refusal, at));
        }
        "phase" => message.phase = text(walk)?,
        "content_before_tool_calls" => message.is_after_calls = walk.skip()? == "false",
        "images" => each(walk, |walk| {
            let at = offset(walk)?;
            members(walk, |walk, key| {
                let json = walk.skip()?;
                let image = image(json, MediaKind::Drawn).filter(|_| key == "image_url");
                let image = image.map(|image| Block::new(image, at));
                message.images.extend(image);
                Ok(())
            })
        })?,
        "message_items" => each(walk, |walk| {
            message.items.extend(item(walk)?);
            Ok(())
        })?,
        "reasoning_details" => each(walk, |walk| {
            let at = offset(walk)?;
            message
                .carried
                .get_or_insert_default()
                .add(walk.skip()?, at);
            Ok(())
        })?,
        "vendor_native_blocks" => each(walk, |walk| {
            let at = offset(walk)?;
            let carried = message.carried.get_or_insert_default();
            carried.add_native(walk.skip()?, at);
            Ok(())
        })?,
        _ => _ = walk.skip()?,
    }
    Ok(())
}

/// Reads a call; `None`: it has no id or no name.
fn call<'a>(walk: &mut Walker<'a>) -> Result<Option<Block<'a>>, Error> {
    let at = offset(walk)?;
    let (mut call_id, mut called, mut arguments) = (None, None, None);
    let mut states = Vec::new();
    members(walk, |walk, key| {
        match key {
            "id" => call_id = text(walk)?,
            "function" => members(walk, |walk, key| {
                match key {
                    "name" => called = text(walk)?,
                    "arguments" => arguments = text(walk)?,
                    _ => _ = walk.skip()?,
                }
                Ok(())
            })?,
            "extra_content" => states = beside(walk)?,
            _ => _ = walk.skip()?,
        }
        Ok(())
    })?;
    Ok(call_id.zip(called).map(|(id, name)| {
        let input = arguments.unwrap_or_default();
        let kind = BlockKind::Call { id, name, input };
        Block {
            states,
            ..Block::new(kind, at)
        }
    }))
}

/// Reads a message of several; `None`: it has no text.
fn item<'a>(walk: &mut Walker<'a>) -> Result<Option<MessageItem<'a>>, Error> {
    let at = offset(walk)?;
    let (mut said, mut phase, mut preceding_calls) = (None, None, 0.0);
    members(walk, |walk, key| {
        match key {
            "text" => said = text(walk)?.map(|text| BlockKind::Text(text.into())),
            "phase" => phase = text(walk)?,
            // Without a number it stands right behind the item before it.
            "preceding_tool_calls" => preceding_calls = walk.skip()?.parse().unwrap_or(0.0),
            _ => _ = walk.skip()?,
        }
        Ok(())
    })?;
    Ok(said.map(|said| MessageItem {
        block: Block::new(said, at),
        phase,
        preceding_calls,
    }))
}
