//! Images and documents as blocks. Source: docs/facts/wire-formats.md 3.1. What the wire would refuse is refused here,
//! naming the part.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::IMAGES;
use super::blocks::{BlockSource, ContentBlock};
use crate::fault::Fault;
use crate::fault_code::FaultCode;
use crate::models::chat::conversation::{Conversation, Media, MediaKind, MediaSource};
use crate::models::chat::data_url;
use crate::models::chat::inlined::InlinedImages;

/// Returns the block of media at `at`; `None`: they do not go out.
pub(super) fn block<'a>(
    conversation: &Conversation<'_>,
    at: u32,
    media: &'a Media<'a>,
    inlined: &'a InlinedImages,
) -> Result<Option<ContentBlock<'a>>, Fault> {
    let refuse = |said: &str| conversation.fault(at, None, said);
    match media.kind {
        MediaKind::Drawn => Ok(None),
        MediaKind::Image => image(media, inlined)
            .map(Some)
            .map_err(|said| refuse(&said)),
        MediaKind::Document => document(media)
            .map(Some)
            .map_err(|said| refuse(&said).with_code(FaultCode::UnsupportedDocumentFormat)),
        MediaKind::Audio => Err(refuse("is audio, which the chosen provider does not take")),
    }
}

/// The source of an image: its data, what was fetched of it, or its address. Errors: what is wrong with it.
fn image<'a>(media: &'a Media<'a>, inlined: &'a InlinedImages) -> Result<ContentBlock<'a>, String> {
    let address = address(media);
    let fetched = inlined.find(address);
    let url = fetched.map_or(address, |image| &*image.url);
    let source = if let Some(url) = data_url::parse(url) {
        if !IMAGES.contains(&&*url.media_type) {
            let kind: String = url.media_type.chars().take(40).collect();
            return Err(format!("is {kind}; accepted are {}", IMAGES.join(", ")));
        }
        BlockSource::Base64 {
            media_type: url.media_type,
            data: url.data,
        }
    } else if address.starts_with("https://") {
        BlockSource::Url { url: address }
    } else {
        return Err("is neither an https address nor a base64 data URL".to_owned());
    };
    Ok(ContentBlock::Image {
        source,
        cache_control: None,
    })
}

/// A document: a PDF, or a text, which the wire takes as one whatever its type. Errors: what is wrong with it.
fn document<'a>(media: &'a Media<'a>) -> Result<ContentBlock<'a>, String> {
    let Some(url) = data_url::parse(address(media)) else {
        return Err(
            "is no file the chosen provider takes; accepted is `file_data` with a PDF or a text as a base64 data URL"
                .to_owned(),
        );
    };
    let source = if &*url.media_type == "application/pdf" {
        BlockSource::Base64 {
            media_type: url.media_type,
            data: url.data,
        }
    } else {
        let is_text = url.media_type.starts_with("text/") || &*url.media_type == "application/json";
        if !is_text {
            let kind: String = url.media_type.chars().take(40).collect();
            return Err(format!(
                "is {kind}; the chosen provider takes PDFs and texts"
            ));
        }
        let bytes = STANDARD.decode(url.data.as_bytes()).ok();
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        let text = text.filter(|text| !text.is_empty());
        BlockSource::Text {
            media_type: "text/plain",
            data: Cow::Owned(text.ok_or("is no text in UTF-8 as base64, or an empty one")?),
        }
    };
    Ok(ContentBlock::Document {
        source,
        title: media.name.as_deref(),
        cache_control: None,
    })
}

/// Returns the address or the data URL of media; empty: they have none.
fn address<'a>(media: &'a Media<'_>) -> &'a str {
    match &media.source {
        MediaSource::Url(url) => url,
        MediaSource::Id(_) | MediaSource::Data { .. } => "",
    }
}
