//! What a model may call. Source: docs/model-gateway.md 2.4.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::text::Text;

/// A tool.
#[derive(Debug)]
pub enum Tool<'a> {
    /// Run by the client.
    Function(Function<'a>),
    /// A search of the web, run by the provider.
    WebSearch(WebSearchTool<'a>),
    /// A search among the functions, run by the provider.
    ToolSearch(ToolSearchTool<'a>),
}

/// A function.
#[derive(Debug)]
pub struct Function<'a> {
    pub name: Text<'a>,
    pub description: Option<Text<'a>>,
    /// A JSON schema.
    pub parameters: Option<Cow<'a, str>>,
    /// The offset of the schema in the body.
    pub at: u32,
    /// Whether the arguments must fit the schema.
    pub strict: Option<bool>,
    /// The end of a prefix to cache, as a JSON object.
    pub cache: Option<&'a RawValue>,
    /// Whether the model sees it only once a search has found it.
    pub is_deferred: bool,
    /// Who may call it, as a JSON array.
    pub callers: Option<&'a RawValue>,
}

/// A web search. The most searches are a need of the request.
#[derive(Debug, Default, Deserialize)]
pub struct WebSearchTool<'a> {
    #[serde(borrow)]
    pub user_location: Option<SearchLocation<'a>>,
    /// `low`, `medium` or `high`.
    pub search_context_size: Option<Text<'a>>,
    /// The only domains that are searched, as a JSON array.
    pub allowed_domains: Option<&'a RawValue>,
    /// Domains that are not searched, as a JSON array.
    pub blocked_domains: Option<&'a RawValue>,
}

/// Where a user is.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct SearchLocation<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub city: Option<Text<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub region: Option<Text<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub country: Option<Text<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<Text<'a>>,
}

/// A search among functions.
#[derive(Debug)]
pub struct ToolSearchTool<'a> {
    /// The provider's own type.
    pub kind: Text<'a>,
    pub name: Option<Text<'a>>,
}

/// Whether and what must be called.
#[derive(Debug)]
pub enum ToolChoice<'a> {
    Auto,
    None,
    Required,
    /// One function, by its name.
    Function(Text<'a>),
    WebSearch,
}
