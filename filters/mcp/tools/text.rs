//! Tools that read texts: chats, vectors and searches.

use serde_json::{Value, json};

use super::{McpTool, RouteRequest, RouteResponse, Scope, ToolResult, copy_arguments, text};
use crate::mcp::message::Members;

/// A chat.
pub(super) const CHAT: McpTool = McpTool {
    route: "chat_completions",
    scope: Scope::Models,
    description: include_str!("chat.json"),
    request: |arguments| RouteRequest {
        body: Some(
            copy_arguments(
                arguments,
                &["model", "messages", "temperature", "max_tokens"],
            )
            .into(),
        ),
        ..RouteRequest::default()
    },
    result: |_, response| chat(response),
};

fn chat(response: &RouteResponse<'_>) -> Option<ToolResult> {
    let answer = response.json()?;
    let choice = answer.pointer("/choices/0")?;
    let said = choice.pointer("/message/content").and_then(Value::as_str);
    let said = said.or_else(|| choice.pointer("/message/refusal")?.as_str());
    let said = said.unwrap_or_default();
    Some(ToolResult {
        content: vec![text(said)],
        structured: Some(json!({
            "model": answer.get("model"),
            "content": said,
            "finish_reason": choice.get("finish_reason"),
            "usage": answer.get("usage"),
        })),
    })
}

/// Vectors for texts.
pub(super) const EMBEDDINGS: McpTool = McpTool {
    route: "embeddings",
    scope: Scope::Models,
    description: include_str!("embeddings.json"),
    request: |arguments: &Members| RouteRequest {
        body: Some(copy_arguments(arguments, &["model", "input", "dimensions"]).into()),
        ..RouteRequest::default()
    },
    result: |_, response| {
        let answer = response.json()?;
        let items = answer.get("data")?.as_array()?.iter();
        let vectors: Option<Vec<&Value>> = items.map(|item| item.get("embedding")).collect();
        Some(ToolResult::both(json!({
            "model": answer.get("model"),
            "embeddings": vectors?,
            "usage": answer.get("usage"),
        })))
    },
};

/// A search for web pages.
pub(super) const SEARCH: McpTool = McpTool {
    route: "search",
    scope: Scope::Models,
    description: include_str!("search.json"),
    request: |arguments: &Members| {
        let names = [
            "query",
            "model",
            "max_results",
            "country",
            "search_domain_filter",
            "search_recency_filter",
        ];
        RouteRequest {
            body: Some(copy_arguments(arguments, &names).into()),
            ..RouteRequest::default()
        }
    },
    result: |_, response| {
        let answer = response.json()?;
        Some(ToolResult::both(json!({
            "model": answer.get("model")?,
            "results": answer.get("results")?,
        })))
    },
};
