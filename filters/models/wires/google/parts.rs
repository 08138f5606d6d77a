//! Parts of a turn: texts, media, calls and results, and the signatures that come with them.
//!
//! Source: docs/facts/wire-formats.md 4.1, 4.3. What the wire would refuse is refused here, naming the part.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::FORMAT;
use crate::fault::Fault;
use crate::models::chat::data_url;
use crate::models::chat::inlined::InlinedImages;
use crate::models::chat::tree::{
    ChatMessage, ContentPart as SaidPart, File, MessageContent as Said, PartType,
};
use crate::models::wires::opaque::{self, NativeBlock};

/// A part; one of the members is set.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GooglePart<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) inline_data: Option<InlineData<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) file_data: Option<FileData<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) function_call: Option<FunctionCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) function_response: Option<FunctionResponse<'a>>,
    /// Of a tool that the provider ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_call: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_response: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thought_signature: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InlineData<'a> {
    pub(super) mime_type: Cow<'a, str>,
    pub(super) data: Cow<'a, str>,
}

/// A file that the provider has.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileData<'a> {
    file_uri: Cow<'a, str>,
}

#[derive(Debug, Serialize)]
pub(super) struct FunctionCall<'a> {
    pub(super) name: &'a str,
    pub(super) args: Box<RawValue>,
}

#[derive(Debug, Serialize)]
pub(super) struct FunctionResponse<'a> {
    pub(super) name: &'a str,
    pub(super) response: Value,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) parts: Vec<GooglePart<'a>>,
}

/// The parts of a content. `origin` is the only one whose signatures go out.
pub(super) fn parts<'a>(
    at: usize,
    content: Option<&'a Said<'a>>,
    inlined: &'a InlinedImages,
    origin: Option<&str>,
) -> Result<Vec<GooglePart<'a>>, Fault> {
    match content {
        None => Ok(Vec::new()),
        Some(Said::Text(text)) => Ok(plain(text).into_iter().collect()),
        Some(Said::Parts(list)) => {
            let mut out = Vec::with_capacity(list.len());
            for (number, said) in list.iter().enumerate() {
                let path = format!("messages[{at}].content[{number}]");
                out.extend(part(&path, said, inlined, origin)?);
            }
            Ok(out)
        }
    }
}

fn part<'a>(
    path: &str,
    said: &'a SaidPart<'a>,
    inlined: &'a InlinedImages,
    origin: Option<&str>,
) -> Result<Option<GooglePart<'a>>, Fault> {
    match said.part_type {
        PartType::Text => Ok(said.text.as_deref().and_then(plain).map(|part| GooglePart {
            thought_signature: signature(said.extra_content, origin),
            ..part
        })),
        PartType::Refusal => Ok(said.refusal.as_deref().and_then(plain)),
        PartType::ImageUrl => {
            let url = said.image_url.as_ref().map(|image| &*image.url);
            let fetched = url.and_then(|url| inlined.find(url));
            match fetched {
                Some(image) => Ok(Some(inline(image.media_type.into(), image.data().into()))),
                None => in_body(path, url, "an image as a base64 data URL").map(Some),
            }
        }
        PartType::File => said.file.as_ref().map(|said| file(path, said)).transpose(),
        PartType::InputAudio => Ok(said.input_audio.as_ref().map(|audio| {
            let media_type = format!("audio/{}", data_url::audio_format(&audio.format));
            inline(media_type.into(), Cow::Borrowed(&audio.data))
        })),
    }
}

/// A file in the body, or one of the provider's own files by its address or name.
fn file<'a>(path: &str, file: &'a File<'a>) -> Result<GooglePart<'a>, Fault> {
    const FILES: &str = "https://generativelanguage.googleapis.com/v1beta/";
    let data = file.file_data.as_deref().filter(|data| !data.is_empty());
    let Some(id) = file.file_id.as_deref().filter(|_| data.is_none()) else {
        return in_body(path, data, "`file_data` as a base64 data URL");
    };
    let file_uri = match id {
        uri if uri.starts_with(FILES) => Cow::Borrowed(uri),
        name if name.starts_with("files/") => Cow::Owned(format!("{FILES}{name}")),
        _ => {
            let path = format!("{path}.file.file_id");
            let message =
                format!("`{path}` names no file of the chosen provider; accepted is `files/…`");
            return Err(Fault::invalid(path, message));
        }
    };
    Ok(GooglePart {
        file_data: Some(FileData { file_uri }),
        ..GooglePart::default()
    })
}

fn in_body<'a>(path: &str, url: Option<&'a str>, accepted: &str) -> Result<GooglePart<'a>, Fault> {
    let url = url.and_then(data_url::parse).ok_or_else(|| {
        let message =
            format!("`{path}` is nothing the chosen provider can read; accepted is {accepted}");
        Fault::invalid(path, message)
    })?;
    Ok(inline(url.media_type, url.data))
}

fn inline<'a>(mime_type: Cow<'a, str>, data: Cow<'a, str>) -> GooglePart<'a> {
    GooglePart {
        inline_data: Some(InlineData { mime_type, data }),
        ..GooglePart::default()
    }
}

pub(super) fn plain(text: &str) -> Option<GooglePart<'_>> {
    (!text.is_empty()).then(|| GooglePart {
        text: Some(text),
        ..GooglePart::default()
    })
}

/// The images that the model drew in a turn, each with the signature that came with it. An image that is not in the body
/// is left out: this wire takes no addresses.
pub(super) fn drawn_parts<'a>(
    message: &'a ChatMessage<'a>,
    mut carried: Carried,
) -> impl Iterator<Item = GooglePart<'a>> {
    let images = message.images.iter().flatten().enumerate();
    images.filter_map(move |(number, image)| {
        let url = data_url::parse(&image.image_url.url)?;
        Some(GooglePart {
            thought_signature: carried.images.remove(&number),
            ..inline(url.media_type, url.data)
        })
    })
}

/// The signatures that came with a turn, beside those on its calls.
#[derive(Debug, Default)]
pub(super) struct Carried {
    /// With its text.
    pub(super) text: Option<String>,
    /// With its images, by their numbers.
    images: HashMap<usize, String>,
}

impl Carried {
    /// Reads those of this origin.
    pub(super) fn read(message: &ChatMessage<'_>, origin: Option<&str>) -> Self {
        #[derive(serde::Deserialize)]
        struct Carrier {
            data: String,
            #[serde(default)]
            image: Option<usize>,
        }
        let mut carried = Self::default();
        for raw in opaque::made_by(message, FORMAT, origin) {
            match serde_json::from_str::<Carrier>(raw.get()) {
                Ok(Carrier { data, image: None }) => carried.text = Some(data),
                Ok(Carrier {
                    data,
                    image: Some(number),
                }) => _ = carried.images.insert(number, data),
                Err(_) => {}
            }
        }
        carried
    }
}

/// The signature that came with a call or a text, where it is of this origin, which stands in `model`, or in `origin` where
/// the provider's compatible API made it. Clients of the vendor send it without any.
pub(super) fn signature(extra: Option<&RawValue>, origin: Option<&str>) -> Option<String> {
    let extra: Value = serde_json::from_str(extra?.get()).ok()?;
    let google = extra.get("google")?;
    let made_by = google.get("model").or_else(|| google.get("origin"));
    let made_by = made_by.and_then(Value::as_str);
    let is_ours = made_by.is_none_or(|made_by| Some(made_by) == origin);
    let signature = google
        .get("thought_signature")
        .filter(|_| is_ours && origin.is_some())?;
    signature.as_str().map(str::to_owned)
}

/// A part of a tool that the provider ran in an earlier turn.
pub(super) fn native<'a>(earlier: &NativeBlock) -> Option<GooglePart<'a>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Part {
        tool_call: Option<Box<RawValue>>,
        tool_response: Option<Box<RawValue>>,
        thought_signature: Option<String>,
    }
    let part: Part = serde_json::from_str(earlier.block.get()).ok()?;
    let has_one = part.tool_call.is_some() || part.tool_response.is_some();
    has_one.then(|| GooglePart {
        tool_call: part.tool_call,
        tool_response: part.tool_response,
        thought_signature: part.thought_signature,
        ..GooglePart::default()
    })
}
