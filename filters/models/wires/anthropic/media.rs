//! Images and documents as blocks. Source: docs/facts/wire-formats.md 3.1. What the wire would refuse is refused here,
//! naming the part.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::IMAGES;
use super::blocks::{BlockSource, ContentBlock};
use crate::fault::Fault;
use crate::models::chat::data_url;
use crate::models::chat::inlined::InlinedImages;
use crate::models::chat::tree::{File, ImageUrl};

/// The source of an image: its data, what was fetched of it, or its address.
pub(super) fn image_source<'a>(
    path: &str,
    image: &'a ImageUrl<'a>,
    inlined: &'a InlinedImages,
) -> Result<BlockSource<'a>, Fault> {
    let fetched = inlined.find(&image.url);
    let url = fetched.map_or(&*image.url, |image| &*image.url);
    if let Some(url) = data_url::parse(url) {
        if !IMAGES.contains(&&*url.media_type) {
            let kind: String = url.media_type.chars().take(40).collect();
            let said = format!("`{path}` is {kind}; accepted are {}", IMAGES.join(", "));
            return Err(Fault::invalid(path, said));
        }
        return Ok(BlockSource::Base64 {
            media_type: url.media_type,
            data: url.data,
        });
    }
    if image.url.starts_with("https://") {
        return Ok(BlockSource::Url { url: &image.url });
    }
    Err(Fault::invalid(
        path,
        format!("`{path}` is neither an https address nor a base64 data URL"),
    ))
}

/// A document: a PDF, or a text, which the wire takes as one whatever its type.
pub(super) fn document<'a>(path: &str, file: &'a File<'a>) -> Result<ContentBlock<'a>, Fault> {
    let refuse = |said: &str| {
        let fault = Fault::invalid(path, format!("`{path}` {said}"));
        fault.with_code("unsupported_document_format")
    };
    let title = file.filename.as_deref().filter(|name| !name.is_empty());
    let Some(url) = file.file_data.as_deref().and_then(data_url::parse) else {
        return Err(refuse(
            "is no file the chosen provider takes; accepted is `file_data` with a PDF or a text as a base64 data URL",
        ));
    };
    if &*url.media_type == "application/pdf" {
        let (media_type, data) = (url.media_type, url.data);
        let source = BlockSource::Base64 { media_type, data };
        return Ok(ContentBlock::Document {
            source,
            title,
            cache_control: None,
        });
    }
    let is_text = url.media_type.starts_with("text/") || &*url.media_type == "application/json";
    if !is_text {
        let kind: String = url.media_type.chars().take(40).collect();
        return Err(refuse(&format!(
            "is {kind}; the chosen provider takes PDFs and texts"
        )));
    }
    let bytes = STANDARD.decode(url.data.as_bytes()).ok();
    match bytes.and_then(|bytes| String::from_utf8(bytes).ok()) {
        Some(text) if !text.is_empty() => Ok(ContentBlock::Document {
            source: BlockSource::Text {
                media_type: "text/plain",
                data: Cow::Owned(text),
            },
            title,
            cache_control: None,
        }),
        _ => Err(refuse("is no text in UTF-8 as base64, or an empty one")),
    }
}
