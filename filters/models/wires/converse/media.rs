//! Images and documents as blocks. Source: docs/facts/wire-formats.md 5.2. What the wire would refuse is refused here, naming
//! the part.

use std::borrow::Cow;
use std::collections::HashSet;

use super::blocks::{ContentBlock, DocumentBlock, ImageBlock, Source};
use crate::fault::Fault;
use crate::fault_code::FaultCode;
use crate::models::chat::conversation::{Conversation, Media, MediaKind, MediaSource};
use crate::models::chat::data_url;
use crate::models::chat::inlined::InlinedImages;

/// Media types of images.
pub(super) const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// Media types of documents. All of text is one.
pub(super) const FILES: [&str; 7] = [
    "application/pdf",
    "text/*",
    "application/json",
    "application/msword",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "application/vnd.ms-excel",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
];

/// The most characters of a document's name.
const NAME_CHARS: usize = 200;

/// The names of a request's documents, which may not repeat.
#[derive(Debug, Default)]
pub(super) struct DocumentNames {
    taken: HashSet<String>,
}

impl DocumentNames {
    /// Returns the name of a document as the wire takes it: letters, digits, brackets, hyphens, and single spaces.
    fn unique(&mut self, name: &str) -> String {
        let is_accepted =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '(' | ')' | '[' | ']');
        let spaced: String = name
            .chars()
            .take(NAME_CHARS - 10)
            .map(|c| if is_accepted(c) { c } else { ' ' })
            .collect();
        let words: Vec<&str> = spaced.split_whitespace().collect();
        let mut clean = words.join(" ");
        if clean.is_empty() {
            clean.push_str("document");
        }
        let mut own = clean.clone();
        let mut number = 1_u32;
        while !self.taken.insert(own.clone()) {
            number += 1;
            own = format!("{clean} {number}");
        }
        own
    }
}

/// Returns the block of media at `at`; `None`: they do not go out.
pub(super) fn block<'a>(
    conversation: &Conversation<'_>,
    at: u32,
    media: &'a Media<'a>,
    inlined: &'a InlinedImages,
    names: &mut DocumentNames,
) -> Result<Option<ContentBlock<'a>>, Fault> {
    let refuse = |said: &str| conversation.fault(at, None, said);
    match media.kind {
        MediaKind::Drawn => Ok(None),
        MediaKind::Image => image(media, inlined)
            .map(Some)
            .map_err(|said| refuse(&said)),
        MediaKind::Document => document(media, names)
            .map(Some)
            .map_err(|said| refuse(&said).with_code(FaultCode::UnsupportedDocumentFormat)),
        MediaKind::Audio => Err(refuse("is audio, which the chosen provider does not take")),
    }
}

/// An image: its data, or what was fetched of its address. Errors: what is wrong with it.
fn image<'a>(media: &'a Media<'a>, inlined: &'a InlinedImages) -> Result<ContentBlock<'a>, String> {
    let address = address(media);
    let fetched = inlined.find(address);
    let url = fetched.map_or(address, |image| &*image.url);
    let url = data_url::parse(url).ok_or("is no image as a base64 data URL")?;
    if !IMAGES.contains(&&*url.media_type) {
        let kind: String = url.media_type.chars().take(40).collect();
        return Err(format!("is {kind}; accepted are {}", IMAGES.join(", ")));
    }
    let format = url.media_type.strip_prefix("image/").unwrap_or_default();
    Ok(ContentBlock::Image(ImageBlock {
        format: Cow::Owned(format.to_owned()),
        source: Source { bytes: url.data },
    }))
}

/// Errors: what is wrong with the document.
fn document<'a>(
    media: &'a Media<'a>,
    names: &mut DocumentNames,
) -> Result<ContentBlock<'a>, String> {
    let url = data_url::parse(address(media)).ok_or(
        "is no file the chosen provider takes; accepted is `file_data` with a document or a text as a base64 data URL",
    )?;
    let format = format(&url.media_type).ok_or_else(|| {
        let kind: String = url.media_type.chars().take(40).collect();
        format!("is {kind}; the chosen provider takes PDFs, Word, Excel and texts")
    })?;
    Ok(ContentBlock::Document(DocumentBlock {
        format,
        name: names.unique(media.name.as_deref().unwrap_or_default()),
        source: Source { bytes: url.data },
    }))
}

/// Returns the wire's word for a type; `None`: it has none.
fn format(media_type: &str) -> Option<&'static str> {
    Some(match media_type {
        "application/pdf" => "pdf",
        "application/msword" => "doc",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => "docx",
        "application/vnd.ms-excel" => "xls",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" => "xlsx",
        "text/csv" => "csv",
        "text/html" => "html",
        "text/markdown" => "md",
        other if other.starts_with("text/") || other == "application/json" => "txt",
        _ => return None,
    })
}

/// Returns the address or the data URL of media; empty: they have none.
fn address<'a>(media: &'a Media<'_>) -> &'a str {
    match &media.source {
        MediaSource::Url(url) => url,
        MediaSource::Id(_) | MediaSource::Data { .. } => "",
    }
}
