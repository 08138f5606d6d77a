//! Suggests the key that an unknown key probably stands for.

use serde_json::Value as Json;

use super::walk::join_key;

/// Returns message and cure for a key that the table `key` does not have.
pub(super) fn describe_unknown(name: &str, key: &str, schema: &Json) -> (String, String) {
    let known = known_names(schema);
    let place = if key.is_empty() {
        "the configuration".to_owned()
    } else {
        format!("[{key}]")
    };
    let message = format!("unknown key in {place}");
    let cure = match nearest(name, &known) {
        Some(suggestion) => format!("did you mean {suggestion}?"),
        None => format!("take it out, or use one of: {}", known.join(", ")),
    };
    (message, cure)
}

/// Returns the known names of a table.
pub(super) fn known_names(schema: &Json) -> Vec<&str> {
    schema
        .get("properties")
        .and_then(Json::as_object)
        .map(|known| known.keys().map(String::as_str).collect())
        .unwrap_or_default()
}

/// Returns the nearest known name, if it is similar enough.
pub fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let name = name.to_ascii_lowercase();
    known
        .iter()
        .map(|candidate| (strsim::jaro_winkler(&name, candidate), *candidate))
        .filter(|(similarity, _)| *similarity >= 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// Returns the known name that was probably meant: at most two letters differ.
pub(super) fn find_typo<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    const MIN_CHARS: usize = 4;
    if name.chars().count() < MIN_CHARS {
        return None;
    }
    let distances = known
        .iter()
        .map(|candidate| (strsim::osa_distance(name, candidate), *candidate));
    let near = distances.filter(|(distance, _)| *distance <= 2);
    near.min().map(|(_, candidate)| candidate)
}

/// Returns the dotted key nearest to `path` in the whole schema, for a variable that names no key.
pub(super) fn nearest_path(path: &[String], schema: &Json) -> Option<String> {
    let mut at = schema;
    let mut found = String::new();
    for name in path {
        let known = known_names(at);
        let exact = known.iter().find(|candidate| *candidate == name).copied();
        let suggestion = exact.or_else(|| nearest(name, &known));
        if let Some(suggestion) = suggestion {
            found = join_key(&found, suggestion);
            at = at.get("properties")?.get(suggestion)?;
        } else {
            let any = at
                .get("additionalProperties")
                .filter(|inner| inner.is_object())?;
            found = join_key(&found, name);
            at = any;
        }
    }
    Some(found)
}
