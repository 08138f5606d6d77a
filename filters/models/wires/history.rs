//! What every wire of another convention needs to say a history of messages.

use serde_json::value::RawValue;

use crate::fault::Fault;

/// Returns arguments as an object. Other values are wrapped, so that every history can be translated.
pub(super) fn object(arguments: &str) -> Box<RawValue> {
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

/// The fault of a result that answers no call.
pub(super) fn answers_no_call(at: usize) -> Fault {
    let said = "answers no call of the assistant's message before it";
    fault(at, "tool_call_id", said)
}

/// The fault of calls that have no result.
pub(super) fn has_open_calls(at: usize) -> Fault {
    let said = "has calls without a result; each needs a `tool` message right behind it";
    fault(at, "tool_calls", said)
}

/// A fault of a member of a message.
pub(super) fn fault(at: usize, member: &str, said: &str) -> Fault {
    let path = format!("messages[{at}].{member}");
    let message = format!("`{path}` {said}");
    Fault::invalid(path, message)
}
