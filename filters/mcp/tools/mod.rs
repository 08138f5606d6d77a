//! The tools: each is a request to a route of the gateway, and a result made of its response.

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
    /// The name of the route that answers.
    pub route: &'static str,
    /// What an access token has to permit for it.
    pub scope: Scope,
    /// What clients are told: an entry of `tools/list` as a JSON text.
    pub description: &'static str,
    /// Returns the request to the route that checked arguments stand for.
    pub request: fn(&Members) -> RouteRequest,
    /// Returns the result that a response stands for; `None`: it is not what the route answers.
    pub result: fn(&Members, &RouteResponse<'_>) -> Option<ToolResult>,
}

/// The request to a route.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RouteRequest {
    /// The query; empty if there is none.
    pub query: String,
    pub body: Option<Value>,
    /// The key of the project whose flags are meant, where the arguments name one.
    pub sdk_key: Option<String>,
    /// Whose credential it has.
    pub authorization: Authorization,
}

/// The credential of the request to a route.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Authorization {
    #[default]
    Client,
    /// One for the graph service: the value of the header, where the arguments have it, else what the client sends in a header of
    /// its own.
    Graph(Option<String>),
}

/// A response of a route, a 200.
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
    /// What a model reads: texts, images, audio.
    pub content: Vec<Value>,
    /// What a program reads, in the shape of the tool's output schema; `None`: the tool failed.
    pub structured: Option<Value>,
}

impl ToolResult {
    /// Returns a result that a model and a program read alike.
    fn both(structured: Value) -> Self {
        Self {
            content: vec![text(&structured.to_string())],
            structured: Some(structured),
        }
    }

    /// Returns the result of a tool that failed: why, for a model, and the error as JSON, for a program.
    pub fn failure(message: &str, error: Option<&Value>) -> Self {
        let mut content = vec![text(message)];
        content.extend(error.map(|error| text(&json!({"error": error}).to_string())));
        Self {
            content,
            structured: None,
        }
    }

    /// Returns its members.
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

/// Returns a body with these of the arguments, under their own names.
fn body_of(arguments: &Members, names: &[&str]) -> Members {
    let named = names.iter().filter_map(|name| {
        let value = arguments.get(*name)?;
        Some(((*name).to_owned(), value.clone()))
    });
    named.collect()
}

/// Returns a query of these of the arguments, under their own names.
fn query_of(arguments: &Members, names: &[&str]) -> String {
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
