//! What the media types of parts stand for.

use std::borrow::Cow;

/// The address of the vendor's files.
const FILES: &str = "https://generativelanguage.googleapis.com/";

/// What media are, by their type.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum MediaForm {
    Image,
    /// The format of a sound, such as `wav`.
    Audio(String),
    Video,
    /// A media type in lower case without parameters.
    Document(String),
}

impl MediaForm {
    /// Returns what a media type stands for.
    pub(super) fn read(media_type: &str) -> Self {
        let bare = media_type.split(';').next().unwrap_or_default().trim();
        let bare = bare.to_ascii_lowercase();
        match bare.split_once('/') {
            Some(("image", _)) => Self::Image,
            Some(("video", _)) => Self::Video,
            Some(("audio", format)) => Self::Audio(
                match format.strip_prefix("x-").unwrap_or(format) {
                    "wave" | "vnd.wave" => "wav",
                    format => format,
                }
                .to_owned(),
            ),
            _ => Self::Document(bare),
        }
    }
}

/// Returns whether an address names a file that the vendor keeps.
pub(super) fn is_file_of_vendor(uri: &str) -> bool {
    uri.starts_with(FILES) || uri.starts_with("files/")
}

/// Returns base64 as a data URL.
pub(super) fn data_url<'a>(media_type: &str, data: &str) -> Cow<'a, str> {
    Cow::Owned(["data:", media_type, ";base64,", data].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_says_what_media_are() {
        for (media_type, form) in [
            ("image/PNG", MediaForm::Image),
            ("video/mp4", MediaForm::Video),
            ("audio/x-wav", MediaForm::Audio("wav".to_owned())),
            ("Audio/MPEG", MediaForm::Audio("mpeg".to_owned())),
            (
                "text/plain; charset=utf-8",
                MediaForm::Document("text/plain".to_owned()),
            ),
            ("x", MediaForm::Document("x".to_owned())),
        ] {
            assert_eq!(MediaForm::read(media_type), form, "{media_type}");
        }
    }
}
