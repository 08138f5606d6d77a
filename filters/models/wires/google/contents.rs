//! Messages as this wire wants them: instructions apart, turns alternating, results together and by name.
//!
//! Source: docs/facts/wire-formats.md 4.1, 4.3. What the wire would refuse is refused here, naming the message.

use serde::Serialize;
use serde_json::Value;

use super::FORMAT;
use super::parts::{
    Carried, FunctionCall, FunctionResponse, GooglePart, drawn_parts, native, parts, plain,
    signature,
};
use super::request::has_levels;
use crate::fault::Fault;
use crate::models::chat::inlined::InlinedImages;
use crate::models::chat::tree::{ChatMessage, MessageContent as Said, Role, ToolCall};
use crate::models::wires::history::{answers_no_call, has_open_calls, object};
use crate::models::wires::opaque::NativeBlock;
use crate::models::wires::wire::Target;

/// Stands in for a signature that the client has lost, as the vendor documents it.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// A turn, or its part that holds results: they stand alone.
#[derive(Debug, Serialize)]
pub(super) struct GoogleContent<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    role: &'static str,
    parts: Vec<GooglePart<'a>>,
    #[serde(skip)]
    holds_results: bool,
}

impl<'a> GoogleContent<'a> {
    /// Returns instructions, which are of no role.
    pub(super) fn instruction(parts: Vec<GooglePart<'a>>) -> Self {
        Self {
            role: "",
            parts,
            holds_results: false,
        }
    }
}

/// A call of the last model turn.
#[derive(Debug)]
struct OpenCall<'a> {
    /// The client's id.
    id: &'a str,
    name: &'a str,
    result: Option<ToolResult<'a>>,
}

#[derive(Debug)]
struct ToolResult<'a> {
    response: Value,
    media: Vec<GooglePart<'a>>,
}

/// The conversation in the making.
#[derive(Debug)]
pub(super) struct ContentsConversation<'a, 'p> {
    pub(super) system: Vec<GooglePart<'a>>,
    pub(super) contents: Vec<GoogleContent<'a>>,
    open: Vec<OpenCall<'a>>,
    asked_at: usize,
    /// The model refuses calls without a signature, and takes media within results.
    has_levels: bool,
    /// The model gets the images that were drawn in earlier turns.
    draws: bool,
    origin: Option<&'p str>,
    /// The images that were fetched.
    inlined: &'a InlinedImages,
}

impl<'a, 'p> ContentsConversation<'a, 'p> {
    /// Reads all messages. `origin` is the only one whose signatures go back; `None`: none does.
    pub(super) fn read(
        messages: &'a [ChatMessage<'a>],
        target: &Target<'a>,
        origin: Option<&'p str>,
    ) -> Result<Self, Fault> {
        let mut conversation = Self {
            system: Vec::new(),
            contents: Vec::new(),
            open: Vec::new(),
            asked_at: 0,
            has_levels: has_levels(target),
            draws: target.image_output == Some(true),
            origin,
            inlined: target.inlined,
        };
        for (at, message) in messages.iter().enumerate() {
            conversation.message(at, message)?;
        }
        conversation.answer()?;
        if conversation.contents.is_empty() {
            return Err(Fault::invalid(
                "messages",
                "`messages` holds no user's message",
            ));
        }
        Ok(conversation)
    }

    fn message(&mut self, at: usize, message: &'a ChatMessage<'a>) -> Result<(), Fault> {
        if !matches!(message.role, Role::Tool | Role::Function) {
            self.answer()?;
        }
        match message.role {
            Role::System | Role::Developer => {
                let parts = parts(at, message.content.as_ref(), self.inlined, None)?;
                self.system.extend(parts);
            }
            Role::User => {
                let mut parts = parts(at, message.content.as_ref(), self.inlined, None)?;
                if parts.iter().all(|part| part.text.is_none()) {
                    // A turn of media alone is refused.
                    parts.push(GooglePart {
                        text: Some(" "),
                        ..GooglePart::default()
                    });
                }
                self.turn("user").extend(parts);
            }
            Role::Assistant => self.assistant(at, message)?,
            Role::Tool | Role::Function => self.result(at, message)?,
        }
        Ok(())
    }

    fn assistant(&mut self, at: usize, message: &'a ChatMessage<'a>) -> Result<(), Fault> {
        self.asked_at = at;
        let mut parts = parts(at, message.content.as_ref(), self.inlined, self.origin)?;
        let mut carried = Carried::read(message, self.origin);
        if let Some(said) = parts.iter_mut().rfind(|part| part.text.is_some())
            && said.thought_signature.is_none()
        {
            said.thought_signature = carried.text.take();
        }
        if self.draws {
            parts.extend(drawn_parts(message, carried));
        }
        let (before, behind): (Vec<_>, Vec<_>) = NativeBlock::of_turn(message, FORMAT, self.origin)
            .into_iter()
            .partition(|earlier| earlier.offset == 0);
        parts.splice(..0, before.iter().filter_map(native));
        parts.extend(behind.iter().filter_map(native));
        for (number, call) in message.tool_calls.iter().flatten().enumerate() {
            parts.push(self.call(call, number == 0));
        }
        if !parts.is_empty() {
            self.turn("model").extend(parts);
        }
        Ok(())
    }

    fn call(&mut self, call: &'a ToolCall<'a>, is_first: bool) -> GooglePart<'a> {
        self.open.push(OpenCall {
            id: &call.id,
            name: &call.function.name,
            result: None,
        });
        let missing = (self.has_levels && is_first).then(|| NO_SIGNATURE.to_owned());
        GooglePart {
            function_call: Some(FunctionCall {
                name: &call.function.name,
                args: object(&call.function.arguments),
            }),
            thought_signature: signature(call.extra_content, self.origin).or(missing),
            ..GooglePart::default()
        }
    }

    fn result(&mut self, at: usize, message: &'a ChatMessage<'a>) -> Result<(), Fault> {
        let result = tool_result(at, message.content.as_ref(), self.inlined)?;
        let wanted = message.answered_call();
        let open = self.open.iter_mut().find(|open| {
            let is_it = match wanted {
                Some(wanted) => open.id == wanted,
                // The old form names the function alone.
                None => message
                    .name
                    .as_deref()
                    .is_none_or(|asked| asked == open.name),
            };
            is_it && open.result.is_none()
        });
        match open {
            Some(open) => open.result = Some(result),
            None => return Err(answers_no_call(at)),
        }
        Ok(())
    }

    /// Ends the results of a turn: all together, in the order of the calls. Models that take no media within results get
    /// them behind, each with the name of its function.
    fn answer(&mut self) -> Result<(), Fault> {
        let open = std::mem::take(&mut self.open);
        let mut behind = Vec::new();
        for OpenCall { name, result, .. } in open {
            let Some(ToolResult { response, media }) = result else {
                return Err(has_open_calls(self.asked_at));
            };
            let (parts, media) = match self.has_levels {
                true => (media, Vec::new()),
                false => (Vec::new(), media),
            };
            if !media.is_empty() {
                behind.extend(plain(name));
                behind.extend(media);
            }
            let function_response = Some(FunctionResponse {
                name,
                response,
                parts,
            });
            self.content("user", true).push(GooglePart {
                function_response,
                ..GooglePart::default()
            });
        }
        if !behind.is_empty() {
            self.turn("user").extend(behind);
        }
        Ok(())
    }

    fn turn(&mut self, role: &'static str) -> &mut Vec<GooglePart<'a>> {
        self.content(role, false)
    }

    /// Returns the parts of the last content, if it is of this kind, or of a new one.
    fn content(&mut self, role: &'static str, holds_results: bool) -> &mut Vec<GooglePart<'a>> {
        let last = self.contents.last();
        if last.is_none_or(|last| (last.role, last.holds_results) != (role, holds_results)) {
            self.contents.push(GoogleContent {
                role,
                parts: Vec::new(),
                holds_results,
            });
        }
        let at = self.contents.len().saturating_sub(1);
        match self.contents.get_mut(at) {
            Some(content) => &mut content.parts,
            // There is always a turn by now.
            None => &mut self.system,
        }
    }
}

/// Reads the content of a tool's message. A text that is an object is the response; other texts are wrapped in one.
fn tool_result<'a>(
    at: usize,
    content: Option<&'a Said<'a>>,
    inlined: &'a InlinedImages,
) -> Result<ToolResult<'a>, Fault> {
    let mut text = String::new();
    let mut media = Vec::new();
    for part in parts(at, content, inlined, None)? {
        match part.text {
            Some(said) => text.push_str(said),
            None => media.push(part),
        }
    }
    let response = match serde_json::from_str(&text) {
        Ok(Value::Object(object)) => Value::Object(object),
        _ => serde_json::json!({ "result": text }),
    };
    Ok(ToolResult { response, media })
}
