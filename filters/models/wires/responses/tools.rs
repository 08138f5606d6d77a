//! Tools in the words of this wire. Source: docs/facts/wire-formats.md 2.2, 2.5.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::models::chat::conversation::Conversation;
use crate::models::chat::tools::Function;
use crate::models::parameter::Parameter;
use crate::models::request::ModelRequest;
use crate::models::wires::near_place::NearPlace;
use crate::models::wires::wire::Target;

/// A tool.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum WireTool<'a> {
    /// Run by the client.
    Function {
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a str>,
        parameters: Box<RawValue>,
        // Left out, it would mean an attempt at strictness, which it does not in the convention.
        strict: bool,
    },
    /// Run by the provider.
    WebSearch {
        #[serde(skip_serializing_if = "Option::is_none")]
        filters: Option<Filters<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        search_context_size: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        user_location: Option<NearPlace<'a>>,
    },
}

/// What is searched.
#[derive(Debug, Serialize)]
pub(super) struct Filters<'a> {
    allowed_domains: &'a RawValue,
}

/// Returns the tools.
pub(super) fn list<'a>(
    request: &ModelRequest,
    chat: &'a Conversation<'a>,
    target: &Target<'_>,
) -> Vec<WireTool<'a>> {
    let takes_strict = target.parameters.supports(Parameter::StrictTools);
    let functions = chat.functions();
    let mut tools: Vec<WireTool<'_>> = functions
        .map(|function| wire_function(function, takes_strict))
        .collect();
    if request.needs.web_search.is_none() {
        return tools;
    }
    let tells = |option| target.tells(option, request);
    let own = chat.web_search();
    tools.push(WireTool::WebSearch {
        filters: own
            .and_then(|own| own.allowed_domains)
            .filter(|_| request.asked.set.contains(Parameter::AllowedDomains))
            .map(|allowed_domains| Filters { allowed_domains }),
        search_context_size: own
            .and_then(|own| own.search_context_size.as_deref())
            .filter(|_| tells(Parameter::SearchContextSize)),
        user_location: own
            .and_then(|own| own.user_location.as_ref())
            .filter(|_| tells(Parameter::SearchLocation))
            .map(|location| NearPlace { location }),
    });
    tools
}

/// Returns the most calls of tools that the provider runs, which are searches and looks at what they found.
pub(super) fn max_calls(request: &ModelRequest, target: &Target<'_>) -> Option<Value> {
    let is_told =
        request.needs.web_search.is_some() && target.tells(Parameter::SearchMaxUses, request);
    is_told.then(|| target.said_searches(request))
}

fn wire_function<'a>(function: &'a Function<'a>, takes_strict: bool) -> WireTool<'a> {
    const NONE: &str = r#"{"type":"object","properties":{}}"#;
    let schema = function.parameters.as_deref().unwrap_or(NONE);
    WireTool::Function {
        name: &function.name,
        description: function.description.as_deref(),
        parameters: RawValue::from_string(schema.to_owned()).unwrap_or_default(),
        strict: takes_strict && function.strict.unwrap_or(false),
    }
}
