//! A form as the JSON that says the same: clients of the convention send one. Source: docs/facts/wire-formats.md 1.9.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use crate::fault::{Fault, FaultKind, quoted};
use crate::json::Str;
use crate::models::chat::sniff::image_type;
use crate::multipart::{self, Part};

/// Returns the JSON of a form. Files become data URLs; what their bytes are, the checks say.
///
/// Cost: one copy, in which files are a third longer. Errors: 400 for what is no form, and for a field that is no text.
pub(super) fn to_json(body: &[u8], boundary: &str) -> Result<Bytes, Fault> {
    let parts = multipart::parts(body, boundary).map_err(|error| {
        Fault::new(FaultKind::Invalid, format!("the form {}", error.as_str()))
            .with_code("invalid_parameters")
    })?;
    let mut json = Vec::with_capacity(body.len() / 3 * 4 + 1024);
    json.push(b'{');
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            json.push(b',');
        }
        Str::Plain(&part.name).write(&mut json);
        json.push(b':');
        if part.is_file {
            write_file(part, &mut json);
        } else {
            write_text(part, &mut json)?;
        }
    }
    json.push(b'}');
    Ok(json.into())
}

fn write_file(part: &Part<'_>, json: &mut Vec<u8>) {
    let media_type = image_type(part.content).unwrap_or("application/octet-stream");
    json.extend_from_slice(b"\"data:");
    json.extend_from_slice(media_type.as_bytes());
    json.extend_from_slice(b";base64,");
    json.extend_from_slice(STANDARD.encode(part.content).as_bytes());
    json.push(b'"');
}

/// Texts are all that a form has; `audio` is a boolean.
fn write_text(part: &Part<'_>, json: &mut Vec<u8>) -> Result<(), Fault> {
    let text = std::str::from_utf8(part.content).map_err(|_| {
        let name = quoted(&part.name).into_owned();
        let message = format!("`{name}` is no text; accepted is UTF-8");
        Fault::invalid(name, message).with_code("invalid_parameters")
    })?;
    match (&*part.name, text) {
        ("audio", "true" | "false") | ("n", "1") => json.extend_from_slice(text.as_bytes()),
        _ => Str::Plain(text).write(json),
    }
    Ok(())
}
