//! What providers accept of a history: shapes as strict types, and the rules that hold between messages.
//!
//! Source: docs/facts/wire-formats.md 1.1, 2.2, 3.1, 4.1.

use std::collections::HashSet;

use filters::models::wires::WireKind;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Map, Value};

use super::{cohere, converse};

/// Checks the history inside a body. Errors: what is wrong.
pub fn check(kind: WireKind, body: &Value) -> Result<(), String> {
    match kind {
        WireKind::Compatible => chat(body),
        WireKind::Responses => items(body),
        WireKind::Messages => blocks(body),
        WireKind::Contents | WireKind::CloudContents => parts(body),
        WireKind::Converse => converse::check(body),
        WireKind::Cohere => cohere::check(body),
        WireKind::Completions
        | WireKind::Voyage
        | WireKind::Tavily
        | WireKind::Exa
        | WireKind::Predictions
        | WireKind::Titan
        | WireKind::InvokedCohere => Err("serves no chat".to_owned()),
        // They have no history.
        WireKind::Images | WireKind::ImagesByRatio => Ok(()),
    }
}

pub(super) fn shaped<T: DeserializeOwned>(value: &Value, what: &str) -> Result<T, String> {
    serde_json::from_value(value.clone()).map_err(|error| format!("{what}: {error}"))
}

pub(super) fn ensure(holds: bool, what: impl Into<String>) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what.into()) }
}

/// The chat convention, as a strict provider reads it.
fn chat(body: &Value) -> Result<(), String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Role {
        System,
        Developer,
        User,
        Assistant,
        Tool,
        Function,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "read for its shape alone")]
    struct Message {
        role: Role,
        content: Option<Content>,
        name: Option<String>,
        tool_calls: Option<Vec<Call>>,
        tool_call_id: Option<String>,
        refusal: Option<String>,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    #[expect(dead_code, reason = "read for their shapes alone")]
    enum Content {
        Text(String),
        Parts(Vec<Part>),
    }
    #[derive(Deserialize)]
    #[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
    #[expect(dead_code, reason = "read for their shapes alone")]
    enum Part {
        Text { text: String },
        Refusal { refusal: String },
        ImageUrl { image_url: Image },
        InputAudio { input_audio: IgnoredAny },
        File { file: IgnoredAny },
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "read for their shapes alone")]
    struct Image {
        url: String,
        detail: Option<String>,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "read for their shapes alone")]
    struct Call {
        id: String,
        #[serde(rename = "type")]
        kind: String,
        function: Function,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "read for their shapes alone")]
    struct Function {
        name: String,
        arguments: String,
    }
    shaped::<Vec<Message>>(&body["messages"], "messages").map(|_| ())
}

/// Input items: calls and results pair up, and reasoning leads to something.
fn items(body: &Value) -> Result<(), String> {
    #[derive(Deserialize)]
    #[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
    #[expect(dead_code, reason = "some are read for their shapes alone")]
    enum Item {
        Message {
            role: String,
            content: Vec<Part>,
            phase: Option<String>,
        },
        Reasoning {
            id: Option<String>,
            summary: Vec<IgnoredAny>,
            encrypted_content: String,
        },
        FunctionCall {
            call_id: String,
            name: String,
            arguments: String,
        },
        FunctionCallOutput {
            call_id: String,
            output: Output,
        },
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    #[expect(dead_code, reason = "read for their shapes alone")]
    enum Output {
        Text(String),
        Parts(Vec<Part>),
    }
    #[derive(Deserialize)]
    #[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
    #[expect(dead_code, reason = "some are read for their shapes alone")]
    enum Part {
        InputText {
            text: String,
        },
        OutputText {
            text: String,
        },
        Refusal {
            refusal: String,
        },
        InputImage {
            image_url: String,
            detail: String,
        },
        InputFile {
            filename: Option<String>,
            file_data: Option<String>,
            file_id: Option<String>,
        },
        InputAudio {
            input_audio: IgnoredAny,
        },
    }
    let items: Vec<Item> = shaped(&body["input"], "input")?;
    ensure(!items.is_empty(), "no items")?;
    let (mut open, mut seen) = (HashSet::new(), HashSet::new());
    let mut leads = false;
    for item in &items {
        match item {
            Item::Message { role, content, .. } => {
                ensure(!content.is_empty(), "a message without parts")?;
                let is_own =
                    |part: &Part| matches!(part, Part::OutputText { .. } | Part::Refusal { .. });
                let fits = content
                    .iter()
                    .all(|part| is_own(part) == (role == "assistant"));
                ensure(fits, format!("parts that a {role} does not say"))?;
                ensure(
                    role == "assistant" || !leads,
                    "reasoning that nothing follows",
                )?;
            }
            Item::Reasoning {
                encrypted_content, ..
            } => ensure(!encrypted_content.is_empty(), "reasoning without its state")?,
            Item::FunctionCall { call_id, .. } => {
                ensure(call_id.len() <= 64, format!("the long id {call_id}"))?;
                ensure(
                    seen.insert(call_id.clone()),
                    format!("the call {call_id} twice"),
                )?;
                open.insert(call_id.clone());
            }
            Item::FunctionCallOutput { call_id, .. } => {
                ensure(!leads, "reasoning that nothing follows")?;
                ensure(
                    open.remove(call_id),
                    format!("a result of no call: {call_id}"),
                )?;
            }
        }
        leads = matches!(item, Item::Reasoning { .. });
    }
    ensure(open.is_empty(), "calls without results")?;
    ensure(!leads, "reasoning that nothing follows")
}

/// Content blocks: turns alternate from the user on, and each call is answered in the turn behind it.
fn blocks(body: &Value) -> Result<(), String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Turn {
        role: String,
        content: Vec<Block>,
    }
    #[derive(Deserialize)]
    #[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
    #[expect(dead_code, reason = "some are read for their shapes alone")]
    enum Block {
        Text {
            text: String,
            cache_control: Option<Marker>,
        },
        Image {
            source: IgnoredAny,
            cache_control: Option<Marker>,
        },
        Document {
            source: IgnoredAny,
            title: Option<String>,
            cache_control: Option<Marker>,
        },
        Thinking {
            thinking: String,
            signature: String,
        },
        RedactedThinking {
            data: String,
        },
        ToolUse {
            id: String,
            name: String,
            input: Map<String, Value>,
            cache_control: Option<Marker>,
        },
        ToolResult {
            tool_use_id: String,
            content: Vec<Block>,
            cache_control: Option<Marker>,
        },
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "read for its shape alone")]
    struct Marker {
        #[serde(rename = "type")]
        kind: String,
        ttl: Option<String>,
    }
    let turns: Vec<Turn> = shaped(&body["messages"], "messages")?;
    let markers = body.to_string().matches("\"cache_control\"").count();
    ensure(markers <= 4, "more than four breakpoints")?;
    let mut open: HashSet<String> = HashSet::new();
    let mut used = HashSet::new();
    for (at, turn) in turns.iter().enumerate() {
        let role = if at % 2 == 0 { "user" } else { "assistant" };
        ensure(
            turn.role == role,
            format!("turn {at} is of the {}", turn.role),
        )?;
        ensure(!turn.content.is_empty(), format!("turn {at} is empty"))?;
        let mut has_other = false;
        for block in &turn.content {
            match block {
                Block::Text { text, .. } => {
                    ensure(!text.trim().is_empty(), "an empty text")?;
                    has_other = true;
                }
                Block::Image { .. } | Block::Document { .. } => {
                    ensure(role == "user", "media of the assistant")?;
                    has_other = true;
                }
                Block::Thinking { signature, .. } => ensure(
                    role == "assistant" && !signature.is_empty(),
                    "thinking without a signature",
                )?,
                Block::RedactedThinking { .. } => {
                    ensure(role == "assistant", "thinking of a user")?
                }
                Block::ToolUse { id, .. } => {
                    ensure(
                        role == "assistant" && used.insert(id.clone()),
                        format!("the call {id} twice"),
                    )?;
                    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
                    ensure(
                        !id.is_empty() && id.chars().all(is_plain),
                        format!("the id {id}"),
                    )?;
                    open.insert(id.clone());
                }
                Block::ToolResult { tool_use_id, .. } => {
                    ensure(
                        role == "user" && open.remove(tool_use_id),
                        format!("a result of no call: {tool_use_id}"),
                    )?;
                    ensure(!has_other, "a result behind other blocks")?;
                }
            }
        }
        ensure(
            role == "assistant" || open.is_empty(),
            "calls without results in the next turn",
        )?;
    }
    let ends_well = turns
        .last()
        .is_some_and(|turn| turn.role == "user" || open.is_empty());
    ensure(ends_well, "calls without results, or no turns")
}

/// Contents: turns alternate, and the results of calls stand together behind them.
fn parts(body: &Value) -> Result<(), String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Content {
        role: String,
        parts: Vec<Part>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Part {
        text: Option<String>,
        inline_data: Option<Data>,
        function_call: Option<Call>,
        function_response: Option<Response>,
        thought_signature: Option<String>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Data {
        mime_type: String,
        data: String,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "some are read for their shapes alone")]
    struct Call {
        name: String,
        args: Map<String, Value>,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "some are read for their shapes alone")]
    struct Response {
        name: String,
        response: Map<String, Value>,
        parts: Option<Vec<Part>>,
    }
    let contents: Vec<Content> = shaped(&body["contents"], "contents")?;
    let mut before: Option<&Content> = None;
    for content in &contents {
        ensure(!content.parts.is_empty(), "no parts")?;
        for part in &content.parts {
            let data = [
                part.text.is_some(),
                part.inline_data.is_some(),
                part.function_call.is_some(),
                part.function_response.is_some(),
            ];
            ensure(
                data.iter().filter(|is_set| **is_set).count() == 1,
                "a part is not of one kind",
            )?;
            ensure(part.text.as_deref() != Some(""), "an empty text")?;
            ensure(
                part.thought_signature.is_none() || content.role == "model",
                "a signature of a user",
            )?;
            let is_data = |data: &Data| data.mime_type.contains('/') && !data.data.is_empty();
            ensure(
                part.inline_data.as_ref().is_none_or(is_data),
                "media without a type",
            )?;
        }
        let calls = |content: &Content| {
            content
                .parts
                .iter()
                .filter(|part| part.function_call.is_some())
                .count()
        };
        let results = content
            .parts
            .iter()
            .filter(|part| part.function_response.is_some())
            .count();
        ensure(
            before.map_or(0, calls) == results,
            "calls and results differ in number",
        )?;
        ensure(
            results == 0 || results == content.parts.len(),
            "results beside other parts",
        )?;
        let alternates = before.is_none_or(|before| before.role != content.role)
            || results > 0
            || before.is_some_and(|before| {
                before
                    .parts
                    .iter()
                    .any(|part| part.function_response.is_some())
            });
        ensure(alternates, format!("two turns of the {}", content.role))?;
        ensure(
            content.role == "user" || content.role == "model",
            content.role.clone(),
        )?;
        before = Some(content);
    }
    ensure(
        before.is_some_and(|last| last.parts.iter().all(|part| part.function_call.is_none())),
        "calls without results",
    )
}
