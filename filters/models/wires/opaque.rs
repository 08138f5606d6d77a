//! State that only its provider can read, on its way through the client and back.
//!
//! The front of chats writes it into items of `reasoning_details`, or of `vendor_native_blocks` where it is a block of its
//! own, with its origin: `provider/model`. A wire of another convention gets back those of its format and origin alone
//! ([`made_by`]). Items that a provider of the chat convention made go back to it without their origin ([`write_untagged`]),
//! and so does what such a provider put beside a call or a message as `extra_content` ([`untag`]). Blocks
//! ([`NativeBlock`]) remember their format and place too, and go back to every model of their provider; one that names
//! neither format nor origin goes to whoever knows its type. Everything else is stripped. Source: docs/decisions.md 4.
//!
//! A provider refuses its own state too, once another of its accounts has made it or a key was changed: [`is_refused`].

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::{Error, Str, Type, Walker};
use crate::models::chat::tree::ChatMessage;

/// The member that names what made an item.
const ORIGIN: &str = "origin";
/// The member that names the format of a block.
const FORMAT: &str = "format";
/// The member that has the number of a block among the blocks of its turn.
const BLOCK_INDEX: &str = "block_index";
/// The member that has the number of characters of the answer's text before a block.
const TEXT_OFFSET: &str = "text_offset";

/// A block of an earlier turn that only its provider can read. Source: docs/model-gateway.md 2.2.
#[derive(Debug)]
pub(super) struct NativeBlock {
    /// Its place among the blocks.
    pub(super) index: u64,
    /// The characters of text before it.
    pub(super) offset: u64,
    /// The block as the provider said it.
    pub(super) block: Box<RawValue>,
}

impl NativeBlock {
    /// Returns the blocks of a turn of this format, of any model of the origin's provider, and those that name no maker, in
    /// their order; none without an origin. The wire takes those whose type it knows.
    pub(super) fn of_turn(
        message: &ChatMessage<'_>,
        format: &str,
        origin: Option<&str>,
    ) -> Vec<Self> {
        let Some(origin) = origin else {
            return Vec::new();
        };
        let made_by = (format, provider_of(origin));
        let items = message.vendor_native_blocks.iter().flatten();
        let mut blocks: Vec<Self> = items
            .filter_map(|raw| Self::read(raw.get(), made_by).ok().flatten())
            .collect();
        blocks.sort_by_key(|block| (block.offset, block.index));
        blocks
    }

    /// Reads an item; `None`: it names another provider or format.
    fn read(item: &str, made_by: (&str, &str)) -> Result<Option<Self>, Error> {
        let (mut format, mut origin) = (None, None);
        let (mut index, mut offset) = (0, 0);
        let mut own = Vec::new();
        let mut walk = Walker::over(item);
        walk.object(|walk, key| {
            match &*key {
                FORMAT => format = Some(text(walk)?),
                ORIGIN => origin = Some(text(walk)?),
                BLOCK_INDEX => index = walk.skip()?.parse().unwrap_or(0),
                TEXT_OFFSET => offset = walk.skip()?.parse().unwrap_or(0),
                key => write_member(key, walk.skip()?, &mut own),
            }
            Ok::<(), Error>(())
        })?;
        let is_theirs = format.is_none_or(|format| format == made_by.0)
            && origin.is_none_or(|origin| provider_of(&origin) == made_by.1);
        if !is_theirs {
            return Ok(None);
        }
        own.pop();
        let own = String::from_utf8(own).unwrap_or_default();
        let block = RawValue::from_string(format!("{{{own}}}")).ok();
        Ok(block.map(|block| Self {
            index,
            offset,
            block,
        }))
    }
}

/// Returns the provider of an origin.
fn provider_of(origin: &str) -> &str {
    origin
        .split_once('/')
        .map_or(origin, |(provider, _)| provider)
}

/// Returns the items of a turn of this origin and format; none without an origin.
pub(super) fn made_by<'a>(
    message: &'a ChatMessage<'a>,
    format: &str,
    origin: Option<&str>,
) -> impl Iterator<Item = &'a RawValue> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Tag<'t> {
        #[serde(borrow)]
        format: Cow<'t, str>,
        #[serde(borrow)]
        model: Cow<'t, str>,
    }
    let is_theirs = move |raw: &&RawValue| {
        let tag: Tag<'_> = serde_json::from_str(raw.get()).unwrap_or_default();
        tag.format == format && Some(&*tag.model) == origin
    };
    let items = message.reasoning_details.iter().flatten().copied();
    items.filter(is_theirs)
}

/// Writes those of the items inside a JSON array that are of this origin, without it.
pub(super) fn write_untagged(items: &str, origin: &str, out: &mut Vec<u8>) -> Result<(), Error> {
    let is_theirs = |(key, value): &(Cow<'_, str>, &str)| {
        let name = || serde_json::from_str::<String>(value);
        *key == ORIGIN && name().is_ok_and(|name| name == origin)
    };
    each_object(items, out, |members, out| {
        if members.iter().any(is_theirs) {
            for (key, value) in members.iter().filter(|(key, _)| *key != ORIGIN) {
                write_member(key, value, out);
            }
        }
    })
}

/// Returns an `extra_content` of those objects alone that are of this origin, without it; `None`: none is.
pub(super) fn untag(extra: &str, origin: &str) -> Option<String> {
    each_vendor(extra, |object, out| write_untagged(object, origin, out))
}

/// Writes each object inside an object anew. `None`: nothing of them is left.
fn each_vendor(
    extra: &str,
    write: impl Fn(&str, &mut Vec<u8>) -> Result<(), Error>,
) -> Option<String> {
    let mut out = vec![b'{'];
    let mut walk = Walker::over(extra);
    let walked = walk.object(|walk, vendor| {
        let mut object = Vec::new();
        write(&format!("[{}]", walk.skip()?), &mut object)?;
        if !object.is_empty() {
            write_member(&vendor, &String::from_utf8_lossy(&object), &mut out);
        }
        Ok::<(), Error>(())
    });
    walked.ok()?;
    *out.last_mut().filter(|last| **last == b',')? = b'}';
    String::from_utf8(out).ok()
}

/// Codes of refused state.
const REFUSED_CODES: [&str; 2] = ["invalid_encrypted_content", "invalid_thinking_signature"];

/// Words of refused state, in lower case. Source: docs/facts/wire-formats.md 7.4.
const REFUSED_WORDS: [&str; 8] = [
    "signature` in `thinking`",
    "data` in `redacted_thinking`",
    "`redacted_thinking` blocks in the latest assistant message cannot be modified",
    "thought signature is not valid",
    "invalid thought signature",
    "corrupted thought signature",
    "encrypted content could not be",
    "bound to a different conversation",
];

/// Returns whether a refusal is about the state that went back.
pub(super) fn is_refused(code: Option<&str>, message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    code.is_some_and(|code| REFUSED_CODES.contains(&code))
        || REFUSED_WORDS.iter().any(|words| message.contains(words))
}

/// Returns whether a request may hold state.
pub fn may_be_in(body: &[u8]) -> bool {
    let has = |name: &str| memchr::memmem::find(body, name.as_bytes()).is_some();
    has("reasoning_details") || has("vendor_native_blocks") || has("thought_signature")
}

/// Walks the objects of a list. `write` writes the members that stay, each with a comma behind it; an object of which
/// none stays is left out.
fn each_object<'a>(
    items: &'a str,
    out: &mut Vec<u8>,
    write: impl Fn(&[(Cow<'a, str>, &'a str)], &mut Vec<u8>),
) -> Result<(), Error> {
    let mut walk = Walker::over(items);
    walk.array(|walk, _| {
        let mut members = Vec::new();
        if walk.peek()? != Type::Object {
            return walk.skip().map(|_| ());
        }
        walk.object(|walk, key| {
            members.push((key, walk.skip()?));
            Ok::<(), Error>(())
        })?;
        let start = out.len();
        if start > 0 {
            out.push(b',');
        }
        out.push(b'{');
        let inside = out.len();
        write(&members, out);
        if out.len() == inside {
            out.truncate(start);
        } else if let Some(last) = out.last_mut() {
            *last = b'}';
        }
        Ok(())
    })
}

fn text(walk: &mut Walker<'_>) -> Result<String, Error> {
    Ok(serde_json::from_str(walk.skip()?).unwrap_or_default())
}

fn write_member(key: &str, value: &str, out: &mut Vec<u8>) {
    write_key(key, out);
    out.extend_from_slice(value.as_bytes());
    out.push(b',');
}

fn write_key(key: &str, out: &mut Vec<u8>) {
    Str::Plain(key).write(out);
    out.push(b':');
}

#[cfg(test)]
#[path = "opaque_tests.rs"]
mod tests;
