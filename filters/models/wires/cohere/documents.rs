//! Files of texts as documents beside the messages, on which answers rest. Source: docs/facts/wire-formats.md 5.6.

use serde::Serialize;

use crate::models::chat::conversation::{Media, MediaSource};
use crate::models::chat::data_url;

/// A document.
#[derive(Debug, Serialize)]
pub(super) struct Document<'a> {
    id: String,
    data: DocumentData<'a>,
}

/// What it says. The names of members are free, and the model sees them.
#[derive(Debug, Serialize)]
struct DocumentData<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    text: String,
}

impl<'a> Document<'a> {
    /// Reads a file, the document of this number. Errors: what is wrong with it.
    pub(super) fn read(media: &'a Media<'a>, number: usize) -> Result<Self, &'static str> {
        let MediaSource::Url(url) = &media.source else {
            return Err(
                "is no file the chosen provider takes; accepted is `file_data` with a text",
            );
        };
        let url = data_url::parse(url);
        let text = url.filter(|url| url.media_type.starts_with("text/"));
        let text = text.ok_or("is no text, and the chosen provider takes no other files")?;
        let bytes = data_url::decode_base64(&text.data);
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        let text = text.filter(|text| !text.is_empty());
        Ok(Self {
            id: format!("file-{number}"),
            data: DocumentData {
                title: media.name.as_deref().filter(|name| !name.is_empty()),
                text: text.ok_or("is no text in UTF-8 as base64, or an empty one")?,
            },
        })
    }
}
