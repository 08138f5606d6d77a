//! The messages of a prompt, as people read them.

use maud::{Markup, html};
use serde_json::Value;

use crate::console::parts::count;

/// The messages and the bytes of their texts that are shown.
const MAX_MESSAGES: usize = 200;
const MAX_BYTES: usize = 256 << 10;

/// Messages with their texts; of many or long ones the first, which it says.
pub(super) fn messages(all: &Value) -> Markup {
    let all = all.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut left = MAX_BYTES;
    let mut shown = Vec::new();
    let mut is_cut = all.len() > MAX_MESSAGES;
    for (at, message) in all.iter().take(MAX_MESSAGES).enumerate() {
        let text = text(message);
        let part = text
            .get(..text.floor_char_boundary(left))
            .unwrap_or_default();
        left -= part.len();
        is_cut |= part.len() < text.len();
        let role = message.get("role").and_then(Value::as_str);
        let role = role.unwrap_or("message");
        shown.push(html! {
            h4 { (at + 1) ". " (role) }
            pre.text tabindex="0" { (part) }
        });
        if is_cut && left == 0 {
            break;
        }
    }
    html! {
        @for message in &shown { (message) }
        @if is_cut {
            p.notice.warning {
                "It is too long to be shown: the first " (count(MAX_MESSAGES as u64)) " messages and "
                (count(MAX_BYTES as u64)) " bytes of " (count(all.len() as u64)) " messages are here."
            }
        }
    }
}

/// What a message says: its text, and as JSON what else it has.
fn text(message: &Value) -> String {
    let Some(members) = message.as_object() else {
        return message.to_string();
    };
    let mut text = String::new();
    for (name, value) in members {
        match (&**name, value) {
            ("role", _) => {}
            ("content", Value::String(content)) => text.push_str(content),
            _ => {
                if !text.is_empty() {
                    text.push('\n');
                }
                let json = serde_json::to_string_pretty(value).unwrap_or_default();
                text.push_str(&format!("{name}: {json}"));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_prompts_are_cut_and_say_so() {
        let short = messages(&json!([{"role": "<b>", "content": "a\n<i>", "name": "x"}])).0;
        assert!(
            short.contains("1. &lt;b&gt;") && short.contains("a\n&lt;i&gt;\nname: "),
            "{short}"
        );
        assert!(!short.contains("too long"), "{short}");
        let text = "é".repeat(MAX_BYTES);
        for long in [
            json!([{"role": "user", "content": text}]),
            json!([{"role": "user", "content": "x"}, {"role": "user", "content": text}]),
            Value::from(vec![
                json!({"role": "user", "content": "a"});
                MAX_MESSAGES + 1
            ]),
        ] {
            let shown = messages(&long).0;
            assert!(shown.contains("too long"), "{}", shown.len());
            assert!(shown.len() < 2 * MAX_BYTES, "{}", shown.len());
        }
        assert_eq!(messages(&json!("nothing")).0, "");
    }
}
