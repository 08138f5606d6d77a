//! `POST /v1/messages/count_tokens`: by the model's provider, or here.

use serde_json::json;

use super::messages::{called, first_turn, gateway_with, post};
use crate::support::ask::Ask;
use crate::support::client::ask;
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

#[test]
fn tokens_are_counted_without_a_provider_or_a_price() {
    let upstream = Upstream::answering(called);
    let gateway = gateway_with(&upstream, "");
    let mut asked = first_turn("chat");
    asked.as_object_mut().unwrap().remove("max_tokens");
    let counted = post(&gateway, "/v1/messages/count_tokens?beta=true", &asked);
    assert_eq!(counted.status(), 200, "{}", counted.text());
    assert!(counted.json()["input_tokens"].as_u64() > Some(10));
    assert!(upstream.requests().is_empty());
    let keyless = ask(
        gateway.address(),
        &Ask::post("/v1/messages/count_tokens", asked.to_string()),
    );
    assert_eq!(keyless.status(), 401);
}

#[test]
fn the_models_own_provider_counts_its_tokens_where_it_can() {
    let upstream = Upstream::answering(|request| match &*request.path {
        "/v1/messages/count_tokens" if request.json().get("inference_geo").is_some() => {
            Reply::json(400, "{}")
        }
        "/v1/messages/count_tokens" => Reply::json(200, r#"{"input_tokens": 4321}"#),
        _ => called(request),
    });
    let gateway = gateway_with(&upstream, "");
    let mut asked = first_turn("blocks");
    asked.as_object_mut().unwrap().remove("max_tokens");
    asked["unknown"] = json!([1, {"a": null}]);
    let body = asked.to_string();
    let count = |body: &str| {
        let asked = Ask::post("/v1/messages/count_tokens?beta=true", body)
            .header("x-api-key", &gateway.key)
            .header("anthropic-version", "2023-06-01")
            .header("anthropic-beta", "token-counting-2024-11-01");
        let counted = ask(gateway.address(), &asked);
        assert_eq!(counted.status(), 200, "{}", counted.text());
        counted.json()["input_tokens"].as_u64().unwrap()
    };
    assert_eq!(count(&body), 4321);
    let sent = upstream.requests().pop().unwrap();
    let mut expected = asked.clone();
    expected["model"] = json!("claude-x");
    assert_eq!(sent.json(), expected);
    assert_eq!(sent.header("x-api-key"), Some("sk-a"));
    assert_eq!(sent.header("anthropic-version"), Some("2023-06-01"));
    let beta = Some("token-counting-2024-11-01");
    assert_eq!(sent.header("anthropic-beta"), beta);
    // A request that it refuses is estimated, and the next one is asked for again.
    asked["inference_geo"] = json!("mars");
    let estimate = count(&asked.to_string());
    assert!(estimate > 0 && estimate != 4321, "{estimate}");
    assert_eq!(count(&body), 4321);
    let metrics = gateway.metrics();
    let attempts = "weirgate_upstream_attempts_total{";
    let mut calls = metrics.lines().filter(|line| line.starts_with(attempts));
    assert!(calls.all(|line| line.ends_with(" 0")), "{metrics}");
}

/// One that does not answer is not asked again for a while, and no count waits for it then.
#[test]
fn a_provider_that_cannot_count_is_not_asked_again() {
    for reply in [
        Reply::json(404, "{}"),
        Reply::json(529, "{}"),
        Reply::hang(),
    ] {
        let upstream = Upstream::always(reply);
        let gateway = gateway_with(&upstream, "");
        let asked = first_turn("blocks");
        let count = || {
            let counted = post(&gateway, "/v1/messages/count_tokens", &asked);
            assert_eq!(counted.status(), 200, "{}", counted.text());
            counted.json()["input_tokens"].as_u64().unwrap()
        };
        let first = count();
        assert!(first > 10);
        assert_eq!(count(), first);
        assert_eq!(upstream.requests().len(), 1);
    }
}
