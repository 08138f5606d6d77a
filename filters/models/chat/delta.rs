//! One piece of a chat's answer, as every provider's decoder hands it out.
//!
//! Decoders turn a provider's events, and its whole replies alike, into [`Delta`]s; a writer of a front combines them.
//! So the folded stream equals the whole reply by construction, and one place holds the rules about roles, tool indexes
//! and finish reasons for all providers.

use crate::json::Str;

/// Why an answer ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Finish {
    /// A natural end or a stop sequence. The sink makes `tool_calls` of it if there were calls.
    Stop,
    /// The limit of tokens.
    Length,
    /// The model calls tools.
    ToolCalls,
    /// A filter or a refusal.
    ContentFilter,
}

impl Finish {
    /// Returns the convention's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::ContentFilter => "content_filter",
        }
    }
}

/// A piece of a tool call.
///
/// `key` identifies a call within its choice, in the provider's own numbering (a content-block index, an output index,
/// a hash of the id). The sink numbers calls densely from 0 in the order of first appearance. The first piece of a key
/// should carry the name. The sink makes up a missing or empty `id`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToolDelta<'a> {
    /// The provider's own numbering.
    pub key: u64,
    /// The call's id; empty counts as absent.
    pub id: Option<Str<'a>>,
    /// The function's name; empty counts as absent.
    pub name: Option<Str<'a>>,
    /// A fragment of the arguments' JSON text.
    pub arguments: Option<Str<'a>>,
    /// `extra_content` of the call as a JSON object, tagged with its provider.
    pub extra_content: Option<&'a str>,
}

/// One piece of one choice. All members but `index` are optional; decoders borrow from the event.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delta<'a> {
    /// Which choice.
    pub index: u32,
    /// Text of the answer.
    pub content: Option<Str<'a>>,
    /// Text of the reasoning.
    pub reasoning: Option<Str<'a>>,
    /// Text of a refusal.
    pub refusal: Option<Str<'a>>,
    /// Items for `reasoning_details`: the inside of a JSON array, comma separated, without brackets.
    pub reasoning_details: Option<&'a str>,
    /// Items for `vendor_native_blocks`, in the same form.
    pub native_blocks: Option<&'a str>,
    /// Items for `annotations`, in the same form.
    pub annotations: Option<&'a str>,
    /// Items for `images`, in the same form.
    pub images: Option<&'a str>,
    /// How many images those are.
    pub image_count: u64,
    /// Pieces of tool calls.
    pub tools: &'a [ToolDelta<'a>],
    /// `logprobs` of the choice as a JSON value.
    pub logprobs: Option<&'a str>,
    /// Members we do not know, as `(key, JSON value)`, passed through.
    pub extra: &'a [(&'a str, &'a str)],
    /// The end of the choice.
    pub finish: Option<Finish>,
}

impl<'a> Delta<'a> {
    /// Returns the text of the answer if the delta holds nothing else.
    pub fn only_content(&self) -> Option<Str<'a>> {
        let has_more = self.reasoning.is_some()
            || self.refusal.is_some()
            || self.reasoning_details.is_some()
            || self.native_blocks.is_some()
            || self.annotations.is_some()
            || self.images.is_some()
            || !self.tools.is_empty()
            || self.logprobs.is_some()
            || !self.extra.is_empty()
            || self.finish.is_some();
        self.content.filter(|text| !has_more && !text.is_empty())
    }
}
