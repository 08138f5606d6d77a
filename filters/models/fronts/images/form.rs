//! A form as the JSON that says the same, so that one set of rules checks both. Source: docs/facts/wire-formats.md 6.4.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use crate::fault::{Fault, quoted};
use crate::json::{Str, write_escaped};
use crate::models::chat::sniff::image_type;
use crate::multipart::{self, Part};

/// Fields that are numbers, and one that is a boolean: a form has texts alone.
const UNQUOTED: [&str; 4] = ["n", "output_compression", "partial_images", "stream"];
/// The names that files have.
const FILES: [&str; 4] = ["image", "image[]", "images", "images[]"];

/// Returns the JSON of a form.
///
/// Cost: one copy, in which images are a third longer. Errors: 400 for what is no form, and for a field that is no text.
pub(super) fn to_json(body: &[u8], boundary: &str) -> Result<Bytes, Fault> {
    let parts = multipart::parts(body, boundary)?;
    let (images, fields): (Vec<_>, Vec<_>) = parts
        .into_iter()
        .partition(|part| FILES.contains(&&*part.name));
    let mut json = Vec::with_capacity(body.len() / 3 * 4 + 1024);
    json.push(b'{');
    for part in &fields {
        field(part, &mut json)?;
        json.push(b',');
    }
    if !images.is_empty() {
        json.extend_from_slice(b"\"images\":[");
        for (at, part) in images.iter().enumerate() {
            json.extend_from_slice(if at == 0 { b"{" } else { b",{" });
            image(part, &mut json)?;
            json.push(b'}');
        }
        json.extend_from_slice(b"],");
    }
    match json.last_mut() {
        Some(last) if *last == b',' => *last = b'}',
        _ => json.push(b'}'),
    }
    Ok(json.into())
}

fn field(part: &Part<'_>, json: &mut Vec<u8>) -> Result<(), Fault> {
    Str::Plain(&part.name).write(json);
    json.push(b':');
    let text = text(part)?;
    let is_plain = matches!(text, "true" | "false")
        || !text.is_empty() && text.len() < 10 && text.bytes().all(|b| b.is_ascii_digit());
    // A leading zero is no number in JSON.
    let is_number = is_plain && (text.len() == 1 || !text.starts_with('0'));
    if UNQUOTED.contains(&&*part.name) && is_number {
        json.extend_from_slice(text.as_bytes());
    } else {
        Str::Plain(text).write(json);
    }
    Ok(())
}

/// An image: a file, or the text of an address or a data URL. What its bytes are, the checks say.
fn image(part: &Part<'_>, json: &mut Vec<u8>) -> Result<(), Fault> {
    json.extend_from_slice(b"\"image_url\":\"");
    let media_type = image_type(part.content);
    if part.is_file || media_type.is_some() {
        json.extend_from_slice(b"data:");
        json.extend_from_slice(media_type.unwrap_or("image/png").as_bytes());
        json.extend_from_slice(b";base64,");
        let start = json.len();
        json.resize(start + part.content.len().div_ceil(3) * 4, 0);
        let out = json.get_mut(start..).unwrap_or_default();
        // The room is that of the text.
        _ = STANDARD.encode_slice(part.content, out);
    } else {
        write_escaped(text(part)?, json);
    }
    json.push(b'"');
    Ok(())
}

fn text<'b>(part: &Part<'b>) -> Result<&'b str, Fault> {
    std::str::from_utf8(part.content).map_err(|_| {
        let name = quoted(&part.name).into_owned();
        let message = format!("`{name}` is no text; accepted is UTF-8");
        Fault::invalid(name, message).with_code("invalid_parameters")
    })
}
