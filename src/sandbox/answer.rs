//! What the sandbox answers, whole and streamed: two views of the same value.
//!
//! Text is `You said: ` and the last user message (400 characters of it), after a tool's result
//! `The tool said: ` and that result; a JSON format is answered with a small fitting value; called tools
//! get the smallest arguments their schema allows. `reasoning_effort` adds one sentence of
//! `reasoning_content`. Usage is arithmetic on what is really in the request and the answer: see [`tokens`].
#![expect(
    clippy::indexing_slicing,
    reason = "a JSON value read by name or number gives null, and every value written to is our object"
)]

use serde_json::{Value, json};

use super::ask::{Ask, ResponseFormat, Tool};
use super::schema;

/// So many characters of the caller's text are repeated.
const ECHO_CHARS: usize = 400;
const REASONING: &str = "The caller said something; I repeat it.";
/// No clock: the same request gets the same bytes.
const CREATED: u64 = 1_767_225_600;
const ID: &str = "chatcmpl-sandbox";

/// How many tokens a text counts for: one for every four bytes begun.
pub(super) fn tokens(text: &str) -> usize {
    text.len().div_ceil(4)
}

/// An answer to one request; all its choices are alike.
#[derive(Debug)]
pub(super) struct SandboxResponse<'a> {
    ask: &'a Ask,
    content: String,
    finish_reason: &'static str,
    /// Names and arguments (JSON texts).
    calls: Vec<(&'a str, String)>,
}

impl<'a> SandboxResponse<'a> {
    /// Makes up the answer.
    pub(super) fn new(ask: &'a Ask) -> SandboxResponse<'a> {
        let call = |tool: &'a Tool| {
            let parameters = if tool.parameters.is_null() {
                &json!({"type": "object"})
            } else {
                &tool.parameters
            };
            (tool.name.as_str(), schema::example(parameters).to_string())
        };
        let calls: Vec<_> = ask.calls.iter().map(call).collect();
        if !calls.is_empty() {
            return SandboxResponse {
                ask,
                content: String::new(),
                finish_reason: "tool_calls",
                calls,
            };
        }
        let (content, is_cut) = limited(content(ask), ask.max_tokens);
        let finish_reason = if is_cut { "length" } else { "stop" };
        SandboxResponse {
            ask,
            content,
            finish_reason,
            calls,
        }
    }

    /// The whole reply's body.
    pub(super) fn whole(&self) -> Value {
        let choice = |index: usize| {
            let mut message =
                json!({"role": "assistant", "content": self.content, "refusal": null});
            if !self.calls.is_empty() {
                message["content"] = Value::Null;
                message["tool_calls"] = self.numbered_calls(index).collect();
            }
            if self.ask.reasons {
                message["reasoning_content"] = REASONING.into();
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
            "model": self.ask.model,
            "choices": (0..self.ask.choices).map(choice).collect::<Value>(),
            "usage": self.usage(),
            "system_fingerprint": "sandbox",
        })
    }

    /// The events of the streamed reply, `[DONE]` not included.
    pub(super) fn chunks(&self) -> Vec<Value> {
        let mut chunks = Vec::new();
        for index in 0..self.ask.choices {
            let mut push = |delta: Value, finish_reason: Option<&str>| {
                let choice = json!({
                    "index": index,
                    "delta": delta,
                    "logprobs": null,
                    "finish_reason": finish_reason,
                });
                chunks.push(self.chunk(json!([choice]), Value::Null));
            };
            push(json!({"role": "assistant", "content": ""}), None);
            if self.ask.reasons {
                words(REASONING).for_each(|word| push(json!({"reasoning_content": word}), None));
            }
            words(&self.content).for_each(|word| push(json!({"content": word}), None));
            for (number, call) in self.numbered_calls(index).enumerate() {
                for delta in call_deltas(number, call) {
                    push(json!({"tool_calls": [delta]}), None);
                }
            }
            push(json!({}), Some(self.finish_reason));
        }
        if self.ask.include_usage {
            chunks.push(self.chunk(json!([]), self.usage()));
        }
        chunks
    }

    fn chunk(&self, choices: Value, usage: Value) -> Value {
        let mut chunk = json!({
            "id": ID,
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": self.ask.model,
            "system_fingerprint": "sandbox",
            "choices": choices,
        });
        if self.ask.include_usage {
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

    fn usage(&self) -> Value {
        let called: usize = self
            .calls
            .iter()
            .map(|(name, text)| tokens(name) + tokens(text))
            .sum();
        let reasoning = if self.ask.reasons {
            tokens(REASONING)
        } else {
            0
        };
        let completion = (tokens(&self.content) + called + reasoning) * self.ask.choices;
        json!({
            "prompt_tokens": self.ask.prompt_tokens,
            "completion_tokens": completion,
            "total_tokens": self.ask.prompt_tokens + completion,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": reasoning * self.ask.choices},
        })
    }
}

fn content(ask: &Ask) -> String {
    let echo = |text: &str| text.chars().take(ECHO_CHARS).collect::<String>();
    match (&ask.format, &ask.tool_result) {
        (ResponseFormat::Object, _) => json!({"you_said": echo(&ask.said)}).to_string(),
        (ResponseFormat::Schema(schema), _) => schema::example(schema).to_string(),
        (ResponseFormat::Text, Some(result)) => format!("The tool said: {}", echo(result)),
        (ResponseFormat::Text, None) => format!("You said: {}", echo(&ask.said)),
    }
}

/// The text cut to so many tokens, and whether anything was cut.
fn limited(mut text: String, max_tokens: Option<usize>) -> (String, bool) {
    let is_cut = max_tokens.is_some_and(|limit| tokens(&text) > limit);
    if is_cut {
        let bytes = max_tokens.unwrap_or(usize::MAX).saturating_mul(4);
        text.truncate(text.floor_char_boundary(bytes));
    }
    (text, is_cut)
}

/// The text word by word, each with the space after it.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ')
}

/// A call as three deltas: its name, then its arguments in two pieces.
fn call_deltas(number: usize, mut call: Value) -> [Value; 3] {
    let arguments = call["function"]["arguments"].take();
    let arguments = arguments.as_str().unwrap_or_default();
    let (first, rest) = arguments.split_at(arguments.floor_char_boundary(arguments.len() / 2));
    call["index"] = number.into();
    call["function"]["arguments"] = "".into();
    let piece = |text: &str| json!({"index": number, "function": {"arguments": text}});
    [call, piece(first), piece(rest)]
}
