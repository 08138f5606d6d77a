#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::RERANK;
use crate::fault::Fault;
use crate::models::front::Front;
use crate::models::fronts::tests::complete;
use crate::models::reply::{ReplyIdentity, Writer};
use crate::models::request::{ModelRequest, Payload};
use crate::models::rerank::RerankFacts;
use crate::models::usage::Usage;
use crate::money::{Unit, UnitCounts};

fn checked(body: &Value) -> Result<ModelRequest, Fault> {
    RERANK.parse(body.to_string().into())
}

fn with(key: &str, value: Value) -> Result<ModelRequest, Fault> {
    let mut body = json!({"model": "m", "query": "who", "documents": ["a", "b"]});
    body[key] = value;
    checked(&body)
}

fn facts(request: &ModelRequest) -> &RerankFacts {
    match &request.payload {
        Payload::Rerank(facts) => facts,
        _ => unreachable!("a front makes its own payload"),
    }
}

#[test]
fn strings_and_objects_are_documents() {
    let request = with("documents", json!(["a\n", {"id": 7, "text": "b", "x": {}}])).unwrap();
    let facts = facts(&request);
    assert!(facts.has_objects && !facts.returns_documents);
    let body = &request.source.body;
    assert_eq!(facts.document(body, 0), r#""a\n""#);
    assert_eq!(facts.document(body, 1), r#"{"id":7,"text":"b","x":{}}"#);
    assert_eq!(facts.document(body, 2), "");
    let mut texts = Vec::new();
    facts.write_texts(body, &mut texts).unwrap();
    assert_eq!(texts, br#"["a\n","b"]"#);
}

/// Contract: model-gateway 2.10 top_n
#[test]
fn the_most_results_are_those_asked_for_and_no_more_than_documents() {
    for (top_n, most) in [(json!(1), 1), (json!(9), 2), (json!(null), 2)] {
        let request = with("top_n", top_n).unwrap();
        assert_eq!(facts(&request).most_results(), most);
    }
}

#[test]
fn the_query_counts_once_for_each_document_and_long_documents_as_several() {
    let request = with("documents", json!(vec!["x".repeat(501); 100])).unwrap();
    assert_eq!(request.text_bytes, 100 * (501 + 3));
    let expected = UnitCounts::default()
        .with(Unit::Search, 1)
        .with(Unit::Document, 100);
    assert_eq!(request.units, expected);
    let most = request.cost_inputs.units.get(Unit::Search);
    assert_eq!(most, 2, "of documents in two parts");
    assert!(request.cost_inputs.bytes > request.text_bytes);
    let more = with("documents", json!(vec!["x"; 101])).unwrap();
    assert_eq!(more.units.get(Unit::Search), 2);
}

/// Contract: model-gateway 2.10 query
/// Contract: model-gateway 2.10 documents
/// Contract: model-gateway 2.10 top_n
/// Contract: model-gateway 2.10 return_documents
/// Contract: model-gateway 2.10 max_tokens_per_doc
#[test]
fn a_refusal_names_the_field_what_came_and_what_is_accepted() {
    let documents = "an array of strings, or of objects";
    for (key, value, param, came, accepted) in [
        ("model", json!(7), "model", "7", "a string"),
        (
            "model",
            json!("@prompt/x"),
            "model",
            "a prompt",
            "a model id",
        ),
        ("query", json!(""), "query", "empty", "a text"),
        ("query", json!(["a"]), "query", "array", "a string"),
        ("documents", json!("a"), "documents", "\"a\"", documents),
        ("documents", json!([]), "documents", "empty", "at least one"),
        ("documents", json!(null), "documents", "null", documents),
        (
            "documents",
            json!(["a", ""]),
            "documents[1]",
            "empty",
            "a text",
        ),
        (
            "documents",
            json!([1]),
            "documents[0]",
            "1",
            "an object with",
        ),
        (
            "documents",
            json!([[]]),
            "documents[0]",
            "array",
            "a string",
        ),
        (
            "documents",
            json!([{}]),
            "documents[0].text",
            "missing",
            "a string",
        ),
        (
            "documents",
            json!([{"text": 1}]),
            "documents[0].text",
            "1",
            "a string",
        ),
        (
            "documents",
            json!([{"text": ""}]),
            "documents[0].text",
            "empty",
            "a text",
        ),
        ("top_n", json!(0), "top_n", "0", "an integer from 1"),
        ("top_n", json!(1.5), "top_n", "1.5", "an integer from 1"),
        ("top_n", json!("1"), "top_n", "\"1\"", "an integer from 1"),
        (
            "return_documents",
            json!(1),
            "return_documents",
            "1",
            "a boolean",
        ),
        (
            "max_tokens_per_doc",
            json!(0),
            "max_tokens_per_doc",
            "0",
            "from 1",
        ),
        (
            "max_chunks_per_doc",
            json!(-1),
            "max_chunks_per_doc",
            "-1",
            "from 1",
        ),
    ] {
        let fault = with(key, value.clone()).unwrap_err();
        let named = (fault.status(), fault.param.as_deref());
        assert_eq!(named, (400, Some(param)), "{key} {value}: {fault}");
        for part in [param, came, accepted] {
            assert!(fault.message.contains(part), "{part:?} in {fault}");
        }
    }
    for missing in ["model", "query", "documents"] {
        let mut body = json!({"model": "m", "query": "who", "documents": ["a"]});
        body.as_object_mut().unwrap().remove(missing);
        let fault = checked(&body).unwrap_err();
        assert_eq!(fault.param.as_deref(), Some(missing));
        assert!(fault.message.contains("is missing"), "{fault}");
    }
    let twice = r#"{"model":"m","query":"q","documents":[{"text":"a","text":"b"}]}"#;
    let fault = RERANK.parse(twice.into()).unwrap_err();
    assert_eq!(fault.param.as_deref(), Some("documents[0].text"));
}

/// Contract: model-gateway 2.10 documents
#[test]
fn more_documents_than_the_bound_are_refused_and_as_many_are_not() {
    assert!(with("documents", json!(vec!["a"; 10_000])).is_ok());
    let fault = with("documents", json!(vec!["a"; 10_001])).unwrap_err();
    assert_eq!(fault.param.as_deref(), Some("documents[10000]"));
}

proptest! {
    #[test]
    fn bytes_of_any_kind_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        _ = RERANK.parse(bytes.into());
    }
}

fn writer() -> Box<dyn Writer> {
    let request = with("top_n", json!(1)).unwrap();
    let identity = ReplyIdentity {
        id: "req-1".into(),
        created: 7,
        model: "here/m".into(),
        maker: "here/m".into(),
    };
    request.front.writer(&request, identity)
}

#[test]
fn nothing_goes_out_before_the_results_are_whole_and_they_have_the_conventions_members() {
    let mut results = writer();
    results.item(br#"{"index":1,"relevance_score":0.5}"#);
    assert!(!results.has_content() && results.take().is_empty());
    let usage = Usage {
        units: UnitCounts::default().with(Unit::Search, 1),
        ..Usage::default()
    };
    let expected = json!({"id": "req-1", "model": "here/m", "results": [{"index": 1, "relevance_score": 0.5}],
        "meta": {"api_version": {"version": "1"}, "billed_units": {"search_units": 1}}});
    assert_eq!(complete(&mut *results, usage), expected);
}

#[test]
fn tokens_are_told_where_they_are_billed_and_an_estimate_says_so() {
    let body = complete(&mut *writer(), Usage::estimate(8, 0, 0));
    let expected = json!({"api_version": {"version": "1"}, "billed_units": {"input_tokens": 2, "total_tokens": 2},
        "warnings": ["the billed units are an estimate"]});
    assert_eq!(body["meta"], expected);
}
