//! `POST /v1/rerank`: what goes up, what comes down, who is tried, what it costs. Source: docs/model-gateway.md 2.10.

use serde_json::json;

use crate::models::fronts::operations::{Operation, two_providers};
use crate::support::ask::Ask;
use crate::support::client::ask;
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

/// A model that costs by search at the first provider, and by token at the second.
const MODELS: &str = two_providers!(
    "ranks",
    "rerank",
    "name = \"ranks-at-first\"\nsearch_price = \"0.0001\"",
    "name = \"ranks-at-second\"\ninput_price = \"50\""
);

const RERANK: Operation = Operation {
    path: "/v1/rerank",
    kinds: ["cohere", "voyage"],
    models: MODELS,
    body: r#"{"model":"ranks","query":"who","documents":["ann","bob"],"return_documents":true}"#,
    replies: [cohere, voyage],
    costs: ["0.0002", "0.0005"],
    left: "0.0001",
};

fn cohere() -> Reply {
    let body = json!({"id": "up", "results": [{"index": 1, "relevance_score": 0.75}, {"index": 0, "relevance_score": 0.5}],
        "meta": {"api_version": {"version": "2"}, "billed_units": {"search_units": 2}}});
    Reply::json(200, body.to_string())
}

fn voyage() -> Reply {
    let body = json!({"object": "list", "data": [{"index": 0, "relevance_score": 0.25}, {"index": 1, "relevance_score": 0.5}],
        "model": "up", "usage": {"total_tokens": 10}});
    Reply::json(200, body.to_string())
}

/// Contract: model-gateway 2.10 documents
/// Contract: model-gateway 2.10 return_documents
/// Contract: model-gateway 4 POST /v1/rerank
#[test]
fn each_provider_gets_its_words_and_the_client_the_conventions() {
    let (first, second) = (Upstream::always(cohere()), Upstream::always(voyage()));
    let gateway = RERANK.gateway([&first, &second], "", "1");
    for (model, upstream, path, scores, billed, sent) in [
        (
            "first/ranks",
            &first,
            "/v2/rerank",
            [0.75, 0.5],
            json!({"search_units": 2}),
            json!({"model": "ranks-at-first", "query": "who", "documents": ["ann", "bob"], "top_n": 2}),
        ),
        (
            "second/ranks",
            &second,
            "/v1/rerank",
            [0.5, 0.25],
            json!({"input_tokens": 10, "total_tokens": 10}),
            json!({"model": "ranks-at-second", "query": "who", "documents": ["ann", "bob"], "top_k": 2}),
        ),
    ] {
        let body = json!({"model": model, "query": "who", "documents": ["ann", {"text": "bob", "id": 7}],
            "top_n": 2, "return_documents": true});
        let request = RERANK.request(&gateway).body(body.to_string());
        let answer = ask(gateway.address(), &request.header("x-request-id", "r-1"));
        let expected = json!({
            "id": "r-1",
            "model": model,
            "results": [{"index": 1, "relevance_score": scores[0], "document": {"text": "bob", "id": 7}},
                        {"index": 0, "relevance_score": scores[1], "document": {"text": "ann"}}],
            "meta": {"api_version": {"version": "1"}, "billed_units": billed},
        });
        assert_eq!((answer.status(), answer.json()), (200, expected));
        let received = upstream.request(0);
        assert_eq!((received.path.as_str(), received.json()), (path, sent));
        let bearer = Some("Bearer sk-platform");
        assert_eq!(received.header("authorization"), bearer);
    }
    let line = gateway.log_line("r-1");
    assert_eq!(line["documents"], 2, "{line}");
}

#[test]
fn a_failed_provider_is_followed_by_the_next() {
    RERANK.falls_back();
}

#[test]
fn searches_and_tokens_cost_their_prices() {
    RERANK.costs();
}

#[test]
fn credit_and_limits_of_keys_hold() {
    RERANK.is_paid_for();
}

#[test]
fn reranking_has_a_quota_of_its_own() {
    RERANK.has_a_quota("rerank");
}

#[test]
fn a_client_that_leaves_pays_for_the_search_and_a_failure_costs_nothing() {
    RERANK.is_left();
}

/// Contract: model-gateway 2.10 model
/// Contract: model-gateway 2.10 query
/// Contract: model-gateway 2.10 max_tokens_per_doc
#[test]
fn a_bad_request_is_named_and_reaches_no_provider() {
    RERANK.refuses(&[
        ("{", None),
        (r#"{"query":"a","documents":["a"]}"#, Some("model")),
        (r#"{"model":"ranks","documents":["a"]}"#, Some("query")),
        (r#"{"model":"ranks","query":"a"}"#, Some("documents")),
        (
            r#"{"model":"ranks","query":"a","documents":[]}"#,
            Some("documents"),
        ),
        (
            r#"{"model":"ranks","query":"a","documents":["a",7]}"#,
            Some("documents[1]"),
        ),
        (
            r#"{"model":"ranks","query":"a","documents":["a"],"top_n":0}"#,
            Some("top_n"),
        ),
        (
            r#"{"model":"ranks","query":"a","documents":["a"],"max_chunks_per_doc":5}"#,
            Some("max_chunks_per_doc"),
        ),
        (
            r#"{"model":"auto","query":"a","documents":["a"]}"#,
            Some("model"),
        ),
        (
            r#"{"model":"chat","query":"a","documents":["a"]}"#,
            Some("model"),
        ),
    ]);
}

#[test]
fn a_model_on_the_wrong_endpoint_is_told_the_right_one() {
    let first = Upstream::always(cohere());
    let gateway = RERANK.gateway([&first, &first], "", "1");
    let answer = gateway.chat(r#"{"model":"ranks","messages":[{"role":"user","content":"Hi"}]}"#);
    let said = answer.text();
    assert!(said.contains("use `POST /v1/rerank`"), "{said}");
    let request = RERANK
        .request(&gateway)
        .body(r#"{"model":"chat","query":"a","documents":["a"]}"#);
    let answer = ask(gateway.address(), &request);
    let said = answer.text();
    assert!(said.contains("use `POST /v1/chat/completions`"), "{said}");
}

#[test]
fn the_listing_has_the_price_of_a_search() {
    let first = Upstream::always(cohere());
    let gateway = RERANK.gateway([&first, &first], "", "1");
    let models = ask(gateway.address(), &Ask::get("/v1/models").key(&gateway.key)).json();
    let data = models["data"].as_array().unwrap();
    let entry = data.iter().find(|entry| entry["id"] == "ranks").unwrap();
    let pricing = &entry["providers"][0]["pricing"];
    assert_eq!(pricing["search"], "0.0001", "{pricing}");
    let outputs = &entry["architecture"]["output_modalities"];
    assert_eq!(outputs, &json!(["rerank"]));
    let parameters = &entry["supported_parameters"];
    assert_eq!(parameters, &json!(["top_n", "return_documents"]));
}
