//! The peculiarities of one provider, as data.
//!
//! The default is the plain convention. The shipped configuration holds the rows of known providers; no code
//! asks for a provider's name. Source: docs/facts/wire-formats.md 5.3 and 5.4.

/// Where a provider reports usage on a stream.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum StreamUsage {
    /// Only when asked by `stream_options.include_usage`.
    #[default]
    Ask,
    /// Always; the question is refused or superfluous.
    Always,
    /// Never.
    Never,
}

/// How reasoning text of earlier turns goes back.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ReasoningReplay {
    /// Not at all.
    #[default]
    None,
    /// As `reasoning_content`.
    ReasoningContent,
    /// As `reasoning`.
    Reasoning,
    /// As `reasoning_content`, and empty where a turn with tool calls has lost it.
    ReasoningContentRequired,
}

/// The peculiarities of a provider.
#[derive(Clone, Debug, PartialEq)]
pub struct Quirks {
    /// Path behind the base URL.
    pub chat_path: String,
    /// The header of the credential; `authorization` carries `Bearer `.
    pub auth_header: http::HeaderName,
    /// Whether the limit of tokens is called `max_completion_tokens`; else `max_tokens`.
    pub max_completion_tokens: bool,
    /// Where usage of a stream stands.
    pub stream_usage: StreamUsage,
    /// How reasoning text goes back.
    pub reasoning_replay: ReasoningReplay,
    /// Reported completion tokens leave reasoning out.
    pub reasoning_excluded_from_completion: bool,
    /// Fields to leave out: `logprobs`, `messages[].name`.
    pub drop: Vec<String>,
    /// Message members beyond the convention are refused, so they are left out.
    pub strict_messages: bool,
    /// Unknown top-level fields of the caller are left out.
    pub drop_unknown_fields: bool,
    /// Tool call ids must be nine letters or digits.
    pub tool_call_ids_of_nine: bool,
    /// `content: null` is refused, so it becomes an empty string.
    pub null_content_is_empty: bool,
    /// The highest temperature; higher ones are lowered to it.
    pub max_temperature: Option<f64>,
    /// `json_schema` is understood.
    pub json_schema: bool,
    /// A forced tool choice is honoured.
    pub forced_tools: bool,
    /// Schemas must be strict and closed at every object.
    pub strict_schema: bool,
    /// `developer` messages are called `system`.
    pub developer_is_system: bool,
    /// Errors come inside a 200.
    pub error_in_200: bool,
    /// The provider bills a call after the client has disconnected.
    pub bills_after_disconnect: bool,
}

impl Default for Quirks {
    fn default() -> Self {
        Self {
            chat_path: "/chat/completions".to_owned(),
            auth_header: http::header::AUTHORIZATION,
            max_completion_tokens: false,
            stream_usage: StreamUsage::default(),
            reasoning_replay: ReasoningReplay::default(),
            reasoning_excluded_from_completion: false,
            drop: Vec::new(),
            strict_messages: false,
            drop_unknown_fields: false,
            tool_call_ids_of_nine: false,
            null_content_is_empty: false,
            max_temperature: None,
            json_schema: true,
            forced_tools: true,
            strict_schema: false,
            developer_is_system: false,
            error_in_200: false,
            bills_after_disconnect: false,
        }
    }
}
