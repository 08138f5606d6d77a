//! Completions: requests on every wire, and answers of every wire in this front's events.

use std::collections::HashSet;

use filters::models::front::Front;
use filters::models::fronts::completions::Completions;
use filters::models::operation::Operation;
use filters::models::request::ModelRequest;
use filters::models::wires::WireKind;
use serde_json::{Value, json};

use crate::choices::Choices;
use crate::models::{WIRES, in_memory, json, target};
use crate::streams::{keep_the_grammar, requests};

pub fn request_grammar() -> Value {
    let text = json!({"$one": ["a", "", "$text"]});
    json!({
        "model": {"$one": ["m", "m", "$text"]},
        "prompt": {"$one": [text, text, [text], {"$many": text}, [1, 2], [[1], [2, 3]], {"$many": "$int"}, "$any"]},
        "suffix?": {"$one": ["end", "", null, "$text"]}, "echo?": {"$one": [true, false, null]}, "logprobs?": {"$one": [5, null, "$int"]},
        "best_of?": {"$one": [2, null, "$int"]}, "n?": {"$one": [1, 2, null, "$int"]}, "max_tokens?": {"$one": [16, null, "$number"]},
        "stop?": {"$one": ["x", " ", ["x", "$text"], null, {"$many": "$text"}]}, "stream?": {"$one": [true, false]},
        "stream_options?": {"include_usage?": {"$one": [true, null]}}, "temperature?": "$number", "top_p?": 0.5, "seed?": "$int",
        "presence_penalty?": "$number", "frequency_penalty?": {"$one": [0, "$number"]}, "logit_bias?": {"$one": [{"50256": -100}, {}, null]},
        "user?": {"$one": ["u", "$text"]}, "routing?": "price", "no_reasoning?": true, "unknown?": "$any",
    })
}

#[test]
fn an_accepted_request_is_json_on_every_wire() {
    let grammar = request_grammar();
    let name = "completions: requests";
    requests(name, &Completions, &grammar, |_, request, quirks| {
        let Some(request) = request else { return };
        let codec = WireKind::Completions.wire().codec(Operation::Chat).unwrap();
        json(&in_memory(codec.encode(request, &target(quirks)).unwrap()));
    });
}

fn request(choices: &mut Choices<'_>, is_stream: bool) -> ModelRequest {
    let mut body = json!({"model": "m", "stream": is_stream, "prompt": "Hi", "n": 2});
    if choices.once_in(2) {
        body["stop"] = json!(["wo", "rd"]);
    }
    if choices.once_in(2) {
        body["logprobs"] = 1.into();
    }
    Completions.parse(body.to_string().into()).unwrap()
}

/// Checks a stream. Returns whether it has come to its end.
fn check(stream: &str) -> Result<bool, String> {
    let mut ended = HashSet::new();
    let mut events = stream
        .split("\n\n")
        .filter(|event| !event.is_empty())
        .peekable();
    while let Some(event) = events.next() {
        if event.starts_with("event: error\n") {
            return events
                .next()
                .map_or(Ok(false), |event| Err(format!("{event} behind a break")));
        }
        let data = event
            .strip_prefix("data: ")
            .ok_or_else(|| format!("{event:?} has no data"))?;
        if data == "[DONE]" {
            return events
                .next()
                .map_or(Ok(true), |event| Err(format!("{event} behind the end")));
        }
        let data: Value = serde_json::from_str(data).map_err(|error| format!("{error}: {data}"))?;
        if data["object"] != "text_completion"
            || data.get("usage").is_some() != (events.peek() == Some(&"data: [DONE]"))
        {
            return Err(format!("{data} in its place"));
        }
        for choice in data["choices"].as_array().unwrap() {
            let index = choice["index"].as_u64().unwrap();
            if data.get("usage").is_none() && ended.contains(&index) {
                return Err(format!("{choice} behind its end"));
            }
            if choice["finish_reason"].is_string() {
                ended.insert(index);
            }
            if !choice["text"].is_string() || choice.get("logprobs").is_none() {
                return Err(format!("{choice} lacks a member"));
            }
        }
    }
    Err("no end".to_owned())
}

#[test]
fn answers_of_every_wire_keep_the_promises_of_a_stream() {
    for wire in WIRES.into_iter().chain([WireKind::Completions]) {
        let name = format!("completions: {wire:?}");
        keep_the_grammar(&name, wire, request, |stream, is_whole| {
            match check(stream)? == is_whole {
                true => Ok(()),
                false => Err("another end than that of the reply".to_owned()),
            }
        });
    }
}
