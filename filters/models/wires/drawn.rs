//! Unfinished images that a model drew, and the sizes in which models of OpenAI draw. Source:
//! docs/model-gateway.md 2.5.

use crate::json::{Str, write_number};

/// The sizes that all of them have, by their ratio of width to height.
const SIZES: [(&str, &str); 3] = [
    ("1:1", "1024x1024"),
    ("3:2", "1536x1024"),
    ("2:3", "1024x1536"),
];

/// Returns the size of a ratio; `None`: not all of them have one.
pub(super) fn size_of_ratio(ratio: &str) -> Option<&'static str> {
    let known = SIZES.iter().find(|(known, _)| *known == ratio);
    known.map(|(_, size)| *size)
}

/// Returns an unfinished image in the public shape.
pub(super) fn partial(data: Str<'_>, number: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len() + 64);
    out.extend_from_slice(b"{\"b64_json\":");
    data.write(&mut out);
    out.extend_from_slice(b",\"partial_image_index\":");
    write_number(number, &mut out);
    out.push(b'}');
    out
}

#[cfg(test)]
#[path = "drawn_tests.rs"]
mod tests;
