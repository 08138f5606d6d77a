//! Messages and their blocks.

use std::borrow::Cow;

use super::Findings;
use super::top::text_or_blocks;
use crate::json::{Type, Walker};
use crate::models::chat::data_url;
use crate::models::check::deferred::Deferred;
use crate::models::check::media::picture_of_chat;
use crate::models::check::read::{OneOf, array, expect, object_of_set, one_of, required, string};
use crate::models::check::reject::{Reject, other};
use crate::models::dialects::Dialect;
use crate::models::request::{NativeNeed, note_kind};
use crate::models::search_loop::OWN_ID;

const ROLES: [&str; 3] = ["user", "assistant", "system"];

/// The maximum number of messages. Source: docs/hostile-input.md 28.
const MAX_MESSAGES: usize = 100_000;
/// The maximum number of blocks of all messages together. Each becomes a structure that is much larger than its shortest
/// text. Source: docs/hostile-input.md 28.
const MAX_BLOCKS: usize = 200_000;

/// `system`.
pub(super) fn system(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    text_or_blocks(walk, found, |walk, found, _| {
        block(walk, found, BlockPlace::System)
    })
}

/// `messages`.
pub(super) fn messages(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let count = array(walk, |walk, at| {
        found.place.clear();
        found.place.push(at);
        walk.peek()?;
        let start = walk.at();
        let states = found.states;
        message(walk, found)?;
        if found.states > states {
            found.special.push(start..walk.at());
        }
        Ok(())
    })?;
    found.messages = Some(count);
    if count > MAX_MESSAGES {
        return Err(Reject::rule(format!(
            "holds {count} messages; accepted are at most {MAX_MESSAGES}"
        )));
    }
    Ok(())
}

fn message(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let (mut role, mut held) = (None, None);
    object_of_set(walk, &["role", "content"], |walk, key| {
        match (key, role) {
            ("role", _) => role = Some(one_of(walk, &ROLES)?),
            (_, Some(role)) => {
                held = Some(Deferred::read(walk, |walk| content(walk, found, role))?)
            }
            _ => held = Some(Deferred::keep(walk)?),
        }
        Ok(())
    })?;
    let role = required(role, "role", OneOf(&ROLES))?;
    let held = required(held, "content", "a string or an array of blocks")?;
    if role != "system" && !found.has_turn {
        found.has_turn = true;
        found.needs.assistant_first = role == "assistant";
    }
    held.finish(|walk| content(walk, found, role))
        .map_err(|reject| reject.within("content"))
}

/// The content of a message of this role.
fn content(walk: &mut Walker<'_>, found: &mut Findings, role: &str) -> Result<(), Reject> {
    let place = match role {
        "assistant" => BlockPlace::Assistant,
        "system" => BlockPlace::System,
        _ => BlockPlace::User,
    };
    text_or_blocks(walk, found, |walk, found, at| {
        found.place.truncate(1);
        found.place.push(at);
        block(walk, found, place)
    })
}

/// Where a block stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum BlockPlace {
    System,
    User,
    Assistant,
    Result,
}

/// What a block holds: JSON, but for what is read in place.
#[derive(Default)]
struct BlockMembers<'a> {
    kind: Option<Cow<'a, str>>,
    text: Option<&'a str>,
    source: Option<Deferred<'a>>,
    content: Option<Deferred<'a>>,
    id: Option<&'a str>,
    name: Option<&'a str>,
    input: Option<&'a str>,
    tool_use_id: Option<&'a str>,
    thinking: Option<&'a str>,
    signature: Option<&'a str>,
    data: Option<&'a str>,
    citations: Option<&'a str>,
}

const BLOCK: [&str; 13] = [
    "type",
    "text",
    "source",
    "content",
    "id",
    "name",
    "input",
    "tool_use_id",
    "thinking",
    "signature",
    "data",
    "citations",
    "cache_control",
];

/// A block. Its members count once its type is known. Nearly all clients write the type first, so that what it holds is read in
/// place, once.
pub(super) fn block(
    walk: &mut Walker<'_>,
    found: &mut Findings,
    place: BlockPlace,
) -> Result<(), Reject> {
    found.items += 1;
    if found.items > MAX_BLOCKS {
        return Err(Reject::rule(format!(
            "is one of more than {MAX_BLOCKS} blocks of all messages"
        )));
    }
    let mut members = BlockMembers::default();
    object_of_set(walk, &BLOCK, |walk, key| {
        match key {
            "type" => members.kind = Some(string(walk)?.unescaped()),
            "cache_control" => {
                expect(walk, Type::Object, "an object or null")?;
                walk.skip()?;
                found.needs.cache_control = true;
            }
            "source" => {
                let read = members.kind.as_deref().and_then(|kind| media(kind, place));
                members.source = Some(match read {
                    Some(read) => Deferred::read(walk, |walk| source(walk, found, read))?,
                    None => Deferred::keep(walk)?,
                });
            }
            "content" => {
                let kind = members.kind.as_deref();
                let is_result = kind == Some("tool_result") && place == BlockPlace::User;
                members.content = Some(match is_result {
                    true => Deferred::read(walk, |walk| result(walk, found))?,
                    false => Deferred::keep(walk)?,
                });
            }
            _ => *members.slot(key) = Some(walk.skip()?),
        }
        Ok(())
    })?;
    let kind = required(members.kind.take(), "type", "the type of the block")?;
    typed(&kind, members, found, place)
}

impl<'a> BlockMembers<'a> {
    /// Returns the place of a member that is kept as JSON.
    fn slot(&mut self, key: &str) -> &mut Option<&'a str> {
        match key {
            "text" => &mut self.text,
            "id" => &mut self.id,
            "name" => &mut self.name,
            "input" => &mut self.input,
            "tool_use_id" => &mut self.tool_use_id,
            "thinking" => &mut self.thinking,
            "signature" => &mut self.signature,
            "citations" => &mut self.citations,
            _ => &mut self.data,
        }
    }
}

fn typed(
    kind: &str,
    members: BlockMembers<'_>,
    found: &mut Findings,
    place: BlockPlace,
) -> Result<(), Reject> {
    if let Some(read) = media(kind, place) {
        let held = required(members.source, "source", "an object")?;
        let held = held.finish(|walk| source(walk, found, read));
        return held.map_err(|reject| reject.within("source"));
    }
    match (kind, place) {
        ("text", _) => {
            // Citations of our making stay behind, and wires of the dialect look which those are.
            let may_cite = members.citations.is_some_and(|list| list.starts_with('['));
            found.states += usize::from(may_cite);
            found.text_bytes += text(members.text, "text")?;
            Ok(())
        }
        (_, BlockPlace::System) => native(kind, found),
        ("tool_result", BlockPlace::User) => {
            text(members.tool_use_id, "tool_use_id")?;
            let Some(held) = members.content else {
                return Ok(());
            };
            held.finish(|walk| result(walk, found))
                .map_err(|reject| reject.within("content"))
        }
        ("tool_use", BlockPlace::Assistant) => {
            text(members.id, "id")?;
            text(members.name, "name")?;
            let input = required(members.input, "input", "an object")?;
            found.text_bytes += input.len() as u64;
            let mut walk = Walker::over(input);
            expect(&mut walk, Type::Object, "an object").map_err(|it| it.within("input"))
        }
        ("thinking", BlockPlace::Assistant) => {
            text(members.thinking, "thinking")?;
            found.states += 1;
            text(members.signature, "signature").map(|_| ())
        }
        ("redacted_thinking", BlockPlace::Assistant) => {
            found.states += 1;
            text(members.data, "data").map(|_| ())
        }
        ("tool_reference" | "search_result", BlockPlace::Result)
        | ("search_result", BlockPlace::User) => {
            if let Some(Deferred::Json(content)) = members.content {
                found.text_bytes += content.len() as u64;
            }
            Ok(())
        }
        // What the vendor has run, which other providers do without, and what the gateway has run, which all do without.
        ("server_tool_use", BlockPlace::Assistant) => note_search(members.id, found),
        (kind, BlockPlace::Assistant) if kind.ends_with("_tool_result") => {
            note_search(members.tool_use_id, found)
        }
        _ => native(kind, found),
    }
}

/// Notes a block of a search that the gateway has run: no host takes it.
fn note_search(id: Option<&str>, found: &mut Findings) -> Result<(), Reject> {
    let is_own = id.is_some_and(|id| id.trim_start_matches('"').starts_with(OWN_ID));
    found.states += usize::from(is_own);
    Ok(())
}

/// Returns what reads the source of a block of this type; `None`: it has no source that counts.
fn media(kind: &str, place: BlockPlace) -> Option<ReadSource> {
    match (kind, place) {
        (_, BlockPlace::System) => None,
        ("image", _) => Some(image),
        ("document", _) => Some(document),
        _ => None,
    }
}

/// A block that only hosts of the dialect know.
fn native(kind: &str, found: &mut Findings) -> Result<(), Reject> {
    if kind.is_empty() || kind.len() > 128 || kind.chars().any(char::is_control) {
        let said = "is empty, longer than 128 bytes or holds control characters; accepted is the type of a block";
        return Err(Reject::rule(said).within("type"));
    }
    let need = || {
        let what = format!("blocks of type `{kind}`");
        NativeNeed::new(Dialect::Messages, "messages", what)
    };
    found.native.get_or_insert_with(need);
    Ok(())
}

/// The content of a result.
fn result(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    text_or_blocks(walk, found, |walk, found, at| {
        found.place.truncate(2);
        found.place.push(at);
        block(walk, found, BlockPlace::Result)
    })
}

/// What a source says.
#[derive(Default)]
struct Source<'a> {
    kind: Cow<'a, str>,
    media_type: Cow<'a, str>,
    data: Cow<'a, str>,
    url: Cow<'a, str>,
    file_id: Cow<'a, str>,
}

type ReadSource = fn(&Source<'_>, &mut Findings) -> Result<(), Reject>;

fn source(walk: &mut Walker<'_>, found: &mut Findings, read: ReadSource) -> Result<(), Reject> {
    let mut source = Source::default();
    let keys = ["type", "media_type", "data", "url", "file_id"];
    object_of_set(walk, &keys, |walk, key| {
        let text = string(walk)?.unescaped();
        match key {
            "type" => source.kind = text,
            "media_type" => source.media_type = text,
            "data" => source.data = text,
            "url" => source.url = text,
            _ => source.file_id = text,
        }
        Ok(())
    })?;
    if source.kind == "file" {
        let id = (!source.file_id.is_empty()).then_some(());
        required(id, "file_id", "the id of a file")?;
        found.needs.media.file_ids = true;
    }
    read(&source, found)
}

fn image(source: &Source<'_>, found: &mut Findings) -> Result<(), Reject> {
    found.needs.vision = true;
    found.images += 1;
    match &*source.kind {
        "base64" => {
            let url = data_url_of(source)?;
            found.media_bytes += source.data.len() as u64;
            picture_of_chat(&url).map_err(|reject| reject.within("data"))?;
            found.needs.media.note_image(&url, || "".into());
            Ok(())
        }
        "url" => {
            picture_of_chat(&source.url).map_err(|reject| reject.within("url"))?;
            let param = || place(&found.place).into();
            let remote = found.needs.media.note_image(&source.url, param);
            found.remote_images.extend(remote);
            Ok(())
        }
        "file" => Ok(()),
        kind => Err(unknown_source(kind, "`base64`, `url` or `file`")),
    }
}

fn document(source: &Source<'_>, found: &mut Findings) -> Result<(), Reject> {
    match &*source.kind {
        "base64" => {
            found.needs.documents = true;
            found.files += 1;
            found.media_bytes += source.data.len() as u64;
            let url = data_url_of(source)?;
            if let Some(media_type) = data_url::media_type(&url) {
                note_kind(&mut found.needs.media.files, &media_type);
            }
            Ok(())
        }
        // It reaches other models as a text.
        "text" => {
            found.text_bytes += source.data.len() as u64;
            Ok(())
        }
        "content" | "url" => native("document", found),
        "file" => {
            found.needs.documents = true;
            found.files += 1;
            Ok(())
        }
        kind => Err(unknown_source(
            kind,
            "`base64`, `text`, `content`, `url` or `file`",
        )),
    }
}

fn data_url_of(source: &Source<'_>) -> Result<String, Reject> {
    let is_there = |text: &str| (!text.is_empty()).then_some(());
    required(is_there(&source.media_type), "media_type", "a media type")?;
    required(is_there(&source.data), "data", "base64")?;
    Ok(["data:", &source.media_type, ";base64,", &source.data].concat())
}

/// Returns where the address of an image stands.
fn place(indexes: &[usize]) -> String {
    let mut place = "messages".to_owned();
    for (depth, index) in indexes.iter().enumerate() {
        let joint = if depth > 0 { ".content" } else { "" };
        place.push_str(&format!("{joint}.{index}"));
    }
    place + ".source.url"
}

fn unknown_source(kind: &str, accepted: &str) -> Reject {
    let shown: String = kind.chars().take(40).collect();
    Reject::rule(format!("is {shown:?}; accepted is {accepted}")).within("type")
}

/// Returns the length of a text of a block, in bytes with its escapes.
fn text(json: Option<&str>, key: &'static str) -> Result<u64, Reject> {
    let json = required(json, key, "a string")?;
    if json.starts_with('"') {
        return Ok(json.len().saturating_sub(2) as u64);
    }
    Err(other(&mut Walker::over(json), "a string").within(key))
}
