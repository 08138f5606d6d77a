//! What every wire of another convention needs to say a history of messages.

use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::fault::Fault;
use crate::models::chat::tree::{ChatMessage, ContentPart, MessageContent, PartType, Role};

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

/// The ids of the calls of a history: clients repeat them, and those of one provider are too long for another.
#[derive(Debug, Default)]
pub(super) struct CallIds {
    /// The ids given so far, and the last number that was appended to each.
    given: HashMap<String, u32>,
}

impl CallIds {
    /// The most characters of an id before its number. The most that a provider takes with it are 64.
    const LENGTH: usize = 56;

    /// Returns an id for the next call that no other call has: of accepted characters, the others are replaced.
    pub(super) fn unique(&mut self, id: &str, is_accepted: impl Fn(char) -> bool) -> String {
        let accepted = id.chars().map(|c| if is_accepted(c) { c } else { '_' });
        let mut clean: String = accepted.take(Self::LENGTH).collect();
        if clean.is_empty() {
            clean.push_str("call");
        }
        let Some(mut number) = self.given.get(&clean).copied() else {
            self.given.insert(clean.clone(), 1);
            return clean;
        };
        // The number goes on from the last one, so many calls of one id cost no more than as many others.
        let numbered = loop {
            number += 1;
            let numbered = format!("{clean}_{number}");
            if !self.given.contains_key(&numbered) {
                break numbered;
            }
        };
        self.given.insert(clean, number);
        self.given.insert(numbered.clone(), 1);
        numbered
    }
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

/// Checks that instructions, or what the assistant has said, are texts. Errors: 400 naming the part that is not.
pub(super) fn only_texts(at: usize, message: &ChatMessage<'_>) -> Result<(), Fault> {
    let Some(MessageContent::Parts(parts)) = &message.content else {
        return Ok(());
    };
    let is_text =
        |part: &ContentPart<'_>| matches!(part.part_type, PartType::Text | PartType::Refusal);
    match parts.iter().position(|part| !is_text(part)) {
        None => Ok(()),
        Some(number) => {
            let role = if message.role == Role::Assistant {
                "the assistant"
            } else {
                "instructions"
            };
            let said = format!("is no text; the chosen provider takes only texts of {role}");
            Err(fault(at, &format!("content[{number}]"), &said))
        }
    }
}

/// A fault of a member of a message.
pub(super) fn fault(at: usize, member: &str, said: &str) -> Fault {
    let path = format!("messages[{at}].{member}");
    let message = format!("`{path}` {said}");
    Fault::invalid(path, message)
}
