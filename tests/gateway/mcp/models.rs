//! Tools that call models: routing, rules, limits and money are those of the HTTP API.

use serde_json::{Value, json};

use super::{failure, given, result, tool};
use crate::ledger::used;
use crate::models::fronts::chat_completions::reply;
use crate::support::ask::Ask;
use crate::support::boot::{Gateway, MODELS};
use crate::support::client::{Client, ask};
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

fn hi(model: &str) -> Value {
    json!({"model": model, "messages": [{"role": "user", "content": "Hi"}]})
}

#[test]
fn a_chat_goes_to_a_provider_and_is_paid_for() {
    let (first, second) = (Upstream::always(reply()), Upstream::always(reply()));
    let gateway = Gateway::between(&first.url(), &second.url());
    let mut arguments = hi("chat");
    arguments["temperature"] = json!(0.5);
    arguments["max_tokens"] = json!(50);
    let said = given(&gateway, "chat", arguments.clone());
    assert_eq!(said["content"], "hello");
    assert_eq!(
        (&said["model"], &said["finish_reason"]),
        (&json!("first/chat"), &json!("stop"))
    );
    assert_eq!(said["usage"]["total_tokens"], 1100);
    let received = first.request(0);
    arguments["model"] = json!("chat-at-first");
    assert_eq!(received.json(), arguments);
    used(&gateway, "0.003");
    let request = tool(&gateway, "chat", hi("chat")).header("x-request-id", "r-1");
    let result = result(&gateway, &request);
    assert_eq!(
        result["content"],
        json!([{"type": "text", "text": "hello"}])
    );
    let line = gateway.log_line("r-1");
    let logged = (
        &line["route"],
        &line["tool"],
        &line["used_model"],
        &line["outcome"],
    );
    let expected = (
        &json!("mcp"),
        &json!("chat"),
        &json!("first/chat"),
        &json!("ok"),
    );
    assert_eq!(logged, expected, "{line}");
}

#[test]
fn a_provider_that_fails_is_followed_by_the_next() {
    for failing in [
        Reply::json(500, "{}"),
        Reply::json(200, "<html>"),
        Reply::json(429, "{}"),
    ] {
        let (first, second) = (Upstream::always(failing), Upstream::always(reply()));
        let gateway = Gateway::between(&first.url(), &second.url());
        let said = given(&gateway, "chat", hi("chat"));
        assert_eq!(said["model"], "second/chat");
        assert!(!first.requests().is_empty());
        used(&gateway, "0.007");
    }
}

#[test]
fn a_call_that_fails_says_why_and_costs_nothing() {
    let refused = Reply::json(400, r#"{"error":{"message":"too hot","code":"heat"}}"#);
    for (reply, status, outcome) in [
        (Reply::json(500, "{}"), 502, "failed"),
        (refused, 400, "refused"),
    ] {
        let broken = Upstream::always(reply);
        let gateway = Gateway::between(&broken.url(), &broken.url());
        let request = tool(&gateway, "chat", hi("chat")).header("x-request-id", "r-1");
        let (message, error) = failure(&gateway, &request);
        assert_eq!(error["status"], status, "{message}");
        let line = gateway.log_line("r-1");
        assert_eq!(
            (&line["status"], &line["outcome"]),
            (&json!(200), &json!(outcome)),
            "{line}"
        );
        used(&gateway, "0");
    }
}

#[test]
fn rules_quotas_and_credit_hold_for_tools() {
    let upstream = Upstream::always(reply());
    let gateway = Gateway::with(
        &upstream.url(),
        &upstream.url(),
        "[limits]\nrequests_per_minute = { chat = 2 }",
    );
    let (message, error) = failure(&gateway, &tool(&gateway, "chat", hi("no-such-model")));
    assert_eq!(
        (&error["status"], &error["code"]),
        (&json!(404), &json!("model_not_found")),
        "{message}"
    );
    let bounded = gateway.key_with(r#"{"deny_models":["chat"]}"#);
    let request = tool(&gateway, "chat", hi("chat"))
        .without("Authorization")
        .key(&bounded);
    let (message, error) = failure(&gateway, &request);
    assert_eq!(error["status"], 403, "{message}");
    // Both calls have counted, and the third is one too many, as it is for the HTTP API.
    let (message, error) = failure(&gateway, &tool(&gateway, "chat", hi("chat")));
    assert_eq!(error["status"], 429, "{message}");
    assert_eq!(gateway.chat(hi("chat").to_string()).status(), 429);
    // What needs no model has no quota.
    given(&gateway, "get-account", json!({}));
    assert_eq!(upstream.requests().len(), 0);
    let toml = format!(
        "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n",
        upstream.url()
    );
    let gateway = Gateway::start_with_credit(&toml, MODELS, &[], "0");
    let (message, error) = failure(&gateway, &tool(&gateway, "chat", hi("chat")));
    assert_eq!(error["status"], 402, "{message}");
    assert_eq!(upstream.requests().len(), 0);
}

#[test]
fn a_client_that_leaves_ends_the_call_of_the_provider() {
    let silent = Upstream::always(Reply::hang());
    let gateway = Gateway::between(&silent.url(), &silent.url());
    let mut client = Client::connect(gateway.address());
    client.send(&tool(&gateway, "chat", hi("chat")));
    silent.wait_requests(1);
    drop(client);
    silent.wait_closed(0);
}

const SANDBOX: &str = r#"
[[models]]
id = "draws"
[[models.providers]]
provider = "sandbox"
name = "sandbox-image"
input_price = "0.1"
output_price = "0.4"
max_output = 4096
capabilities = ["streaming", "vision", "image_output"]
[[models]]
id = "vectors"
type = "embedding"
[[models.providers]]
provider = "sandbox"
name = "sandbox-embedding"
[[models]]
id = "speaks"
type = "speech"
[[models.providers]]
provider = "sandbox"
name = "sandbox-speech"
[[models]]
id = "web-search"
type = "search"
[[models.providers]]
provider = "sandbox"
name = "sandbox-search"
"#;

#[test]
fn images_vectors_and_speech_are_results() {
    let gateway = Gateway::start("[providers.sandbox]\nkind = \"sandbox\"\n", SANDBOX);
    let drawing = json!({"model": "draws", "prompt": "A weir", "n": 2});
    let drawn = result(&gateway, &tool(&gateway, "generate-image", drawing.clone()));
    let images = drawn["content"].as_array().unwrap();
    assert_eq!(images.len(), 2, "{drawn}");
    assert_eq!(
        (&images[0]["type"], &images[0]["mimeType"]),
        (&json!("image"), &json!("image/png"))
    );
    let told = given(&gateway, "generate-image", drawing);
    assert_eq!(
        told["images"],
        json!([{"mime_type": "image/png"}, {"mime_type": "image/png"}])
    );
    let listed = given(&gateway, "list-image-models", json!({}));
    assert_eq!(listed["models"][0]["id"], "draws");
    let vectors = given(
        &gateway,
        "embeddings",
        json!({"model": "vectors", "input": ["a", "b"]}),
    );
    assert_eq!(vectors["embeddings"].as_array().unwrap().len(), 2);
    let speaking =
        json!({"model": "speaks", "input": "A weir is a low dam.", "response_format": "wav"});
    let spoken = result(&gateway, &tool(&gateway, "speech", speaking.clone()));
    assert_eq!(
        (
            &spoken["content"][0]["type"],
            &spoken["content"][0]["mimeType"]
        ),
        (&json!("audio"), &json!("audio/wav"))
    );
    let told = given(&gateway, "speech", speaking.clone());
    let http = Ask::post("/v1/audio/speech", speaking.to_string()).key(&gateway.key);
    let file = ask(gateway.address(), &http);
    assert_eq!(told["bytes"], file.body.len());
}

#[test]
fn pages_of_the_web_are_found() {
    let gateway = Gateway::start("[providers.sandbox]\nkind = \"sandbox\"\n", SANDBOX);
    let found = given(
        &gateway,
        "search",
        json!({"query": "weirs of the Thames", "max_results": 2}),
    );
    assert_eq!(found["results"].as_array().unwrap().len(), 2, "{found}");
    for (arguments, param) in [
        (json!({}), None),
        (json!({"query": " "}), Some("query")),
        (
            json!({"query": "a", "max_results": 51}),
            Some("max_results"),
        ),
        (json!({"query": "a", "country": "France"}), Some("country")),
        (
            json!({"query": "a", "search_domain_filter": []}),
            Some("search_domain_filter"),
        ),
    ] {
        let (message, error) = failure(&gateway, &tool(&gateway, "search", arguments));
        assert_eq!(
            (&error["status"], error["param"].as_str()),
            (&json!(400), param),
            "{message}"
        );
    }
}
