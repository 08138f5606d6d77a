//! Forms with files (`multipart/form-data`): [`parts`] splits a form in memory, a [`FormReader`] reads one as it
//! arrives.
//! Source: RFC 7578, RFC 2046 5.1.

mod reader;

use std::borrow::Cow;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};

use crate::fault::{Fault, FaultKind};
use crate::fault_code::FaultCode;

pub use reader::{Form, FormField, FormFile, FormReader};

/// The maximum number of parts. No client sends as many.
const MAX_PARTS: usize = 128;
/// The longest head of a part.
const MAX_HEAD_BYTES: usize = 8 << 10;
/// The longest boundary. Source: RFC 2046 5.1.1.
const MAX_BOUNDARY_BYTES: usize = 70;

/// A part of a form.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Part<'b> {
    /// The name of its field.
    pub name: Cow<'b, str>,
    pub is_file: bool,
    pub content: &'b [u8],
}

/// The reason for which a form cannot be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FormError {
    /// The form does not begin or end with its boundary, or is cut short.
    NoBoundary,
    /// A part has no head, a head that is too long, or no name.
    Head,
    /// The form has more than [`MAX_PARTS`] parts.
    TooMany,
    /// The texts of the form are too long.
    TooLong,
}

impl FormError {
    /// Returns the reason in words that follow "the form".
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoBoundary => "does not begin and end with the boundary of `Content-Type`",
            Self::Head => "has a part without a head that names it",
            Self::TooMany => "has more than 128 parts",
            Self::TooLong => "has texts of more than 8388608 bytes",
        }
    }
}

impl From<FormError> for Fault {
    fn from(error: FormError) -> Self {
        let message = format!("the form {}", error.as_str());
        match error {
            FormError::TooLong => Self::new(FaultKind::TooLarge, message),
            _ => Self::new(FaultKind::Invalid, message).with_code(FaultCode::InvalidParameters),
        }
    }
}

/// Returns the boundary that a head names, or an empty text for an invalid one. Returns `None` if the body is not a
/// form.
pub fn boundary(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(CONTENT_TYPE)?;
    // Most bodies are JSON, which the first byte shows.
    let first = value.as_bytes().trim_ascii_start().first()?;
    if !first.eq_ignore_ascii_case(&b'm') {
        return None;
    }
    let value = HeaderValue::to_str(value).ok()?;
    let (essence, parameters) = value.split_once(';').unwrap_or((value, ""));
    if !essence.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let found = parameter(parameters, "boundary").unwrap_or_default();
    let may_be = |b: u8| b.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(&b);
    let is_valid = found.len() <= MAX_BOUNDARY_BYTES && found.bytes().all(may_be);
    Some(found).map(|found| if is_valid { found } else { "" })
}

/// Returns the parameter with this name, without quotes around it.
fn parameter<'v>(parameters: &'v str, wanted: &str) -> Option<&'v str> {
    parameters.split(';').find_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        let is_wanted = name.trim().eq_ignore_ascii_case(wanted);
        is_wanted.then(|| value.trim().trim_matches('"'))
    })
}

/// Reads the parts of a form.
///
/// Cost: one search per boundary. Contents are not copied.
pub fn parts<'b>(body: &'b [u8], boundary: &str) -> Result<Vec<Part<'b>>, FormError> {
    if boundary.is_empty() {
        return Err(FormError::NoBoundary);
    }
    let first = format!("--{boundary}");
    let next = format!("\r\n--{boundary}");
    let finder = memchr::memmem::Finder::new(next.as_bytes());
    let mut rest = match body.strip_prefix(first.as_bytes()) {
        Some(rest) => rest,
        // The text before the first boundary is not a part.
        None => {
            let at = finder.find(body).ok_or(FormError::NoBoundary)?;
            body.get(at + next.len()..).unwrap_or_default()
        }
    };
    let mut parts = Vec::new();
    loop {
        if rest.starts_with(b"--") {
            return Ok(parts);
        }
        if parts.len() >= MAX_PARTS {
            return Err(FormError::TooMany);
        }
        let blanks = rest
            .iter()
            .take_while(|b| matches!(b, b' ' | b'\t'))
            .count();
        let part = rest.get(blanks..).unwrap_or_default();
        let part = part.strip_prefix(b"\r\n").ok_or(FormError::NoBoundary)?;
        let end = finder.find(part).ok_or(FormError::NoBoundary)?;
        let (inside, after) = part.split_at(end);
        parts.push(read_part(inside)?);
        rest = after.get(next.len()..).unwrap_or_default();
    }
}

fn read_part(part: &[u8]) -> Result<Part<'_>, FormError> {
    let searched = part.get(..MAX_HEAD_BYTES).unwrap_or(part);
    let end = memchr::memmem::find(searched, b"\r\n\r\n").ok_or(FormError::Head)?;
    let (head, content) = part.split_at(end);
    let head = PartHead::read(head)?;
    Ok(Part {
        name: head.name,
        is_file: head.file_name.is_some(),
        content: content.get(4..).unwrap_or_default(),
    })
}

/// The head of a part.
struct PartHead<'h> {
    name: Cow<'h, str>,
    file_name: Option<Cow<'h, str>>,
    media_type: Option<&'h str>,
}

impl<'h> PartHead<'h> {
    fn read(head: &'h [u8]) -> Result<Self, FormError> {
        let head = std::str::from_utf8(head).map_err(|_| FormError::Head)?;
        let field = |wanted: &str| {
            head.split("\r\n").find_map(|line| {
                let (name, value) = line.split_once(':')?;
                let is_wanted = name.trim().eq_ignore_ascii_case(wanted);
                is_wanted.then_some(value)
            })
        };
        let disposition = field("content-disposition").ok_or(FormError::Head)?;
        Ok(Self {
            name: quoted(disposition, "name").ok_or(FormError::Head)?,
            file_name: quoted(disposition, "filename"),
            media_type: field("content-type").map(str::trim),
        })
    }
}

/// Returns the text of a parameter of `Content-Disposition`. Browsers write quotes and line ends in it as `%22`,
/// `%0D` and `%0A`, other clients escape quotes with a backslash. The text may contain a semicolon.
fn quoted<'h>(disposition: &'h str, wanted: &str) -> Option<Cow<'h, str>> {
    let mut rest = disposition;
    while let Some((_, after)) = rest.split_once(';') {
        let after = after.trim_start();
        let (name, value) = after.split_once('=')?;
        let is_wanted = name.trim().eq_ignore_ascii_case(wanted);
        let Some(inside) = value.trim_start().strip_prefix('"') else {
            let end = value.find(';').unwrap_or(value.len());
            let (plain, behind) = value.split_at(end);
            if is_wanted {
                return Some(Cow::Borrowed(plain.trim()));
            }
            rest = behind;
            continue;
        };
        let bytes = inside.as_bytes();
        let mut end = 0;
        while bytes.get(end).is_some_and(|b| *b != b'"') {
            end += if bytes.get(end) == Some(&b'\\') { 2 } else { 1 };
        }
        let text = inside.get(..end)?;
        if is_wanted {
            return Some(match text.contains('\\') {
                true => Cow::Owned(text.replace("\\\"", "\"").replace("\\\\", "\\")),
                false => Cow::Borrowed(text),
            });
        }
        rest = inside.get(end + 1..).unwrap_or_default();
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use proptest::prelude::*;

    use super::*;

    fn boundary_of(value: &str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, value.parse().unwrap());
        boundary(&headers).map(str::to_owned)
    }

    #[test]
    fn a_head_names_the_boundary() {
        for (value, expected) in [
            ("multipart/form-data; boundary=abc", Some("abc")),
            (
                "Multipart/Form-Data;charset=utf-8; BOUNDARY=\"a b\"",
                Some("a b"),
            ),
            ("multipart/form-data", Some("")),
            ("multipart/form-data; boundary=a\"b\tc", Some("")),
            ("application/json", None),
            ("text/plain; boundary=abc", None),
        ] {
            assert_eq!(boundary_of(value).as_deref(), expected, "{value}");
        }
        let long = format!("multipart/form-data; boundary={}", "a".repeat(71));
        assert_eq!(boundary_of(&long).as_deref(), Some(""));
    }

    const FORM: &str = "before\r\n--b\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\nA cat\r\n--b \r\n\
        content-disposition: form-data; filename=\"a; name=x.png\"; name=\"image[]\"\r\nContent-Type: image/png\r\n\r\n\
        \r\n--\r\n\r\n--b--\r\nafter";

    #[test]
    fn parts_have_names_and_contents() {
        let parts = parts(FORM.as_bytes(), "b").unwrap();
        let part = |name: &'static str, is_file, content: &'static [u8]| Part {
            name: name.into(),
            is_file,
            content,
        };
        let expected = [
            part("prompt", false, b"A cat"),
            part("image[]", true, b"\r\n--\r\n"),
        ];
        assert_eq!(parts, expected);
    }

    #[test]
    fn what_is_no_form_is_refused() {
        let head = "content-disposition: form-data; name=\"a\"\r\n\r\n";
        for (body, error) in [
            ("", FormError::NoBoundary),
            ("--b", FormError::NoBoundary),
            ("--x\r\n", FormError::NoBoundary),
            (&format!("--b\r\n{head}cut"), FormError::NoBoundary),
            (&format!("--bc\r\n{head}x\r\n--b--"), FormError::NoBoundary),
            ("--b\r\nx\r\n--b--", FormError::Head),
            (
                "--b\r\ncontent-disposition: form-data\r\n\r\nx\r\n--b--",
                FormError::Head,
            ),
            (
                "--b\r\ncontent-type: text/plain\r\n\r\nx\r\n--b--",
                FormError::Head,
            ),
        ] {
            assert_eq!(parts(body.as_bytes(), "b"), Err(error), "{body:?}");
        }
        assert_eq!(parts(FORM.as_bytes(), ""), Err(FormError::NoBoundary));
        let part = format!("--b\r\n{head}x\r\n");
        let many = part.repeat(129) + "--b--";
        assert_eq!(parts(many.as_bytes(), "b"), Err(FormError::TooMany));
        let long = format!("--b\r\nx: {}\r\n{head}x\r\n--b--", "a".repeat(9000));
        assert_eq!(parts(long.as_bytes(), "b"), Err(FormError::Head));
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_and_anything_is_read_to_an_end(
            contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..5), cut in 0..400_usize,
        ) {
            let mut form = Vec::new();
            for content in &contents {
                form.extend_from_slice(b"--b0undary\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n");
                form.extend_from_slice(content);
                form.extend_from_slice(b"\r\n");
            }
            form.extend_from_slice(b"--b0undary--\r\n");
            let read = parts(&form, "b0undary").unwrap();
            let read: Vec<&[u8]> = read.iter().map(|part| part.content).collect();
            prop_assert_eq!(read, contents);
            let cut = cut.min(form.len() - 4);
            prop_assert!(parts(&form[..cut], "b0undary").is_err());
            _ = parts(&form[cut..], "b0undary");
        }
    }
}
