//! What the API keys of gateways and providers look like.

use crate::accounts::holds_api_key;

/// How keys of providers, of this gateway and of others begin.
const PREFIXES: [&str; 14] = [
    "sk-", "sk_", "AIza", "gsk_", "xai-", "pplx-", "key-", "key=", "Bearer", "wg_", "r8_", "hf_",
    "fw_", "csk-",
];
/// No key is shorter.
const MIN_KEY_BYTES: usize = 16;

/// Returns whether a word begins as keys do.
pub(super) fn has_key_prefix(word: &str) -> bool {
    PREFIXES.iter().any(|prefix| word.starts_with(prefix))
}

/// Returns whether one of the parts of a name is long enough for a key and begins as keys do, or is a key of ours.
pub(super) fn holds_key(name: &str) -> bool {
    let is_key = |part: &str| part.len() >= MIN_KEY_BYTES && has_key_prefix(part);
    let is_separator = |c: char| c.is_whitespace() || matches!(c, '/' | ':' | '"' | '\'');
    name.split(is_separator).any(is_key) || holds_api_key(name.as_bytes())
}
