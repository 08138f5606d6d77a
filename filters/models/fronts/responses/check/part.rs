//! Parts of messages and of results.

use std::borrow::Cow;

use super::Findings;
use super::top::text_or_list;
use crate::json::{Type, Walker};
use crate::models::chat::data_url;
use crate::models::check::media::picture_of_chat;
use crate::models::check::read::{expect, object_of_set, one_of, required, string};
use crate::models::check::reject::{Reject, other};
use crate::models::parameter::Parameter;
use crate::models::request::note_kind;

/// The maximum number of parts of all items together. Each becomes a structure that is much larger than its shortest text.
/// Source: docs/hostile-input.md 28.
const MAX_PARTS: usize = 200_000;

const DETAILS: [&str; 4] = ["low", "high", "auto", "original"];
const AUDIO: [&str; 2] = ["wav", "mp3"];

const PART: [&str; 13] = [
    "type",
    "text",
    "refusal",
    "image_url",
    "detail",
    "file_id",
    "file_data",
    "file_url",
    "filename",
    "input_audio",
    "annotations",
    "prompt_cache_breakpoint",
    "data",
];

/// A text, or a list of parts, in the member `key` of an item.
pub(super) fn content(
    walk: &mut Walker<'_>,
    found: &mut Findings,
    key: &'static str,
) -> Result<(), Reject> {
    found.place.0 = key;
    text_or_list(
        walk,
        found,
        "a string or an array of parts",
        |walk, found, at| {
            found.place.2 = at;
            part(walk, found)
        },
    )
    .map(|_| ())
}

/// What a part holds, each a JSON text.
#[derive(Default)]
struct PartMembers<'a> {
    text: Option<&'a str>,
    refusal: Option<&'a str>,
    image_url: Option<&'a str>,
    file_id: Option<&'a str>,
    file_data: Option<&'a str>,
    file_url: Option<&'a str>,
    filename: Option<&'a str>,
    input_audio: Option<&'a str>,
    has_detail: bool,
}

/// Reads a part.
pub(super) fn part(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    found.parts += 1;
    if found.parts > MAX_PARTS {
        return Err(Reject::rule(format!(
            "is one of more than {MAX_PARTS} parts of all items"
        )));
    }
    let (mut kind, mut members) = (None, PartMembers::default());
    object_of_set(walk, &PART, |walk, key| {
        match key {
            "type" => kind = Some(string(walk)?.unescaped()),
            "detail" => members.has_detail = one_of(walk, &DETAILS)? != "auto",
            "prompt_cache_breakpoint" => {
                expect(walk, Type::Object, "an object or null")?;
                walk.skip()?;
                found.needs.cache_control = true;
                found.set.insert(Parameter::PromptCacheOptions);
            }
            "annotations" | "data" => _ = walk.skip()?,
            _ => *members.slot(key) = Some(walk.skip()?),
        }
        Ok(())
    })?;
    let kind = required(kind, "type", "the type of the part")?;
    typed(&kind, &members, found)
}

impl<'a> PartMembers<'a> {
    fn slot(&mut self, key: &str) -> &mut Option<&'a str> {
        match key {
            "text" => &mut self.text,
            "refusal" => &mut self.refusal,
            "image_url" => &mut self.image_url,
            "file_id" => &mut self.file_id,
            "file_data" => &mut self.file_data,
            "file_url" => &mut self.file_url,
            "filename" => &mut self.filename,
            _ => &mut self.input_audio,
        }
    }
}

fn typed(kind: &str, members: &PartMembers<'_>, found: &mut Findings) -> Result<(), Reject> {
    match kind {
        "input_text" | "output_text" | "text" | "summary_text" | "reasoning_text" => {
            found.text_bytes += text(members.text, "text")?.len() as u64;
            Ok(())
        }
        "refusal" => {
            found.text_bytes += text(members.refusal, "refusal")?.len() as u64;
            Ok(())
        }
        "input_image" => image(members, found),
        "input_file" => file(members, found),
        "input_audio" => {
            let sound = required(members.input_audio, "input_audio", "an object")?;
            audio(&mut Walker::over(sound), found).map_err(|it| it.within("input_audio"))
        }
        kind => native("parts", kind, found),
    }
}

/// Notes a part or an item that only hosts of the dialect know.
pub(super) fn native(what: &str, kind: &str, found: &mut Findings) -> Result<(), Reject> {
    if kind.is_empty() || kind.len() > 128 || kind.chars().any(char::is_control) {
        let said =
            "is empty, longer than 128 bytes or holds control characters; accepted is a type";
        return Err(Reject::rule(said).within("type"));
    }
    found.note_native("input", || format!("{what} of type `{kind}`"));
    Ok(())
}

/// Returns the inside of a text, in bytes with its escapes.
pub(super) fn text<'a>(json: Option<&'a str>, key: &'static str) -> Result<&'a str, Reject> {
    let json = required(json, key, "a string")?;
    let inside = json
        .strip_prefix('"')
        .and_then(|json| json.strip_suffix('"'));
    inside.ok_or_else(|| {
        let mut walk = Walker::over(json);
        other(&mut walk, "a string").within(key)
    })
}

fn unescaped<'a>(json: Option<&'a str>, key: &'static str) -> Result<Option<Cow<'a, str>>, Reject> {
    let Some(json) = json else { return Ok(None) };
    text(Some(json), key)?;
    let text = Walker::over(json).text()?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

fn image(members: &PartMembers<'_>, found: &mut Findings) -> Result<(), Reject> {
    found.needs.vision = true;
    found.images += 1;
    if members.has_detail {
        found.set.insert(Parameter::ImageDetail);
    }
    let url = unescaped(members.image_url, "image_url")?;
    let id = unescaped(members.file_id, "file_id")?;
    match (url, id) {
        (Some(url), _) => {
            picture_of_chat(&url).map_err(|it| it.within("image_url"))?;
            if url
                .get(..5)
                .is_some_and(|it| it.eq_ignore_ascii_case("data:"))
            {
                found.media_bytes += url.len() as u64;
            }
            let (key, item, part) = found.place;
            let param = || format!("input[{item}].{key}[{part}].image_url").into();
            let remote = found.needs.media.note_image(&url, param);
            found.remote_images.extend(remote);
            Ok(())
        }
        (None, Some(_)) => native("images", "input_image with `file_id`", found),
        (None, None) => {
            let accepted = "an https address or a data URL, or `file_id`";
            required(None, "image_url", accepted)
        }
    }
}

fn file(members: &PartMembers<'_>, found: &mut Findings) -> Result<(), Reject> {
    found.needs.documents = true;
    found.files += 1;
    let data = unescaped(members.file_data, "file_data")?;
    let id = unescaped(members.file_id, "file_id")?;
    let address = unescaped(members.file_url, "file_url")?;
    let is_named = unescaped(members.filename, "filename")?.is_some();
    if let Some(data) = data {
        found.media_bytes += data.len() as u64;
        let Some(media_type) = data_url::media_type(&data) else {
            let said = "is no base64 data URL; accepted is `data:` with the media type, `;base64,` and the bytes";
            return Err(Reject::rule(said).within("file_data"));
        };
        note_kind(&mut found.needs.media.files, &media_type);
        found.needs.media.unnamed_files |= !is_named;
        return Ok(());
    }
    if address.is_some() {
        return native("files", "input_file with `file_url`", found);
    }
    found.needs.media.file_ids = true;
    let accepted = "a base64 data URL, or `file_url` or `file_id`";
    required(id.map(|_| ()), "file_data", accepted)
}

fn audio(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let (mut has_data, mut format) = (false, None);
    object_of_set(walk, &["data", "format"], |walk, key| {
        if key == "data" {
            found.media_bytes += string(walk)?.len() as u64;
            has_data = true;
        } else {
            format = Some(one_of(walk, &AUDIO)?);
        }
        Ok(())
    })?;
    required(has_data.then_some(()), "data", "base64")?;
    let format = required(format, "format", "`wav` or `mp3`")?;
    found.sounds += 1;
    note_kind(&mut found.needs.audio, format);
    Ok(())
}
