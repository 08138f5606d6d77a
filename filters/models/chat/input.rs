//! Arguments of calls, for dialects in which they are objects.

use serde_json::value::RawValue;

/// Returns arguments as an object. Other values are wrapped, so that every history and every answer can be translated.
pub fn object(arguments: &str) -> Box<RawValue> {
    let text = arguments.trim();
    let text = if text.is_empty() || text == "null" {
        "{}"
    } else {
        text
    };
    let parsed = RawValue::from_string(text.to_owned())
        .ok()
        .filter(|raw| raw.get().starts_with('{'));
    parsed.unwrap_or_else(|| {
        let wrapped = serde_json::json!({ "_raw": text }).to_string();
        RawValue::from_string(wrapped).unwrap_or_default()
    })
}
