//! Messages as input items. Source: docs/facts/wire-formats.md 2.2. What the wire would refuse is refused here, naming the
//! message.

use std::borrow::Cow;

use super::input::{Breakpoint, CallOutput, InputItem, InputPart, Sound};
use super::reasoning::earlier_reasoning;
use crate::fault::Fault;
use crate::models::chat::data_url;
use crate::models::chat::inlined::InlinedImages;
use crate::models::chat::tree::{
    ChatMessage, ContentPart, File, MessageContent, MessageItem, PartType, Role, ToolCall,
};
use crate::models::parameter::Parameter;
use crate::models::wires::history::{CallIds, answers_no_call, has_open_calls, only_texts};
use crate::models::wires::wire::Target;

/// The conversation in the making.
#[derive(Debug)]
pub(super) struct History<'a, 'p> {
    pub(super) items: Vec<InputItem<'a>>,
    origin: Option<&'p str>,
    developer_is_system: bool,
    open: Vec<OpenCall<'a>>,
    ids: CallIds,
    /// Images that the model drew and that have not gone back yet; `None`: none do.
    drawn: Option<Vec<InputPart<'a>>>,
    parts: InputParts<'a>,
}

/// A call that has no result yet.
#[derive(Debug)]
struct OpenCall<'a> {
    /// The client's id.
    id: &'a str,
    /// The id that goes out.
    call_id: String,
    name: &'a str,
    asked_at: usize,
}

impl<'a, 'p> History<'a, 'p> {
    /// Reads all messages. `origin` is the only one whose reasoning goes back. A model that draws gets the images of earlier
    /// turns back.
    pub(super) fn read(
        messages: &'a [ChatMessage<'a>],
        origin: Option<&'p str>,
        target: &Target<'a>,
    ) -> Result<Self, Fault> {
        let mut history = Self {
            items: Vec::with_capacity(messages.len()),
            origin,
            developer_is_system: target.quirks.developer_is_system,
            open: Vec::new(),
            ids: CallIds::default(),
            drawn: (target.image_output == Some(true)).then(Vec::new),
            parts: InputParts {
                inlined: target.inlined,
                keeps_breakpoints: target.parameters.supports(Parameter::PromptCacheOptions),
            },
        };
        for (at, message) in messages.iter().enumerate() {
            if !matches!(message.role, Role::Tool | Role::Function) {
                history.give_back_drawn();
            }
            history.message(at, message)?;
        }
        if let Some(call) = history.open.first() {
            return Err(has_open_calls(call.asked_at));
        }
        history.give_back_drawn();
        if history.items.is_empty() {
            return Err(Fault::invalid("messages", "`messages` says nothing"));
        }
        Ok(history)
    }

    /// Says the images of the last turn as the user's: calls of hosted tools cannot go back, because nothing is stored.
    fn give_back_drawn(&mut self) {
        let drawn = self.drawn.as_mut().map(std::mem::take).unwrap_or_default();
        if !drawn.is_empty() {
            self.items.push(InputItem::Message {
                role: "user",
                content: drawn,
                phase: None,
            });
        }
    }

    fn message(&mut self, at: usize, message: &'a ChatMessage<'a>) -> Result<(), Fault> {
        let role = match message.role {
            Role::System => "system",
            Role::Developer if self.developer_is_system => "system",
            Role::Developer => "developer",
            Role::User => "user",
            Role::Assistant => return self.assistant(at, message),
            Role::Tool | Role::Function => return self.result(at, message),
        };
        let content = given_parts(message.content.as_ref(), self.parts);
        if !content.is_empty() {
            self.items.push(InputItem::Message {
                role,
                content,
                phase: None,
            });
        }
        Ok(())
    }

    /// A turn: its messages and calls in their order, and before each the reasoning that led to it. Reasoning that nothing
    /// follows would be refused, so it stays behind.
    fn assistant(&mut self, at: usize, message: &'a ChatMessage<'a>) -> Result<(), Fault> {
        let mut reasoning = earlier_reasoning(message, self.origin)
            .into_iter()
            .peekable();
        only_texts(at, message)?;
        let calls = message.tool_calls.as_deref().unwrap_or_default();
        let ids: Vec<String> = calls
            .iter()
            .map(|call| self.ids.unique(&call.id, |_| true))
            .collect();
        for (place, item) in turn(message, &ids).into_iter().enumerate() {
            while let Some(earlier) = reasoning.next_if(|next| next.place <= place as u64) {
                self.items.push(earlier.item);
            }
            self.items.push(item);
        }
        if let Some(drawn) = &mut self.drawn {
            let images = message.images.iter().flatten();
            drawn.extend(images.map(|image| InputPart::InputImage {
                image_url: of_its_type(&image.image_url.url),
                detail: "auto",
                prompt_cache_breakpoint: None,
            }));
        }
        self.open
            .extend(calls.iter().zip(ids).map(|(call, call_id)| OpenCall {
                id: &call.id,
                call_id,
                name: &call.function.name,
                asked_at: at,
            }));
        Ok(())
    }

    fn result(&mut self, at: usize, message: &'a ChatMessage<'a>) -> Result<(), Fault> {
        let is_it = |call: &OpenCall<'_>| match (message.answered_call(), &message.name) {
            (Some(id), _) => call.id == id,
            // The old form names the function alone.
            (None, Some(name)) => call.name == &**name,
            (None, None) => true,
        };
        let Some(answered) = self.open.iter().position(is_it) else {
            return Err(answers_no_call(at));
        };
        let call_id = self.open.remove(answered).call_id;
        let output = output(message.content.as_ref(), self.parts);
        self.items
            .push(InputItem::FunctionCallOutput { call_id, output });
        Ok(())
    }
}

/// The messages and calls of an assistant's turn, in the order in which they were said.
fn turn<'a>(message: &'a ChatMessage<'a>, ids: &[String]) -> Vec<InputItem<'a>> {
    let calls = message.tool_calls.as_deref().unwrap_or_default();
    let phased = message.message_items.as_deref().unwrap_or_default();
    let mut items = Vec::with_capacity(calls.len() + phased.len() + 1);
    let refusal = message
        .refusal
        .as_deref()
        .map(|refusal| InputPart::Refusal { refusal });
    let mut said = Vec::new();
    if phased.is_empty() {
        said = said_parts(message.content.as_ref());
    }
    said.extend(refusal);
    let is_before = message.content_before_tool_calls.unwrap_or(true);
    let phase = message.phase.as_deref();
    let said = (!said.is_empty()).then_some(InputItem::Message {
        role: "assistant",
        content: said,
        phase,
    });
    let (before, after) = if is_before {
        (said, None)
    } else {
        (None, said)
    };
    items.extend(before);
    let mut rest = phased;
    for (number, (call, id)) in calls.iter().zip(ids).enumerate() {
        let due = rest
            .iter()
            .take_while(|item| item.preceding_tool_calls.unwrap_or_default() <= number as f64);
        let (now, later) = rest.split_at_checked(due.count()).unwrap_or_default();
        items.extend(now.iter().map(phased_message));
        items.push(called(call, id.clone()));
        rest = later;
    }
    items.extend(rest.iter().map(phased_message));
    items.extend(after);
    items
}

fn phased_message<'a>(item: &'a MessageItem<'a>) -> InputItem<'a> {
    InputItem::Message {
        role: "assistant",
        content: vec![InputPart::OutputText { text: &item.text }],
        phase: item.phase.as_deref(),
    }
}

fn called<'a>(call: &'a ToolCall<'a>, call_id: String) -> InputItem<'a> {
    InputItem::FunctionCall {
        call_id,
        name: &call.function.name,
        arguments: &call.function.arguments,
    }
}

/// What the assistant said: texts and refusals. Empty ones are no parts.
fn said_parts<'a>(content: Option<&'a MessageContent<'a>>) -> Vec<InputPart<'a>> {
    let text = |text: &'a str| (!text.is_empty()).then_some(InputPart::OutputText { text });
    let part = |part: &'a ContentPart<'a>| match part.part_type {
        PartType::Refusal => {
            let refusal = part.refusal.as_deref();
            refusal.map(|refusal| InputPart::Refusal { refusal })
        }
        _ => part.text.as_deref().and_then(text),
    };
    match content {
        None => Vec::new(),
        Some(MessageContent::Text(said)) => text(said).into_iter().collect(),
        Some(MessageContent::Parts(parts)) => parts.iter().filter_map(part).collect(),
    }
}

/// What was given to the model.
fn given_parts<'a>(
    content: Option<&'a MessageContent<'a>>,
    given: InputParts<'a>,
) -> Vec<InputPart<'a>> {
    match content {
        None => Vec::new(),
        Some(MessageContent::Text(text)) => vec![InputPart::InputText {
            text,
            prompt_cache_breakpoint: None,
        }],
        Some(MessageContent::Parts(parts)) => {
            parts.iter().filter_map(|part| given.part(part)).collect()
        }
    }
}

/// How parts become parts of input items.
#[derive(Clone, Copy, Debug)]
struct InputParts<'a> {
    inlined: &'a InlinedImages,
    /// The model caches up to the parts that it is told.
    keeps_breakpoints: bool,
}

impl<'a> InputParts<'a> {
    fn part(self, part: &'a ContentPart<'a>) -> Option<InputPart<'a>> {
        let kept = part.prompt_cache_breakpoint;
        let prompt_cache_breakpoint = kept.filter(|_| self.keeps_breakpoints);
        Some(match part.part_type {
            PartType::Text => InputPart::InputText {
                text: part.text.as_deref()?,
                prompt_cache_breakpoint,
            },
            PartType::Refusal => InputPart::InputText {
                text: part.refusal.as_deref()?,
                prompt_cache_breakpoint,
            },
            PartType::ImageUrl => {
                let image = part.image_url.as_ref()?;
                let fetched = self.inlined.find(&image.url);
                InputPart::InputImage {
                    image_url: match fetched {
                        Some(fetched) => Cow::Borrowed(&*fetched.url),
                        None => of_its_type(&image.url),
                    },
                    detail: image.detail.as_deref().unwrap_or("auto"),
                    prompt_cache_breakpoint,
                }
            }
            PartType::File => given_file(part.file.as_ref()?, prompt_cache_breakpoint),
            PartType::InputAudio => {
                let sound = part.input_audio.as_ref()?;
                InputPart::InputAudio {
                    input_audio: Sound {
                        data: &sound.data,
                        format: data_url::audio_format(&sound.format),
                    },
                    prompt_cache_breakpoint,
                }
            }
        })
    }
}

/// An address or a data URL, with the media type that its bytes tell.
fn of_its_type(url: &str) -> Cow<'_, str> {
    data_url::retyped(url).map_or(Cow::Borrowed(url), Cow::Owned)
}

/// A file. One in the body needs a name, one that the provider has has its own.
fn given_file<'a>(file: &'a File<'a>, prompt_cache_breakpoint: Breakpoint<'a>) -> InputPart<'a> {
    let file_data = file.file_data.as_deref().filter(|data| !data.is_empty());
    let named = file.filename.as_deref().filter(|name| !name.is_empty());
    let made = || data_url::media_type(file_data?).map(|kind| data_url::file_name(&kind));
    InputPart::InputFile {
        filename: named.or_else(made),
        file_data,
        file_id: file.file_id.as_deref().filter(|_| file_data.is_none()),
        prompt_cache_breakpoint,
    }
}

/// The result of a call: a text, or parts where it holds anything else.
fn output<'a>(content: Option<&'a MessageContent<'a>>, given: InputParts<'a>) -> CallOutput<'a> {
    let parts = given_parts(content, given);
    let texts: Option<Vec<&str>> = parts
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
        Some([text]) => CallOutput::Text(Cow::Borrowed(*text)),
        Some(texts) => CallOutput::Text(Cow::Owned(texts.concat())),
        None => CallOutput::Parts(parts),
    }
}
