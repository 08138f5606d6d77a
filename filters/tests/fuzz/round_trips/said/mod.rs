//! A chat in the words of each front.

mod chat;
mod contents;
mod messages;
mod responses;

use filters::models::dialects::Dialect;
use filters::models::dialects::state::{Maker, States};
use filters::models::front::Front;
use filters::models::fronts::chat_completions::ChatCompletions;
use filters::models::fronts::completions::Completions;
use filters::models::fronts::contents::GENERATE;
use filters::models::fronts::messages::Messages;
use filters::models::fronts::responses::Responses;
use filters::models::wires::WireKind;
use serde_json::{Value, json};

use super::talk::{NO_WORDS, Part, Talk, Thought, Tool, Turn, Words, schema};

/// A front, what it has words for, and how it says a chat.
pub struct Saying {
    pub name: &'static str,
    pub dialect: Dialect,
    pub front: &'static dyn Front,
    pub words: Words,
    pub say: fn(&Talk) -> Value,
}

/// All fronts of chats. One that is added here is tried on every wire.
pub static FRONTS: [Saying; 5] = [
    Saying {
        name: "chat_completions",
        dialect: Dialect::Chat,
        front: &ChatCompletions,
        words: Words {
            developer: true,
            later_instructions: true,
            sound: true,
            refusal: true,
            stop: true,
            any_object: true,
            details: true,
            strict: true,
            serial: true,
            ..NO_WORDS
        },
        say: chat::chat,
    },
    Saying {
        name: "messages",
        dialect: Dialect::Messages,
        front: &Messages,
        words: Words {
            later_instructions: true,
            errors: true,
            media_in_results: true,
            stop: true,
            strict: true,
            serial: true,
            ..NO_WORDS
        },
        say: messages::messages,
    },
    Saying {
        name: "responses",
        dialect: Dialect::Responses,
        front: &Responses,
        words: Words {
            developer: true,
            later_instructions: true,
            sound: true,
            refusal: true,
            media_in_results: true,
            any_object: true,
            details: true,
            freeform: true,
            strict: true,
            serial: true,
            ..NO_WORDS
        },
        say: responses::responses,
    },
    Saying {
        name: "contents",
        dialect: Dialect::Contents,
        front: &GENERATE,
        words: Words {
            sound: true,
            errors: true,
            media_in_results: true,
            stop: true,
            any_object: true,
            ..NO_WORDS
        },
        say: contents::contents,
    },
    Saying {
        name: "completions",
        dialect: Dialect::Completions,
        front: &Completions,
        words: Words {
            stop: true,
            text_alone: true,
            ..NO_WORDS
        },
        say: completions,
    },
];

/// The wires of chats, each with the dialect of its bodies.
pub const WIRES: [(WireKind, Dialect); 7] = [
    (WireKind::Compatible, Dialect::Chat),
    (WireKind::Messages, Dialect::Messages),
    (WireKind::Responses, Dialect::Responses),
    (WireKind::Contents, Dialect::Contents),
    (WireKind::Converse, Dialect::Converse),
    (WireKind::Cohere, Dialect::ChatV2),
    (WireKind::Completions, Dialect::Completions),
];

/// The sealed state of a thought.
fn sealed(thought: &Thought, state: &str) -> String {
    let name = match thought.made {
        Some(_) => "here/upstream-model",
        None => "there/another",
    };
    Maker::from_name(States::NONE, name).seal(thought.made.unwrap_or(Dialect::Messages), state)
}

/// The item of a host of Responses that has thought so.
fn item(thought: &Thought) -> String {
    json!({"id": "rs_1", "summary": [{"type": "summary_text", "text": thought.text}], "encrypted_content": thought.state}).to_string()
}

fn body(talk: &Talk) -> Value {
    let mut body = json!({"model": "m"});
    if let Some(temperature) = talk.temperature {
        body["temperature"] = temperature.into();
    }
    body
}

/// The members of a function.
fn function(tool: &Tool, schema_key: &str) -> Value {
    let mut function =
        json!({"name": tool.name, "description": tool.description, schema_key: schema()});
    if tool.strict {
        function["strict"] = true.into();
    }
    function
}

fn completions(talk: &Talk) -> Value {
    let mut body = body(talk);
    if let [Turn::Given { parts, .. }] = &*talk.turns
        && let [Part::Text(text)] = &**parts
    {
        body["prompt"] = text.as_str().into();
    }
    body["max_tokens"] = 64.into();
    if !talk.stop.is_empty() {
        body["stop"] = talk.stop.clone().into();
    }
    body
}
