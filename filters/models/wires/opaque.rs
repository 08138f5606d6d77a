//! State that only its provider can read, on its way through the client and back.
//!
//! The front of a chat hands it out with its maker, `provider/model`, and reads it back as state of a conversation's blocks. A
//! wire of another dialect takes what its target has made, and leaves out everything else ([`keep_own`]). What a provider of
//! the chat convention has made goes back to it without its origin: items of `reasoning_details` ([`write_untagged`]), and what
//! stands beside a call or a message as `extra_content` ([`untag`]). Source: docs/decisions.md 4.
//!
//! A provider refuses its own state too, once another of its accounts has made it or a key was changed: [`is_refused`].

use std::borrow::Cow;

use crate::json::{Error, Str, Type, Walker};
use crate::models::chat::conversation::{Conversation, Native, State};
use crate::models::dialects::Dialect;
use crate::models::dialects::chat::STATE_KEYS;
use crate::models::wires::wire::Target;

/// The member that names what made an item.
const ORIGIN: &str = "origin";

/// Leaves in a conversation the state and the blocks alone that a target has made and that it takes back: state of its own
/// model, blocks of its provider that `knows` returns true for. What names no maker goes to all that speak the dialect.
pub(super) fn keep_own(
    conversation: &mut Conversation<'_>,
    dialect: Dialect,
    target: &Target<'_>,
    knows: impl Fn(&Native<'_>) -> bool,
) {
    let origin = target.replayed_origin();
    let is_own = |state: &State<'_>| {
        let maker = state.maker.as_deref();
        let is_made = |origin| maker.is_none_or(|maker| maker == origin);
        state.dialect == dialect && origin.as_deref().is_some_and(is_made)
    };
    let is_native = |native: &Native<'_>| {
        let maker = native.maker.as_deref().map(provider_of);
        let is_made = |origin| maker.is_none_or(|maker| maker == provider_of(origin));
        native.dialect.is_none_or(|other| other == dialect)
            && origin.as_deref().is_some_and(is_made)
            && knows(native)
    };
    conversation.retain(is_own, is_native);
}

/// Returns the provider of an origin.
fn provider_of(origin: &str) -> &str {
    origin
        .split_once('/')
        .map_or(origin, |(provider, _)| provider)
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
    STATE_KEYS.into_iter().any(has)
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
