//! Members of chat completions. Source: docs/model-gateway.md 2.1, 2.2.

use std::borrow::Cow;

use super::{NamedMember, keys_of};
use crate::json::{Walker, members};
use crate::models::parameter::Parameter;

/// Returns the user whom a request names, in its own member or, as Anthropic's clients do, in `metadata`. `value` returns the JSON of
/// a member.
pub fn named_user<'b>(value: impl Fn(&str) -> Option<&'b str>) -> Option<Cow<'b, str>> {
    let own = ["safety_identifier", "user"].into_iter();
    let mut own = own.filter_map(|key| Walker::over(value(key)?).text().ok());
    own.next()
        .or_else(|| members::find_text(value("metadata")?, "user_id"))
}

/// Members of the convention, each with the parameter that it asks for; `None`: no mapping's table treats it. The quirks of a
/// provider say which others it gets.
pub const MEMBERS: [(&str, Option<Parameter>); 39] = [
    ("messages", None),
    ("model", None),
    ("temperature", Some(Parameter::Temperature)),
    ("max_tokens", Some(Parameter::MaxTokens)),
    ("max_completion_tokens", Some(Parameter::MaxTokens)),
    ("top_p", Some(Parameter::TopP)),
    ("frequency_penalty", Some(Parameter::FrequencyPenalty)),
    ("presence_penalty", Some(Parameter::PresencePenalty)),
    ("response_format", Some(Parameter::ResponseFormat)),
    ("stream", None),
    ("stream_options", None),
    ("n", None),
    ("prompt_cache_key", Some(Parameter::PromptCacheKey)),
    (
        "prompt_cache_retention",
        Some(Parameter::PromptCacheRetention),
    ),
    ("prompt_cache_options", Some(Parameter::PromptCacheOptions)),
    ("effort", Some(Parameter::Effort)),
    ("sensitive_word_check", Some(Parameter::SensitiveWordCheck)),
    ("user", Some(Parameter::User)),
    ("tools", Some(Parameter::Tools)),
    ("tool_choice", Some(Parameter::ToolChoice)),
    ("parallel_tool_calls", Some(Parameter::ParallelToolCalls)),
    ("reasoning_effort", None),
    ("verbosity", Some(Parameter::Verbosity)),
    ("service_tier", None),
    ("stop", Some(Parameter::Stop)),
    ("seed", Some(Parameter::Seed)),
    ("logit_bias", Some(Parameter::LogitBias)),
    ("logprobs", Some(Parameter::Logprobs)),
    ("top_logprobs", Some(Parameter::TopLogprobs)),
    ("modalities", Some(Parameter::Modalities)),
    ("audio", Some(Parameter::Audio)),
    ("prediction", Some(Parameter::Prediction)),
    ("store", Some(Parameter::Store)),
    ("metadata", Some(Parameter::Metadata)),
    ("safety_identifier", Some(Parameter::SafetyIdentifier)),
    ("functions", Some(Parameter::Functions)),
    ("function_call", Some(Parameter::FunctionCall)),
    ("reasoning", None),
    ("image_config", None),
];

/// Members that speak to the gateway and never reach a provider.
pub const GATEWAY_MEMBERS: [(&str, Option<Parameter>); 8] = [
    ("routing", None),
    ("free_models_only", None),
    ("onboarding", None),
    ("no_reasoning", None),
    ("prompt", None),
    ("plugins", None),
    ("web_search", Some(Parameter::WebSearch)),
    ("vendor_safeguards", Some(Parameter::VendorSafeguards)),
];

/// Members of `image_config`.
pub const IMAGE_CONFIG: [(&str, Parameter); 6] = [
    ("aspect_ratio", Parameter::ImageAspectRatio),
    ("image_size", Parameter::ImageSize),
    ("image_quality", Parameter::ImageQuality),
    ("moderation", Parameter::ImageModeration),
    ("n", Parameter::ImageCount),
    ("seed", Parameter::ImageSeed),
];

/// The newer name of the limit of tokens, which counts where both came.
pub const NEWER_LIMIT: &str = "max_completion_tokens";

/// Members that do not change the answer: the candidates stand for the model, one stored reply serves streams and whole responses,
/// and the others say who asks and which of the candidates comes first.
pub const UNCOUNTED: [&str; 6] = [
    "model",
    "stream",
    "stream_options",
    "user",
    "routing",
    "onboarding",
];

/// The keys of state in a request.
pub const STATE_KEYS: [&str; 3] = [
    "reasoning_details",
    "vendor_native_blocks",
    "thought_signature",
];

/// The keys of [`MEMBERS`].
pub const KEYS: [&str; MEMBERS.len()] = keys_of(&MEMBERS);

/// Returns whether a member is one of the gateway, however it is spelled: some servers read names in any case.
pub fn is_gateways(key: &str) -> bool {
    let mut members = GATEWAY_MEMBERS.iter();
    members.any(|(known, _)| known.eq_ignore_ascii_case(key))
}

/// Returns the parameter that a member asks for.
pub fn find_parameter(key: &str) -> Option<Parameter> {
    let mut members = MEMBERS.iter().chain(&GATEWAY_MEMBERS);
    members.find(|(known, _)| *known == key)?.1
}

/// Returns the parameter that a member of `image_config` asks for.
pub fn find_image_parameter(key: &str) -> Option<Parameter> {
    let mut members = IMAGE_CONFIG.iter();
    Some(members.find(|(known, _)| *known == key)?.1)
}

/// Returns what faults call a member.
pub(super) fn name_of(member: NamedMember) -> &'static str {
    match member {
        NamedMember::Parameter(Parameter::ReasoningSummary) => "reasoning",
        NamedMember::Parameter(Parameter::TokenInputs) => "input",
        NamedMember::Model => "model",
        NamedMember::Stream => "stream",
        NamedMember::Choices => "n",
        NamedMember::Routing => "routing",
        NamedMember::ServiceTier => "service_tier",
        NamedMember::Effort => "reasoning_effort",
        NamedMember::ReasoningBudget => "reasoning.max_tokens",
        NamedMember::ReasoningMode => "reasoning.mode",
        NamedMember::ImageOutput => "modalities",
        NamedMember::Turns
        | NamedMember::Media
        | NamedMember::Parameter(Parameter::ToolResultMedia) => "messages",
        NamedMember::Role => "role",
        NamedMember::Content => "content",
        NamedMember::Calls => "tool_calls",
        NamedMember::AnsweredCall => "tool_call_id",
        NamedMember::FileId => "file.file_id",
        // Configurations write parameters as this dialect does.
        NamedMember::Parameter(parameter) => parameter.as_str(),
    }
}
