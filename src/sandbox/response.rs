//! Makes the reply of the model sandbox, whole and streamed, from the same value.
//!
//! The text is `You said: ` and the last user message (400 characters of it), or after a tool's result `The tool said:
//! ` and that result. A JSON format gets a small valid value; called tools get the smallest arguments that their schema
//! allows. An image is always the same. `reasoning_effort` adds one sentence of `reasoning_content`. Usage is computed from the actual request and
//! reply: see [`count_tokens`].
#![expect(
    clippy::indexing_slicing,
    reason = "a JSON value read by name or number gives null, and every value written to is our object"
)]

use serde_json::{Value, json};

use super::budget::{Budget, TooLarge};
use super::request::{ResponseFormat, SandboxRequest, Tool};
use super::schema;

/// Maximum number of characters repeated from the client's text.
const MAX_ECHO_CHARS: usize = 400;
/// The maximum size of the values in a reply's text, or in all its calls.
const MAX_BYTES: usize = 256 << 10;
/// The approximate maximum of pieces of a streamed text.
const MAX_PIECES: usize = 512;
/// The image: a sun in the sky, of 16 by 16 pixels.
const PNG: &str = concat!(
    "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAALUlEQVR42mOQs6kgCTHQXcP/LQxoCJ8GTNWYehgIqk",
    "bTM8I1kBys5ETc4Eh8ADgwH2hw6ZE3AAAAAElFTkSuQmCC",
);
/// The tokens of an image.
const IMAGE_TOKENS: usize = 1120;
const REASONING: &str = "The caller said something; I repeat it.";
/// A constant instead of a clock: the same request gets the same bytes.
const CREATED: u64 = 1_767_225_600;
const ID: &str = "chatcmpl-sandbox";

/// Returns the number of tokens of a text: one per four bytes, rounded up.
pub(super) fn count_tokens(text: &str) -> usize {
    text.len().div_ceil(4)
}

/// The reply to one request; all its choices are equal.
#[derive(Debug)]
pub(super) struct SandboxResponse<'a> {
    request: &'a SandboxRequest,
    content: String,
    finish_reason: &'static str,
    /// Names and arguments (JSON texts).
    calls: Vec<(&'a str, String)>,
}

impl<'a> SandboxResponse<'a> {
    /// Makes the reply. Errors: the reply would be too large.
    pub(super) fn new(request: &'a SandboxRequest) -> Result<SandboxResponse<'a>, TooLarge> {
        let mut budget = Budget::new(MAX_BYTES);
        let calls = request.calls.iter().map(|tool: &'a Tool| {
            let parameters = match tool.parameters.is_null() {
                true => &json!({"type": "object"}),
                false => &tool.parameters,
            };
            let arguments = schema::make_example(parameters, &mut budget)?;
            Ok((tool.name.as_str(), arguments.to_string()))
        });
        let calls: Vec<_> = calls.collect::<Result<_, _>>()?;
        if !calls.is_empty() {
            return Ok(SandboxResponse {
                request,
                content: String::new(),
                finish_reason: "tool_calls",
                calls,
            });
        }
        let content = choose_content(request, &mut budget)?;
        let (content, is_cut) = truncate(content, request.max_tokens);
        let finish_reason = if is_cut { "length" } else { "stop" };
        Ok(SandboxResponse {
            request,
            content,
            finish_reason,
            calls,
        })
    }

    /// Returns the body of the whole reply.
    pub(super) fn to_whole(&self) -> Value {
        let choice = |index: usize| {
            let mut message =
                json!({"role": "assistant", "content": self.content, "refusal": null});
            if !self.calls.is_empty() {
                message["content"] = Value::Null;
                message["tool_calls"] = self.numbered_calls(index).collect();
            }
            if self.request.reasons {
                message["reasoning_content"] = REASONING.into();
            }
            if self.request.draws {
                message["images"] = image();
            }
            json!({
                "index": index,
                "message": message,
                "logprobs": null,
                "finish_reason": self.finish_reason,
            })
        };
        json!({
            "id": ID,
            "object": "chat.completion",
            "created": CREATED,
            "model": self.request.model,
            "choices": (0..self.request.choices).map(choice).collect::<Value>(),
            "usage": self.to_usage(),
            "system_fingerprint": "sandbox",
        })
    }

    /// Returns the events of the streamed reply without `[DONE]`.
    pub(super) fn to_chunks(&self) -> Vec<Value> {
        let mut chunks = Vec::new();
        for index in 0..self.request.choices {
            let mut push = |delta: Value, finish_reason: Option<&str>| {
                let choice = json!({
                    "index": index,
                    "delta": delta,
                    "logprobs": null,
                    "finish_reason": finish_reason,
                });
                chunks.push(self.to_chunk(json!([choice]), Value::Null));
            };
            push(json!({"role": "assistant", "content": ""}), None);
            if self.request.reasons {
                split_words(REASONING)
                    .for_each(|word| push(json!({"reasoning_content": word}), None));
            }
            split_words(&self.content).for_each(|word| push(json!({"content": word}), None));
            if self.request.draws {
                push(json!({"images": image()}), None);
            }
            for (number, call) in self.numbered_calls(index).enumerate() {
                for delta in call_deltas(number, call) {
                    push(json!({"tool_calls": [delta]}), None);
                }
            }
            push(json!({}), Some(self.finish_reason));
        }
        if self.request.include_usage {
            chunks.push(self.to_chunk(json!([]), self.to_usage()));
        }
        chunks
    }

    fn to_chunk(&self, choices: Value, usage: Value) -> Value {
        let mut chunk = json!({
            "id": ID,
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": self.request.model,
            "system_fingerprint": "sandbox",
            "choices": choices,
        });
        if self.request.include_usage {
            chunk["usage"] = usage;
        }
        chunk
    }

    fn numbered_calls(&self, choice: usize) -> impl Iterator<Item = Value> {
        self.calls
            .iter()
            .enumerate()
            .map(move |(number, (name, arguments))| {
                json!({
                    "id": format!("call_sandbox_{choice}_{number}"),
                    "type": "function",
                    "function": {"name": name, "arguments": arguments},
                })
            })
    }

    fn to_usage(&self) -> Value {
        let called: usize = self
            .calls
            .iter()
            .map(|(name, text)| count_tokens(name) + count_tokens(text))
            .sum();
        let reasoning = if self.request.reasons {
            count_tokens(REASONING)
        } else {
            0
        };
        let drawn = usize::from(self.request.draws) * IMAGE_TOKENS;
        let completion =
            (count_tokens(&self.content) + called + reasoning + drawn) * self.request.choices;
        json!({
            "prompt_tokens": self.request.prompt_tokens,
            "completion_tokens": completion,
            "total_tokens": self.request.prompt_tokens + completion,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": reasoning * self.request.choices,
                "image_tokens": drawn * self.request.choices,
            },
        })
    }
}

/// Returns the images of a message.
fn image() -> Value {
    let url = format!("data:image/png;base64,{PNG}");
    json!([{"type": "image_url", "image_url": {"url": url}}])
}

fn choose_content(request: &SandboxRequest, budget: &mut Budget) -> Result<String, TooLarge> {
    let echo = |text: &str| text.chars().take(MAX_ECHO_CHARS).collect::<String>();
    Ok(match (&request.format, &request.tool_result) {
        (ResponseFormat::Object, _) => json!({"you_said": echo(&request.user_text)}).to_string(),
        (ResponseFormat::Schema(schema), _) => schema::make_example(schema, budget)?.to_string(),
        (ResponseFormat::Text, Some(result)) => format!("The tool said: {}", echo(result)),
        (ResponseFormat::Text, None) => format!("You said: {}", echo(&request.user_text)),
    })
}

/// Truncates the text to a number of tokens. Returns whether text was cut.
fn truncate(mut text: String, max_tokens: Option<usize>) -> (String, bool) {
    let is_cut = max_tokens.is_some_and(|limit| count_tokens(&text) > limit);
    if is_cut {
        let bytes = max_tokens.unwrap_or(usize::MAX).saturating_mul(4);
        text.truncate(text.floor_char_boundary(bytes));
    }
    (text, is_cut)
}

/// Splits the text into words, each with the space after it. In a long text a piece has several words, because each
/// piece becomes an event.
fn split_words(text: &str) -> impl Iterator<Item = &str> {
    let least = text.len() / MAX_PIECES;
    let mut rest = text;
    std::iter::from_fn(move || {
        let (skipped, behind) = rest.split_at_checked(rest.ceil_char_boundary(least))?;
        let end = behind
            .find(' ')
            .map_or(rest.len(), |at| skipped.len() + at + 1);
        let (piece, behind) = rest.split_at_checked(end)?;
        rest = behind;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Returns a call as three deltas: its name, then its arguments in two pieces.
fn call_deltas(number: usize, mut call: Value) -> [Value; 3] {
    let arguments = call["function"]["arguments"].take();
    let arguments = arguments.as_str().unwrap_or_default();
    let (first, rest) = arguments.split_at(arguments.floor_char_boundary(arguments.len() / 2));
    call["index"] = number.into();
    call["function"]["arguments"] = "".into();
    let piece = |text: &str| json!({"index": number, "function": {"arguments": text}});
    [call, piece(first), piece(rest)]
}
