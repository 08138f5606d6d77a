//! The tool that speaks.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::{McpTool, RouteRequest, Scope, ToolResult, copy_arguments};

/// Speech for a text.
pub(super) const SPEECH: McpTool = McpTool {
    route: "speech",
    scope: Scope::Models,
    description: include_str!("speech.json"),
    request: |arguments| {
        let names = [
            "model",
            "input",
            "voice",
            "instructions",
            "response_format",
            "speed",
        ];
        RouteRequest {
            body: Some(copy_arguments(arguments, &names).into()),
            ..RouteRequest::default()
        }
    },
    result: |_, response| {
        let (media_type, bytes) = (response.media_type, response.body);
        let data = STANDARD.encode(bytes);
        Some(ToolResult {
            content: vec![json!({"type": "audio", "data": data, "mimeType": media_type})],
            structured: Some(json!({"mime_type": media_type, "bytes": bytes.len()})),
        })
    },
};
