//! The tools. Each is a request to a route of the gateway, and a result made of the response.

mod account;
mod flags;
mod images;
mod limits;
mod models;
mod speech;
mod text;

use form_urlencoded::byte_serialize;
use serde_json::{Value, json};

use super::message::Members;
use super::oauth::scope::Scope;

/// A tool.
#[derive(Debug)]
pub struct McpTool {
    /// The name of the route that the tool calls.
    pub route: &'static str,
    /// The scope that an access token needs for it.
    pub scope: Scope,
    /// The description for clients: an entry of `tools/list` as a JSON text.
    pub description: &'static str,
    /// Returns the request to the route for checked arguments.
    pub request: fn(&Members) -> RouteRequest,
    /// Returns the result for a response, or `None` if the response has an unexpected shape.
    pub result: fn(&Members, &RouteResponse<'_>) -> Option<ToolResult>,
}

/// The request to a route.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RouteRequest {
    /// The query, which may be empty.
    pub query: String,
    pub body: Option<Value>,
    /// The SDK key of the project, if the arguments name one.
    pub sdk_key: Option<String>,
    /// The credential of the request.
    pub authorization: Authorization,
}

/// The credential of the request to a route.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Authorization {
    #[default]
    Client,
    /// A credential for the graph service: the value in the arguments, or else the one in the client's own header.
    Graph(Option<String>),
}

/// A successful response of a route, with status 200.
#[derive(Clone, Copy, Debug)]
pub struct RouteResponse<'r> {
    pub media_type: &'r str,
    /// The whole body.
    pub body: &'r [u8],
}

impl RouteResponse<'_> {
    fn json(&self) -> Option<Value> {
        serde_json::from_slice(self.body).ok()
    }
}

/// The result of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// The content for a model: texts, images, audio.
    pub content: Vec<Value>,
    /// The result for a program, in the shape of the tool's output schema; `None` if the tool failed.
    pub structured: Option<Value>,
}

impl ToolResult {
    /// Returns a result with the same content for a model and a program.
    fn both(structured: Value) -> Self {
        Self {
            content: vec![text(&structured.to_string())],
            structured: Some(structured),
        }
    }

    /// Returns the result of a failed tool: a message for a model, and the error as JSON for a program.
    pub fn failure(message: &str, error: Option<&Value>) -> Self {
        let mut content = vec![text(message)];
        content.extend(error.map(|error| text(&json!({"error": error}).to_string())));
        Self {
            content,
            structured: None,
        }
    }

    /// Returns the members of the result.
    pub fn into_members(self) -> Members {
        let mut members = Members::new();
        members.insert("content".to_owned(), self.content.into());
        members.insert("isError".to_owned(), self.structured.is_none().into());
        members.extend(
            self.structured
                .map(|structured| ("structuredContent".to_owned(), structured)),
        );
        members
    }
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Returns a body with the named arguments.
fn copy_arguments(arguments: &Members, names: &[&str]) -> Members {
    let named = names.iter().filter_map(|name| {
        let value = arguments.get(*name)?;
        Some(((*name).to_owned(), value.clone()))
    });
    named.collect()
}

/// Returns a query with the named arguments.
fn write_query(arguments: &Members, names: &[&str]) -> String {
    let pairs = names.iter().filter_map(|name| {
        let value = match arguments.get(*name)? {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let value: String = byte_serialize(value.as_bytes()).collect();
        Some(format!("{name}={value}"))
    });
    let pairs: Vec<String> = pairs.collect();
    pairs.join("&")
}

/// All tools, in the order in which they are listed.
pub static TOOLS: [McpTool; 17] = [
    text::CHAT,
    models::LIST_MODELS,
    images::GENERATE_IMAGE,
    models::LIST_IMAGE_MODELS,
    images::GENERATE_NANO_BANANA,
    account::GET_ACCOUNT,
    account::KEY_STATUS,
    account::GET_USAGE,
    account::GET_USAGE_BREAKDOWN,
    text::EMBEDDINGS,
    text::SEARCH,
    speech::SPEECH,
    flags::LIST_FLAGS,
    flags::DECIDE,
    flags::EXPLAIN_DECISION,
    flags::SET_OVERRIDE,
    limits::GRAPH_LIMITS,
];
