//! The shape of replies and events. Source: docs/facts/wire-formats.md 4.4.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::usage::UsageReport;
use crate::models::chat::text::Text;

/// A reply, or what an event holds of one.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Reply<'a> {
    #[serde(borrow)]
    pub(super) candidates: Vec<ReplyCandidate<'a>>,
    #[serde(borrow)]
    pub(super) prompt_feedback: Option<Feedback<'a>>,
    pub(super) usage_metadata: Option<UsageReport>,
    #[serde(borrow)]
    pub(super) response_id: Option<Text<'a>>,
}

/// Why a prompt has no answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Feedback<'a> {
    #[serde(borrow)]
    pub(super) block_reason: Option<Text<'a>>,
}

/// A choice of the answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ReplyCandidate<'a> {
    pub(super) index: u32,
    #[serde(borrow)]
    pub(super) content: Option<ReplyContent<'a>>,
    #[serde(borrow)]
    pub(super) finish_reason: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) grounding_metadata: Option<&'a RawValue>,
}

/// What a candidate says.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ReplyContent<'a> {
    #[serde(borrow)]
    pub(super) parts: Vec<ReplyPart<'a>>,
}

/// A part: a text, a call, media, or what a tool of the provider did.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ReplyPart<'a> {
    #[serde(borrow)]
    pub(super) text: Option<Text<'a>>,
    pub(super) thought: bool,
    #[serde(borrow)]
    pub(super) thought_signature: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) function_call: Option<FunctionCall<'a>>,
    #[serde(borrow)]
    pub(super) inline_data: Option<InlineData<'a>>,
    /// A tool that the provider runs.
    #[serde(borrow)]
    pub(super) tool_call: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) tool_response: Option<&'a RawValue>,
}

/// A call of a function of the client.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FunctionCall<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) args: Option<&'a RawValue>,
}

/// Media as base64.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct InlineData<'a> {
    #[serde(borrow)]
    pub(super) mime_type: Text<'a>,
    #[serde(borrow)]
    pub(super) data: Text<'a>,
}
