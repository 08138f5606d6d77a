//! Parts of a turn: texts, media, calls and results.
//!
//! Source: docs/facts/wire-formats.md 4.1, 4.3. What the wire would refuse is refused here, naming the part.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::fault::Fault;
use crate::models::chat::conversation::{Conversation, Media, MediaKind, MediaSource, Native};
use crate::models::chat::data_url;
use crate::models::chat::inlined::InlinedImages;
use crate::models::chat::text::Quoted;
use crate::models::dialects::NamedMember;

/// A part; one of the members is set.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GooglePart<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<Quoted<'a>>,
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
    pub(super) tool_call: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_response: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thought_signature: Option<Cow<'a, str>>,
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

/// Returns the part of media at `at`; `None`: an image that the model drew, which is not in the body: this wire takes no
/// addresses.
pub(super) fn media<'a>(
    conversation: &Conversation<'_>,
    at: u32,
    media: &'a Media<'a>,
    inlined: &'a InlinedImages,
) -> Result<Option<GooglePart<'a>>, Fault> {
    let address = match &media.source {
        MediaSource::Data { data, format } => {
            let media_type = format!("audio/{}", data_url::audio_format(format));
            return Ok(Some(inline(media_type.into(), Cow::Borrowed(data))));
        }
        MediaSource::Id(id) => return file(conversation, at, id).map(Some),
        MediaSource::Url(url) => &**url,
    };
    let in_body = data_url::parse(address).map(|url| inline(url.media_type, url.data));
    let accepted = match media.kind {
        MediaKind::Drawn => return Ok(in_body),
        MediaKind::Image => "an image as a base64 data URL",
        MediaKind::Document | MediaKind::Audio => "`file_data` as a base64 data URL",
    };
    let fetched = inlined
        .find(address)
        .filter(|_| media.kind == MediaKind::Image);
    if let Some(image) = fetched {
        return Ok(Some(inline(image.media_type.into(), image.data().into())));
    }
    in_body.map(Some).ok_or_else(|| {
        let said = format!("is nothing the chosen provider can read; accepted is {accepted}");
        conversation.fault(at, None, &said)
    })
}

/// One of the provider's own files, by its address or name.
fn file<'a>(
    conversation: &Conversation<'_>,
    at: u32,
    id: &'a str,
) -> Result<GooglePart<'a>, Fault> {
    const FILES: &str = "https://generativelanguage.googleapis.com/v1beta/";
    let file_uri = match id {
        uri if uri.starts_with(FILES) => Cow::Borrowed(uri),
        name if name.starts_with("files/") => Cow::Owned(format!("{FILES}{name}")),
        _ => {
            let said = "names no file of the chosen provider; accepted is `files/…`";
            return Err(conversation.fault(at, Some(NamedMember::FileId), said));
        }
    };
    Ok(GooglePart {
        file_data: Some(FileData { file_uri }),
        ..GooglePart::default()
    })
}

fn inline<'a>(mime_type: Cow<'a, str>, data: Cow<'a, str>) -> GooglePart<'a> {
    GooglePart {
        inline_data: Some(InlineData { mime_type, data }),
        ..GooglePart::default()
    }
}

pub(super) fn plain<'a>(text: impl Into<Quoted<'a>>) -> Option<GooglePart<'a>> {
    let text = text.into();
    (!text.is_empty()).then(|| GooglePart {
        text: Some(text),
        ..GooglePart::default()
    })
}

/// Returns the part of a tool that the provider ran in an earlier turn; `None`: it does not go back.
pub(super) fn native<'a>(earlier: &'a Native<'_>) -> Option<GooglePart<'a>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Part<'a> {
        #[serde(borrow)]
        tool_call: Option<&'a RawValue>,
        #[serde(borrow)]
        tool_response: Option<&'a RawValue>,
        #[serde(borrow)]
        thought_signature: Option<Cow<'a, str>>,
    }
    let part: Part<'_> = serde_json::from_str(earlier.json.get()).ok()?;
    let has_one = part.tool_call.is_some() || part.tool_response.is_some();
    has_one.then(|| GooglePart {
        tool_call: part.tool_call,
        tool_response: part.tool_response,
        thought_signature: part.thought_signature,
        ..GooglePart::default()
    })
}
