//! A form as the JSON that says the same, so that one set of rules checks both. Source: docs/facts/wire-formats.md 1.9, 6.4.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use super::shape::{Table, find};
use crate::fault::{Fault, quoted};
use crate::fault_code::FaultCode;
use crate::json::Str;
use crate::models::chat::sniff::image_type;
use crate::multipart::{self, Part};

/// Returns the JSON of a form. Its parts of these names are the items of `images`; a front without such names takes files, which
/// become data URLs. The checks judge the bytes.
///
/// Cost: one copy, in which files are a third longer. Errors: 400 for what is not a form, and for a field that is not text.
pub(crate) fn to_json<F>(
    (body, boundary): (&[u8], &str),
    table: &Table<F>,
    image_names: &[&str],
) -> Result<Bytes, Fault> {
    let parts = multipart::parts(body, boundary)?;
    let (images, others): (Vec<_>, Vec<_>) = parts
        .into_iter()
        .partition(|part| image_names.contains(&&*part.name));
    let mut json = Vec::with_capacity(body.len() / 3 * 4 + 1024);
    let begin = |json: &mut Vec<u8>, name: &str| {
        json.push(if json.is_empty() { b'{' } else { b',' });
        Str::Plain(name).write(json);
        json.push(b':');
    };
    for part in &others {
        begin(&mut json, &part.name);
        if part.is_file && image_names.is_empty() {
            write_file(part.content, &mut json);
            continue;
        }
        let text = text(part)?;
        match find(table, &part.name) {
            Some((_, field)) if field.is_unquoted(text) => json.extend_from_slice(text.as_bytes()),
            _ => Str::Plain(text).write(&mut json),
        }
    }
    if !images.is_empty() {
        begin(&mut json, "images");
    }
    for (at, part) in images.iter().enumerate() {
        json.push(if at == 0 { b'[' } else { b',' });
        json.extend_from_slice(b"{\"image_url\":");
        match part.is_file || image_type(part.content).is_some() {
            true => write_file(part.content, &mut json),
            false => Str::Plain(text(part)?).write(&mut json),
        }
        json.push(b'}');
    }
    if !images.is_empty() {
        json.push(b']');
    }
    if json.is_empty() {
        json.push(b'{');
    }
    json.push(b'}');
    Ok(json.into())
}

/// Writes a data URL of a file.
fn write_file(content: &[u8], json: &mut Vec<u8>) {
    let media_type = image_type(content).unwrap_or("application/octet-stream");
    json.extend_from_slice(b"\"data:");
    json.extend_from_slice(media_type.as_bytes());
    json.extend_from_slice(b";base64,");
    let start = json.len();
    json.resize(start + content.len().div_ceil(3) * 4, 0);
    // The slice has the length of the text.
    _ = STANDARD.encode_slice(content, json.get_mut(start..).unwrap_or_default());
    json.push(b'"');
}

fn text<'b>(part: &Part<'b>) -> Result<&'b str, Fault> {
    std::str::from_utf8(part.content).map_err(|_| {
        let name = quoted(&part.name).into_owned();
        let message = format!("`{name}` is no text; accepted is UTF-8");
        Fault::invalid(name, message).with_code(FaultCode::InvalidParameters)
    })
}
