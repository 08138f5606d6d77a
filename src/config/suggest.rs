//! What an unknown key was probably meant to be.

use serde_json::Value as Json;

use super::walk::join;

/// Message and cure for a key that the table `key` does not have.
pub(super) fn unknown(name: &str, key: &str, schema: &Json) -> (String, String) {
    let known = names(schema);
    let place = if key.is_empty() {
        "the configuration".to_owned()
    } else {
        format!("[{key}]")
    };
    let message = format!("unknown key in {place}");
    let cure = match nearest(name, &known) {
        Some(meant) => format!("did you mean {meant}?"),
        None => format!("take it out, or use one of: {}", known.join(", ")),
    };
    (message, cure)
}

/// The known names of a table.
pub(super) fn names(schema: &Json) -> Vec<&str> {
    schema
        .get("properties")
        .and_then(Json::as_object)
        .map(|known| known.keys().map(String::as_str).collect())
        .unwrap_or_default()
}

/// The known name that is near enough to be meant.
pub(super) fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let name = name.to_ascii_lowercase();
    known
        .iter()
        .map(|candidate| (strsim::jaro_winkler(&name, candidate), *candidate))
        .filter(|(likeness, _)| *likeness >= 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// The dotted key nearest to `path` in the whole schema, for a variable that names no key.
pub(super) fn nearest_path(path: &[String], schema: &Json) -> Option<String> {
    let mut at = schema;
    let mut found = String::new();
    for name in path {
        let known = names(at);
        let exact = known.iter().find(|candidate| *candidate == name).copied();
        let meant = exact.or_else(|| nearest(name, &known));
        if let Some(meant) = meant {
            found = join(&found, meant);
            at = at.get("properties")?.get(meant)?;
        } else {
            let any = at
                .get("additionalProperties")
                .filter(|inner| inner.is_object())?;
            found = join(&found, name);
            at = any;
        }
    }
    Some(found)
}
