//! Parts of contents and of the responses of functions.

use super::Findings;
use crate::json::{Type, Walker};
use crate::models::chat::data_url;
use crate::models::check::media::picture_of_chat;
use crate::models::check::read::{array, boolean, expect, required, string};
use crate::models::check::reject::Reject;
use crate::models::dialects::contents::NO_SIGNATURE;
use crate::models::fronts::contents::media::{MediaForm, is_file_of_vendor};
use crate::models::fronts::contents::members::{all_members, object};
use crate::models::request::note_kind;

/// The maximum number of parts of all contents together. Each becomes a structure that is much larger than its shortest text.
/// Source: docs/hostile-input.md 28.
const MAX_PARTS: usize = 200_000;

/// Characters of an image in base64 that tell what it is. A multiple of four, so that whole bytes are cut.
const HEAD_CHARS: usize = 64;

const PART: [&str; 8] = [
    "text",
    "thought",
    "thoughtSignature",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "videoMetadata",
];

/// Members of parts that say nothing by themselves.
const ASIDE: [&str; 3] = ["mediaResolution", "partMetadata", "mediaId"];

/// Reads a part: exactly one of its members says something.
pub(super) fn part(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    found.parts += 1;
    if found.parts > MAX_PARTS {
        let said = format!("is one of more than {MAX_PARTS} parts of all contents");
        return Err(Reject::rule(said));
    }
    let (mut said, mut unknown): (Option<&str>, Option<String>) = (None, None);
    let mut has_signature = false;
    all_members(walk, &PART, |walk, key, known| {
        let says = match known {
            Some("thought") => return boolean(walk).map(|_| ()),
            Some("thoughtSignature") => {
                let signature = string(walk)?;
                has_signature = !signature.is_empty();
                if has_signature && signature.unescaped() != NO_SIGNATURE {
                    found.special_parts += 1;
                }
                return Ok(());
            }
            Some("videoMetadata") => {
                expect(walk, Type::Object, "an object")?;
                walk.skip()?;
                return Ok(());
            }
            Some(known) => {
                content_of_part(known, walk, found)?;
                known
            }
            None => {
                walk.skip()?;
                if !ASIDE.contains(&key) {
                    unknown.get_or_insert_with(|| key.chars().take(64).collect());
                }
                return Ok(());
            }
        };
        match said.replace(says) {
            None => Ok(()),
            Some(other) => Err(Reject::rule(format!(
                "stands beside `{other}`; accepted is one of them in a part"
            ))),
        }
    })?;
    match (said, unknown) {
        // What stands beside a text is the vendor's to read; alone it is a part of another kind.
        (Some(_), _) => {}
        (None, Some(unknown)) => {
            found.note_native("contents", || format!("parts with `{unknown}`"));
        }
        (None, None) if has_signature => {}
        (None, None) => {
            let said = "says nothing; accepted is a part with `text`, `inlineData`, `fileData`, `functionCall` or `functionResponse`";
            return Err(Reject::rule(said));
        }
    }
    Ok(())
}

fn content_of_part(key: &str, walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    match key {
        "text" => {
            found.text_bytes += string(walk)?.len() as u64;
            Ok(())
        }
        "inlineData" => inline_data(walk, found),
        "fileData" => file_data(walk, found),
        "functionCall" => function_call(walk, found),
        _ => function_response(walk, found),
    }
}

fn function_call(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let mut has_name = false;
    object(walk, &["id", "name", "args"], |walk, key| {
        match key {
            "id" => _ = string(walk)?,
            "name" => has_name = !string(walk)?.is_empty(),
            _ => {
                expect(walk, Type::Object, "an object: the arguments")?;
                found.text_bytes += walk.skip()?.len() as u64;
            }
        }
        Ok(())
    })?;
    required(has_name.then_some(()), "name", "the name of a function")
}

fn function_response(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let mut has_name = false;
    let keys = ["id", "name", "response", "parts"];
    object(walk, &keys, |walk, key| {
        match key {
            "id" => _ = string(walk)?,
            "name" => has_name = !string(walk)?.is_empty(),
            "response" => {
                expect(walk, Type::Object, "an object: what the function returned")?;
                found.text_bytes += walk.skip()?.len() as u64;
            }
            _ => _ = array(walk, |walk, _| media_of_response(walk, found))?,
        }
        Ok(())
    })?;
    required(has_name.then_some(()), "name", "the name of a function")
}

fn media_of_response(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    found.parts += 1;
    if found.parts > MAX_PARTS {
        let said = format!("is one of more than {MAX_PARTS} parts of all contents");
        return Err(Reject::rule(said));
    }
    let mut count = 0;
    object(walk, &["inlineData", "fileData"], |walk, key| {
        count += 1;
        match key {
            "inlineData" => inline_data(walk, found),
            _ => file_data(walk, found),
        }
    })?;
    match count {
        1 => Ok(()),
        _ => Err(Reject::rule(
            "is no part of a response; accepted is `inlineData` or `fileData`",
        )),
    }
}

/// `{mimeType, data}`.
fn inline_data(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let (mut media_type, mut data) = (None, None);
    object(walk, &["mimeType", "data", "displayName"], |walk, key| {
        let text = string(walk)?;
        match key {
            "mimeType" => media_type = Some(text.unescaped().into_owned()),
            "data" => data = Some(text.unescaped()),
            _ => {}
        }
        Ok(())
    })?;
    let media_type = media_type.filter(|it| !it.is_empty());
    let media_type = required(media_type, "mimeType", "a media type, such as `image/png`")?;
    let data = required(data, "data", "base64")?;
    let is_base64 = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=')
            || byte.is_ascii_whitespace()
    };
    if data.trim_end_matches('=').is_empty() || !data.bytes().all(is_base64) {
        let said = "is empty or no base64; accepted is base64";
        return Err(Reject::rule(said).within("data"));
    }
    found.media_bytes += data.len() as u64;
    match MediaForm::read(&media_type) {
        MediaForm::Image => {
            found.needs.vision = true;
            found.images += 1;
            let head = data.get(..HEAD_CHARS).unwrap_or(&data);
            let url = ["data:", &media_type, ";base64,", head].concat();
            picture_of_chat(&url).map_err(|it| it.within("data"))?;
            _ = found.needs.media.note_image(&url, || "".into());
        }
        MediaForm::Audio(format) => {
            found.sounds += 1;
            note_kind(&mut found.needs.audio, data_url::audio_format(&format));
        }
        MediaForm::Video => {
            found.files += 1;
            found.note_native("contents", || "video".to_owned());
        }
        MediaForm::Document(media_type) => {
            found.needs.documents = true;
            found.files += 1;
            note_kind(&mut found.needs.media.files, &media_type);
        }
    }
    Ok(())
}

/// `{fileUri, mimeType}`.
fn file_data(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let (mut media_type, mut uri) = (None, None);
    object(
        walk,
        &["mimeType", "fileUri", "displayName"],
        |walk, key| {
            let text = string(walk)?.unescaped().into_owned();
            match key {
                "mimeType" => media_type = Some(text),
                "fileUri" => uri = Some(text),
                _ => {}
            }
            Ok(())
        },
    )?;
    let uri = uri.filter(|uri| !uri.is_empty());
    let uri = required(uri, "fileUri", "the address of a file")?;
    let form = media_type.as_deref().map(MediaForm::read);
    let is_image = matches!(form, Some(MediaForm::Image));
    let is_address = uri.starts_with("https://") || uri.starts_with("http://");
    if is_file_of_vendor(&uri) {
        found.needs.media.file_ids = true;
        found.needs.documents |= !is_image;
        found.needs.vision |= is_image;
        found.files += 1;
    } else if is_image && is_address {
        found.needs.vision = true;
        found.images += 1;
        // Where the vendor is not asked itself, the image goes in the body.
        found.special_parts += 1;
        let (content, part) = found.place;
        let param = || format!("contents[{content}].parts[{part}].fileData.fileUri").into();
        let remote = found.needs.media.note_image(&uri, param);
        found.remote_images.extend(remote);
    } else {
        found.files += 1;
        found.note_native("contents", || "files by their address".to_owned());
    }
    Ok(())
}
