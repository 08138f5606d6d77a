//! Tools that draw.

use serde_json::{Value, json};

use super::{McpTool, RouteRequest, RouteResponse, Scope, ToolResult, copy_arguments};
use crate::mcp::message::Members;

/// The place of the model in the description of a tool for one model.
const MODEL_POINTER: &str = "/_meta/weirgate~1model";
/// The default size of an image.
const DEFAULT_SIZE: &str = "1024x1024";

/// Images for a prompt.
pub(super) const GENERATE_IMAGE: McpTool = McpTool {
    route: "images",
    scope: Scope::Models,
    description: include_str!("generate-image.json"),
    request: |arguments| {
        let mut body = copy_arguments(arguments, &["prompt", "model", "size", "n"]);
        body.entry("size").or_insert_with(|| DEFAULT_SIZE.into());
        RouteRequest {
            body: Some(body.into()),
            ..RouteRequest::default()
        }
    },
    result: images,
};

/// One image, by one model.
pub(super) const GENERATE_NANO_BANANA: McpTool = McpTool {
    route: "images",
    scope: Scope::Models,
    description: include_str!("generate-nano-banana.json"),
    request: |arguments| {
        let mut body = copy_arguments(arguments, &["prompt", "aspect_ratio"]);
        let description = serde_json::from_str(GENERATE_NANO_BANANA.description);
        let description: Value = description.unwrap_or_default();
        let model = description.pointer(MODEL_POINTER);
        body.extend(model.map(|model| ("model".to_owned(), model.clone())));
        RouteRequest {
            body: Some(body.into()),
            ..RouteRequest::default()
        }
    },
    result: images,
};

/// Returns the images as content. The structured result names their types, and does not repeat the images.
fn images(arguments: &Members, response: &RouteResponse<'_>) -> Option<ToolResult> {
    let answer = response.json()?;
    let drawn = answer.get("data")?.as_array()?.iter();
    let drawn: Option<Vec<&str>> = drawn.map(|image| image.get("b64_json")?.as_str()).collect();
    let drawn = drawn?;
    let mut content = Vec::with_capacity(drawn.len());
    let mut told = Vec::with_capacity(drawn.len());
    for data in drawn {
        let media_type = media_type(data);
        content.push(json!({"type": "image", "data": data, "mimeType": media_type}));
        told.push(json!({"mime_type": media_type}));
    }
    let mut structured = Members::new();
    structured.insert("images".to_owned(), told.into());
    for name in ["created", "usage"] {
        let value = answer.get(name).filter(|value| !value.is_null());
        structured.extend(value.map(|value| (name.to_owned(), value.clone())));
    }
    let filename = arguments.get("filename").cloned();
    structured.extend(filename.map(|name| ("filename".to_owned(), name)));
    Some(ToolResult {
        content,
        structured: Some(Value::Object(structured)),
    })
}

/// Returns the type of an image by its first bytes, which are visible in base64.
fn media_type(base64: &str) -> &'static str {
    match base64.get(..4) {
        Some("/9j/") => "image/jpeg",
        Some("UklG") => "image/webp",
        Some("R0lG") => "image/gif",
        _ => "image/png",
    }
}
