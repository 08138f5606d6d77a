//! The canonical form of a JSON value: equal for texts that say the same value, and only for them.
//!
//! Shape: a tag byte per value. Numbers, strings and keys are followed by their length and bytes; arrays and objects
//! enclose their items, and members stand in the order of their keys. A form longer than [`MAX_INLINE_BYTES`] is replaced
//! by its SHA-256, so that neither an image nor deep nesting is copied more than once.
//!
//! Our choice: white space, escapes and the order of members say nothing. Everything else does: `1` and `1.0`, `é` in
//! one character and in two, a member twice and once. What is told apart without need costs a fetch; what is taken for
//! equal without being so would answer another question.

use std::borrow::Cow;
use std::ops::Range;

use sha2::{Digest, Sha256};

use crate::json::{Error, Type, Walker};

/// Longer forms are replaced by their hash.
const MAX_INLINE_BYTES: usize = 1024;

/// Appends the canonical form of the next value.
///
/// Cost: one pass, and one hash of what is long; objects allocate a list of their keys. Errors: the text is not JSON.
pub(super) fn write_value(walk: &mut Walker<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    match walk.peek()? {
        Type::Null => walk.null().map(|_| out.push(b'0')),
        Type::Bool => walk
            .boolean()
            .map(|is_true| out.push(if is_true { b't' } else { b'f' })),
        Type::Number => {
            write_framed(b'n', walk.number()?.as_bytes(), out);
            Ok(())
        }
        Type::String => {
            write_framed(b's', walk.string()?.unescaped().as_bytes(), out);
            Ok(())
        }
        Type::Array => {
            let start = out.len();
            out.push(b'[');
            walk.array(|walk, _| write_value(walk, out))?;
            out.push(b']');
            shorten(start, out);
            Ok(())
        }
        Type::Object => write_object(walk, out),
    }
}

/// Appends bytes with their tag and length. `tag` is lower case; the hash of what is long has the tag in upper case.
pub(super) fn write_framed(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    let is_long = bytes.len() > MAX_INLINE_BYTES;
    out.push(if is_long {
        tag.to_ascii_uppercase()
    } else {
        tag
    });
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    if is_long {
        out.extend_from_slice(&Sha256::digest(bytes));
    } else {
        out.extend_from_slice(bytes);
    }
}

fn write_object(walk: &mut Walker<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    let start = out.len();
    out.push(b'{');
    let first = out.len();
    let mut members: Vec<(Cow<'_, str>, Range<usize>)> = Vec::new();
    walk.object(|walk, key| {
        let from = out.len();
        write_framed(b'k', key.as_bytes(), out);
        write_value(walk, out)?;
        members.push((key, from..out.len()));
        Ok::<(), Error>(())
    })?;
    if !members.is_sorted_by(|(one, _), (next, _)| one <= next) {
        // The sort is stable: which of two members with one key counts is for the provider to say.
        members.sort_by(|(one, _), (other, _)| one.cmp(other));
        let unsorted = out.split_off(first);
        for (_, member) in members {
            let member = unsorted.get(member.start - first..member.end - first);
            out.extend_from_slice(member.unwrap_or_default());
        }
    }
    out.push(b'}');
    shorten(start, out);
    Ok(())
}

/// Replaces the form from `start` on by its hash, if it is long.
fn shorten(start: usize, out: &mut Vec<u8>) {
    let form = out.get(start..).unwrap_or_default();
    if form.len() > MAX_INLINE_BYTES {
        let hash = Sha256::digest(form);
        out.truncate(start);
        out.push(b'#');
        out.extend_from_slice(&hash);
    }
}
