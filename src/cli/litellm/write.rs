//! Writes tables as lines of TOML.

use toml::{Table, Value};

/// Returns a line for each member: the named ones first, the others by name.
pub(super) fn to_lines(table: &Table, first: &[&str]) -> String {
    let named = first.iter().filter_map(|key| table.get_key_value(*key));
    let others = table
        .iter()
        .filter(|(key, _)| !first.contains(&key.as_str()));
    named
        .chain(others)
        .map(|(key, value)| format!("{} = {value}\n", to_key(key)))
        .collect()
}

/// Returns a text as TOML writes it.
pub(super) fn to_quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Returns a key as TOML writes it.
pub(super) fn to_key(key: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    match !key.is_empty() && key.bytes().all(is_bare) {
        true => key.to_owned(),
        false => to_quoted(key),
    }
}
