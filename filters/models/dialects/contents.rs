//! Members of Contents, and their two spellings. Source: docs/facts/contents.md 1.

use std::borrow::Cow;

use super::NamedMember;
use crate::models::parameter::Parameter;

/// Members of `generationConfig` that a mapping's table treats, each with the parameter that it asks for.
pub const PARAMETERS: [(&str, Parameter); 7] = [
    ("generationConfig.maxOutputTokens", Parameter::MaxTokens),
    ("generationConfig.temperature", Parameter::Temperature),
    ("generationConfig.topP", Parameter::TopP),
    ("generationConfig.stopSequences", Parameter::Stop),
    ("generationConfig.seed", Parameter::Seed),
    (
        "generationConfig.presencePenalty",
        Parameter::PresencePenalty,
    ),
    (
        "generationConfig.frequencyPenalty",
        Parameter::FrequencyPenalty,
    ),
];

/// Members that speak to the gateway and never reach a provider. The first two stand in the path of a request.
pub const GATEWAY_MEMBERS: [&str; 5] = [
    "model",
    "stream",
    "routing",
    "freeModelsOnly",
    "noReasoning",
];

/// Stands for the signature of a call that has none, as the vendor documents it.
pub const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Returns a key as the vendor writes it. Clients may write `snake_case`, too.
pub fn canonical(key: &str) -> Cow<'_, str> {
    let bare = key.trim_start_matches('_');
    if !bare.contains('_') {
        return Cow::Borrowed(key);
    }
    let mut parts = bare.split('_');
    let mut written = key.strip_suffix(bare).unwrap_or_default().to_owned();
    written.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let mut letters = part.chars();
        written.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        written.push_str(letters.as_str());
    }
    Cow::Owned(written)
}

/// Returns the parameter that a member of `generationConfig` asks for.
pub fn find_parameter(key: &str) -> Option<Parameter> {
    let mut members = PARAMETERS.iter();
    let (_, parameter) = members.find(|(path, _)| last_key(path) == key)?;
    Some(*parameter)
}

/// Returns the key at the end of a path.
pub fn last_key(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or_default()
}

/// Returns what faults call a member.
pub(super) fn name_of(member: NamedMember) -> &'static str {
    match member {
        NamedMember::Model => "model",
        NamedMember::Stream => "stream",
        NamedMember::Choices => "generationConfig.candidateCount",
        NamedMember::Routing => "routing",
        NamedMember::ServiceTier => "serviceTier",
        NamedMember::Effort => "generationConfig.thinkingConfig.thinkingLevel",
        NamedMember::ReasoningBudget => "generationConfig.thinkingConfig.thinkingBudget",
        NamedMember::ReasoningMode => "generationConfig.thinkingConfig",
        NamedMember::ImageOutput => "generationConfig.responseModalities",
        NamedMember::Role => "role",
        NamedMember::Content | NamedMember::Calls => "parts",
        NamedMember::AnsweredCall => "functionResponse",
        NamedMember::FileId => "fileData.fileUri",
        NamedMember::Turns
        | NamedMember::Media
        | NamedMember::Parameter(Parameter::ToolResultMedia) => "contents",
        NamedMember::Parameter(Parameter::Tools | Parameter::WebSearch) => "tools",
        NamedMember::Parameter(Parameter::ToolChoice | Parameter::ParallelToolCalls) => {
            "toolConfig.functionCallingConfig"
        }
        NamedMember::Parameter(Parameter::StrictTools) => "toolConfig.functionCallingConfig.mode",
        NamedMember::Parameter(Parameter::ResponseFormat) => "generationConfig.responseMimeType",
        NamedMember::Parameter(Parameter::Dimensions) => "outputDimensionality",
        NamedMember::Parameter(parameter) => {
            let mut members = PARAMETERS.iter();
            match members.find(|(_, known)| *known == parameter) {
                Some((path, _)) => path,
                None => parameter.as_str(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_of_a_key_are_one() {
        for (said, key) in [
            ("generation_config", "generationConfig"),
            ("generationConfig", "generationConfig"),
            ("inline_data", "inlineData"),
            ("a__b", "aB"),
            ("_a", "_a"),
            ("_a_b", "_aB"),
            ("a_", "a"),
            ("", ""),
        ] {
            assert_eq!(canonical(said), key, "{said}");
        }
    }

    #[test]
    fn a_member_is_named_where_it_stands() {
        assert_eq!(find_parameter("topP"), Some(Parameter::TopP));
        assert_eq!(find_parameter("generationConfig"), None);
        let name = name_of(Parameter::Stop.into());
        assert_eq!(name, "generationConfig.stopSequences");
    }
}
