//! What Cohere accepts of a history. Source: docs/facts/wire-formats.md 5.6.

use std::collections::HashSet;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::schema::{ensure, shaped};

#[derive(Deserialize)]
#[serde(tag = "role", rename_all = "lowercase", deny_unknown_fields)]
enum Message {
    System {
        content: Content,
    },
    User {
        content: Content,
    },
    Assistant {
        content: Option<Content>,
        tool_plan: Option<String>,
        tool_calls: Option<Vec<Call>>,
    },
    Tool {
        tool_call_id: String,
        #[serde(rename = "content")]
        _content: String,
    },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Part {
    Text {
        text: String,
    },
    ImageUrl {
        #[serde(rename = "image_url")]
        _image_url: IgnoredAny,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    function: Function,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Function {
    name: String,
    arguments: String,
}

impl Content {
    fn says_something(&self) -> bool {
        match self {
            Self::Text(text) => !text.is_empty(),
            Self::Parts(parts) => {
                let is_empty = |part: &Part| matches!(part, Part::Text { text } if text.is_empty());
                !parts.is_empty() && !parts.iter().any(is_empty)
            }
        }
    }
}

/// Checks a body. Errors: what is wrong.
pub fn check(body: &Value) -> Result<(), String> {
    let messages: Vec<Message> = shaped(&body["messages"], "messages")?;
    ensure(!messages.is_empty(), "no messages")?;
    let mut open: HashSet<String> = HashSet::new();
    let mut ids = HashSet::new();
    for (at, message) in messages.iter().enumerate() {
        let is_result = matches!(message, Message::Tool { .. });
        ensure(is_result || open.is_empty(), format!("{at} lacks results"))?;
        match message {
            Message::System { content } | Message::User { content } => {
                ensure(content.says_something(), format!("{at} is empty"))?;
            }
            Message::Tool { tool_call_id, .. } => {
                ensure(open.remove(tool_call_id), "an unasked result")?;
            }
            Message::Assistant {
                content,
                tool_plan,
                tool_calls,
            } => {
                let calls = tool_calls.iter().flatten();
                let has_calls = calls.clone().next().is_some();
                ensure(has_calls || tool_plan.is_none(), "a plan without calls")?;
                let says = content.as_ref().is_none_or(Content::says_something);
                ensure(says && (has_calls || content.is_some()), "an empty answer")?;
                for call in calls {
                    ensure(call.kind == "function", "an odd call")?;
                    ensure(!call.function.name.is_empty(), "no name")?;
                    let arguments: Result<Map<String, Value>, _> =
                        serde_json::from_str(&call.function.arguments);
                    ensure(arguments.is_ok(), "odd arguments")?;
                    ensure(ids.insert(call.id.clone()), "an id twice")?;
                    open.insert(call.id.clone());
                }
            }
        }
    }
    ensure(open.is_empty(), "results are missing at the end")
}
