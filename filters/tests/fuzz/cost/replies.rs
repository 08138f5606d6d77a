//! Replies of providers, whole and as events, in the pieces in which they arrive.

use filters::models::front::Front;
use filters::models::fronts::chat_completions::ChatCompletions;
use filters::models::fronts::completions::Completions;
use filters::models::fronts::embeddings::EMBEDDINGS;
use filters::models::fronts::images::ImageGenerations;
use filters::models::request::ModelRequest;
use filters::models::wires::{Quirks, ReplyHead, WireKind};
use serde_json::{Value, json};

use super::fronts::of_grammar;
use super::{Attack, Reader, attacks};
use crate::choices::Choices;
use crate::lists::{self, offering};
use crate::models::WIRES;
use crate::wires::{EVENTS, WHOLE, answer_pieces, events_head, grammars, stream};

/// Pieces in which replies arrive.
const PIECE_BYTES: usize = 16 << 10;

fn parsed(front: &dyn Front, body: Value) -> ModelRequest {
    front.parse(body.to_string().into()).unwrap()
}

fn chat(is_stream: bool, heals: bool) -> ModelRequest {
    let mut body =
        json!({"model": "m", "stream": is_stream, "messages": [{"role": "user", "content": "Hi"}]});
    if heals {
        body["response_format"] = json!({"type": "json_object"});
        body["plugins"] = json!([{"id": "response-healing"}]);
    }
    parsed(&ChatCompletions, body)
}

fn completion(is_stream: bool) -> ModelRequest {
    let body = json!({"model": "m", "stream": is_stream, "prompt": "Hi", "stop": ["wo", "rd"], "n": 128, "best_of": 128});
    parsed(&Completions, body)
}

/// Returns the reader of replies to a request.
fn reader(
    name: String,
    wire: WireKind,
    request: ModelRequest,
    head: ReplyHead,
    seed: impl Fn(&mut Choices<'_>) -> Vec<u8> + 'static,
) -> Reader {
    let quirks = Quirks::default();
    Reader::new(name, seed, move |body| {
        let pieces = body.len().div_ceil(PIECE_BYTES);
        let pieces = (0..pieces).map(|at| {
            let from = at * PIECE_BYTES;
            body.slice(from..body.len().min(from + PIECE_BYTES))
        });
        let _ = answer_pieces(wire, &request, (&quirks, &head), pieces, |writer| {
            drop(writer.take());
        });
    })
}

/// Returns the readers of whole replies, and of refusals.
pub fn whole() -> Vec<Reader> {
    let mut readers = Vec::new();
    for wire in WIRES {
        for (stream, what) in [(false, "whole"), (true, "whole to a stream")] {
            let (_, grammar) = grammars(wire);
            let name = format!("replies: {wire:?}, {what}");
            readers.push(reader(
                name,
                wire,
                chat(stream, false),
                WHOLE,
                of_grammar(grammar),
            ));
        }
        let refusal = json!({"error": {"message": "$text", "type": "a", "code": {"$one": ["invalid_api_key", 401]}, "param": "$any", "details": "$any"}});
        readers.push(Reader::new(
            format!("refusals: {wire:?}"),
            of_grammar(refusal),
            move |body| {
                let failure = wire
                    .wire()
                    .classify(400, body)
                    .scrubbed(&["secret-of-mine"]);
                failure.write_cause(&mut Vec::new());
            },
        ));
    }
    for (wire, is_stream) in [
        (WireKind::Completions, false),
        (WireKind::Completions, true),
    ] {
        let (_, grammar) = grammars(wire);
        let name = format!("replies: {wire:?}, whole, to a stream: {is_stream}");
        let request = completion(is_stream);
        readers.push(reader(name, wire, request, WHOLE, of_grammar(grammar)));
    }
    let embeddings = || parsed(&EMBEDDINGS, json!({"model": "m", "input": ["a", "b"]}));
    for wire in [
        WireKind::Contents,
        WireKind::Cohere,
        WireKind::Voyage,
        WireKind::Predictions,
        WireKind::Titan,
    ] {
        let (_, grammar) = grammars(wire);
        let name = format!("replies: {wire:?}, embeddings");
        readers.push(reader(name, wire, embeddings(), WHOLE, of_grammar(grammar)));
    }
    let (_, images) = grammars(WireKind::Images);
    let drawn = parsed(&ImageGenerations, json!({"model": "m", "prompt": "A cat"}));
    readers.push(reader(
        "replies: images".into(),
        WireKind::Images,
        drawn,
        WHOLE,
        of_grammar(images),
    ));
    for operation in [
        lists::rerank(),
        lists::moderations(),
        lists::ocr(),
        lists::search(),
        lists::decisions(),
        lists::videos(),
    ] {
        let request = || parsed(operation.front, operation.request.clone());
        for wire in offering(&request()) {
            let name = format!("replies: {wire:?}, {}", operation.front.row().name);
            readers.push(reader(
                name,
                wire,
                request(),
                WHOLE,
                of_grammar(operation.replies.clone()),
            ));
        }
    }
    readers
}

/// Returns the readers of events.
pub fn events() -> Vec<Reader> {
    let mut readers = Vec::new();
    for wire in WIRES {
        let attacks: &[Attack] = match wire {
            WireKind::Compatible => &attacks::COMPATIBLE_EVENTS,
            WireKind::Messages => &attacks::MESSAGES_EVENTS,
            WireKind::Responses => &attacks::RESPONSES_EVENTS,
            WireKind::Contents => &attacks::CONTENTS_EVENTS,
            _ => &[],
        };
        for (is_stream, heals, what) in [
            (true, false, "events"),
            (false, false, "events to a whole"),
            (true, true, "healed events"),
        ] {
            let (grammar, _) = grammars(wire);
            let seed = move |choices: &mut Choices<'_>| stream(choices, wire, &grammar);
            let name = format!("replies: {wire:?}, {what}");
            let reader = reader(name, wire, chat(is_stream, heals), *events_head(wire), seed);
            readers.push(reader.with(attacks));
        }
    }
    for wire in [WireKind::Completions, WireKind::Compatible] {
        for is_stream in [false, true] {
            let (grammar, _) = grammars(wire);
            let seed = move |choices: &mut Choices<'_>| stream(choices, wire, &grammar);
            let name = format!("completions: {wire:?}, events to a stream: {is_stream}");
            let reader = reader(name, wire, completion(is_stream), EVENTS, seed);
            readers.push(reader.with(&attacks::COMPATIBLE_EVENTS));
        }
    }
    let (images, _) = grammars(WireKind::Images);
    let seed = move |choices: &mut Choices<'_>| stream(choices, WireKind::Images, &images);
    let drawn = parsed(
        &ImageGenerations,
        json!({"model": "m", "prompt": "A cat", "stream": true}),
    );
    readers.push(reader(
        "replies: Images, events".into(),
        WireKind::Images,
        drawn,
        EVENTS,
        seed,
    ));
    readers
}
