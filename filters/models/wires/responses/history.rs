//! Turns as input items. Source: docs/facts/wire-formats.md 2.2. What the wire would refuse is refused here, naming the place.

use std::borrow::Cow;
use std::slice;

use super::input::{CallOutput, InputItem, InputPart, Sound};
use super::reasoning::earlier_reasoning;
use crate::fault::Fault;
use crate::models::chat::conversation::{
    Block, BlockKind, Conversation, Media, MediaKind, MediaSource, Role, Turn,
};
use crate::models::chat::data_url;
use crate::models::chat::inlined::InlinedImages;
use crate::models::chat::text::Quoted;
use crate::models::dialects::Dialect;
use crate::models::parameter::Parameter;
use crate::models::wires::history::{CallIds, check_texts, no_call, open_calls};
use crate::models::wires::open_calls::OpenCalls;
use crate::models::wires::wire::Target;

/// The conversation in the making.
#[derive(Debug)]
pub(super) struct History<'a> {
    pub(super) items: Vec<InputItem<'a>>,
    conversation: &'a Conversation<'a>,
    developer_is_system: bool,
    /// A message that is no instruction has come.
    has_turn: bool,
    /// Calls without a result: the id that goes out, and where the calls were asked for.
    open: OpenCalls<'a, (String, u32)>,
    ids: CallIds,
    /// Images that the model drew and that have not gone back yet; `None`: none do.
    drawn: Option<Vec<InputPart<'a>>>,
    parts: InputParts<'a>,
}

impl<'a> History<'a> {
    /// Reads all turns. A model that draws gets the images of earlier turns back.
    pub(super) fn read(
        conversation: &'a Conversation<'a>,
        target: &Target<'a>,
    ) -> Result<Self, Fault> {
        let mut history = Self {
            items: Vec::with_capacity(conversation.turns.len()),
            conversation,
            developer_is_system: target.quirks.developer_is_system,
            has_turn: false,
            open: OpenCalls::default(),
            ids: CallIds::default(),
            drawn: (target.image_output == Some(true)).then(Vec::new),
            parts: InputParts {
                inlined: target.inlined,
                keeps_breakpoints: target.parameters.supports(Parameter::PromptCacheOptions),
            },
        };
        for turn in &conversation.turns {
            history.read_turn(turn)?;
        }
        if let Some((_, asked_at)) = history.open.first() {
            return Err(open_calls(conversation, *asked_at));
        }
        history.give_back_drawn();
        if history.items.is_empty() {
            return Err(conversation.fault_of_all("says nothing"));
        }
        Ok(history)
    }

    /// Says the images of the last turn as the user's: calls of hosted tools cannot go back, because nothing is stored.
    fn give_back_drawn(&mut self) {
        let drawn = self.drawn.as_mut().map(std::mem::take).unwrap_or_default();
        self.message("user", drawn, None);
    }

    /// Adds a message, unless it says nothing.
    fn message(&mut self, role: &'static str, content: Vec<InputPart<'a>>, phase: Option<&'a str>) {
        if !content.is_empty() {
            self.items.push(InputItem::Message {
                role,
                content,
                phase,
            });
        }
    }

    fn read_turn(&mut self, turn: &'a Turn<'a>) -> Result<(), Fault> {
        let is_result = |block: &Block<'_>| matches!(block.kind, BlockKind::Result { .. });
        if turn.blocks.iter().any(is_result) {
            let mut blocks = turn.blocks.iter();
            return blocks.try_for_each(|block| self.result(turn, block));
        }
        self.give_back_drawn();
        // Instructions between messages are the developer's, whatever a client calls them.
        let is_late = self.has_turn && self.conversation.dialect == Dialect::Messages;
        let role = match turn.role {
            Role::System if !is_late => "system",
            Role::System | Role::Developer if self.developer_is_system => "system",
            Role::System => "developer",
            Role::Developer => "developer",
            Role::User => "user",
            Role::Assistant => {
                self.has_turn = true;
                check_texts(self.conversation, turn)?;
                self.said(turn);
                return Ok(());
            }
        };
        self.has_turn |= role == "user";
        let content = self.parts.all(&turn.blocks);
        self.message(role, content, None);
        Ok(())
    }

    /// A turn: its messages and calls in their order, and before each the reasoning that led to it. Reasoning that nothing
    /// follows would be refused, so it stays behind.
    fn said(&mut self, turn: &'a Turn<'a>) {
        let parts = match turn.divided.as_slice() {
            [] => slice::from_ref(turn),
            divided => divided,
        };
        let mut reasoning = Vec::new();
        for part in parts {
            let mut said = Vec::new();
            for block in &part.blocks {
                match &block.kind {
                    BlockKind::Text(text) => said.push(InputPart::OutputText {
                        text: text.quoted(),
                    }),
                    BlockKind::Refusal(refusal) => said.push(InputPart::Refusal { refusal }),
                    BlockKind::Redacted => {
                        self.say(&mut reasoning, &mut said, part);
                        reasoning.extend(earlier_reasoning(block));
                    }
                    BlockKind::Call { id, name, input } => {
                        self.say(&mut reasoning, &mut said, part);
                        self.items.append(&mut reasoning);
                        self.call((id, name, input), turn.at);
                    }
                    _ => {}
                }
            }
            self.say(&mut reasoning, &mut said, part);
        }
        if let Some(drawn) = &mut self.drawn {
            drawn.extend(turn.blocks.iter().filter_map(drawn_part));
        }
    }

    /// Adds what was said so far, behind the reasoning that led to it.
    fn say(
        &mut self,
        reasoning: &mut Vec<InputItem<'a>>,
        said: &mut Vec<InputPart<'a>>,
        turn: &'a Turn<'a>,
    ) {
        if !said.is_empty() {
            self.items.append(reasoning);
        }
        self.message("assistant", std::mem::take(said), turn.phase.as_deref());
    }

    fn call(&mut self, (id, name, arguments): (&'a str, &'a str, &'a str), asked_at: u32) {
        let call_id = self.ids.unique(id, |_| true);
        self.open.push(id, name, (call_id.clone(), asked_at));
        self.items.push(InputItem::FunctionCall {
            call_id,
            name,
            arguments,
        });
    }

    fn result(&mut self, turn: &'a Turn<'a>, block: &'a Block<'a>) -> Result<(), Fault> {
        let BlockKind::Result {
            call,
            content,
            is_error,
        } = &block.kind
        else {
            return Ok(());
        };
        let answered = self.open.answer(call.as_deref(), turn.name.as_deref());
        let Some((call_id, _)) = answered else {
            return Err(no_call(self.conversation, block.at));
        };
        let call_id = std::mem::take(call_id);
        let mut parts = self.parts.all(content);
        if *is_error {
            parts.insert(0, InputPart::text("Error: "));
        }
        let output = output(parts);
        self.items
            .push(InputItem::FunctionCallOutput { call_id, output });
        Ok(())
    }
}

/// How what was given to the model becomes parts of input items.
#[derive(Clone, Copy, Debug)]
struct InputParts<'a> {
    inlined: &'a InlinedImages,
    /// The model caches up to the parts that it is told.
    keeps_breakpoints: bool,
}

impl<'a> InputParts<'a> {
    fn all(self, blocks: &'a [Block<'a>]) -> Vec<InputPart<'a>> {
        let parts = blocks.iter().filter_map(|block| self.part(block));
        parts.collect()
    }

    fn part(self, block: &'a Block<'a>) -> Option<InputPart<'a>> {
        let kept = block.marks.breakpoint;
        let prompt_cache_breakpoint = kept.filter(|_| self.keeps_breakpoints);
        Some(match &block.kind {
            BlockKind::Text(text) | BlockKind::Refusal(text) => InputPart::InputText {
                text: text.quoted(),
                prompt_cache_breakpoint,
            },
            BlockKind::Media(media) => match &media.source {
                MediaSource::Url(url) if media.kind == MediaKind::Image => {
                    let fetched = self.inlined.find(url);
                    let fetched = fetched.map(|fetched| Cow::Borrowed(&*fetched.url));
                    InputPart::InputImage {
                        image_url: fetched.unwrap_or_else(|| of_its_type(url)),
                        detail: media.detail.as_deref().unwrap_or("auto"),
                        prompt_cache_breakpoint,
                    }
                }
                MediaSource::Url(url) => {
                    let made = || data_url::media_type(url).map(|kind| data_url::file_name(&kind));
                    InputPart::InputFile {
                        // A file in the body needs a name.
                        filename: media.name.as_deref().or_else(made),
                        file_data: Some(&**url).filter(|url| !url.is_empty()),
                        file_id: None,
                        prompt_cache_breakpoint,
                    }
                }
                MediaSource::Id(id) => InputPart::InputFile {
                    filename: media.name.as_deref(),
                    file_data: None,
                    file_id: Some(id),
                    prompt_cache_breakpoint,
                },
                MediaSource::Data { data, format } => InputPart::InputAudio {
                    input_audio: Sound {
                        data,
                        format: data_url::audio_format(format),
                    },
                    prompt_cache_breakpoint,
                },
            },
            _ => return None,
        })
    }
}

/// Returns an image that the model has drawn, as a part of what it is given; `None` for other blocks.
fn drawn_part<'a>(block: &'a Block<'a>) -> Option<InputPart<'a>> {
    match &block.kind {
        BlockKind::Media(Media {
            kind: MediaKind::Drawn,
            source: MediaSource::Url(url),
            ..
        }) => Some(InputPart::InputImage {
            image_url: of_its_type(url),
            detail: "auto",
            prompt_cache_breakpoint: None,
        }),
        _ => None,
    }
}

/// An address or a data URL, with the media type that its bytes tell.
fn of_its_type(url: &str) -> Cow<'_, str> {
    data_url::retyped(url).map_or(Cow::Borrowed(url), Cow::Owned)
}

/// The result of a call: a text, or parts where it holds anything else.
fn output(parts: Vec<InputPart<'_>>) -> CallOutput<'_> {
    let texts: Option<Vec<Quoted<'_>>> = parts
        .iter()
        .map(|part| match part {
            InputPart::InputText {
                text,
                prompt_cache_breakpoint: None,
            } => Some(*text),
            _ => None,
        })
        .collect();
    match texts.as_deref() {
        Some([text]) => CallOutput::One(*text),
        Some(texts) => CallOutput::Text(texts.iter().map(|text| &**text).collect()),
        None => CallOutput::Parts(parts),
    }
}
