//! Images, audio and files of messages. Source: docs/model-gateway.md 2.3, 2.5.

use super::Findings;
use crate::json::Walker;
use crate::models::chat::data_url;
use crate::models::check::media::picture_of_chat;
use crate::models::check::read::{OneOf, array, object_of_set, one_of, required, string};
use crate::models::check::reject::Reject;
use crate::models::parameter::Parameter;
use crate::models::request::note_kind;

const AUDIO: [&str; 12] = [
    "wav", "mp3", "aiff", "aac", "ogg", "flac", "m4a", "mpeg", "mpga", "mp4", "pcm", "webm",
];

/// `image_url` of a part.
pub(super) fn image(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let mut has_url = false;
    object_of_set(walk, &["url", "detail"], |walk, key| {
        if key == "url" {
            let url = string(walk)?;
            has_url = !url.is_empty();
            found.media.bytes += url.len() as u64;
            let url = url.unescaped();
            picture_of_chat(&url)?;
            note_image(&url, found);
            Ok(())
        } else {
            if one_of(walk, &["low", "high", "auto"])? != "auto" {
                found.asked.set.insert(Parameter::ImageDetail);
            }
            Ok(())
        }
    })?;
    found.holds_media = true;
    found.needs.vision = true;
    found.media.images += 1;
    required(
        has_url.then_some(()),
        "url",
        "an https address or a data URL",
    )
}

/// Notes where an image comes from.
fn note_image(url: &str, found: &mut Findings) {
    let (message, part) = found.place;
    let param = || format!("messages[{message}].content[{part}].image_url.url").into();
    let remote = found.needs.media.note_image(url, param);
    found.remote_images.extend(remote);
}

/// The images that the assistant drew. Providers that draw get them back, others do not; so they need no vision.
pub(super) fn drawn_images(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    array(walk, |walk, _| {
        found.is_special = true;
        found.media.images += 1;
        let (mut kind, mut has_image) = (None, false);
        object_of_set(walk, &["type", "image_url"], |walk, key| {
            if key == "type" {
                kind = Some(one_of(walk, &["image_url"])?);
                return Ok(());
            }
            has_image = true;
            let mut has_url = false;
            object_of_set(walk, &["url"], |walk, _| {
                let url = string(walk)?;
                found.media.bytes += url.len() as u64;
                has_url = !url.is_empty();
                picture_of_chat(&url.unescaped())
            })?;
            required(has_url.then_some(()), "url", "a data URL")
        })?;
        required(kind, "type", "`image_url`")?;
        required(has_image.then_some(()), "image_url", "an object with `url`")
    })
    .map(|_| ())
}

/// `input_audio` of a part.
pub(super) fn audio(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let (mut has_data, mut format) = (false, None);
    object_of_set(walk, &["data", "format"], |walk, key| {
        if key == "data" {
            found.media.bytes += string(walk)?.len() as u64;
            has_data = true;
        } else {
            format = Some(one_of(walk, &AUDIO)?);
        }
        Ok(())
    })?;
    required(has_data.then_some(()), "data", "base64")?;
    found.holds_media = true;
    found.media.sounds += 1;
    let format = required(format, "format", OneOf(&AUDIO))?;
    note_kind(&mut found.needs.audio, format);
    Ok(())
}

/// `file` of a part: in the body, or by the id that a provider gave it.
pub(super) fn file(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    found.holds_media = true;
    found.needs.documents = true;
    found.media.files += 1;
    let (mut is_named, mut is_inside, mut has_id) = (false, false, false);
    object_of_set(walk, &["filename", "file_data", "file_id"], |walk, key| {
        let text = string(walk)?;
        match key {
            "filename" => is_named = !text.is_empty(),
            "file_id" => has_id = !text.is_empty(),
            _ if text.is_empty() => {}
            _ => {
                let url = text.unescaped();
                let Some(media_type) = data_url::media_type(&url) else {
                    return Err(Reject::rule(
                        "is no base64 data URL; accepted is `data:` with the media type, `;base64,` and the bytes, not an address",
                    ));
                };
                is_inside = true;
                note_kind(&mut found.needs.media.files, &media_type);
            }
        }
        Ok(())
    })?;
    found.needs.media.file_ids |= has_id && !is_inside;
    found.needs.media.unnamed_files |= is_inside && !is_named;
    required(
        (is_inside || has_id).then_some(()),
        "file_data",
        "a base64 data URL, or `file_id`",
    )
}
