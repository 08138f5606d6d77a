//! `tools`, sorted by what they are, and the choice among them. Source: docs/model-gateway.md 2.4.

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::value::RawValue;

use super::Text;

/// The tools of a request.
#[derive(Debug, Default)]
pub struct Tools<'a> {
    /// Functions that the client runs.
    pub functions: Vec<Tool<'a>>,
    /// The web search that the provider runs.
    pub web_search: Option<WebSearchTool<'a>>,
    /// Searches among the functions that the provider runs.
    pub tool_searches: Vec<ToolSearchTool<'a>>,
}

/// A function tool.
#[derive(Debug)]
pub struct Tool<'a> {
    /// The function.
    pub function: Function<'a>,
    /// A cache breakpoint, as a JSON object.
    pub cache_control: Option<&'a RawValue>,
    /// Whether the model sees the function only once a search has found it.
    pub defer_loading: bool,
    /// Who may call it, as a JSON array.
    pub allowed_callers: Option<&'a RawValue>,
}

/// `function` of a tool.
#[derive(Debug, Deserialize)]
pub struct Function<'a> {
    /// The name.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// What it does.
    #[serde(borrow, default)]
    pub description: Option<Text<'a>>,
    /// A JSON schema.
    #[serde(borrow, default)]
    pub parameters: Option<&'a RawValue>,
    /// Whether the arguments must fit the schema.
    #[serde(default)]
    pub strict: Option<bool>,
}

/// A web search tool. The most searches are a need of the request.
#[derive(Debug, Default)]
pub struct WebSearchTool<'a> {
    /// Where the user is.
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
#[expect(missing_docs, reason = "the words say it")]
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
    pub search_type: Text<'a>,
    /// Its name.
    pub name: Option<Text<'a>>,
}

/// A tool of any shape; flat, because raw values cannot stand inside tagged enums.
#[derive(Deserialize)]
struct AnyTool<'a> {
    #[serde(borrow, default)]
    function: Option<Function<'a>>,
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    cache_control: Option<&'a RawValue>,
    #[serde(default)]
    defer_loading: Option<bool>,
    #[serde(borrow, default)]
    allowed_callers: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_search_type: Option<Text<'a>>,
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    user_location: Option<SearchLocation<'a>>,
    #[serde(borrow, default)]
    search_context_size: Option<Text<'a>>,
    #[serde(borrow, default)]
    allowed_domains: Option<&'a RawValue>,
    #[serde(borrow, default)]
    blocked_domains: Option<&'a RawValue>,
}

impl<'a> Tools<'a> {
    fn add(&mut self, tool: AnyTool<'a>) {
        match (&*tool.kind, tool.function, tool.tool_search_type) {
            ("function", Some(function), _) => self.functions.push(Tool {
                function,
                cache_control: tool.cache_control,
                defer_loading: tool.defer_loading == Some(true),
                allowed_callers: tool.allowed_callers,
            }),
            ("web_search", ..) => {
                self.web_search = Some(WebSearchTool {
                    user_location: tool.user_location,
                    search_context_size: tool.search_context_size,
                    allowed_domains: tool.allowed_domains,
                    blocked_domains: tool.blocked_domains,
                });
            }
            ("tool_search", _, Some(search_type)) => self.tool_searches.push(ToolSearchTool {
                search_type,
                name: tool.name,
            }),
            // The checks let nothing else pass.
            _ => {}
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Tools<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Tools<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an array of tools or null")
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Tools::default())
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut tools = Tools::default();
                while let Some(tool) = seq.next_element()? {
                    tools.add(tool);
                }
                Ok(tools)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// `tool_choice`.
#[derive(Debug)]
pub enum ToolChoice<'a> {
    /// `auto`, `none` or `required`.
    Mode(Text<'a>),
    /// One function.
    Named(NamedFunction<'a>),
    /// The web search.
    WebSearch,
}

/// `function` of a tool choice.
#[derive(Debug, Deserialize)]
pub struct NamedFunction<'a> {
    /// The name.
    #[serde(borrow)]
    pub name: Text<'a>,
}
