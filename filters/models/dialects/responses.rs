//! Members of Responses, and the ids of items that the gateway makes. Source: docs/facts/responses.md 1.

use super::NamedMember;
use crate::models::parameter::Parameter;

/// Members that a mapping's table treats, each with the parameter that it asks for.
pub const PARAMETERS: [(&str, Parameter); 13] = [
    ("max_output_tokens", Parameter::MaxTokens),
    ("temperature", Parameter::Temperature),
    ("top_p", Parameter::TopP),
    ("tools", Parameter::Tools),
    ("tool_choice", Parameter::ToolChoice),
    ("parallel_tool_calls", Parameter::ParallelToolCalls),
    ("metadata", Parameter::Metadata),
    ("user", Parameter::User),
    ("safety_identifier", Parameter::SafetyIdentifier),
    ("prompt_cache_key", Parameter::PromptCacheKey),
    ("prompt_cache_retention", Parameter::PromptCacheRetention),
    ("prompt_cache_options", Parameter::PromptCacheOptions),
    ("max_tool_calls", Parameter::SearchMaxUses),
];

/// Members that speak to the gateway and never reach a provider.
pub const GATEWAY_MEMBERS: [&str; 5] = [
    "routing",
    "free_models_only",
    "no_reasoning",
    "background",
    "previous_response_id",
];

/// What stands behind the kind in the ids of items that the gateway makes: `msg_wg_…`. No provider has made them, so none gets
/// them back.
const OWN_ID: &str = "wg_";

/// Returns an id for an item of this kind, such as `msg`.
pub fn own_id(kind: &str, response: &str, index: usize) -> String {
    format!("{kind}_{OWN_ID}{response}_{index}")
}

/// Returns whether the gateway has made the id of an item.
pub fn is_own_id(id: &str) -> bool {
    let rest = id.split_once('_').map(|(_, rest)| rest);
    rest.is_some_and(|rest| rest.starts_with(OWN_ID))
}

/// Returns the parameter that a member asks for.
pub fn find_parameter(key: &str) -> Option<Parameter> {
    let mut members = PARAMETERS.iter();
    let (_, parameter) = members.find(|(known, _)| *known == key)?;
    Some(*parameter)
}

/// Returns what faults call a member.
pub(super) fn name_of(member: NamedMember) -> &'static str {
    match member {
        NamedMember::Model => "model",
        NamedMember::Stream => "stream",
        NamedMember::Routing => "routing",
        NamedMember::ServiceTier => "service_tier",
        NamedMember::Effort => "reasoning.effort",
        NamedMember::ReasoningMode => "reasoning.mode",
        NamedMember::Role => "role",
        NamedMember::Content => "content",
        NamedMember::AnsweredCall | NamedMember::Calls => "call_id",
        NamedMember::FileId => "file_id",
        NamedMember::Parameter(Parameter::ResponseFormat) => "text.format",
        NamedMember::Parameter(Parameter::Verbosity) => "text.verbosity",
        NamedMember::Parameter(Parameter::ReasoningSummary) => "reasoning.summary",
        NamedMember::Parameter(Parameter::StrictTools) => "tools[].strict",
        NamedMember::Parameter(Parameter::AllowedDomains) => "tools[].filters.allowed_domains",
        NamedMember::Parameter(Parameter::WebSearch) | NamedMember::ImageOutput => "tools",
        // The dialect has no words of their own for the rest.
        NamedMember::Turns
        | NamedMember::Media
        | NamedMember::Choices
        | NamedMember::ReasoningBudget
        | NamedMember::Parameter(Parameter::ToolResultMedia) => "input",
        NamedMember::Parameter(parameter) => {
            let mut members = PARAMETERS.iter();
            match members.find(|(_, known)| *known == parameter) {
                Some((key, _)) => key,
                None => parameter.as_str(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_our_making_is_known_again() {
        assert_eq!(own_id("msg", "01ab", 3), "msg_wg_01ab_3");
        assert!(is_own_id("msg_wg_01ab_3") && is_own_id(&own_id("ctc", "", 0)));
        for other in ["msg_68c2e0", "wg_1", "", "rs_0wg_1", "fc_wg"] {
            assert!(!is_own_id(other), "{other}");
        }
    }
}
