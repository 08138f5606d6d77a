//! Messages as this wire wants them. Source: docs/facts/wire-formats.md 5.6. What the wire would refuse is refused here, naming
//! the place.

use std::borrow::Cow;

use serde::Serialize;

use super::documents::Document;
use crate::fault::Fault;
use crate::models::chat::conversation::{
    AnswerForm, Block, BlockKind, Conversation, Media, MediaKind, MediaSource, Role, Turn,
};
use crate::models::chat::data_url;
use crate::models::chat::inlined::InlinedImages;
use crate::models::chat::input::object;
use crate::models::chat::text::Quoted;
use crate::models::dialects::NamedMember;
use crate::models::parameter::Parameter;
use crate::models::wires::history::{CallIds, check_texts, no_call, open_calls};
use crate::models::wires::open_calls::OpenCalls;
use crate::models::wires::wire::Target;

/// A message.
#[derive(Debug, Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub(super) enum Message<'a> {
    System {
        content: Content<'a>,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<Content<'a>>,
        /// Why it calls.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_plan: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall<'a>>,
    },
    Tool {
        tool_call_id: String,
        content: String,
    },
}

/// What a message says: one text as it is, anything else as parts.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(Quoted<'a>),
    Parts(Vec<ContentPart<'a>>),
}

impl<'a> Content<'a> {
    /// Returns what these parts are together; `None`: nothing.
    fn of_parts(parts: Vec<ContentPart<'a>>) -> Option<Self> {
        match &*parts {
            [] => None,
            [ContentPart::Text { text }] => Some(Self::Text(*text)),
            _ => Some(Self::Parts(parts)),
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ContentPart<'a> {
    Text { text: Quoted<'a> },
    ImageUrl { image_url: ImageUrl<'a> },
}

#[derive(Debug, Serialize)]
pub(super) struct ImageUrl<'a> {
    url: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
}

#[derive(Debug, Serialize)]
pub(super) struct ToolCall<'a> {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    function: CalledFunction<'a>,
}

#[derive(Debug, Serialize)]
struct CalledFunction<'a> {
    name: &'a str,
    /// JSON text.
    arguments: String,
}

/// The messages in the making.
#[derive(Debug)]
pub(super) struct CohereConversation<'a> {
    pub(super) messages: Vec<Message<'a>>,
    /// The files of users.
    pub(super) documents: Vec<Document<'a>>,
    conversation: &'a Conversation<'a>,
    /// Calls of the last assistant turn that have no result yet, each with the id that goes out.
    open: OpenCalls<'a, String>,
    ids: CallIds,
    asked_at: u32,
    inlined: &'a InlinedImages,
    /// How closely images are looked at is said.
    tells_detail: bool,
}

impl<'a> CohereConversation<'a> {
    /// Reads all turns.
    pub(super) fn read(
        conversation: &'a Conversation<'a>,
        target: &Target<'a>,
    ) -> Result<Self, Fault> {
        let mut read = Self {
            messages: Vec::new(),
            documents: Vec::new(),
            conversation,
            open: OpenCalls::default(),
            ids: CallIds::default(),
            asked_at: 0,
            inlined: target.inlined,
            tells_detail: target.parameters.supports(Parameter::ImageDetail),
        };
        for turn in &conversation.turns {
            read.read_turn(turn)?;
        }
        read.check_answered()?;
        match read.messages.is_empty() {
            true => Err(conversation.fault_of_all("holds no user's message")),
            false => Ok(read),
        }
    }

    fn read_turn(&mut self, turn: &'a Turn<'a>) -> Result<(), Fault> {
        match turn.role {
            Role::System | Role::Developer => {
                self.check_answered()?;
                check_texts(self.conversation, turn)?;
                let content = self.content(&turn.blocks)?;
                self.messages
                    .extend(content.map(|content| Message::System { content }));
                Ok(())
            }
            Role::User => self.user(turn),
            Role::Assistant => self.assistant(turn),
        }
    }

    /// Reads the results of a turn, and what the user says behind them.
    fn user(&mut self, turn: &'a Turn<'a>) -> Result<(), Fault> {
        let is_result = |block: &&Block<'_>| matches!(block.kind, BlockKind::Result { .. });
        let mut has_results = false;
        let mut parts = Vec::new();
        for block in turn.blocks.iter().filter(is_result) {
            has_results = true;
            self.result(block, &mut parts)?;
        }
        if !has_results {
            self.check_answered()?;
        }
        parts.extend(self.parts(&turn.blocks)?);
        let has_files = self.read_files(&turn.blocks)?;
        match Content::of_parts(parts) {
            Some(content) => self.messages.push(Message::User { content }),
            None if has_results => {}
            None if has_files => {
                let said = "holds files alone; the chosen provider needs a text beside them";
                let content = Some(NamedMember::Content);
                return Err(self.conversation.fault(turn.at, content, said));
            }
            None => {
                let said = "is empty; a user's message needs text or a part";
                let content = Some(NamedMember::Content);
                return Err(self.conversation.fault(turn.at, content, said));
            }
        }
        Ok(())
    }

    /// Reads the files of a user's turn, which no other turn has. Returns whether there are some.
    fn read_files(&mut self, blocks: &'a [Block<'a>]) -> Result<bool, Fault> {
        let before = self.documents.len();
        for block in blocks {
            let BlockKind::Media(media) = &block.kind else {
                continue;
            };
            if media.kind != MediaKind::Document {
                continue;
            }
            let refuse = |said: &str| self.conversation.fault(block.at, None, said);
            if !matches!(self.conversation.form, AnswerForm::Text) {
                let said = "is a file, which the chosen provider does not take beside a form of the answer";
                return Err(refuse(said));
            }
            let document = Document::read(media, self.documents.len()).map_err(refuse)?;
            self.documents.push(document);
        }
        Ok(self.documents.len() > before)
    }

    /// Reads a result. Its media go to `behind`: they stand in the user's message behind the results.
    fn result(
        &mut self,
        block: &'a Block<'a>,
        behind: &mut Vec<ContentPart<'a>>,
    ) -> Result<(), Fault> {
        let BlockKind::Result {
            call,
            content,
            is_error,
        } = &block.kind
        else {
            return Ok(());
        };
        // One that names no call answers the next one.
        let Some(own_id) = self.open.answer(call.as_deref(), None) else {
            return Err(no_call(self.conversation, block.at));
        };
        let tool_call_id = std::mem::take(own_id);
        let mut texts: Vec<&str> = Vec::new();
        let media_before = behind.len();
        for part in content {
            match &part.kind {
                BlockKind::Text(said) | BlockKind::Refusal(said) => texts.push(said),
                BlockKind::Media(media) => behind.extend(self.media(part.at, media)?),
                _ => {}
            }
        }
        if behind.len() > media_before {
            texts.push("The result holds media, which stand in the next message.");
        }
        let error = if *is_error { "Error: " } else { "" };
        let text = [error, &texts.join("\n\n")].concat();
        self.messages.push(Message::Tool {
            tool_call_id,
            content: text,
        });
        Ok(())
    }

    fn assistant(&mut self, turn: &'a Turn<'a>) -> Result<(), Fault> {
        self.check_answered()?;
        check_texts(self.conversation, turn)?;
        self.asked_at = turn.at;
        let content = self.content(&turn.blocks)?;
        let mut tool_calls = Vec::new();
        let mut tool_plan: Option<Cow<'a, str>> = None;
        for block in &turn.blocks {
            match &block.kind {
                BlockKind::Call { id, name, input } => {
                    let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
                    let own_id = self.ids.unique(id, is_good);
                    self.open.push(id, name, own_id.clone());
                    tool_calls.push(ToolCall {
                        id: own_id,
                        kind: "function",
                        function: CalledFunction {
                            name,
                            arguments: object(input).get().to_owned(),
                        },
                    });
                }
                BlockKind::Reasoning(text) => match &mut tool_plan {
                    Some(plan) => plan.to_mut().push_str(text),
                    None => tool_plan = Some(Cow::Borrowed(text)),
                },
                _ => {}
            }
        }
        let is_empty = content.is_none() && tool_calls.is_empty();
        if !is_empty {
            // A plan without calls is refused.
            let tool_plan = tool_plan.filter(|_| !tool_calls.is_empty());
            self.messages.push(Message::Assistant {
                content,
                tool_plan,
                tool_calls,
            });
        }
        Ok(())
    }

    fn check_answered(&self) -> Result<(), Fault> {
        match self.open.is_empty() {
            true => Ok(()),
            false => Err(open_calls(self.conversation, self.asked_at)),
        }
    }

    /// Returns texts and images of a message that is not a user's; `None`: there are none.
    fn content(&self, blocks: &'a [Block<'a>]) -> Result<Option<Content<'a>>, Fault> {
        for block in blocks {
            if let BlockKind::Media(media) = &block.kind
                && media.kind == MediaKind::Document
            {
                self.media(block.at, media)?;
            }
        }
        self.parts(blocks).map(Content::of_parts)
    }

    fn parts(&self, blocks: &'a [Block<'a>]) -> Result<Vec<ContentPart<'a>>, Fault> {
        let mut parts = Vec::new();
        for block in blocks {
            match &block.kind {
                BlockKind::Text(text) | BlockKind::Refusal(text) => {
                    let text = text.quoted();
                    if !text.is_empty() {
                        parts.push(ContentPart::Text { text });
                    }
                }
                // Files are documents, and not of the message.
                BlockKind::Media(media) if media.kind == MediaKind::Document => {}
                BlockKind::Media(media) => parts.extend(self.media(block.at, media)?),
                _ => {}
            }
        }
        Ok(parts)
    }

    fn media(&self, at: u32, media: &'a Media<'a>) -> Result<Option<ContentPart<'a>>, Fault> {
        let refuse = |said: &str| Err(self.conversation.fault(at, None, said));
        match media.kind {
            MediaKind::Drawn => return Ok(None),
            MediaKind::Image => {}
            MediaKind::Document => {
                return refuse("is a file, which the chosen provider takes of users alone");
            }
            MediaKind::Audio => return refuse("is audio, which the chosen provider does not take"),
        }
        let address = match &media.source {
            MediaSource::Url(url) => &**url,
            MediaSource::Id(_) | MediaSource::Data { .. } => "",
        };
        let fetched = self.inlined.find(address);
        let url = fetched.map_or(address, |image| &*image.url);
        let url = match data_url::parse(url) {
            Some(data) => Cow::Owned(format!("data:{};base64,{}", data.media_type, data.data)),
            None if url.starts_with("https://") => Cow::Borrowed(url),
            None => return refuse("is neither an https address nor a base64 data URL"),
        };
        let detail = media.detail.as_deref().filter(|_| self.tells_detail);
        Ok(Some(ContentPart::ImageUrl {
            image_url: ImageUrl { url, detail },
        }))
    }
}
