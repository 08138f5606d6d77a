//! Images that a model drew, as items of `images`. Source: docs/model-gateway.md 2.5.

use crate::json::write_escaped;

/// Returns an item: a data URL of this media type and base64.
pub(super) fn item(media_type: &str, data: &str) -> String {
    const HEAD: &[u8] = br#"{"type":"image_url","image_url":{"url":"data:"#;
    let mut out = Vec::with_capacity(HEAD.len() + media_type.len() + data.len() + 16);
    out.extend_from_slice(HEAD);
    write_escaped(media_type, &mut out);
    out.extend_from_slice(b";base64,");
    write_escaped(data, &mut out);
    out.extend_from_slice(br#""}}"#);
    String::from_utf8(out).unwrap_or_default()
}

#[cfg(test)]
#[path = "drawn_tests.rs"]
mod tests;
