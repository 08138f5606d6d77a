//! Parts of a turn: texts, media, calls and results, and the signatures that come with them.
//!
//! Source: docs/facts/wire-formats.md 4.1, 4.3. What the wire would refuse is refused here, naming the part.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::FORMAT;
use crate::fault::Fault;
use crate::models::chat::data_url;
use crate::models::chat::tree::{
    ChatMessage, ContentPart as SaidPart, MessageContent as Said, PartType,
};
use crate::models::wires::opaque;

/// A part; one of the members is set.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GooglePart<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) inline_data: Option<InlineData<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) function_call: Option<FunctionCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) function_response: Option<FunctionResponse<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thought_signature: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InlineData<'a> {
    pub(super) mime_type: Cow<'a, str>,
    pub(super) data: Cow<'a, str>,
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

pub(super) fn parts<'a>(
    at: usize,
    content: Option<&'a Said<'a>>,
) -> Result<Vec<GooglePart<'a>>, Fault> {
    match content {
        None => Ok(Vec::new()),
        Some(Said::Text(text)) => Ok(plain(text).into_iter().collect()),
        Some(Said::Parts(list)) => {
            let mut out = Vec::with_capacity(list.len());
            for (number, said) in list.iter().enumerate() {
                out.extend(part(&format!("messages[{at}].content[{number}]"), said)?);
            }
            Ok(out)
        }
    }
}

fn part<'a>(path: &str, said: &'a SaidPart<'a>) -> Result<Option<GooglePart<'a>>, Fault> {
    let data = |url: Option<&'a str>, accepted: &str| {
        let url = url.and_then(data_url::parse).ok_or_else(|| {
            Fault::invalid(
                path,
                format!("`{path}` is nothing the chosen provider can read; accepted is {accepted}"),
            )
        })?;
        let inline_data = Some(InlineData {
            mime_type: url.media_type,
            data: url.data,
        });
        Ok(Some(GooglePart {
            inline_data,
            ..GooglePart::default()
        }))
    };
    match said.part_type {
        PartType::Text => Ok(said.text.as_deref().and_then(plain).map(|part| GooglePart {
            thought_signature: signature(said.extra_content),
            ..part
        })),
        PartType::Refusal => Ok(said.refusal.as_deref().and_then(plain)),
        PartType::ImageUrl => data(
            said.image_url.as_ref().map(|image| &*image.url),
            "an image as a base64 data URL",
        ),
        PartType::File => {
            let file = said
                .file
                .as_ref()
                .and_then(|file| file.file_data.as_deref());
            data(file, "`file_data` as a base64 data URL")
        }
        PartType::InputAudio => Ok(said.input_audio.as_ref().map(|audio| GooglePart {
            inline_data: Some(InlineData {
                mime_type: format!("audio/{}", &*audio.format).into(),
                data: Cow::Borrowed(&audio.data),
            }),
            ..GooglePart::default()
        })),
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
    origin: Option<&str>,
) -> impl Iterator<Item = GooglePart<'a>> {
    let images = message.images.iter().flatten().enumerate();
    images.filter_map(move |(number, image)| {
        let url = data_url::parse(&image.image_url.url)?;
        Some(GooglePart {
            inline_data: Some(InlineData {
                mime_type: url.media_type,
                data: url.data,
            }),
            thought_signature: carried_signature(message, origin, Some(number)),
            ..GooglePart::default()
        })
    })
}

/// The signature that came with an image of a turn, or with its text.
pub(super) fn carried_signature(
    message: &ChatMessage<'_>,
    origin: Option<&str>,
    image: Option<usize>,
) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Carrier {
        data: String,
        #[serde(default)]
        image: Option<usize>,
    }
    let carriers = opaque::made_by(message, FORMAT, origin);
    let carriers = carriers.filter_map(|raw| serde_json::from_str::<Carrier>(raw.get()).ok());
    let carrier = carriers.filter(|carrier| carrier.image == image).last()?;
    Some(carrier.data)
}

/// The signature that came with a call or a text.
pub(super) fn signature(extra: Option<&RawValue>) -> Option<String> {
    let extra: Value = serde_json::from_str(extra?.get()).ok()?;
    extra
        .get("google")?
        .get("thought_signature")?
        .as_str()
        .map(str::to_owned)
}
