//! `GET /v1/usage/breakdown`: which models, providers and keys took and cost most.

use serde_json::{Value, json};

use crate::models::fronts::chat_completions::reply;
use crate::support::boot::Gateway;
use crate::support::upstream::Upstream;

fn parts(gateway: &Gateway, key: &str, query: &str) -> (Vec<Value>, Value) {
    let path = format!("/v1/usage/breakdown?{query}");
    let answer = gateway.usage(key, &path);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let mut body = answer.json();
    let parts = body["data"].as_array().unwrap().clone();
    (parts, body["has_more"].take())
}

fn of<'a>(parts: &'a [Value], member: &str) -> Vec<&'a Value> {
    parts.iter().map(|part| &part[member]).collect()
}

/// Contract: model-gateway 4 GET /v1/usage/breakdown
#[test]
fn calls_are_summed_by_model_provider_and_key() {
    let first = Upstream::always(reply());
    let (gateway, _) = Gateway::with_calls(&first, "");
    let (models, has_more) = parts(&gateway, &gateway.key, "");
    assert_eq!(of(&models, "id"), ["chat", "only-first"]);
    assert_eq!(of(&models, "cost"), ["0.006", "0.0011"]);
    assert_eq!(of(&models, "requests"), [2, 1]);
    assert_eq!(has_more, false);
    let (providers, _) = parts(&gateway, &gateway.key, "group_by=provider&sort_by=requests");
    assert_eq!(of(&providers, "id"), ["first"]);
    assert_eq!(of(&providers, "prompt_tokens"), [3000]);
    let (keys, _) = parts(&gateway, &gateway.key, "group_by=api_key&sort_by=tokens");
    assert_eq!(of(&keys, "label"), ["test", "laptop"]);
    assert!(keys[0]["id"].as_str().unwrap().starts_with("key_"));
    let (page, has_more) = parts(&gateway, &gateway.key, "limit=1");
    assert_eq!(
        (of(&page, "id"), has_more),
        (vec![&json!("chat")], json!(true))
    );
    let (page, has_more) = parts(&gateway, &gateway.key, "limit=1&offset=1");
    assert_eq!(
        (of(&page, "id"), has_more),
        (vec![&json!("only-first")], json!(false))
    );
    let (none, _) = parts(&gateway, &gateway.key, "offset=10000");
    assert_eq!(none, Vec::<Value>::new());
}

#[test]
fn a_members_key_sees_its_own_part() {
    let first = Upstream::always(reply());
    let (gateway, ada) = Gateway::with_calls(&first, "");
    let (keys, _) = parts(&gateway, &ada, "group_by=api_key");
    assert_eq!(of(&keys, "label"), ["laptop"]);
    let (models, _) = parts(&gateway, &ada, "");
    assert_eq!(of(&models, "id"), ["only-first"]);
}

/// Contract: model-gateway 4 GET /v1/usage/breakdown
#[test]
fn what_is_not_understood_is_refused() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    for (query, param, said) in [
        ("group_by=app", "group_by", "not kept by app"),
        ("group_by=key", "group_by", "model, provider, api_key"),
        ("sort_by=name", "sort_by", "cost, requests, tokens"),
        ("limit=0", "limit", "from 1 to 100"),
        ("limit=1000", "limit", "from 1 to 100"),
        ("offset=10001", "offset", "from 0 to 10000"),
        ("from=1e9", "from", "a time such as"),
    ] {
        let answer = gateway.usage(&gateway.key, &format!("/v1/usage/breakdown?{query}"));
        assert_eq!(answer.status(), 400, "{query}: {}", answer.text());
        let error = answer.json()["error"].take();
        assert_eq!(error["param"], param, "{query}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(said), "{message}");
    }
}
