//! An edit as a form: a part for each member, and a file for each image.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::fault::Fault;
use crate::models::chat::data_url::{self, decode_base64};
use crate::models::chat::inlined::InlinedImages;
use crate::models::wires::codec::BodySlice;
use crate::models::wires::form::escaped;

/// What no part may hold. It is the same for all requests, because the head of a request is older than its body: a part
/// that holds it all the same is refused, so nobody can add parts to a form.
const BOUNDARY: &str = "weirgate-Zp4Fq7Xw2Ks9Rv1Tn6Hb";
/// The value of `content-type`.
pub(super) const MEDIA_TYPE: &str = "multipart/form-data; boundary=weirgate-Zp4Fq7Xw2Ks9Rv1Tn6Hb";

/// Writes a form.
///
/// Cost: a copy of each image without its base64. Errors: 400 for an image that is not base64, or a part that holds the
/// boundary.
pub(super) fn write(
    members: &Map<String, Value>,
    images: &[Cow<'_, str>],
    inlined: &InlinedImages,
) -> Result<Vec<BodySlice>, Fault> {
    let mut pieces = Vec::with_capacity(2 * images.len() + 1);
    let mut head = Vec::with_capacity(1024);
    for (key, value) in members {
        let value = match value {
            Value::String(text) => Cow::Borrowed(text.as_str()),
            other => Cow::Owned(other.to_string()),
        };
        check(key, value.as_bytes(), key)?;
        part(&mut head, &format!("name=\"{}\"", escaped(key)));
        head.extend_from_slice(b"\r\n\r\n");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    let name = if images.len() == 1 {
        "image"
    } else {
        "image[]"
    };
    for (at, url) in images.iter().enumerate() {
        let param = format!("images[{at}].image_url");
        let (media_type, bytes) = decoded(url, inlined).ok_or_else(|| {
            Fault::invalid(&*param, format!("`{param}` is no base64 of an image"))
        })?;
        check("", &bytes, &param)?;
        let kind = media_type.strip_prefix("image/").unwrap_or("png");
        let file = format!("name=\"{name}\"; filename=\"image-{at}.{kind}\"");
        part(&mut head, &file);
        head.extend_from_slice(format!("\r\ncontent-type: {media_type}\r\n\r\n").as_bytes());
        pieces.push(std::mem::take(&mut head).into());
        pieces.push(bytes.into());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
    pieces.push(head.into());
    Ok(pieces)
}

fn part(out: &mut Vec<u8>, disposition: &str) {
    let head = format!("--{BOUNDARY}\r\ncontent-disposition: form-data; {disposition}");
    out.extend_from_slice(head.as_bytes());
}

/// The media type and the bytes of an image.
fn decoded<'u>(url: &'u str, inlined: &'u InlinedImages) -> Option<(Cow<'u, str>, Vec<u8>)> {
    let url = inlined.find(url).map_or(url, |fetched| &*fetched.url);
    let url = data_url::parse(url)?;
    Some((url.media_type, decode_base64(&url.data)?))
}

fn check(name: &str, value: &[u8], param: &str) -> Result<(), Fault> {
    let holds = |bytes: &[u8]| memchr::memmem::find(bytes, BOUNDARY.as_bytes()).is_some();
    if holds(name.as_bytes()) || holds(value) {
        let message = format!("`{param}` holds bytes that cannot stand in a form");
        return Err(Fault::invalid(param, message));
    }
    Ok(())
}
