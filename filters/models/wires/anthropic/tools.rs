//! Tools in the words of this wire. Source: docs/facts/wire-formats.md 3.1, 3.8.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::fault::Fault;
use crate::models::chat::conversation::Conversation;
use crate::models::chat::tools::{Function, Tool};
use crate::models::parameter::Parameter;
use crate::models::request::ModelRequest;
use crate::models::wires::closed_schema;
use crate::models::wires::near_place::NearPlace;
use crate::models::wires::wire::Target;

/// The name of the search, which no function may have beside it.
pub(super) const WEB_SEARCH: &str = "web_search";

/// A tool.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum WireTool<'a> {
    /// Run by the provider: a search among the functions.
    ToolSearch {
        #[serde(rename = "type")]
        kind: &'a str,
        name: &'a str,
    },
    /// Run by the client.
    Function {
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a str>,
        input_schema: Box<RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        strict: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        defer_loading: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        allowed_callers: Option<&'a RawValue>,
    },
    /// Run by the provider: a search of the web.
    WebSearch {
        #[serde(rename = "type")]
        kind: &'static str,
        name: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        max_uses: Option<Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        allowed_domains: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        blocked_domains: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        user_location: Option<NearPlace<'a>>,
    },
}

/// Returns the tools: searches among functions come first.
///
/// Errors: a function has the name of the web search.
pub(super) fn list<'a>(
    request: &ModelRequest,
    chat: &'a Conversation<'a>,
    target: &Target<'_>,
) -> Result<Vec<WireTool<'a>>, Fault> {
    let mut tools = Vec::new();
    let searches = target.parameters.supports(Parameter::ToolSearch);
    for tool in chat.tools.iter().filter(|_| searches) {
        if let Tool::ToolSearch(search) = tool {
            let kind = &*search.kind;
            let name = search.name.as_deref().unwrap_or_else(|| undated(kind));
            tools.push(WireTool::ToolSearch { kind, name });
        }
    }
    tools.extend(chat.functions().map(|tool| function(tool, target)));
    if request.needs.web_search.is_none() {
        return Ok(tools);
    }
    if chat.functions().any(|tool| &*tool.name == WEB_SEARCH) {
        return Err(Fault::invalid(
            "tools",
            format!(
                "`tools` holds a function of the name `{WEB_SEARCH}`, which is that of the chosen provider's own search"
            ),
        ));
    }
    let tells = |option| target.tells(option, request);
    let own = chat.web_search();
    tools.push(WireTool::WebSearch {
        kind: "web_search_20250305",
        name: WEB_SEARCH,
        max_uses: tells(Parameter::SearchMaxUses).then(|| target.said_searches(request)),
        allowed_domains: own
            .and_then(|own| own.allowed_domains)
            .filter(|_| request.asked.set.contains(Parameter::AllowedDomains)),
        blocked_domains: own
            .and_then(|own| own.blocked_domains)
            .filter(|_| request.asked.set.contains(Parameter::BlockedDomains)),
        user_location: own
            .and_then(|own| own.user_location.as_ref())
            .filter(|_| tells(Parameter::SearchLocation))
            .map(|location| NearPlace { location }),
    });
    Ok(tools)
}

/// Returns a type without its date, which is the name that the provider wants for it.
fn undated(kind: &str) -> &str {
    let dated = kind.rsplit_once('_');
    let is_date = |date: &str| date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit());
    match dated {
        Some((name, date)) if is_date(date) => name,
        _ => kind,
    }
}

fn function<'a>(tool: &'a Function<'a>, target: &Target<'_>) -> WireTool<'a> {
    let supports = |parameter| target.parameters.supports(parameter);
    let schema = tool
        .parameters
        .as_deref()
        .filter(|schema| schema.contains("\"type\""));
    let schema = schema.unwrap_or(r#"{"type":"object","properties":{}}"#);
    let mut schema = schema.to_owned();
    let strict = tool.strict;
    let strict = strict.filter(|strict| *strict && supports(Parameter::StrictTools));
    if strict.is_some()
        && let Some(mut closed) = closed_schema::read(schema.as_bytes())
    {
        closed_schema::close(&mut closed, &[]);
        schema = closed.to_string();
    }
    WireTool::Function {
        name: &tool.name,
        description: tool.description.as_deref(),
        input_schema: RawValue::from_string(schema).unwrap_or_default(),
        strict,
        cache_control: tool.cache,
        defer_loading: tool.is_deferred && supports(Parameter::ToolSearch),
        allowed_callers: tool.callers.filter(|_| supports(Parameter::AllowedCallers)),
    }
}
