//! Messages and their blocks.

use std::borrow::Cow;

use super::Findings;
use super::top::text_or_blocks;
use crate::json::{Str, Type, Walker};
use crate::models::chat::data_url;
use crate::models::check::media::picture_of_chat;
use crate::models::check::read::{
    OneOf, array, expect, object, object_of_set, one_of, required, string,
};
use crate::models::check::reject::{Reject, other};
use crate::models::dialects::Dialect;
use crate::models::request::{NativeNeed, note_kind};
use crate::models::search_loop::OWN_ID;

const ROLES: [&str; 3] = ["user", "assistant", "system"];

/// The maximum number of messages. Source: docs/security.md 28.
const MAX_MESSAGES: usize = 100_000;
/// The maximum number of blocks of all messages together. Each becomes a structure that is much larger than its shortest
/// text. Source: docs/security.md 28.
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
        found.place = vec![at];
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
    let (mut role, mut content) = (None, None);
    object_of_set(walk, &["role", "content"], |walk, key| {
        match key {
            "role" => role = Some(one_of(walk, &ROLES)?),
            _ => content = Some(value(walk)?),
        }
        Ok(())
    })?;
    let role = required(role, "role", OneOf(&ROLES))?;
    let content = required(content, "content", "a string or an array of blocks")?;
    let place = match role {
        "assistant" => BlockPlace::Assistant,
        "system" => BlockPlace::System,
        _ => BlockPlace::User,
    };
    if role != "system" && !found.has_turn {
        found.has_turn = true;
        found.needs.assistant_first = role == "assistant";
    }
    let mut walk = Walker::over(content);
    let read = |walk: &mut Walker<'_>, found: &mut Findings, at| {
        found.place.truncate(1);
        found.place.push(at);
        block(walk, found, place)
    };
    text_or_blocks(&mut walk, found, read).map_err(|reject| reject.within("content"))
}

/// Where a block stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum BlockPlace {
    System,
    User,
    Assistant,
    Result,
}

/// What a block holds, as JSON.
#[derive(Default)]
struct BlockMembers<'a> {
    kind: Option<String>,
    text: Option<&'a str>,
    source: Option<&'a str>,
    content: Option<&'a str>,
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

/// A block. Its members count once its type is known.
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
    object(walk, &BLOCK, |walk, key| {
        if walk.null()? {
            return Ok(());
        }
        match key {
            "type" => members.kind = Some(string(walk)?.unescaped().into_owned()),
            "cache_control" => {
                expect(walk, Type::Object, "an object or null")?;
                walk.skip()?;
                found.needs.cache_control = true;
            }
            _ => {
                let slot = match key {
                    "text" => &mut members.text,
                    "source" => &mut members.source,
                    "content" => &mut members.content,
                    "id" => &mut members.id,
                    "name" => &mut members.name,
                    "input" => &mut members.input,
                    "tool_use_id" => &mut members.tool_use_id,
                    "thinking" => &mut members.thinking,
                    "signature" => &mut members.signature,
                    "citations" => &mut members.citations,
                    _ => &mut members.data,
                };
                *slot = Some(value(walk)?);
            }
        }
        Ok(())
    })?;
    let kind = required(members.kind.take(), "type", "the type of the block")?;
    typed(&kind, &members, found, place)
}

fn typed(
    kind: &str,
    members: &BlockMembers<'_>,
    found: &mut Findings,
    place: BlockPlace,
) -> Result<(), Reject> {
    match (kind, place) {
        ("text", _) => {
            // Citations of our making stay behind, and wires of the dialect look which those are.
            found.states +=
                usize::from(members.citations.is_some_and(|list| list.starts_with("[")));
            found.text_bytes += text(members.text, "text")?.len() as u64;
            Ok(())
        }
        (_, BlockPlace::System) => native(kind, found),
        ("image", _) => source(members.source, found, image),
        ("document", _) => source(members.source, found, document),
        ("tool_result", BlockPlace::User) => result(members, found),
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
            found.text_bytes += members.content.map_or(0, str::len) as u64;
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

fn result(members: &BlockMembers<'_>, found: &mut Findings) -> Result<(), Reject> {
    text(members.tool_use_id, "tool_use_id")?;
    let Some(content) = members.content else {
        return Ok(());
    };
    let mut walk = Walker::over(content);
    let read = text_or_blocks(&mut walk, found, |walk, found, at| {
        found.place.truncate(2);
        found.place.push(at);
        block(walk, found, BlockPlace::Result)
    });
    read.map_err(|reject| reject.within("content"))
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

fn source(json: Option<&str>, found: &mut Findings, read: ReadSource) -> Result<(), Reject> {
    let json = required(json, "source", "an object")?;
    let mut source = Source::default();
    let mut walk = Walker::over(json);
    let keys = ["type", "media_type", "data", "url", "file_id"];
    let walked = object_of_set(&mut walk, &keys, |walk, key| {
        let text = string(walk)?.unescaped();
        match key {
            "type" => source.kind = text,
            "media_type" => source.media_type = text,
            "data" => source.data = text,
            "url" => source.url = text,
            _ => source.file_id = text,
        }
        Ok(())
    });
    let checked = walked.and_then(|()| {
        if source.kind == "file" {
            let id = (!source.file_id.is_empty()).then_some(());
            required(id, "file_id", "the id of a file")?;
            found.needs.media.file_ids = true;
        }
        read(&source, found)
    });
    checked.map_err(|reject| reject.within("source"))
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

/// Returns a text of a block.
fn text<'a>(json: Option<&'a str>, key: &'static str) -> Result<Str<'a>, Reject> {
    let mut walk = Walker::over(required(json, key, "a string")?);
    match walk.peek()? {
        Type::String => Ok(walk.string()?),
        _ => Err(other(&mut walk, "a string").within(key)),
    }
}

/// Returns the next value as JSON.
fn value<'a>(walk: &mut Walker<'a>) -> Result<&'a str, Reject> {
    Ok(walk.skip()?)
}
