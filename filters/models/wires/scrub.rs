//! An upstream's words without secrets: first the credential and the addresses of the attempt, whatever they look like,
//! then what looks like a secret or an address.

use core::net::{IpAddr, SocketAddr};

use crate::models::key_shape::has_key_prefix;

/// How many bytes of an upstream's message reach a caller.
const MAX_MESSAGE_BYTES: usize = 500;
/// How many bytes of it are read. A secret shrinks to [`REMOVED`], so more are read than reach a caller.
const MAX_READ_BYTES: usize = 8 << 10;
/// A shorter secret is only removed where it is a word of its own: it may occur inside ordinary words.
const MIN_INNER_BYTES: usize = 6;
/// A part of a secret of at least this length is removed like the whole.
const MIN_PART_BYTES: usize = 8;
/// What a masked quotation shows of a secret, at least: `abc…xyz`.
const MIN_SHOWN_BYTES: usize = 3;
const REMOVED: &str = "[removed]";

/// Returns a message without the `exact` secrets and without what looks like a secret or an address, cut to
/// [`MAX_MESSAGE_BYTES`].
///
/// Source: docs/promises-tests.md, docs/facts/wire-formats.md R15.
pub fn scrub(message: &str, exact: &[impl AsRef<str>]) -> String {
    let mut text = read_whole_words(message).to_owned();
    let mut secrets: Vec<&str> = exact.iter().map(AsRef::as_ref).collect();
    secrets.retain(|secret| !secret.is_empty());
    // A host is also the beginning of host and port.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    for secret in &secrets {
        remove(&mut text, secret);
        let encoded = percent_encoded(secret);
        if encoded != *secret {
            remove(&mut text, &encoded);
            // A form writes a space in another way than a URL.
            remove(&mut text, &encoded.replace("%20", "+"));
        }
    }
    remove_words(&text, &secrets)
}

/// Returns the beginning of a message that is read. A word is not cut, because the rest of a cut secret would pass.
fn read_whole_words(message: &str) -> &str {
    if message.len() <= MAX_READ_BYTES {
        return message;
    }
    let read = message.get(..floor(message, MAX_READ_BYTES));
    let read = read.unwrap_or_default();
    let end = read.rfind(char::is_whitespace).unwrap_or(0);
    read.get(..end).unwrap_or_default()
}

/// Returns the last boundary of a character up to `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at)
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0)
}

/// Removes a secret in upper, lower or mixed case.
fn remove(text: &mut String, secret: &str) {
    let is_inner = secret.len() >= MIN_INNER_BYTES;
    let is_edge = |c: Option<char>| is_inner || c.is_none_or(|c| !c.is_alphanumeric());
    let (lower, secret) = (text.to_ascii_lowercase(), secret.to_ascii_lowercase());
    let mut clean = String::with_capacity(text.len());
    let mut rest = 0;
    for (at, _) in lower.match_indices(&*secret) {
        let end = at + secret.len();
        let before = lower.get(..at).and_then(|text| text.chars().next_back());
        let after = lower.get(end..).and_then(|text| text.chars().next());
        if is_edge(before) && is_edge(after) {
            clean.push_str(text.get(rest..at).unwrap_or_default());
            clean.push_str(REMOVED);
            rest = end;
        }
    }
    if rest > 0 {
        clean.push_str(text.get(rest..).unwrap_or_default());
        *text = clean;
    }
}

/// Returns a secret as it stands in a URL.
fn percent_encoded(secret: &str) -> String {
    let mut out = String::with_capacity(secret.len());
    for byte in secret.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Removes the words that are a part of a secret or look like one, and cuts the text.
fn remove_words(text: &str, secrets: &[&str]) -> String {
    let mut clean = String::with_capacity(text.len().min(MAX_MESSAGE_BYTES));
    let is_separator = |c: char| c.is_whitespace() || "\"'`,;()<>{}|".contains(c);
    for word in text.split_inclusive(is_separator) {
        let core = word.trim_end_matches(|c: char| c.is_whitespace() || c.is_ascii_punctuation());
        let is_removed = core == REMOVED.trim_end_matches(']');
        if !is_removed && (looks_secret(core) || secrets.iter().any(|key| shows(word, core, key))) {
            clean.push_str(REMOVED);
            clean.push_str(word.get(core.len()..).unwrap_or_default());
        } else {
            clean.push_str(word);
        }
        if clean.len() > MAX_MESSAGE_BYTES {
            clean.truncate(floor(&clean, MAX_MESSAGE_BYTES));
            clean.push('…');
            break;
        }
    }
    clean
}

/// Returns whether a word is a part of a secret, or shows its beginning or its end beside a mask: `abc…xyz`.
fn shows(word: &str, core: &str, secret: &str) -> bool {
    let core = core.trim_start_matches(|c: char| c.is_ascii_punctuation());
    if core.len() >= MIN_PART_BYTES && secret.contains(core) {
        return true;
    }
    let is_mask = |c: char| matches!(c, '.' | '…' | '*' | '•');
    let word =
        word.trim_matches(|c: char| c.is_whitespace() || c.is_ascii_punctuation() && !is_mask(c));
    let masks = ["...", "…", "**", "••"];
    let Some(at) = masks.iter().filter_map(|mask| word.find(mask)).min() else {
        return false;
    };
    let (start, end) = word.split_at_checked(at).unwrap_or_default();
    let end = end.trim_matches(is_mask);
    start.len() >= MIN_SHOWN_BYTES && secret.starts_with(start)
        || end.len() >= MIN_SHOWN_BYTES && secret.ends_with(end)
}

fn looks_secret(word: &str) -> bool {
    let word = word.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    let is_account = ["org-", "proj_", "acct_"]
        .iter()
        .any(|prefix| word.starts_with(prefix));
    let opaque = word.len() >= 32
        && word
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'='))
        && word.bytes().any(|b| b.is_ascii_digit())
        && word.bytes().any(|b| b.is_ascii_alphabetic());
    // Masked keys, as providers like to quote them: `sk-…abcd`, `****abcd`.
    let masked = word.contains("***");
    is_address(word) || is_account || opaque || masked || has_key_prefix(word)
}

fn is_address(word: &str) -> bool {
    word.contains("://") || word.parse::<IpAddr>().is_ok() || word.parse::<SocketAddr>().is_ok()
}

#[cfg(test)]
#[path = "scrub_tests.rs"]
mod tests;
