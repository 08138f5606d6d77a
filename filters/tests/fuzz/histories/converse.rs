//! What Bedrock's Converse accepts of a history. Source: docs/facts/wire-formats.md 5.2.

use std::collections::HashSet;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::schema::{ensure, shaped};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Turn {
    role: Role,
    content: Vec<Block>,
}

#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Role {
    User,
    Assistant,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
enum Block {
    Text(String),
    Image(IgnoredAny),
    Document(IgnoredAny),
    ReasoningContent(IgnoredAny),
    CachePoint(IgnoredAny),
    ToolUse(Call),
    ToolResult(Outcome),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "some are read for their shapes alone")]
struct Call {
    tool_use_id: String,
    name: String,
    input: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Outcome {
    tool_use_id: String,
    content: Vec<Block>,
    #[expect(dead_code, reason = "read for its shape alone")]
    status: Option<String>,
}

/// Checks a body. Errors: what is wrong.
pub fn check(body: &Value) -> Result<(), String> {
    let system: Option<Vec<Block>> = shaped(&body["system"], "system")?;
    let is_system = |block: &Block| match block {
        Block::Text(text) => !text.trim().is_empty(),
        block => matches!(block, Block::CachePoint(_)),
    };
    ensure(system.iter().flatten().all(is_system), "odd instructions")?;
    let turns: Vec<Turn> = shaped(&body["messages"], "messages")?;
    ensure(!turns.is_empty(), "no messages")?;
    let mut open: HashSet<String> = HashSet::new();
    let mut ids = HashSet::new();
    for (at, turn) in turns.iter().enumerate() {
        let expected = [Role::User, Role::Assistant][at % 2];
        ensure(turn.role == expected, format!("{at} is of another role"))?;
        ensure(!turn.content.is_empty(), format!("{at} is empty"))?;
        let mut calls = HashSet::new();
        for block in &turn.content {
            match block {
                Block::Text(text) => ensure(!text.trim().is_empty(), "a blank text")?,
                Block::ToolUse(call) => {
                    ensure(turn.role == Role::Assistant, "a call of the user")?;
                    ensure(call.tool_use_id.len() <= 64, "a long id")?;
                    ensure(ids.insert(call.tool_use_id.clone()), "an id twice")?;
                    ensure(!call.name.is_empty(), "no name")?;
                    calls.insert(call.tool_use_id.clone());
                }
                Block::ToolResult(result) => {
                    ensure(turn.role == Role::User, "a result of the assistant")?;
                    ensure(open.remove(&result.tool_use_id), "an unasked result")?;
                    let is_blank =
                        |block: &Block| matches!(block, Block::Text(it) if it.trim().is_empty());
                    ensure(!result.content.iter().any(is_blank), "a blank result")?;
                }
                _ => {}
            }
        }
        ensure(open.is_empty(), format!("{at} lacks results"))?;
        open = calls;
    }
    let has_calls = !ids.is_empty();
    ensure(
        !has_calls || body["toolConfig"]["tools"][0].is_object(),
        "calls without functions",
    )
}
