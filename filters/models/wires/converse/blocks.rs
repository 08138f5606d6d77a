//! Turns and content blocks as they stand on the wire. Source: docs/facts/wire-formats.md 5.2.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::models::chat::text::{Quoted, Text};

/// A turn.
#[derive(Debug, Serialize)]
pub(super) struct WireTurn<'a> {
    pub(super) role: &'static str,
    pub(super) content: Vec<ContentBlock<'a>>,
}

/// A content block, or the end of a prefix to cache.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ContentBlock<'a> {
    Text(Quoted<'a>),
    /// A text of ours.
    #[serde(rename = "text")]
    OwnText(String),
    Image(ImageBlock<'a>),
    Document(DocumentBlock<'a>),
    ToolUse(ToolUse<'a>),
    ToolResult(ToolResult<'a>),
    ReasoningContent(ReasoningContent<'a>),
    CachePoint(CachePoint),
}

#[derive(Debug, Serialize)]
pub(super) struct ImageBlock<'a> {
    pub(super) format: Cow<'a, str>,
    pub(super) source: Source<'a>,
}

#[derive(Debug, Serialize)]
pub(super) struct DocumentBlock<'a> {
    pub(super) format: &'static str,
    pub(super) name: String,
    pub(super) source: Source<'a>,
}

/// Where media comes from.
#[derive(Debug, Serialize)]
pub(super) struct Source<'a> {
    /// Base64.
    pub(super) bytes: Cow<'a, str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolUse<'a> {
    pub(super) tool_use_id: String,
    pub(super) name: &'a str,
    pub(super) input: Box<RawValue>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolResult<'a> {
    pub(super) tool_use_id: String,
    pub(super) content: Vec<ContentBlock<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<&'static str>,
}

/// Reasoning of an earlier turn.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ReasoningContent<'a> {
    ReasoningText {
        text: &'a str,
        signature: &'a str,
    },
    /// Base64.
    RedactedContent(&'a str),
}

/// The end of a prefix to cache.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct CachePoint {
    #[serde(rename = "type")]
    kind: &'static str,
    /// How long it holds, where that is not five minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

impl CachePoint {
    /// One that holds for five minutes.
    pub(super) const USUAL: Self = Self {
        kind: "default",
        ttl: None,
    };

    /// Reads a mark of a request, a JSON object.
    pub(super) fn read(mark: &RawValue) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Mark<'a> {
            #[serde(borrow)]
            ttl: Option<Text<'a>>,
        }
        let mark: Mark<'_> = serde_json::from_str(mark.get()).unwrap_or_default();
        let is_hour = mark.ttl.as_deref() == Some("1h");
        Self {
            ttl: is_hour.then_some("1h"),
            ..Self::USUAL
        }
    }
}
