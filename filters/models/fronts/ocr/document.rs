//! The document that is read.

use crate::json::{Type, Walker};
use crate::models::check::media;
use crate::models::check::read::{nullable_string, object, one_of, required, string};
use crate::models::check::reject::{Reject, other};

pub(super) const DOCUMENT: &str = "an object with one of `document_url`, `image_url` and `file_id`";
const IMAGE_URL: &str = "a string, or an object with `url`";
/// The kinds of documents: the `type`, and the member that it has.
const KINDS: [(&str, &str); 3] = [
    ("document_url", "document_url"),
    ("image_url", "image_url"),
    ("file", "file_id"),
];

/// What was found of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Document {
    pub(super) is_image: bool,
    /// It is named by the id that a provider gave it.
    pub(super) is_file: bool,
    /// The bytes of its data, where it is in the body.
    pub(super) data_bytes: u64,
}

/// Reads it. A `type` may be absent, because the one member tells it.
pub(super) fn document(walk: &mut Walker<'_>) -> Result<Document, Reject> {
    const KNOWN: [&str; 5] = [
        "type",
        "document_url",
        "image_url",
        "file_id",
        "document_name",
    ];
    if walk.peek()? != Type::Object {
        return Err(other(walk, DOCUMENT));
    }
    let (mut kind, mut came) = (None, None);
    let mut document = Document::default();
    object(walk, &KNOWN, |walk, key| {
        match key {
            "type" => return one_of(walk, &KINDS.map(|(kind, _)| kind)).map(|it| kind = Some(it)),
            "document_name" => return nullable_string(walk).map(|_| ()),
            _ if came.is_some() => {
                return Err(Reject::rule(format!(
                    "came beside another; accepted is {DOCUMENT}"
                )));
            }
            "document_url" => document.data_bytes = address(walk, false)?,
            "image_url" => document.data_bytes = image_url(walk)?,
            _ => file_id(walk)?,
        }
        came = Some(key);
        Ok(())
    })?;
    let named = KINDS.iter().find(|(name, _)| kind == Some(*name));
    if let Some((_, member)) = named {
        let is_there = came == Some(*member);
        required(
            is_there.then_some(()),
            member,
            format!("what `type` names: {DOCUMENT}"),
        )?;
    }
    let came = came.ok_or_else(|| Reject::rule(format!("is empty; accepted is {DOCUMENT}")))?;
    document.is_image = came == "image_url";
    document.is_file = came == "file_id";
    Ok(document)
}

/// An address or a data URL; returns the bytes of its data.
fn address(walk: &mut Walker<'_>, is_image: bool) -> Result<u64, Reject> {
    media::document(&string(walk)?.unescaped(), is_image)
}

fn image_url(walk: &mut Walker<'_>) -> Result<u64, Reject> {
    match walk.peek()? {
        Type::String => address(walk, true),
        Type::Object => {
            let mut bytes = None;
            object(walk, &["url"], |walk, _| {
                bytes = Some(address(walk, true)?);
                Ok(())
            })?;
            required(bytes, "url", "an address, or a data URL of an image")
        }
        _ => Err(other(walk, IMAGE_URL)),
    }
}

fn file_id(walk: &mut Walker<'_>) -> Result<(), Reject> {
    match string(walk)?.is_empty() {
        true => Err(Reject::rule("is empty; accepted is the id of a file")),
        false => Ok(()),
    }
}
