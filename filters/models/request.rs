//! A chat completion request after the 400 rules: what we act on, and where everything else stands.

use std::ops::Range;

use bytes::Bytes;

use super::chat::call::ChatRequest;
use crate::fault::{Fault, FaultKind};

/// A request that passed [`super::chat::check::check`].
///
/// The body stays as it came. What routing and rewriting need is typed here; all other bytes are passed on to
/// providers of the same convention as slices of the body.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// The body as received.
    pub body: Bytes,
    /// The members of the top-level object, in order.
    pub members: Vec<RequestMember>,
    /// Messages that hold members beyond the plain convention, as ranges of the body.
    ///
    /// Plain are `role`, `content` (a string, null, or parts without the members listed at `Special`), `name`,
    /// `tool_call_id`, `tool_calls` without `extra_content`, `refusal`, `audio`, `function_call`.
    pub special_messages: Vec<Range<usize>>,
    /// Whether `tools` holds anything beyond plain functions and `strict`.
    pub special_tools: bool,
    /// The model string as sent.
    pub model: Box<str>,
    /// Whether the answer is an event stream.
    pub stream: bool,
    /// Whether the client asked for a usage chunk (`stream_options.include_usage`).
    pub include_usage: bool,
    /// Number of choices, at least 1.
    pub choices: u32,
    /// `routing`, where given and not `auto`.
    pub strategy: Option<Strategy>,
    /// `free_models_only`.
    pub free_models_only: bool,
    /// `no_reasoning`.
    pub no_reasoning: bool,
    /// `service_tier`, where given and neither `auto` nor `default`.
    pub service_tier: Option<ServiceTier>,
    /// `prompt_cache_key`, else `user`: the session where no `x-session-id` header came.
    pub session: Option<Box<str>>,
    /// `max_completion_tokens`, else `max_tokens`.
    pub max_tokens: Option<u64>,
    /// What the answer needs of a model.
    pub needs: Needs,
    /// Bytes of text in messages and tools (media data left out), for estimates.
    pub text_bytes: u64,
    /// Parts that are no text.
    pub media: Media,
}

/// Parts of messages that are no text: their bytes say little about their tokens.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Media {
    /// Pictures.
    pub images: u64,
    /// Sounds.
    pub sounds: u64,
    /// Files.
    pub files: u64,
    /// Bytes of pictures and sounds inside the body.
    pub bytes: u64,
}

/// One member of the top-level object. Units: byte offsets in the body.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RequestMember {
    /// The key, without escapes.
    pub key: Box<str>,
    /// From the key's first quote to the end of the value.
    pub whole: Range<usize>,
    /// The value.
    pub value: Range<usize>,
}

/// `routing`. Source: docs/model-gateway.md 2.1.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Strategy {
    /// Cheapest.
    Price,
    /// Most tokens a second.
    Throughput,
    /// First event soonest.
    Latency,
}

/// `service_tier`. Source: docs/model-gateway.md 2.1.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ServiceTier {
    /// Slow and cheap.
    Flex,
    /// Fast and dear.
    Priority,
}

/// What a request needs of a model and its provider.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Needs {
    /// A part is an image.
    pub vision: bool,
    /// Formats of audio parts.
    pub audio: Vec<Box<str>>,
    /// A part is a file.
    pub documents: bool,
    /// `tools` holds functions.
    pub tools: bool,
    /// `tool_choice` forces a call.
    pub forced_tools: bool,
    /// `response_format` is `json_object`.
    pub json_object: bool,
    /// `response_format` is `json_schema`.
    pub json_schema: bool,
    /// `reasoning_effort` or `reasoning.effort`.
    pub effort: Option<Effort>,
    /// `reasoning.max_tokens`.
    pub reasoning_tokens: Option<u64>,
    /// `reasoning.mode`, where given.
    pub reasoning_mode: Option<Box<str>>,
    /// `verbosity` is given.
    pub verbosity: bool,
    /// The request marks parts for a provider's cache.
    pub cache_control: bool,
}

/// A reasoning effort. Source: docs/model-gateway.md 2.1.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Effort {
    /// No reasoning.
    None,
    /// The least.
    Minimal,
    /// Little.
    Low,
    /// The usual.
    Medium,
    /// Much.
    High,
    /// Very much.
    Xhigh,
    /// The most.
    Max,
}

impl Effort {
    /// All of them, in order.
    pub const ALL: [Self; 7] = [
        Self::None,
        Self::Minimal,
        Self::Low,
        Self::Medium,
        Self::High,
        Self::Xhigh,
        Self::Max,
    ];

    /// The word of the convention.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }
}

impl ModelRequest {
    /// The member of this key.
    pub fn member(&self, key: &str) -> Option<&RequestMember> {
        self.members.iter().find(|member| &*member.key == key)
    }

    /// The text of a top-level value.
    pub fn value(&self, key: &str) -> Option<&[u8]> {
        self.body.get(self.member(key)?.value.clone())
    }

    /// The typed tree, for providers of another convention.
    ///
    /// Cost: one parse; text without escapes is borrowed from the body. Errors: an internal fault, since the
    /// checks have passed.
    pub fn call(&self) -> Result<ChatRequest<'_>, Fault> {
        serde_json::from_slice(&self.body).map_err(|error| {
            Fault::new(FaultKind::Internal, "the request could not be translated")
                .with_detail(format!("checked request does not parse: {error}"))
        })
    }
}
