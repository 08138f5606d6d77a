//! Completions: requests on every wire, and answers of every wire in this front's events.

use std::collections::HashSet;

use filters::models::front::Front;
use filters::models::fronts::completions::Completions;
use filters::models::operation::Operation;
use filters::models::request::ModelRequest;
use filters::models::wires::{Quirks, WireKind};
use serde_json::{Value, json};

use crate::choices::Choices;
use crate::models::{WIRES, encodes, in_memory, json, quirks, target};
use crate::run::run;
use crate::wires::{EVENTS, WHOLE, answer, grammars, stream};
use crate::{damage, grammar};

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
    let counted = std::cell::Cell::new((0_u32, 0_u32));
    run("completions: requests", |choices| {
        let body = grammar::compose(choices, &grammar);
        let is_damaged = !choices.once_in(4);
        let body = match is_damaged {
            true => damage::tree(choices, body),
            false => body,
        };
        let body = grammar::write(choices, &body);
        let body = match is_damaged && choices.once_in(2) {
            true => damage::bytes(choices, body),
            false => body,
        };
        let (all, good) = counted.get();
        counted.set((all + 1, good));
        match Completions.parse(body.into()) {
            Ok(request) => {
                counted.set((all + 1, good + 1));
                let quirks = quirks(choices);
                encodes(&request, &quirks);
                let codec = WireKind::Completions.wire().codec(Operation::Chat).unwrap();
                json(&in_memory(
                    codec.encode(&request, &target(&quirks)).unwrap(),
                ));
            }
            Err(fault) => assert_eq!(fault.status(), 400, "{fault:?}"),
        }
    });
    let (all, good) = counted.get();
    assert!(good * 20 > all, "{good} of {all} are accepted");
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
    let done = std::cell::Cell::new(0_u32);
    for wire in WIRES.into_iter().chain([WireKind::Completions]) {
        let (events, replies) = grammars(wire);
        run(&format!("completions: {wire:?}"), |choices| {
            let is_whole = choices.once_in(4);
            let (said, head) = match is_whole {
                true => (
                    grammar::compose(choices, &replies).to_string().into_bytes(),
                    &WHOLE,
                ),
                false => (stream(choices, wire, &events), &EVENTS),
            };
            let said = match choices.once_in(2) {
                true => damage::bytes(choices, said),
                false => said,
            };
            let quirks = Quirks::default();
            let request = request(choices, true);
            let (out, ended) = answer(wire, &request, &quirks, head, &[&said]);
            let text = std::str::from_utf8(&out).unwrap();
            let shown = || format!("{}\nmade {text}", String::from_utf8_lossy(&said));
            let is_done = check(text).unwrap_or_else(|why| panic!("{why}\nfrom {}", shown()));
            assert_eq!(is_done, ended.is_ok(), "{}", shown());
            done.set(done.get() + u32::from(is_done));
        });
    }
    assert!(done.get() > 20, "{} are whole", done.get());
}
