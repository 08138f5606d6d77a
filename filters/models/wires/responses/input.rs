//! Input items and their parts as they stand on the wire. Source: docs/facts/wire-formats.md 2.2.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::models::chat::text::Quoted;

/// An item.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum InputItem<'a> {
    Message {
        role: &'static str,
        content: Vec<InputPart<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a str>,
    },
    Reasoning {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a RawValue>,
        summary: Summary<'a>,
        encrypted_content: Cow<'a, str>,
    },
    FunctionCall {
        call_id: String,
        name: &'a str,
        arguments: &'a str,
    },
    FunctionCallOutput {
        call_id: String,
        output: CallOutput<'a>,
    },
}

/// `summary` of a reasoning item, which must be there.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Summary<'a> {
    Given(&'a RawValue),
    None([(); 0]),
}

impl InputPart<'static> {
    /// Returns a text without a mark.
    pub(super) fn text(text: &'static str) -> Self {
        Self::InputText {
            text: text.into(),
            prompt_cache_breakpoint: None,
        }
    }
}

/// The result of a call.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum CallOutput<'a> {
    One(Quoted<'a>),
    Text(String),
    Parts(Vec<InputPart<'a>>),
}

/// Ends the prefix that the provider shall cache, as the client wrote it.
pub(super) type Breakpoint<'a> = Option<&'a RawValue>;

/// A part of a message or of a result.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum InputPart<'a> {
    InputText {
        text: Quoted<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt_cache_breakpoint: Breakpoint<'a>,
    },
    OutputText {
        text: Quoted<'a>,
    },
    Refusal {
        refusal: &'a str,
    },
    InputImage {
        image_url: Cow<'a, str>,
        detail: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt_cache_breakpoint: Breakpoint<'a>,
    },
    InputFile {
        #[serde(skip_serializing_if = "Option::is_none")]
        filename: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        file_data: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        file_id: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt_cache_breakpoint: Breakpoint<'a>,
    },
    InputAudio {
        input_audio: Sound<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt_cache_breakpoint: Breakpoint<'a>,
    },
}

/// `input_audio` of a part.
#[derive(Debug, Serialize)]
pub(super) struct Sound<'a> {
    pub(super) data: &'a str,
    pub(super) format: &'a str,
}
