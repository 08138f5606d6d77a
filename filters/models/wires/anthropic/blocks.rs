//! Turns and content blocks as they stand on the wire. Source: docs/facts/wire-formats.md 3.1.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::models::chat::text::Quoted;

/// A turn.
#[derive(Debug, Serialize)]
pub(super) struct Turn<'a> {
    pub(super) role: &'static str,
    pub(super) content: Vec<ContentBlock<'a>>,
}

/// A content block.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ContentBlock<'a> {
    Text {
        text: Quoted<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<&'a RawValue>,
    },
    Image {
        source: BlockSource<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<&'a RawValue>,
    },
    Document {
        source: BlockSource<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<&'a RawValue>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: String,
        name: &'a str,
        input: Box<RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<&'a RawValue>,
    },
    ToolResult {
        tool_use_id: String,
        content: Vec<ContentBlock<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<&'a RawValue>,
    },
    /// A block as the provider said it.
    #[serde(untagged)]
    Native(&'a RawValue),
}

impl<'a> ContentBlock<'a> {
    /// Returns a text without a mark.
    pub(super) fn text(text: impl Into<Quoted<'a>>) -> Self {
        Self::Text {
            text: text.into(),
            cache_control: None,
        }
    }
}

/// Where media comes from.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum BlockSource<'a> {
    Base64 {
        media_type: Cow<'a, str>,
        data: Cow<'a, str>,
    },
    Url {
        url: &'a str,
    },
    Text {
        media_type: &'static str,
        data: Cow<'a, str>,
    },
}
