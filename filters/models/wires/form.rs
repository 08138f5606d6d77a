//! A form with one file whose bytes are not in memory.

use http::{HeaderName, HeaderValue, header};

use super::codec::BodySlice;
use crate::models::transcriptions::AudioFile;

/// A form in the making: texts first, the file last.
#[derive(Debug)]
pub(super) struct FormBody<'a> {
    boundary: &'a str,
    out: Vec<u8>,
}

/// Returns the header of a form with this boundary; `None`: it cannot stand in a header.
pub(super) fn content_type(boundary: &str) -> Option<(HeaderName, HeaderValue)> {
    let value = format!("multipart/form-data; boundary={boundary}");
    Some((header::CONTENT_TYPE, value.parse().ok()?))
}

impl<'a> FormBody<'a> {
    /// Begins a form. No content may hold the boundary.
    pub(super) fn new(boundary: &'a str) -> Self {
        Self {
            boundary,
            out: Vec::with_capacity(1024),
        }
    }

    fn part(&mut self, disposition: &str) {
        let head = format!(
            "--{}\r\ncontent-disposition: form-data; {disposition}\r\n",
            self.boundary
        );
        self.out.extend_from_slice(head.as_bytes());
    }

    /// Adds a text.
    pub(super) fn field(&mut self, name: &str, content: &[u8]) {
        self.part(&format!("name=\"{}\"", escaped(name)));
        self.out.extend_from_slice(b"\r\n");
        self.out.extend_from_slice(content);
        self.out.extend_from_slice(b"\r\n");
    }

    /// Ends the form with a file.
    pub(super) fn end_with(mut self, name: &str, file: &AudioFile) -> Vec<BodySlice> {
        let file_name = escaped(&file.name);
        self.part(&format!("name=\"{name}\"; filename=\"{file_name}\""));
        let media_type = format!("content-type: {}\r\n\r\n", file.media_type);
        self.out.extend_from_slice(media_type.as_bytes());
        let end = format!("\r\n--{}--\r\n", self.boundary);
        vec![
            self.out.into(),
            BodySlice::Upload(file.range.clone()),
            end.into(),
        ]
    }
}

/// The name of a part or of a file, as browsers write it.
pub(super) fn escaped(name: &str) -> String {
    name.replace('"', "%22")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}
