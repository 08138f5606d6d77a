//! What wires need to know of a chat request beyond what all operations have.

use std::ops::Range;

use super::inlined::RemoteImage;
use crate::models::dialects::compaction::Compaction;

/// What a front found in a chat request.
#[derive(Clone, Debug, Default)]
pub struct ChatFacts {
    /// Messages that hold members beyond the plain convention, as ranges of the body.
    ///
    /// Plain are `role`, `content` (a string, null, or parts without `cache_control`, `prompt_cache_breakpoint` and
    /// `extra_content`), `name`, `tool_call_id`, `tool_calls` without `extra_content`, `refusal`, `audio`,
    /// `function_call`.
    pub special_messages: Vec<Range<usize>>,
    /// Whether `tools` holds anything beyond plain functions and `strict`.
    pub special_tools: bool,
    /// Whether the client asked for a usage chunk (`stream_options.include_usage`).
    pub includes_usage: bool,
    /// Whether the answer should be JSON, and is repaired where it is not (`plugins`).
    pub heals: bool,
    /// The images that messages name by address.
    pub remote_images: Vec<RemoteImage>,
    /// The schema that the answer has to fit, as a range of the body.
    pub schema: Option<Range<usize>>,
    /// Whether the history is to be summarized, instead of answered.
    pub compaction: Compaction,
}
