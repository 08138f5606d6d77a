//! Typed decisions on all wires: requests and replies as golden texts, and what hostile replies become.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Failure, FailureKind, Quirks, ReplyHead, Target, WireKind, decode_reply};
use crate::models::front::Front;
use crate::models::fronts::systemone::SYSTEM_ONE;
use crate::models::operation::Operation;
use crate::models::reply::Sink;
use crate::models::request::ModelRequest;
use crate::models::usage::Usage;

/// The wires that offer it.
const WIRES: [WireKind; 2] = [WireKind::Compatible, WireKind::Contents];

fn request(more: &Value) -> ModelRequest {
    let questions = json!({
        "is": {"type": "noul", "instructions": "Is it?"},
        "which": {"type": "choice", "instructions": "Which?", "criteria": {"x": "ex", "y": null}},
        "how": {"type": "score", "instructions": "How?", "criteria": ["low", "high"]},
    });
    let mut body = json!({"model": "m", "state": {"a": 1}, "questions": questions});
    let more = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(more);
    SYSTEM_ONE.parse(body.to_string().into()).unwrap()
}

fn sent(wire: WireKind, more: &Value) -> (String, Value) {
    let quirks = Quirks::default();
    let (wire, request) = (wire.wire(), request(more));
    let target = Target::plain("here", "up x", &quirks);
    let body = wire.encode(&request, &target).unwrap().concat();
    let operation = Operation::TypedDecisions;
    let head = wire.head(operation, false, target.model, &quirks).unwrap();
    (head.path, serde_json::from_slice(&body).unwrap())
}

/// The answers of a reply as an object, the output tokens and the usage.
#[derive(Default)]
struct Decided {
    answers: Vec<u8>,
    output_tokens: Option<String>,
    usage: Option<Usage>,
}

impl Sink for Decided {
    fn item(&mut self, item: &[u8]) {
        self.answers
            .push(if self.answers.is_empty() { b'{' } else { b',' });
        self.answers.extend_from_slice(item);
    }

    fn member(&mut self, key: &str, value: &str) {
        assert_eq!(key, "output_tokens");
        self.output_tokens = Some(value.to_owned());
    }

    fn usage(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }
}

fn read(wire: WireKind, body: &[u8]) -> Result<(Value, Decided), Failure> {
    let quirks = Quirks::default();
    let target = Target::plain("here", "up x", &quirks);
    let head = ReplyHead::new(200, b"application/json");
    let request = request(&json!({}));
    let mut decoder = decode_reply(wire.wire(), &request, &target, &head).unwrap();
    let mut decided = Decided::default();
    decoder.feed(&bytes::Bytes::copy_from_slice(body), &mut decided)?;
    decoder.end(&mut decided)?;
    decided.answers.push(b'}');
    let answers = serde_json::from_slice(&decided.answers).unwrap();
    Ok((answers, decided))
}

fn received(wire: WireKind, reply: &Value) -> Result<(Value, Decided), FailureKind> {
    read(wire, reply.to_string().as_bytes()).map_err(|failure| failure.kind)
}

fn failed(wire: WireKind, reply: &Value) -> FailureKind {
    received(wire, reply).map(|_| ()).unwrap_err()
}

#[test]
fn each_wire_has_its_path_and_its_words() {
    let more = json!({"prompt_cache_key": "k", "safety_identifier": null, "x": 1});
    let (path, body) = sent(WireKind::Compatible, &more);
    let questions = json!([
        {"type": "predicate", "name": "is", "instructions": "Is it?"},
        {"type": "choice", "name": "which", "instructions": "Which?", "choices": [{"value": "x", "description": "ex"}, {"value": "y"}]},
        {"type": "score", "name": "how", "instructions": "How?", "levels": [{"label": "low"}, {"label": "high"}]},
    ]);
    let expected = json!({"model": "up x", "input": "{\"a\":1}", "prompt_cache_key": "k", "questions": questions});
    assert_eq!((path.as_str(), body), ("/decisions", expected));
    let (path, body) = sent(WireKind::Contents, &more);
    let questions = json!({
        "is": {"type": "noul", "instructions": "Is it?"},
        "which": {"type": "choice", "instructions": "Which?", "criteria": {"x": "ex", "y": "y"}},
        "how": {"type": "score", "instructions": "How?", "criteria": ["low", "high"]},
    });
    let expected = json!({"model": "up x", "input": "{\"a\":1}", "questions": questions});
    assert_eq!((path.as_str(), body), ("/v1beta/decisions", expected));
    let text = json!({"state": "Hi \"you\""});
    for wire in WIRES {
        assert_eq!(sent(wire, &text).1["input"], "Hi \"you\"");
    }
    for wire in [WireKind::Messages, WireKind::Responses, WireKind::Cohere] {
        assert!(wire.wire().limits(Operation::TypedDecisions).is_none());
    }
}

fn openai() -> Value {
    json!({"model": "x", "usage": {"input_tokens": 9, "output_tokens": 3, "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2}},
    "answers": [
        {"type": "predicate", "name": "is", "probability": 0.9},
        {"type": "choice", "name": "which", "choice": "y", "confidence": 0.6,
         "probabilities": [{"value": "x", "probability": 0.4}, {"value": "y", "probability": 0.6}]},
        {"type": "score", "name": "how", "score": 1.25, "confidence": 0.75,
         "probabilities": [{"value": 1, "label": "low", "probability": 0.75}, {"value": 2, "label": "high", "probability": 0.25}]},
    ]})
}

fn google() -> Value {
    json!({"usage": {"total_input_tokens": 9, "total_cached_tokens": 4, "total_output_tokens": 3}, "answers": {
        "is": {"noul": 0.9, "confidence": 0.8},
        "which": {"choice": "y", "confidence": 0.6, "probabilities": {"x": 0.4, "y": 0.6}},
        "how": {"score": 1.25, "confidence": 0.75, "legend": {"1": "low", "2": "high"}, "probabilities": {"low": 0.75, "high": 0.25}},
    }})
}

#[test]
fn answers_have_one_shape_and_the_input_alone_is_billed() {
    let expected = json!({
        "is": {"type": "noul", "noul": 0.9},
        "which": {"type": "choice", "choice": "y", "confidence": 0.6, "probabilities": {"x": 0.4, "y": 0.6}},
        "how": {"type": "score", "score": 1.25, "confidence": 0.75, "legend": {"1": "low", "2": "high"},
                "probabilities": {"low": 0.75, "high": 0.25}},
    });
    for (wire, reply, written) in [
        (WireKind::Compatible, openai(), 2),
        (WireKind::Contents, google(), 0),
    ] {
        let (answers, decided) = received(wire, &reply).unwrap();
        assert_eq!(answers, expected, "{wire:?}");
        let usage = decided.usage.unwrap();
        assert_eq!(
            (usage.prompt, usage.cached, usage.cache_write),
            (9, 4, written)
        );
        assert_eq!(
            (usage.completion, decided.output_tokens.as_deref()),
            (0, Some("3"))
        );
    }
    let mut silent = openai();
    silent["usage"] = Value::Null;
    silent["answers"][0] = json!({"type": "refusal", "name": "is"});
    let (answers, decided) = received(WireKind::Compatible, &silent).unwrap();
    assert_eq!(answers["is"], json!({"type": "refusal"}));
    assert_eq!((decided.usage, decided.output_tokens), (None, None));
    for (legend, expected) in [
        (json!(null), json!({"0": "low", "1": "high"})),
        (json!(["a", "b"]), json!({"0": "a", "1": "b"})),
    ] {
        let mut reply = google();
        reply["answers"]["how"]["legend"] = legend;
        let (answers, _) = received(WireKind::Contents, &reply).unwrap();
        assert_eq!(answers["how"]["legend"], expected);
    }
}

#[test]
fn what_does_not_answer_the_questions_is_malformed() {
    for bad in [
        json!({}),
        json!([]),
        json!({"answers": []}),
        json!({"answers": {}}),
        json!({"answers": null}),
    ] {
        for wire in WIRES {
            assert_eq!(failed(wire, &bad), FailureKind::Malformed, "{bad}");
        }
    }
    for (at, answer) in [
        (2, json!({"type": "predicate", "probability": 0.5})),
        (2, json!({"type": "score", "score": "1"})),
        (
            2,
            json!({"type": "score", "score": 1, "probabilities": [{"value": 1, "probability": 0.5}]}),
        ),
        (0, json!({"type": "predicate"})),
        (0, json!({"type": "predicate", "probability": "0.5"})),
        (0, json!({"type": "choice", "choice": "x"})),
        (
            1,
            json!({"type": "choice", "choice": "z", "probabilities": []}),
        ),
        (
            1,
            json!({"type": "choice", "choice": true, "probabilities": []}),
        ),
        (1, json!(7)),
    ] {
        let mut reply = openai();
        reply["answers"][at] = answer.clone();
        assert_eq!(
            failed(WireKind::Compatible, &reply),
            FailureKind::Malformed,
            "{answer}"
        );
    }
    for (id, answer) in [
        ("is", json!({"choice": "x"})),
        ("is", json!({"noul": null})),
        ("which", json!({"choice": "z"})),
        ("how", json!({"score": true})),
        ("how", json!({"score": 1, "legend": 7})),
        ("how", json!({"score": 1, "probabilities": {"low": "1"}})),
    ] {
        let mut reply = google();
        reply["answers"][id] = answer.clone();
        assert_eq!(
            failed(WireKind::Contents, &reply),
            FailureKind::Malformed,
            "{answer}"
        );
    }
    let error = json!({"error": {"message": "Rate limit reached", "code": 429}});
    for wire in WIRES {
        assert_eq!(failed(wire, &error), FailureKind::Status(429));
    }
    let blocked = json!({"prompt_feedback": {"block_reason": "SAFETY"}});
    assert_eq!(
        failed(WireKind::Contents, &blocked),
        FailureKind::Status(400)
    );
}

proptest! {
    #[test]
    fn a_reply_cut_anywhere_or_of_any_bytes_never_panics(
        end in 0_usize..600, bytes in proptest::collection::vec(any::<u8>(), 0..60)
    ) {
        for (wire, reply) in [(WireKind::Compatible, openai()), (WireKind::Contents, google())] {
            let reply = reply.to_string();
            let cut = &reply.as_bytes()[..end.min(reply.len() - 1)];
            prop_assert!(read(wire, cut).is_err());
            _ = read(wire, &bytes);
        }
    }
}
