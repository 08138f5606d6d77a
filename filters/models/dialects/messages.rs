//! Members of Messages. Source: docs/facts/messages.md 1.

use super::NamedMember;
use crate::models::parameter::Parameter;

/// Members that a mapping's table treats, each with the parameter that it asks for.
pub const PARAMETERS: [(&str, Parameter); 7] = [
    ("max_tokens", Parameter::MaxTokens),
    ("temperature", Parameter::Temperature),
    ("top_p", Parameter::TopP),
    ("stop_sequences", Parameter::Stop),
    ("tools", Parameter::Tools),
    ("tool_choice", Parameter::ToolChoice),
    ("metadata", Parameter::User),
];

/// Returns what faults call a member.
pub(super) fn name_of(member: NamedMember) -> &'static str {
    match member {
        NamedMember::Model => "model",
        NamedMember::Stream => "stream",
        NamedMember::Routing => "routing",
        NamedMember::ServiceTier => "service_tier",
        NamedMember::Effort => "output_config.effort",
        NamedMember::ReasoningBudget => "thinking.budget_tokens",
        NamedMember::ReasoningMode => "thinking",
        NamedMember::Turns
        | NamedMember::Media
        | NamedMember::Parameter(Parameter::ToolResultMedia) => "messages",
        NamedMember::Role => "role",
        NamedMember::Content | NamedMember::Calls => "content",
        NamedMember::AnsweredCall => "tool_use_id",
        NamedMember::FileId => "source.file_id",
        NamedMember::Parameter(Parameter::ResponseFormat) => "output_config.format",
        NamedMember::Parameter(Parameter::ParallelToolCalls) => {
            "tool_choice.disable_parallel_tool_use"
        }
        NamedMember::Parameter(Parameter::StrictTools) => "tools[].strict",
        NamedMember::Parameter(Parameter::VendorSafeguards) => "safeguards",
        // The dialect has no words for them.
        NamedMember::Choices | NamedMember::ImageOutput => "messages",
        NamedMember::Parameter(parameter) => {
            let mut members = PARAMETERS.iter();
            match members.find(|(_, known)| *known == parameter) {
                Some((key, _)) => key,
                None => parameter.as_str(),
            }
        }
    }
}
