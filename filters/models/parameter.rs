//! The fields of a request that some providers do not take as they are, and which of them a request asks for.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

mod set;

pub use set::ParameterSet;

/// A field that a provider may pass, rename, bound, drop or refuse: a closed list.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words say it")]
pub enum Parameter {
    Temperature,
    TopP,
    FrequencyPenalty,
    PresencePenalty,
    /// `max_completion_tokens` too.
    MaxTokens,
    Stop,
    Seed,
    LogitBias,
    Logprobs,
    TopLogprobs,
    User,
    SafetyIdentifier,
    PromptCacheKey,
    PromptCacheRetention,
    /// `prompt_cache_breakpoint` of parts too.
    PromptCacheOptions,
    ParallelToolCalls,
    Verbosity,
    Effort,
    SensitiveWordCheck,
    Store,
    Metadata,
    Prediction,
    Modalities,
    Audio,
    /// The old form of `tools`.
    Functions,
    /// The old form of `tool_choice`.
    FunctionCall,
    /// Function tools.
    Tools,
    /// A choice that forces a call.
    ToolChoice,
    /// A form other than text.
    ResponseFormat,
    #[serde(rename = "messages[].name")]
    MessageName,
    #[serde(rename = "messages[].content[].image_url.detail")]
    ImageDetail,
    #[serde(rename = "tools[].function.strict")]
    StrictTools,
    /// Images, audio and files in the result of a tool.
    ToolResultMedia,
    /// The summary of the reasoning, which the gateway asks for by itself where the wire has it.
    #[serde(rename = "reasoning.summary")]
    ReasoningSummary,
    #[serde(rename = "image_config.aspect_ratio")]
    ImageAspectRatio,
    #[serde(rename = "image_config.image_size")]
    ImageSize,
    #[serde(rename = "image_config.image_quality")]
    ImageQuality,
    #[serde(rename = "image_config.moderation")]
    ImageModeration,
    #[serde(rename = "image_config.n")]
    ImageCount,
    #[serde(rename = "image_config.seed")]
    ImageSeed,
    /// The model's own web search, by flag or tool.
    WebSearch,
    #[serde(rename = "tools[].user_location")]
    SearchLocation,
    #[serde(rename = "tools[].search_context_size")]
    SearchContextSize,
    #[serde(rename = "tools[].max_uses")]
    SearchMaxUses,
    #[serde(rename = "tools[].allowed_domains")]
    AllowedDomains,
    #[serde(rename = "tools[].blocked_domains")]
    BlockedDomains,
    /// A search among functions, and the functions that wait for it (`defer_loading`).
    ToolSearch,
    #[serde(rename = "tools[].allowed_callers")]
    AllowedCallers,
    VendorSafeguards,
    /// The length of vectors.
    Dimensions,
    TokenInputs,
    /// Of requests for images alone, as the four that follow.
    #[serde(rename = "style")]
    ImageStyle,
    #[serde(rename = "background")]
    ImageBackground,
    InputFidelity,
    OutputFormat,
    OutputCompression,
    /// Of completions alone, as the two that follow.
    Suffix,
    Echo,
    BestOf,
}

impl Parameter {
    /// The number of parameters.
    pub const COUNT: usize = Self::ALL.len();

    /// All of them, in order.
    pub const ALL: [Self; 59] = [
        Self::Temperature,
        Self::TopP,
        Self::FrequencyPenalty,
        Self::PresencePenalty,
        Self::MaxTokens,
        Self::Stop,
        Self::Seed,
        Self::LogitBias,
        Self::Logprobs,
        Self::TopLogprobs,
        Self::User,
        Self::SafetyIdentifier,
        Self::PromptCacheKey,
        Self::PromptCacheRetention,
        Self::PromptCacheOptions,
        Self::ParallelToolCalls,
        Self::Verbosity,
        Self::Effort,
        Self::SensitiveWordCheck,
        Self::Store,
        Self::Metadata,
        Self::Prediction,
        Self::Modalities,
        Self::Audio,
        Self::Functions,
        Self::FunctionCall,
        Self::Tools,
        Self::ToolChoice,
        Self::ResponseFormat,
        Self::MessageName,
        Self::ImageDetail,
        Self::StrictTools,
        Self::ToolResultMedia,
        Self::ReasoningSummary,
        Self::ImageAspectRatio,
        Self::ImageSize,
        Self::ImageQuality,
        Self::ImageModeration,
        Self::ImageCount,
        Self::ImageSeed,
        Self::WebSearch,
        Self::SearchLocation,
        Self::SearchContextSize,
        Self::SearchMaxUses,
        Self::AllowedDomains,
        Self::BlockedDomains,
        Self::ToolSearch,
        Self::AllowedCallers,
        Self::VendorSafeguards,
        Self::Dimensions,
        Self::TokenInputs,
        Self::ImageStyle,
        Self::ImageBackground,
        Self::InputFidelity,
        Self::OutputFormat,
        Self::OutputCompression,
        Self::Suffix,
        Self::Echo,
        Self::BestOf,
    ];

    /// Returns the field's name, as requests and configurations write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Temperature => "temperature",
            Self::TopP => "top_p",
            Self::FrequencyPenalty => "frequency_penalty",
            Self::PresencePenalty => "presence_penalty",
            Self::MaxTokens => "max_tokens",
            Self::Stop => "stop",
            Self::Seed => "seed",
            Self::LogitBias => "logit_bias",
            Self::Logprobs => "logprobs",
            Self::TopLogprobs => "top_logprobs",
            Self::User => "user",
            Self::SafetyIdentifier => "safety_identifier",
            Self::PromptCacheKey => "prompt_cache_key",
            Self::PromptCacheRetention => "prompt_cache_retention",
            Self::PromptCacheOptions => "prompt_cache_options",
            Self::ParallelToolCalls => "parallel_tool_calls",
            Self::Verbosity => "verbosity",
            Self::Effort => "effort",
            Self::SensitiveWordCheck => "sensitive_word_check",
            Self::Store => "store",
            Self::Metadata => "metadata",
            Self::Prediction => "prediction",
            Self::Modalities => "modalities",
            Self::Audio => "audio",
            Self::Functions => "functions",
            Self::FunctionCall => "function_call",
            Self::Tools => "tools",
            Self::ToolChoice => "tool_choice",
            Self::ResponseFormat => "response_format",
            Self::MessageName => "messages[].name",
            Self::ImageDetail => "messages[].content[].image_url.detail",
            Self::StrictTools => "tools[].function.strict",
            Self::ToolResultMedia => "tool_result_media",
            Self::ReasoningSummary => "reasoning.summary",
            Self::ImageAspectRatio => "image_config.aspect_ratio",
            Self::ImageSize => "image_config.image_size",
            Self::ImageQuality => "image_config.image_quality",
            Self::ImageModeration => "image_config.moderation",
            Self::ImageCount => "image_config.n",
            Self::ImageSeed => "image_config.seed",
            Self::WebSearch => "web_search",
            Self::SearchLocation => "tools[].user_location",
            Self::SearchContextSize => "tools[].search_context_size",
            Self::SearchMaxUses => "tools[].max_uses",
            Self::AllowedDomains => "tools[].allowed_domains",
            Self::BlockedDomains => "tools[].blocked_domains",
            Self::ToolSearch => "tool_search",
            Self::AllowedCallers => "tools[].allowed_callers",
            Self::VendorSafeguards => "vendor_safeguards",
            Self::Dimensions => "dimensions",
            Self::TokenInputs => "token_inputs",
            Self::ImageStyle => "style",
            Self::ImageBackground => "background",
            Self::InputFidelity => "input_fidelity",
            Self::OutputFormat => "output_format",
            Self::OutputCompression => "output_compression",
            Self::Suffix => "suffix",
            Self::Echo => "echo",
            Self::BestOf => "best_of",
        }
    }

    /// Returns whether the field is a member of the request itself, which may have another name at a provider.
    pub fn is_member(self) -> bool {
        !matches!(
            self,
            Self::MessageName
                | Self::ImageDetail
                | Self::StrictTools
                | Self::ToolResultMedia
                | Self::ReasoningSummary
                | Self::ImageAspectRatio
                | Self::ImageSize
                | Self::ImageQuality
                | Self::ImageModeration
                | Self::ImageCount
                | Self::ImageSeed
                | Self::WebSearch
                | Self::SearchLocation
                | Self::SearchContextSize
                | Self::SearchMaxUses
                | Self::AllowedDomains
                | Self::BlockedDomains
                | Self::ToolSearch
                | Self::AllowedCallers
                | Self::VendorSafeguards
                | Self::TokenInputs
        ) && !self.is_of_images()
    }

    /// Returns whether only requests for images have the field.
    pub fn is_of_images(self) -> bool {
        matches!(
            self,
            Self::ImageStyle
                | Self::ImageBackground
                | Self::InputFidelity
                | Self::OutputFormat
                | Self::OutputCompression
        )
    }

    /// Returns whether only requests for completions of texts have the field.
    pub fn is_of_texts(self) -> bool {
        matches!(self, Self::Suffix | Self::Echo | Self::BestOf)
    }

    /// Returns whether the field is a number, or a list whose length counts.
    pub fn is_number(self) -> bool {
        self == Self::MaxTokens || self.is_list() || self.neutral().is_some()
    }

    /// Returns whether the field is a list whose length counts, which cannot be shortened.
    pub fn is_list(self) -> bool {
        matches!(self, Self::Stop | Self::StrictTools)
    }

    /// Returns whether an answer without the field is another answer than the one asked for, so that the field may
    /// only be passed or refused.
    pub fn is_essential(self) -> bool {
        matches!(
            self,
            Self::MaxTokens
                | Self::Audio
                | Self::Functions
                | Self::FunctionCall
                | Self::Tools
                | Self::ToolChoice
                | Self::ResponseFormat
                | Self::ToolResultMedia
                | Self::ImageCount
                | Self::WebSearch
                | Self::AllowedDomains
                | Self::BlockedDomains
                | Self::VendorSafeguards
                | Self::Dimensions
                | Self::TokenInputs
                | Self::Suffix
                | Self::Echo
        )
    }

    /// Returns the value that asks for nothing, of the fields that are numbers with one.
    pub fn neutral(self) -> Option<f64> {
        match self {
            Self::Temperature | Self::TopP | Self::ImageCount => Some(1.0),
            Self::FrequencyPenalty | Self::PresencePenalty | Self::TopLogprobs => Some(0.0),
            _ => None,
        }
    }

    const fn bit(self) -> u64 {
        1 << self as u32
    }
}

impl JsonSchema for Parameter {
    fn schema_name() -> Cow<'static, str> {
        "Parameter".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": Self::ALL.map(Self::as_str).as_slice() })
    }
}

/// The parameters that a request asks for.
///
/// Null asks for nothing, and neither does a value that changes nothing, such as a penalty of 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AskedParameters {
    pub set: ParameterSet,
    /// The values of those that are numbers, and the counts of those that are lists; also values that ask for nothing.
    pub numbers: Vec<(Parameter, f64)>,
}

impl AskedParameters {
    /// Returns those of a set, the numbers that a request has, and the flags that hold.
    pub fn new<const N: usize, const F: usize>(
        set: ParameterSet,
        numbers: [(Parameter, Option<f64>); N],
        flags: [(Parameter, bool); F],
    ) -> Self {
        let mut asked = Self {
            set,
            ..Self::default()
        };
        for (parameter, number) in numbers {
            if let Some(number) = number {
                asked.add_number(parameter, number);
            }
        }
        for (parameter, is_asked) in flags {
            if is_asked {
                asked.set.insert(parameter);
            }
        }
        asked
    }

    /// Returns the value of a number, or the count of a list.
    pub fn number(&self, parameter: Parameter) -> Option<f64> {
        let mut numbers = self.numbers.iter();
        let (_, number) = numbers.find(|(asked, _)| *asked == parameter)?;
        Some(*number)
    }

    /// Adds a number, or the count of a list.
    pub fn add_number(&mut self, parameter: Parameter, number: f64) {
        self.numbers.push((parameter, number));
        if parameter.neutral() != Some(number) {
            self.set.insert(parameter);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_write_each_parameter_by_its_name() {
        for parameter in Parameter::ALL {
            let name = serde_json::to_value(parameter).unwrap();
            assert_eq!(name, parameter.as_str());
        }
        let all: ParameterSet = Parameter::ALL.into_iter().collect();
        assert_eq!(all.len() as usize, Parameter::COUNT);
    }

    #[test]
    fn a_number_that_changes_nothing_asks_for_nothing() {
        let mut asked = AskedParameters::default();
        asked.add_number(Parameter::TopP, 1.0);
        asked.add_number(Parameter::Seed, 0.0);
        assert!(!asked.set.contains(Parameter::TopP) && asked.set.contains(Parameter::Seed));
        assert_eq!(asked.number(Parameter::TopP), Some(1.0));
    }
}
