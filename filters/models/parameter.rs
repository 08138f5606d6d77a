//! The fields of a request that some providers do not take as they are, and which of them a request asks for.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

mod set;

pub use set::ParameterSet;

/// Makes the closed list of fields, each with the name that requests and configurations write.
macro_rules! parameters {
    ($($(#[doc = $doc:literal])* $field:ident => $name:literal,)*) => {
        /// A field that a provider may pass, rename, bound, drop or refuse: a closed list.
        #[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
        #[expect(missing_docs, reason = "the words say it")]
        pub enum Parameter {
            $($(#[doc = $doc])* #[serde(rename = $name)] $field,)*
        }

        impl Parameter {
            /// How many there are.
            pub const COUNT: usize = [$($name),*].len();

            /// All of them, in order.
            pub const ALL: [Self; Self::COUNT] = [$(Self::$field),*];

            /// Returns the field's name, as requests and configurations write it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$field => $name,)*
                }
            }
        }
    };
}

parameters! {
    Temperature => "temperature",
    TopP => "top_p",
    FrequencyPenalty => "frequency_penalty",
    PresencePenalty => "presence_penalty",
    /// `max_completion_tokens` too.
    MaxTokens => "max_tokens",
    Stop => "stop",
    Seed => "seed",
    LogitBias => "logit_bias",
    Logprobs => "logprobs",
    TopLogprobs => "top_logprobs",
    User => "user",
    SafetyIdentifier => "safety_identifier",
    PromptCacheKey => "prompt_cache_key",
    PromptCacheRetention => "prompt_cache_retention",
    /// `prompt_cache_breakpoint` of parts too.
    PromptCacheOptions => "prompt_cache_options",
    ParallelToolCalls => "parallel_tool_calls",
    Verbosity => "verbosity",
    Effort => "effort",
    SensitiveWordCheck => "sensitive_word_check",
    Store => "store",
    Metadata => "metadata",
    Prediction => "prediction",
    Modalities => "modalities",
    Audio => "audio",
    /// The old form of `tools`.
    Functions => "functions",
    /// The old form of `tool_choice`.
    FunctionCall => "function_call",
    /// Function tools.
    Tools => "tools",
    /// A choice that forces a call.
    ToolChoice => "tool_choice",
    /// A form other than text.
    ResponseFormat => "response_format",
    MessageName => "messages[].name",
    ImageDetail => "messages[].content[].image_url.detail",
    StrictTools => "tools[].function.strict",
    /// Images, audio and files in the result of a tool.
    ToolResultMedia => "tool_result_media",
    /// The summary of the reasoning, which the gateway asks for by itself where the wire has it.
    ReasoningSummary => "reasoning.summary",
    ImageAspectRatio => "image_config.aspect_ratio",
    ImageSize => "image_config.image_size",
    ImageQuality => "image_config.image_quality",
    ImageModeration => "image_config.moderation",
    ImageCount => "image_config.n",
    ImageSeed => "image_config.seed",
    /// The model's own web search, by flag or tool.
    WebSearch => "web_search",
    SearchLocation => "tools[].user_location",
    SearchContextSize => "tools[].search_context_size",
    SearchMaxUses => "tools[].max_uses",
    AllowedDomains => "tools[].allowed_domains",
    BlockedDomains => "tools[].blocked_domains",
    /// A search among functions, and the functions that wait for it (`defer_loading`).
    ToolSearch => "tool_search",
    AllowedCallers => "tools[].allowed_callers",
    VendorSafeguards => "vendor_safeguards",
    /// The length of vectors.
    Dimensions => "dimensions",
    TokenInputs => "token_inputs",
    /// Of requests for images alone, as the four that follow.
    ImageStyle => "style",
    ImageBackground => "background",
    InputFidelity => "input_fidelity",
    OutputFormat => "output_format",
    OutputCompression => "output_compression",
    /// Of completions alone, as the two that follow.
    Suffix => "suffix",
    Echo => "echo",
    BestOf => "best_of",
}

impl Parameter {
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
