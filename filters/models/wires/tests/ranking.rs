//! Reranking on all wires: requests and replies as golden texts, and what hostile replies become.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::item::{Got, encoded, read};
use super::{Failure, FailureKind, Quirks, WireKind};
use crate::models::front::Front;
use crate::models::fronts::rerank::RERANK;
use crate::models::operation::Operation;
use crate::models::request::ModelRequest;
use crate::money::Unit;

/// The wires that offer it.
const WIRES: [WireKind; 3] = [WireKind::Compatible, WireKind::Cohere, WireKind::Voyage];

fn request(more: &Value) -> ModelRequest {
    let mut body = json!({"model": "m", "query": "q\n", "documents": ["a", "b", "c"]});
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    RERANK.parse(body.to_string().into()).unwrap()
}

fn sent(wire: WireKind, more: &Value) -> (String, Value) {
    encoded(wire.wire(), &request(more), &Quirks::default()).unwrap()
}

fn whole(wire: WireKind, more: &Value, reply: &Value) -> Result<Got, Failure> {
    read(
        wire.wire(),
        &request(more),
        200,
        reply.to_string().as_bytes(),
    )
}

#[test]
fn each_wire_has_its_path_and_its_words() {
    let more =
        json!({"top_n": 2, "return_documents": true, "priority": 1, "truncation": false, "x": {}});
    let documents = json!(["a", "b", "c"]);
    for (wire, path, expected) in [
        (
            WireKind::Compatible,
            "/rerank",
            json!({"model": "up x", "query": "q\n", "documents": documents, "top_n": 2, "priority": 1,
                "truncation": false, "x": {}, "return_documents": false}),
        ),
        (
            WireKind::Cohere,
            "/v2/rerank",
            json!({"model": "up x", "query": "q\n", "documents": documents, "top_n": 2, "priority": 1}),
        ),
        (
            WireKind::Voyage,
            "/rerank",
            json!({"model": "up x", "query": "q\n", "documents": documents, "top_k": 2, "truncation": false}),
        ),
    ] {
        assert_eq!(sent(wire, &more), (path.to_owned(), expected), "{wire:?}");
    }
    let elsewhere = Quirks {
        chat_path: "/v2/chat/completions?x=1".to_owned(),
        drop_unknown_fields: true,
        ..Quirks::default()
    };
    let compatible = WireKind::Compatible.wire();
    let (path, body) = encoded(compatible, &request(&more), &elsewhere).unwrap();
    assert_eq!((path.as_str(), body.get("x")), ("/v2/rerank?x=1", None));
    for wire in [WireKind::Messages, WireKind::Contents, WireKind::Responses] {
        assert!(wire.wire().limits(Operation::Rerank).is_none());
        assert!(encoded_is_refused(wire), "{wire:?}");
    }
}

fn encoded_is_refused(wire: WireKind) -> bool {
    let quirks = Quirks::default();
    let target = super::item::target(&quirks);
    wire.wire().encode(&request(&json!({})), &target).is_err()
}

#[test]
fn documents_go_out_as_texts_and_nulls_not_at_all() {
    let more = json!({"documents": [{"text": "a\"", "id": 1}, "b"], "top_n": null, "return_documents": null,
        "max_tokens_per_doc": null, "max_chunks_per_doc": null});
    for wire in WIRES {
        let (_, mut body) = sent(wire, &more);
        body.as_object_mut().unwrap().remove("return_documents");
        let expected = json!({"model": "up x", "query": "q\n", "documents": ["a\"", "b"]});
        assert_eq!(body, expected, "{wire:?}");
    }
}

/// Contract: model-gateway 2.10 max_tokens_per_doc
#[test]
fn a_bound_that_a_wire_has_no_word_for_is_refused_there() {
    let param = |wire: WireKind, bound: &str| {
        let request = request(&json!({bound: 9}));
        match encoded(wire.wire(), &request, &Quirks::default()) {
            Ok((_, body)) => {
                assert_eq!(body[bound], 9);
                None
            }
            Err(fault) => fault.param,
        }
    };
    let (tokens, chunks) = ("max_tokens_per_doc", "max_chunks_per_doc");
    assert_eq!(param(WireKind::Compatible, tokens), None);
    assert_eq!(param(WireKind::Compatible, chunks), None);
    assert_eq!(param(WireKind::Cohere, tokens), None);
    assert_eq!(param(WireKind::Cohere, chunks).as_deref(), Some(chunks));
    assert_eq!(param(WireKind::Voyage, tokens).as_deref(), Some(tokens));
    assert_eq!(param(WireKind::Voyage, chunks).as_deref(), Some(chunks));
}

fn result(index: usize, score: f64) -> Value {
    json!({"index": index, "relevance_score": score})
}

/// Contract: model-gateway 2.10 return_documents
#[test]
fn results_are_ordered_by_score_and_say_what_is_billed() {
    let unsorted = json!([result(2, 0.1), result(0, 0.5), result(1, 0.5)]);
    let sorted = [result(0, 0.5), result(1, 0.5), result(2, 0.1)];
    for (wire, reply, tokens, searches) in [
        (
            WireKind::Compatible,
            json!({"model": "x", "results": unsorted, "usage": {"total_tokens": 9, "prompt_tokens": 8}}),
            8,
            1,
        ),
        (
            WireKind::Cohere,
            json!({"id": "x", "results": unsorted, "meta": {"api_version": {"version": "2"}, "billed_units": {"search_units": 3.0}}}),
            0,
            3,
        ),
        (
            WireKind::Voyage,
            json!({"object": "list", "data": unsorted, "usage": {"total_tokens": 9}}),
            9,
            1,
        ),
    ] {
        let got = whole(wire, &json!({}), &reply).unwrap();
        assert_eq!(got.items, sorted, "{wire:?}");
        let usage = got.usage.unwrap();
        let counts = (usage.prompt, usage.units.get(Unit::Search));
        assert_eq!(counts, (tokens, searches), "{wire:?}");
        assert_eq!(usage.units.get(Unit::Document), 3);
    }
    let silent = whole(WireKind::Cohere, &json!({}), &json!({"results": unsorted})).unwrap();
    assert_eq!(silent.usage, None);
}

/// Contract: model-gateway 2.10 top_n
#[test]
fn no_more_results_than_asked_for_and_documents_as_they_came() {
    let more = json!({"top_n": 2, "return_documents": true, "documents": ["a\n", {"text": "b", "id": 1}, "c"]});
    // As it stands in the source: a score is passed on as it is written.
    let reply = br#"{"results":[{"index":1,"score":1e-7},{"index":0,"relevance_score":0.90},{"index":2,"score":0}]}"#;
    for wire in WIRES {
        let got = read(wire.wire(), &request(&more), 200, reply).unwrap();
        let expected = [
            json!({"index": 0, "relevance_score": 0.90, "document": {"text": "a\n"}}),
            json!({"index": 1, "relevance_score": 1e-7, "document": {"text": "b", "id": 1}}),
        ];
        assert_eq!(got.items, expected);
    }
}

#[test]
fn what_is_no_ranking_of_the_documents_is_malformed() {
    for bad in [
        json!({}),
        json!([]),
        json!("x"),
        json!({"results": []}),
        json!({"results": {}}),
        json!({"results": [1]}),
        json!({"results": [{"relevance_score": 1}]}),
        json!({"results": [{"index": 0}]}),
        json!({"results": [{"index": 0, "relevance_score": "1"}]}),
        json!({"results": [{"index": -1, "relevance_score": 1}]}),
        json!({"results": [result(3, 0.5)]}),
        json!({"results": [result(0, 0.5), result(0, 0.4)]}),
    ] {
        for wire in WIRES {
            let failure = whole(wire, &json!({}), &bad).unwrap_err();
            assert_eq!(failure.kind, FailureKind::Malformed, "{wire:?}: {bad}");
            assert!(failure.is_retryable);
        }
    }
    let infinite = br#"{"results":[{"index":0,"relevance_score":1e999}]}"#;
    for wire in WIRES {
        assert!(read(wire.wire(), &request(&json!({})), 200, infinite).is_err());
    }
}

#[test]
fn an_error_inside_a_200_and_a_refusal_are_failures() {
    let error = json!({"error": {"message": "Rate limit reached", "code": 429}});
    for wire in WIRES {
        let failure = whole(wire, &json!({}), &error).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Status(429));
        let refusal = json!({"message": "bad", "detail": "bad"}).to_string();
        let failure = read(wire.wire(), &request(&json!({})), 422, refusal.as_bytes()).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Status(422));
        assert!(!failure.is_retryable);
    }
}

proptest! {
    #[test]
    fn a_reply_cut_anywhere_or_of_any_bytes_never_panics(
        end in 0_usize..60, bytes in proptest::collection::vec(any::<u8>(), 0..60)
    ) {
        let reply = json!({"results": [result(2, 0.1), result(0, 0.5)]}).to_string();
        let cut = &reply.as_bytes()[..end.min(reply.len() - 1)];
        for wire in WIRES {
            let read_cut = read(wire.wire(), &request(&json!({})), 200, cut);
            prop_assert!(read_cut.is_err());
            _ = read(wire.wire(), &request(&json!({})), 200, &bytes);
        }
    }
}
