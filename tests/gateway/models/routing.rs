//! The choice of a provider, seen from outside.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::models::fronts::chat_completions::{PLAIN, STREAM, reply, reply_body, stream};
use crate::support::boot::{Gateway, MODELS};
use crate::support::client::{Client, ask};
use crate::support::script::Reply;
use crate::support::until;
use crate::support::upstream::Upstream;

fn used(body: &serde_json::Value) -> (&str, &str) {
    let metadata = &body["metadata"];
    (
        metadata["used_provider"].as_str().unwrap_or("-"),
        metadata["underlying_used_model"].as_str().unwrap_or("-"),
    )
}

/// Contract: model-gateway 2.1 model
/// Contract: model-gateway 7 404
#[test]
fn model_strings_are_read_as_documented() {
    let first = Upstream::always(reply());
    let gateway = Gateway::with(
        &first.url(),
        &first.url(),
        "[routing]\nauto = [\"only-first\", \"chat\"]\nexploration = 0.0",
    );
    for (model, expected) in [
        ("chat", ("first", "chat-at-first")),
        ("nick", ("first", "chat-at-first")),
        ("second/chat", ("second", "chat-at-second")),
        ("second/chat-at-second", ("second", "chat-at-second")),
        ("auto", ("first", "only")),
    ] {
        let body = gateway
            .chat(PLAIN.replace("\"chat\"", &format!("\"{model}\"")))
            .json();
        assert_eq!(used(&body), expected, "{model}: {body}");
    }
    for (model, status, code) in [
        ("nope", 404, "model_not_found"),
        ("first/nope", 404, "model_not_found"),
        ("second/only-first", 404, "model_not_found"),
        ("second/chat:eu", 404, "model_not_found"),
        ("a/b/c", 404, "model_not_found"),
    ] {
        let answer = gateway.chat(PLAIN.replace("\"chat\"", &format!("\"{model}\"")));
        assert_eq!(
            (answer.status(), answer.json()["error"]["code"].as_str()),
            (status, Some(code)),
            "{model}"
        );
    }
    let bare = gateway.chat(PLAIN.replace("\"chat\"", "\"chat-at-second\""));
    assert_eq!(bare.status(), 400);
    assert!(bare.text().contains("second/chat-at-second"));
}

/// Contract: model-gateway 2.1 routing 2
#[test]
fn a_strategy_beside_a_pinned_provider_is_a_400() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let pinned = |routing: &str| {
        let routing = format!(r#"{{"model":"first/chat","routing":{routing},"#);
        gateway.chat(PLAIN.replacen(r#"{"model":"chat","#, &routing, 1))
    };
    for strategy in ["auto", "price", "throughput", "latency"] {
        let answer = pinned(&format!("\"{strategy}\""));
        assert_eq!(
            (answer.status(), answer.json()["error"]["param"].as_str()),
            (400, Some("routing")),
            "{strategy}"
        );
    }
    assert!(first.requests().is_empty());
    assert_eq!(pinned("null").status(), 200);
}

/// Source: model-gateway 2.1: no top-level field is required.
#[test]
fn a_chat_that_names_no_model_is_routed_as_auto() {
    let first = Upstream::always(reply());
    let more = "[routing]\nauto = [\"only-first\"]";
    let gateway = Gateway::with(&first.url(), &first.url(), more);
    for named in ["", r#""model":null,"#] {
        let body = PLAIN.replacen(r#""model":"chat","#, named, 1);
        let answer = gateway.chat(body).json();
        assert_eq!(used(&answer), ("first", "only"), "{answer}");
        assert_eq!(answer["metadata"]["requested_model"], "auto", "{answer}");
    }
    for sent in first.requests() {
        assert_eq!(sent.json()["model"], "only");
    }
}

/// Contract: model-gateway 2.1 reasoning_effort 5
#[test]
fn who_cannot_serve_the_request_is_left_out() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let long = r#"{"model":"chat","max_tokens":5000,"messages":[{"role":"user","content":"Hi"}]}"#;
    assert_eq!(
        used(&gateway.chat(long).json()).0,
        "second",
        "first answers at most 4096 tokens"
    );
    for (member, param) in [
        (
            r#""tools":[{"type":"function","function":{"name":"f"}}]"#,
            "tools",
        ),
        (r#""n":2"#, "n"),
        (r#""service_tier":"flex""#, "service_tier"),
        (r#""verbosity":"low""#, "verbosity"),
        (r#""reasoning_effort":"high""#, "reasoning_effort"),
        (r#""reasoning":{"mode":"pro"}"#, "reasoning.mode"),
    ] {
        let body = format!(
            r#"{{"model":"only-first","messages":[{{"role":"user","content":"Hi"}}],{member}}}"#
        );
        let answer = gateway.chat(&body);
        assert_eq!(
            (answer.status(), answer.json()["error"]["param"].as_str()),
            (400, Some(param)),
            "{}",
            answer.text()
        );
    }
}

/// A model that lists one effort at one provider.
const THINKER: &str = r#"
[[models]]
id = "thinker"
[[models.providers]]
provider = "first"
name = "thinker-1"
capabilities = ["streaming", "reasoning"]
reasoning_efforts = ["low"]
"#;

/// Source: model-gateway 2.1, rules for `reasoning_effort` 3
/// Contract: model-gateway 2.1 reasoning_effort 3
#[test]
fn an_effort_that_nobody_lists_is_judged_by_the_provider() {
    let error = json!({"error": {"message": "Unsupported value", "type": "invalid_request_error", "param": "reasoning_effort", "code": "unsupported_value"}});
    let first = Upstream::always(Reply::json(400, error.to_string()));
    let provider = format!(
        "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n",
        first.url()
    );
    let gateway = Gateway::start(&provider, THINKER);
    for (at, model) in ["thinker", "first/thinker"].into_iter().enumerate() {
        let body = json!({"model": model, "reasoning_effort": "xhigh", "reasoning": {"context": "all_turns"},
            "messages": [{"role": "user", "content": "Hi"}]});
        let answer = gateway.chat(body.to_string());
        let code = answer.json()["error"]["code"].clone();
        assert_eq!((answer.status(), code), (400, json!("unsupported_value")));
        let sent = first.request(at).json();
        assert_eq!(sent["reasoning_effort"], "xhigh");
        assert!(sent.get("reasoning").is_none(), "{sent}");
    }
}

#[test]
fn a_session_stays_with_the_provider_that_answered_it() {
    let first = Upstream::sequence([Reply::json(500, "{}"), reply(), reply(), reply(), reply()]);
    let second = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &second.url());
    let request = gateway.chat_ask(PLAIN).header("x-session-id", "s1");
    for round in 0..3 {
        let body = ask(gateway.address(), &request).json();
        assert_eq!(used(&body).0, "second", "{round}");
    }
}

#[test]
fn auto_answers_from_a_sandbox_only_where_no_other_provider_is_on() {
    let first = Upstream::always(Reply::json(500, "{}"));
    let models = format!(
        "{MODELS}[[models]]\nid = \"play\"\n[[models.providers]]\nprovider = \"play\"\nname = \"sandbox-chat\"\n"
    );
    let sandbox = "[providers.play]\nkind = \"sandbox\"\n";
    let real = format!(
        "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n",
        first.url()
    );
    let auto = PLAIN.replace("\"chat\"", "\"auto\"");
    for listed in ["", "[routing]\nauto = [\"chat\", \"play\"]\n"] {
        let gateway = Gateway::start(&format!("{sandbox}{real}{listed}"), &models);
        let answer = gateway.chat(&auto);
        assert_eq!(answer.status(), 502, "{}", answer.text());
        // By its name the sandbox is asked.
        let play = gateway.chat(PLAIN.replace("\"chat\"", "\"play\""));
        assert_eq!(used(&play.json()).0, "play");
    }
    let gateway = Gateway::start(sandbox, &models);
    assert_eq!(used(&gateway.chat(&auto).json()).0, "play");
}

#[test]
fn a_provider_that_has_just_failed_is_asked_last() {
    let first = Upstream::always(Reply::json(500, "{}"));
    let second = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &second.url());
    for _ in 0..5 {
        assert_eq!(used(&gateway.chat(PLAIN).json()).0, "second");
    }
    assert_eq!(first.requests().len(), 1);
}

/// Contract: model-gateway 1 Routing
/// Contract: model-gateway 2.1 routing
/// Contract: model-gateway 2.1 routing 1
#[test]
fn latency_is_what_streams_have_measured() {
    let late = Reply::empty()
        .pause(Duration::from_millis(300))
        .then(stream());
    let first = Upstream::always(late);
    let second = Upstream::always(stream());
    let gateway = Gateway::with(&first.url(), &second.url(), "[routing]\nexploration = 0.0");
    let begins_at = |model: &str, more: &str| {
        let model = format!("\"{model}\"{more}");
        let body = STREAM.replace("\"chat\"", &model);
        let mut client = Client::connect(gateway.address());
        client.send(&gateway.chat_ask(&body));
        assert_eq!(client.head().status, 200);
        let text = crate::models::exchange::streams::drain(&mut client);
        let events = crate::support::sse::parse(&text);
        let last = events.json().last().unwrap().clone();
        used(&last).0.to_owned()
    };
    for _ in 0..2 {
        assert_eq!(begins_at("first/chat", ""), "first");
        assert_eq!(begins_at("second/chat", ""), "second");
    }
    assert_eq!(begins_at("chat", r#","routing":"price""#), "first");
    assert_eq!(begins_at("chat", r#","routing":"latency""#), "second");
}

#[test]
fn a_key_without_anything_left_is_asked_last_before_it_is_refused() {
    let told = Reply::whole(
        200,
        &[
            ("content-type", "application/json"),
            ("x-ratelimit-limit-requests", "60"),
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-reset-requests", "30s"),
        ],
        reply_body(),
    );
    let first = Upstream::always(told);
    let second = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &second.url());
    assert_eq!(used(&gateway.chat(PLAIN).json()).0, "first");
    assert_eq!(used(&gateway.chat(PLAIN).json()).0, "second");
    // The limit is one of a model, and a model string that names the provider is obeyed.
    let other = PLAIN.replace("\"chat\"", "\"only-first\"");
    assert_eq!(used(&gateway.chat(other).json()).0, "first");
    let pinned = PLAIN.replace("\"chat\"", "\"first/chat\"");
    assert_eq!(used(&gateway.chat(pinned).json()).0, "first");
}

#[test]
fn a_throttled_key_rests_as_long_as_its_provider_says() {
    let resting = ["1", "60"].map(|rest| {
        let headers = [("content-type", "application/json"), ("retry-after", rest)];
        let throttled = Reply::whole(429, &headers, "{}");
        let first = Upstream::sequence([throttled, reply(), reply()]);
        let second = Upstream::always(reply());
        let gateway = Gateway::between(&first.url(), &second.url());
        for _ in 0..2 {
            assert_eq!(used(&gateway.chat(PLAIN).json()).0, "second");
        }
        assert_eq!(first.requests().len(), 1);
        (gateway, [first, second], Instant::now())
    });
    let [(short, _short, since), (long, _long, _)] = resting;
    until("the first key has rested", || {
        used(&short.chat(PLAIN).json()).0 == "first"
    });
    assert!(since.elapsed() < Duration::from_secs(2));
    assert_eq!(used(&long.chat(PLAIN).json()).0, "second");
}

/// A cheap model that reasons, and one that does not.
const PAIR: &str = r#"
[[models]]
id = "thinker"
[[models.providers]]
provider = "first"
name = "thinker-1"
input_price = "1"
output_price = "1"
capabilities = ["streaming", "reasoning"]
[[models]]
id = "plain"
[[models.providers]]
provider = "first"
name = "plain-1"
input_price = "2"
output_price = "2"
capabilities = ["streaming"]
"#;

/// Contract: model-gateway 2.1 free_models_only
/// Contract: model-gateway 2.1 no_reasoning
#[test]
fn auto_alone_heeds_what_may_cost_and_reason() {
    let first = Upstream::always(reply());
    let toml = format!(
        "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n\
         [routing]\nauto = [\"thinker\", \"plain\"]\nexploration = 0.0\n",
        first.url()
    );
    let gateway = Gateway::start(&toml, PAIR);
    let asked = |model: &str, more| gateway.asked(&gateway.key, model, more);
    for (model, more, expected) in [
        ("auto", json!({}), "thinker-1"),
        ("auto", json!({"no_reasoning": false}), "thinker-1"),
        ("auto", json!({"no_reasoning": true}), "plain-1"),
        ("thinker", json!({"no_reasoning": true}), "thinker-1"),
        ("thinker", json!({"free_models_only": true}), "thinker-1"),
    ] {
        let body = asked(model, more.clone()).json();
        assert_eq!(used(&body).1, expected, "{model} {more}: {body}");
    }
    let requests = first.requests().len();
    let unpaid = asked("auto", json!({"free_models_only": true}));
    assert_eq!(unpaid.status(), 400, "{}", unpaid.text());
    assert!(unpaid.text().contains("is not free"), "{}", unpaid.text());
    assert_eq!(first.requests().len(), requests);
}
