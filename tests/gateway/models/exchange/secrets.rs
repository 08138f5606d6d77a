//! Secrets: what providers quote, what may not pass to them, and what the log says of a failed call.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::models::fronts::chat_completions::{PLAIN, STREAM, reply};
use crate::support::ask::Ask;
use crate::support::boot::{Gateway, MODELS};
use crate::support::client::ask;
use crate::support::script::{Gate, Reply};
use crate::support::upstream::{ClosedPort, Received, Upstream};

/// A gateway with these keys of the provider `first`, which alone serves `only-first`.
fn with_keys(first: &Upstream, keys: &[&str]) -> Gateway {
    let names: Vec<String> = (0..keys.len()).map(|at| format!("KEY_{at}")).collect();
    let listed: Vec<String> = names
        .iter()
        .map(|name| format!("{{ env = \"{name}\" }}"))
        .collect();
    let toml = format!(
        "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{url}/v1\"\nkeys = [{}]\n\
         [providers.second]\nkind = \"openai-compatible\"\nbase_url = \"{url}/v1\"\nkeys = []\n",
        listed.join(", "),
        url = first.url(),
    );
    let names = names.iter().map(String::as_str);
    let env: Vec<(&str, &str)> = names.zip(keys.iter().copied()).collect();
    Gateway::start_with_env(&toml, MODELS, &env)
}

fn only_first(content: &str) -> String {
    json!({"model": "only-first", "messages": [{"role": "user", "content": content}]}).to_string()
}

/// What the gateway sent as its key, and where.
pub fn quoted(request: &Received) -> (String, String) {
    let key = request.header("authorization").unwrap_or_default();
    let host = request.header("host").unwrap_or_default();
    (
        key.trim_start_matches("Bearer ").to_owned(),
        host.to_owned(),
    )
}

#[test]
fn a_key_that_a_provider_quotes_reaches_neither_client_nor_log() {
    for key in [
        "k-q",
        "hunter2",
        "p@ss w0rd, x",
        "0123456789abcdef-0123456789abcdef",
    ] {
        let first = Upstream::answering(|request| {
            let (key, host) = quoted(request);
            let error = json!({"error": {"message": format!("no '{key}' at {host}, {key}"), "code": key, "param": host}});
            Reply::json(400, error.to_string())
        });
        let gateway = with_keys(&first, &[key]);
        let request = gateway
            .chat_ask(only_first("Hi"))
            .header("x-request-id", "quoting");
        let answer = ask(gateway.address(), &request);
        assert_eq!(answer.status(), 400);
        let message = answer.json()["error"]["message"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(
            message,
            "the provider refused the request: no '[removed]' at [removed], [removed]"
        );
        let line = gateway.log_line("quoting").to_string();
        let address = first.address().to_string();
        for secret in [key, &address] {
            assert!(!answer.text().contains(secret), "{}", answer.text());
            assert!(!line.contains(secret), "{line}");
        }
    }
}

#[test]
fn what_a_provider_quotes_rests_no_key() {
    for phrase in [
        "invalid api key",
        "insufficient_quota",
        "billing",
        "API_KEY_INVALID",
    ] {
        let first = Upstream::answering(|request| {
            if request.json()["messages"][0]["content"] == "Hi" {
                return reply();
            }
            let said = &request.json()["messages"][0]["content"];
            let error = json!({"error": {"message": format!("Invalid value: {said}"), "code": "invalid_value"}});
            Reply::json(400, error.to_string())
        });
        let gateway = with_keys(&first, &["key-1", "key-2"]);
        // The key would be tried, refused and rested, then the other.
        assert_eq!(gateway.chat(only_first(phrase)).status(), 400, "{phrase}");
        assert_eq!(first.requests().len(), 1, "{phrase}");
        let keys: Vec<String> = (0..4)
            .map(|_| {
                assert_eq!(gateway.chat(only_first("Hi")).status(), 200);
                quoted(first.requests().last().unwrap()).0
            })
            .collect();
        assert!(keys.contains(&"key-1".to_owned()), "{keys:?}");
        assert!(keys.contains(&"key-2".to_owned()), "{keys:?}");
    }
}

#[test]
fn a_code_of_the_provider_rests_the_key() {
    let first = Upstream::answering(|request| match &*quoted(request).0 {
        "key-1" => Reply::json(
            400,
            r#"{"error":{"message":"No.","code":"insufficient_quota"}}"#,
        ),
        _ => reply(),
    });
    let gateway = with_keys(&first, &["key-1", "key-2"]);
    for _ in 0..4 {
        assert_eq!(gateway.chat(only_first("Hi")).status(), 200);
    }
    let requests = first.requests();
    let refused = requests
        .iter()
        .filter(|request| quoted(request).0 == "key-1");
    assert_eq!(refused.count(), 1);
}

#[test]
fn an_error_inside_a_200_rests_no_key_by_what_it_quotes() {
    let first = Upstream::answering(|request| {
        let said = request.json()["messages"][0]["content"].clone();
        if said == "Hi" {
            return reply();
        }
        Reply::json(
            200,
            json!({"error": {"message": format!("cannot read {said}")}}).to_string(),
        )
    });
    let gateway = with_keys(&first, &["key-1", "key-2"]);
    let answer = gateway.chat(only_first("rate limit, unauthorized, quota"));
    assert_eq!(answer.status(), 502, "{}", answer.text());
    assert_eq!(first.requests().len(), 1, "no other key was tried");
}

#[test]
fn members_that_choose_another_model_reach_no_provider_unless_listed() {
    let first = Upstream::always(reply());
    let provider = |more: &str| {
        format!(
            "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n{more}\n",
            first.url()
        )
    };
    let body = json!({"model": "only-first", "messages": [{"role": "user", "content": "Hi"}], "top_k": 3,
        "models": ["other"], "route": "fallback", "provider": {"order": ["x"]}, "search_parameters": {"mode": "on"},
        "Model": "other", "web_Search": true});
    let sent = |more: &str| {
        let models = MODELS.replace("provider = \"second\"", "provider = \"first\"");
        let gateway = Gateway::start(&provider(more), &models);
        let answer = gateway.chat(body.to_string());
        assert_eq!(answer.status(), 200, "{}", answer.text());
        first.requests().last().unwrap().json()
    };
    let members = |value: &Value| -> Vec<String> {
        let mut names: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        names.sort();
        names
    };
    assert_eq!(members(&sent("")), ["messages", "model", "top_k"]);
    assert_eq!(
        members(&sent("unknown_fields = \"drop\"")),
        ["messages", "model"]
    );
    let listed = "unknown_fields = \"drop\"\npass_members = [\"models\", \"top_k\"]";
    assert_eq!(
        members(&sent(listed)),
        ["messages", "model", "models", "top_k"]
    );
}

#[test]
fn a_call_that_every_provider_failed_says_why() {
    let closed = ClosedPort::take();
    let second = Upstream::always(Reply::json(503, "{}"));
    let gateway = Gateway::between(&closed.url(), &second.url());
    let request = gateway
        .chat_ask(PLAIN)
        .header("x-request-id", "failed")
        .header("user-agent", "tests/1.0 (\"x\")");
    let answer = ask(gateway.address(), &request);
    assert_eq!(answer.status(), 503, "{}", answer.text());
    let routing = &answer.json()["metadata"]["routing"];
    assert_eq!(
        routing.as_array().map(Vec::len),
        Some(2),
        "{}",
        answer.text()
    );
    assert_eq!(
        (
            &routing[0]["provider"],
            &routing[0]["status_code"],
            &routing[0]["error_type"]
        ),
        (&"first".into(), &0.into(), &"network_error".into())
    );
    assert_eq!(
        (&routing[1]["provider"], &routing[1]["status_code"]),
        (&"second".into(), &503.into())
    );
    assert!(routing[0].get("cause").is_none(), "{routing}");
    let line = gateway.log_line("failed");
    assert_eq!(
        line["attempts"][0]["cause"], "no connection: refused",
        "{line}"
    );
    assert_eq!(line["attempts"][1]["cause"], "status 503");
    assert_eq!(line["path"], "/v1/chat/completions");
    assert_eq!(line["client_ip"], "127.0.0.1");
    assert_eq!(line["user_agent"], "tests/1.0 (\"x\")");
    assert_eq!(line["outcome"], "failed");
}

#[test]
fn a_refusal_of_the_only_provider_says_why() {
    let first = Upstream::always(Reply::json(400, r#"{"error":{"message":"too \"long\""}}"#));
    let gateway = with_keys(&first, &["key-1"]);
    let request = gateway
        .chat_ask(only_first("Hi"))
        .header("x-request-id", "refused");
    let answer = ask(gateway.address(), &request);
    assert_eq!(answer.json()["metadata"]["routing"][0]["status_code"], 400);
    let line = gateway.log_line("refused");
    assert_eq!(line["attempts"][0]["cause"], "status 400: too \"long\"");
    assert_eq!(line["outcome"], "refused");
}

#[test]
fn the_reason_of_a_refusal_that_the_next_provider_mends_is_in_the_log_line() {
    for (reason, cause) in [
        (
            Reply::json(401, r#"{"error":{"message":"no such account"}}"#),
            "status 401: no such account",
        ),
        (
            Reply::json(429, r#"{"error":{"message":"slower, please"}}"#),
            "status 429: slower, please",
        ),
        (Reply::json(503, ""), "status 503"),
    ] {
        let first = Upstream::always(reason);
        let second = Upstream::always(reply());
        let gateway = Gateway::between(&first.url(), &second.url());
        let request = gateway.chat_ask(PLAIN).header("x-request-id", "mended");
        assert_eq!(ask(gateway.address(), &request).status(), 200, "{cause}");
        let line = gateway.log_line("mended");
        assert_eq!(line["attempts"][0]["cause"], cause, "{line}");
    }
}

#[test]
fn a_refusal_whose_reason_does_not_come_is_mended_all_the_same() {
    let gate = Gate::default();
    let late = Reply::chunked(500, &[("content-type", "application/json")]).wait(&gate);
    let first = Upstream::always(late.chunk(r#"{"error":{"message":"later"}}"#).end());
    let second = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &second.url());
    let started = Instant::now();
    let request = gateway.chat_ask(PLAIN).header("x-request-id", "silent");
    assert_eq!(ask(gateway.address(), &request).status(), 200);
    assert!(started.elapsed() < Duration::from_secs(5));
    let line = gateway.log_line("silent");
    assert_eq!(line["attempts"][0]["cause"], "status 500", "{line}");
    gate.open();
}

#[test]
fn a_stream_that_every_provider_failed_lists_its_attempts_in_the_error_event() {
    let late = Reply::json(503, "{}");
    let first = Upstream::always(
        Reply::stream()
            .pause(Duration::from_millis(1500))
            .and_close(),
    );
    let second = Upstream::always(late);
    let more = "[routing]\nkeepalive_s = 1";
    let gateway = Gateway::with(&first.url(), &second.url(), more);
    let answer = gateway.chat(STREAM);
    assert_eq!(answer.status(), 200);
    let events = answer.events().json();
    let last = events.last().unwrap();
    assert_eq!(
        last["metadata"]["routing"].as_array().map(Vec::len),
        Some(2),
        "{last}"
    );
}

#[test]
fn a_refused_request_says_so_in_its_log_line_without_its_query() {
    let provider = Upstream::always(reply());
    let gateway = Gateway::between(&provider.url(), &provider.url());
    let long = "a".repeat(300);
    for (id, request, status) in [
        (
            "no-key",
            Ask::post("/v1/chat/completions?secret=1", PLAIN),
            401,
        ),
        (
            "no-path",
            Ask::get("/v1/unknown?secret=1").key(&gateway.key),
            404,
        ),
        ("bad", gateway.chat_ask("{"), 400),
        ("long", Ask::get(&format!("/v1/{long}")), 404),
    ] {
        let answer = ask(gateway.address(), &request.header("x-request-id", id));
        assert_eq!(answer.status(), status, "{id}");
        let line = gateway.log_line(id);
        assert_eq!(line["outcome"], "refused", "{line}");
        assert!(!line.to_string().contains("secret=1"), "{line}");
    }
    assert_eq!(gateway.log_line("no-key")["path"], "/v1/chat/completions");
    let cut = gateway.log_line("long")["path"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(cut, format!("/v1/{long}")[..256].to_owned() + "…");
    let key = gateway.key.clone();
    let request = Ask::get(&format!("/v1/{key}")).header("user-agent", &key);
    ask(
        gateway.address(),
        &request.header("x-request-id", "key-in-path"),
    );
    let line = gateway.log_line("key-in-path");
    assert_eq!(
        (&line["path"], &line["user_agent"]),
        (&"[removed]".into(), &"[removed]".into())
    );
}
