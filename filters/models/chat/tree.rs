//! The request as a typed tree that borrows from the body, for translation to other conventions.
//!
//! It is built after the checks of a front: types and enums are right, and members that are not supported yet are
//! absent. Numbers stay as written ([`RawValue`]); text borrows where it holds no escapes.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

mod read;
mod tools;

pub use read::read_tree;
pub use tools::{
    Function, NamedFunction, SearchLocation, Tool, ToolChoice, ToolSearchTool, Tools, WebSearchTool,
};

/// Text that borrows from the body where it can.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Text<'a>(pub Cow<'a, str>);

impl std::ops::Deref for Text<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl serde::Serialize for Text<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// A whole request.
#[derive(Debug, Deserialize)]
pub struct ChatRequest<'a> {
    /// The conversation.
    #[serde(borrow, default)]
    pub messages: Vec<ChatMessage<'a>>,
    /// Functions the model may call, and searches that its provider runs.
    #[serde(borrow, default)]
    pub tools: Tools<'a>,
    /// Whether and which function must be called.
    #[serde(borrow, default)]
    pub tool_choice: Option<ToolChoice<'a>>,
    /// `false`: at most one call a turn.
    #[serde(default)]
    pub parallel_tool_calls: Option<bool>,
    /// As written.
    #[serde(borrow, default)]
    pub temperature: Option<&'a RawValue>,
    /// As written.
    #[serde(borrow, default)]
    pub top_p: Option<&'a RawValue>,
    /// As written.
    #[serde(borrow, default)]
    pub frequency_penalty: Option<&'a RawValue>,
    /// As written.
    #[serde(borrow, default)]
    pub presence_penalty: Option<&'a RawValue>,
    /// As written; a field of the convention beyond docs/model-gateway.md.
    #[serde(borrow, default)]
    pub seed: Option<&'a RawValue>,
    /// One stop sequence or several; a field of the convention beyond docs/model-gateway.md.
    #[serde(borrow, default)]
    pub stop: Option<Stop<'a>>,
    /// The form of the answer.
    #[serde(borrow, default)]
    pub response_format: Option<ResponseFormat<'a>>,
    /// The end user.
    #[serde(borrow, default)]
    pub user: Option<Text<'a>>,
    /// What the answer shall hold; a field of the convention beyond docs/model-gateway.md.
    #[serde(borrow, default)]
    pub modalities: Option<Vec<Text<'a>>>,
    /// How images are drawn.
    #[serde(borrow, default)]
    pub image_config: Option<ImageConfig<'a>>,
    /// Checks that the provider runs over the answer.
    #[serde(borrow, default)]
    pub vendor_safeguards: Option<VendorSafeguards<'a>>,
    /// `low`, `medium` or `high`, for the one model that knows it.
    #[serde(borrow, default)]
    pub effort: Option<Text<'a>>,
}

/// `image_config`. Source: docs/model-gateway.md 2.1.
#[derive(Debug, Default, Deserialize)]
pub struct ImageConfig<'a> {
    /// Width to height, such as `16:9`.
    #[serde(borrow, default)]
    pub aspect_ratio: Option<Text<'a>>,
    /// `1K`, `2K` or as the provider says it.
    #[serde(borrow, default)]
    pub image_size: Option<Text<'a>>,
    /// `low` to `max`, or `auto`.
    #[serde(borrow, default)]
    pub image_quality: Option<Text<'a>>,
    /// `auto` or `low`.
    #[serde(borrow, default)]
    pub moderation: Option<Text<'a>>,
    /// As written.
    #[serde(borrow, default)]
    pub seed: Option<&'a RawValue>,
}

/// `vendor_safeguards`.
#[derive(Debug, Deserialize)]
pub struct VendorSafeguards<'a> {
    /// The checks, as a JSON array.
    #[serde(borrow)]
    pub safeguards: &'a RawValue,
    /// The betas that switch them on.
    #[serde(borrow)]
    pub betas: Vec<Text<'a>>,
}

/// One text or several: `stop`, and anything else of that form.
#[derive(Debug, Default)]
pub struct Stop<'a>(pub Vec<Text<'a>>);

/// Who speaks.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions.
    Developer,
    /// Instructions.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// The result of a call.
    Tool,
    /// The result of a call, in the old form.
    Function,
}

/// One message. Source: docs/model-gateway.md 2.2.
#[derive(Debug, Deserialize)]
pub struct ChatMessage<'a> {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    #[serde(borrow, default)]
    pub content: Option<MessageContent<'a>>,
    /// The speaker's, or for role `function` the function's, name.
    #[serde(borrow, default)]
    pub name: Option<Text<'a>>,
    /// Which call a `tool` message answers.
    #[serde(borrow, default)]
    pub tool_call_id: Option<Text<'a>>,
    /// Calls the model made.
    #[serde(borrow, default)]
    pub tool_calls: Option<Vec<ToolCall<'a>>>,
    /// Reasoning text.
    #[serde(borrow, default)]
    pub reasoning: Option<Text<'a>>,
    /// The same in another spelling; `reasoning` wins.
    #[serde(borrow, default)]
    pub reasoning_content: Option<Text<'a>>,
    /// Images that the model drew.
    #[serde(borrow, default)]
    pub images: Option<Vec<DrawnImage<'a>>>,
    /// Opaque provider state and reasoning text, in the form we hand out.
    #[serde(borrow, default)]
    pub reasoning_details: Option<Vec<&'a RawValue>>,
    /// What the model said in place of an answer; a field of the convention beyond docs/model-gateway.md.
    #[serde(borrow, default)]
    pub refusal: Option<Text<'a>>,
    /// `commentary` or `final_answer`.
    #[serde(borrow, default)]
    pub phase: Option<Text<'a>>,
    /// Whether the content came before the calls; absent: not known.
    #[serde(default)]
    pub content_before_tool_calls: Option<bool>,
    /// Several messages of one turn, in place of `content`.
    #[serde(borrow, default)]
    pub message_items: Option<Vec<MessageItem<'a>>>,
    /// Provider-specific blocks, in the form we hand out.
    #[serde(borrow, default)]
    pub vendor_native_blocks: Option<Vec<&'a RawValue>>,
    /// A cache breakpoint for a tool result, as a JSON object.
    #[serde(borrow, default)]
    pub tool_result_cache_control: Option<&'a RawValue>,
}

impl ChatMessage<'_> {
    /// Returns the id of the call that a `tool` message answers; `None`: it names none.
    pub fn answered_call(&self) -> Option<&str> {
        self.tool_call_id.as_deref().filter(|id| !id.is_empty())
    }
}

/// An image that the model drew.
#[derive(Debug, Deserialize)]
pub struct DrawnImage<'a> {
    /// Where it is.
    #[serde(borrow)]
    pub image_url: ImageUrl<'a>,
}

/// One of several messages of a turn.
#[derive(Debug, Deserialize)]
pub struct MessageItem<'a> {
    /// What is said.
    #[serde(borrow)]
    pub text: Text<'a>,
    /// `commentary` or `final_answer`.
    #[serde(borrow, default)]
    pub phase: Option<Text<'a>>,
    /// The number of calls of the turn before it: a whole number, which some clients write as `1.0`. Without one it stands
    /// right behind the item before it.
    #[serde(default)]
    pub preceding_tool_calls: Option<f64>,
}

/// `content`.
#[derive(Debug)]
pub enum MessageContent<'a> {
    /// Text alone.
    Text(Text<'a>),
    /// Parts.
    Parts(Vec<ContentPart<'a>>),
}

/// What a content part is.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum PartType {
    /// `text` is set.
    Text,
    /// `image_url` is set.
    ImageUrl,
    /// `input_audio` is set.
    InputAudio,
    /// `file` is set.
    File,
    /// `refusal` is set: an assistant's refusal in the history, a part of the convention beyond docs/model-gateway.md.
    Refusal,
}

/// A content part; flat, because raw values cannot stand inside tagged enums. Source: docs/model-gateway.md 2.3.
#[derive(Debug, Deserialize)]
pub struct ContentPart<'a> {
    /// Which of the members below is set.
    #[serde(rename = "type")]
    pub part_type: PartType,
    /// Text.
    #[serde(borrow, default)]
    pub text: Option<Text<'a>>,
    /// An image by address or data URL.
    #[serde(borrow, default)]
    pub image_url: Option<ImageUrl<'a>>,
    /// Audio.
    #[serde(borrow, default)]
    pub input_audio: Option<InputAudio<'a>>,
    /// A file.
    #[serde(borrow, default)]
    pub file: Option<File<'a>>,
    /// A refusal.
    #[serde(borrow, default)]
    pub refusal: Option<Text<'a>>,
    /// Provider state that came with it, as a JSON object.
    #[serde(borrow, default)]
    pub extra_content: Option<&'a RawValue>,
    /// A cache breakpoint, as a JSON object.
    #[serde(borrow, default)]
    pub cache_control: Option<&'a RawValue>,
    /// A breakpoint for providers that cache where they are told to, as a JSON object.
    #[serde(borrow, default)]
    pub prompt_cache_breakpoint: Option<&'a RawValue>,
}

/// `image_url` of a part.
#[derive(Debug, Deserialize)]
pub struct ImageUrl<'a> {
    /// `https://…` or `data:…`.
    #[serde(borrow)]
    pub url: Text<'a>,
    /// `low`, `high` or `auto`.
    #[serde(borrow, default)]
    pub detail: Option<Text<'a>>,
}

/// `input_audio` of a part.
#[derive(Debug, Deserialize)]
pub struct InputAudio<'a> {
    /// Base64.
    #[serde(borrow)]
    pub data: Text<'a>,
    /// One of the formats of docs/model-gateway.md 2.3.
    #[serde(borrow)]
    pub format: Text<'a>,
}

/// `file` of a part.
#[derive(Debug, Deserialize)]
pub struct File<'a> {
    /// The name.
    #[serde(borrow, default)]
    pub filename: Option<Text<'a>>,
    /// A base64 data URL.
    #[serde(borrow, default)]
    pub file_data: Option<Text<'a>>,
    /// A reference to a file at the provider.
    #[serde(borrow, default)]
    pub file_id: Option<Text<'a>>,
}

/// A call in the history.
#[derive(Debug, Deserialize)]
pub struct ToolCall<'a> {
    /// The call's id.
    #[serde(borrow)]
    pub id: Text<'a>,
    /// Name and arguments.
    #[serde(borrow)]
    pub function: CalledFunction<'a>,
    /// Provider state that came with it, as a JSON object.
    #[serde(borrow, default)]
    pub extra_content: Option<&'a RawValue>,
}

/// `function` of a call in the history.
#[derive(Debug, Deserialize)]
pub struct CalledFunction<'a> {
    /// The name.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// JSON text, as the model wrote it: perhaps empty, perhaps not JSON.
    #[serde(borrow)]
    pub arguments: Text<'a>,
}

/// What `response_format` asks for.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum FormatType {
    /// Text.
    Text,
    /// Any JSON object.
    JsonObject,
    /// JSON that fits `json_schema`.
    JsonSchema,
}

/// `response_format`.
#[derive(Debug, Deserialize)]
pub struct ResponseFormat<'a> {
    /// What is asked for.
    #[serde(rename = "type")]
    pub format_type: FormatType,
    /// Name and schema, with [`FormatType::JsonSchema`].
    #[serde(borrow, default)]
    pub json_schema: Option<JsonSchema<'a>>,
}

/// `json_schema` of a response format.
#[derive(Debug, Deserialize)]
pub struct JsonSchema<'a> {
    /// The name.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// What it is for.
    #[serde(borrow, default)]
    pub description: Option<Text<'a>>,
    /// The schema.
    #[serde(borrow)]
    pub schema: &'a RawValue,
    /// Whether the answer must fit it.
    #[serde(default)]
    pub strict: Option<bool>,
}
