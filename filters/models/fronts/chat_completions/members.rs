//! The members of a delta, as a chunk writes them.

use crate::json::write_escaped;
use crate::models::chat::delta::Delta;

/// Which members a delta has.
pub(super) struct DeltaMembers {
    /// Whether there are any.
    pub(super) any: bool,
    /// Whether they count as content.
    pub(super) is_content: bool,
    /// Bytes of text.
    pub(super) bytes: u64,
}

impl DeltaMembers {
    pub(super) fn from_delta(delta: &Delta<'_>) -> Self {
        let texts = [delta.content, delta.reasoning, delta.refusal];
        let bytes: usize = texts.iter().flatten().map(|text| text.len()).sum();
        let lists = [
            delta.reasoning_details,
            delta.native_blocks,
            delta.annotations,
            delta.images,
        ];
        let has_lists = lists.iter().flatten().any(|list| !list.is_empty());
        let is_content = bytes > 0 || has_lists;
        Self {
            any: is_content || delta.logprobs.is_some() || !delta.extra.is_empty(),
            is_content,
            bytes: bytes as u64,
        }
    }

    pub(super) fn write(&self, delta: &Delta<'_>, out: &mut Vec<u8>) {
        let texts = [
            ("content", delta.content),
            ("reasoning", delta.reasoning),
            ("refusal", delta.refusal),
        ];
        for (key, text) in texts {
            let Some(text) = text.filter(|text| !text.is_empty()) else {
                continue;
            };
            write_key(key, out);
            text.write(out);
            out.push(b',');
        }
        let lists = [
            ("reasoning_details", delta.reasoning_details),
            ("vendor_native_blocks", delta.native_blocks),
            ("annotations", delta.annotations),
            ("images", delta.images),
        ];
        for (key, list) in lists {
            let Some(list) = list.filter(|list| !list.is_empty()) else {
                continue;
            };
            write_key(key, out);
            out.push(b'[');
            out.extend_from_slice(list.as_bytes());
            out.extend_from_slice(b"],");
        }
        for (key, value) in delta.extra {
            write_key(key, out);
            out.extend_from_slice(value.as_bytes());
            out.push(b',');
        }
    }
}

/// Writes a key and its colon.
pub(super) fn write_key(key: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    write_escaped(key, out);
    out.extend_from_slice(b"\":");
}
