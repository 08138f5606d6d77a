//! Usage that cannot be true, that is no number, or that nobody saw: what it costs. Source: docs/promises-tests.md, Money.

use std::time::Duration;

use serde_json::{Value, json};

use crate::ledger::{gateway, used};
use crate::models::fronts::chat_completions::{PLAIN, STREAM, chunk};
use crate::support::boot::{Gateway, MODELS};
use crate::support::client::Client;
use crate::support::script::{Gate, Reply};
use crate::support::stays;
use crate::support::upstream::Upstream;

/// A whole answer of 8 bytes with this report.
fn reporting(usage: &Value) -> Reply {
    let message = json!({"role": "assistant", "content": "12345678"});
    let said = json!({"id": "x", "object": "chat.completion", "created": 5, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage});
    Reply::json(200, said.to_string())
}

/// The usage of the answer to a report, by a gateway whose first provider has a context of 8,000 tokens.
fn charged(report: &Value) -> (Gateway, Value) {
    let upstream = Upstream::always(reporting(report));
    let models = MODELS.replacen(
        "max_output = 4096",
        "max_output = 4096\ncontext_size = 8000",
        1,
    );
    let gateway = gateway(&upstream, &models, "1");
    let answer = gateway.chat(PLAIN);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let usage = answer.json()["usage"].clone();
    used(&gateway, &usage["cost"].to_string());
    (gateway, usage)
}

#[test]
fn usage_that_cannot_be_true_is_capped_at_what_the_model_can_take_and_shown() {
    let report = json!({"prompt_tokens": 9_000, "completion_tokens": 4_294_967_295_u32,
                        "completion_tokens_details": {"reasoning_tokens": 4_294_967_295_u32}});
    let (gateway, usage) = charged(&report);
    assert_eq!(usage["prompt_tokens"], 8_000, "{usage}");
    assert_eq!(usage["completion_tokens"], 4_096);
    assert_eq!(
        usage["completion_tokens_details"]["reasoning_tokens"],
        4_096
    );
    // 8,000 at 2.5 and 4,096 at 10 USD per million.
    assert_eq!(usage["cost"].to_string(), "0.06096");
    let excess = 1_000 + u64::from(u32::MAX) - 4_096;
    let metric =
        format!("weirgate_usage_set_aside_total{{model=\"chat\",provider=\"first\"}} {excess}");
    let metrics = gateway.metrics();
    assert!(metrics.contains(&metric), "{metrics}");
}

#[test]
fn usage_that_is_no_number_is_estimated() {
    for nonsense in [
        json!(null),
        json!(-1),
        json!("12"),
        json!(1.5),
        json!([1]),
        json!({}),
    ] {
        let report = json!({"prompt_tokens": nonsense, "completion_tokens": nonsense});
        let (_, usage) = charged(&report);
        let counts = (&usage["prompt_tokens"], &usage["completion_tokens"]);
        assert_eq!(counts, (&json!(1), &json!(2)), "{nonsense}");
        let report = json!({"prompt_tokens": 1_000, "completion_tokens": nonsense});
        let (_, usage) = charged(&report);
        let counts = (&usage["prompt_tokens"], &usage["completion_tokens"]);
        assert_eq!(counts, (&json!(1_000), &json!(2)), "{nonsense}");
    }
    let (_, usage) = charged(&json!({"total_tokens": 3}));
    assert_eq!(usage["completion_tokens"], 2, "absent");
}

/// [`MODELS`] with a first provider that reasons unless it is told not to.
fn reasoning() -> String {
    MODELS.replacen(
        "max_output = 4096",
        "max_output = 4096\nreasons_by_default = true",
        1,
    )
}

/// Leaves once the provider has worked for a while, and returns the completion tokens that were charged.
fn leave(
    gateway: &Gateway,
    upstream: &Upstream,
    body: &str,
    after: impl FnOnce(&mut Client),
) -> u64 {
    let mut client = Client::connect(gateway.address());
    client.send(&gateway.chat_ask(body).header("x-request-id", "left"));
    upstream.request(0);
    let works = || !upstream.is_closed(0);
    stays("it works", Duration::from_secs(1), works);
    after(&mut client);
    drop(client);
    let line = gateway.log_line("left");
    assert_eq!(line["outcome"], "client_gone", "{line}");
    line["completion_tokens"].as_u64().unwrap()
}

#[test]
fn a_client_that_leaves_pays_for_reasoning_that_nobody_saw() {
    // At the assumed 50 tokens a second.
    for body in [STREAM, PLAIN] {
        let upstream = Upstream::always(Reply::hang());
        let gateway = gateway(&upstream, &reasoning(), "1");
        let tokens = leave(&gateway, &upstream, body, |_| ());
        assert!((45..500).contains(&tokens), "{tokens}");
    }
    // It is not asked to reason.
    let upstream = Upstream::always(Reply::hang());
    let gateway = gateway(&upstream, &reasoning(), "1");
    let quiet = STREAM.replacen('{', "{\"reasoning_effort\":\"none\",", 1);
    assert_eq!(leave(&gateway, &upstream, &quiet, |_| ()), 0);
}

#[test]
fn hidden_reasoning_costs_what_is_reserved_at_most_and_nothing_once_it_is_told() {
    let upstream = Upstream::always(Reply::hang());
    let gateway_of = |upstream: &Upstream| gateway(upstream, &reasoning(), "1");
    let bounded = STREAM.replacen('{', "{\"max_tokens\":7,", 1);
    let gateway = gateway_of(&upstream);
    assert_eq!(leave(&gateway, &upstream, &bounded, |_| ()), 7);
    let gate = Gate::default();
    let told = Reply::stream()
        .wait(&gate)
        .event(&chunk(json!({"reasoning": "12345678"}), None))
        .and_hang();
    let upstream = Upstream::always(told);
    let gateway = gateway_of(&upstream);
    let tokens = leave(&gateway, &upstream, STREAM, |client| {
        gate.open();
        _ = client.head();
    });
    assert_eq!(tokens, 2, "told");
    let gate = Gate::default();
    let silent = Reply::stream()
        .wait(&gate)
        .event(&chunk(json!({"content": "12345678"}), None))
        .and_hang();
    let upstream = Upstream::always(silent);
    let gateway = gateway_of(&upstream);
    let tokens = leave(&gateway, &upstream, STREAM, |client| {
        gate.open();
        _ = client.head();
    });
    assert!((47..500).contains(&tokens), "{tokens}");
}

/// Source: model-gateway 2.1
#[test]
fn a_limit_that_counts_nothing_goes_out_and_the_models_maximum_is_reserved() {
    let upstream = Upstream::always(crate::models::fronts::chat_completions::reply());
    // 4,096 tokens at 10 USD per million are reserved.
    let poor = gateway(&upstream, MODELS, "0.0409");
    let rich = gateway(&upstream, MODELS, "0.07");
    let limits = ["-1", "0", "2.5", "4097", "5000000000", "1e300"];
    for (at, limit) in limits.into_iter().enumerate() {
        let body = PLAIN.replacen(
            "\"chat\"",
            &format!("\"first/chat\",\"max_tokens\":{limit}"),
            1,
        );
        let refused = poor.chat(&body);
        assert_eq!(refused.status(), 402, "{limit}: {}", refused.text());
        let answer = rich.chat(&body);
        assert_eq!(answer.status(), 200, "{limit}: {}", answer.text());
        let expected: Value = serde_json::from_str(limit).unwrap();
        assert_eq!(upstream.request(at).json()["max_tokens"], expected);
    }
}

#[test]
fn an_answer_that_nothing_bounds_is_bounded_by_what_is_reserved() {
    let unbounded =
        MODELS
            .replace("max_output = 16384\n", "")
            .replacen("max_output = 4096\n", "", 1);
    let upstream = Upstream::always(crate::models::fronts::chat_completions::reply());
    let one = gateway(&upstream, &unbounded, "1");
    assert_eq!(one.chat(PLAIN).status(), 200);
    assert_eq!(upstream.request(0).json()["max_tokens"], 16_384);
    let null = PLAIN.replacen('{', "{\"max_tokens\":null,", 1);
    assert_eq!(one.chat(&null).status(), 200);
    assert_eq!(upstream.request(1).json()["max_tokens"], 16_384);
    let asked = PLAIN.replacen('{', "{\"max_tokens\":20000,", 1);
    assert_eq!(one.chat(&asked).status(), 200);
    assert_eq!(upstream.request(2).json()["max_tokens"], 20_000);
    // What the catalogue knows is reserved, and the client's words stay what they are: 100,000 tokens at 10 USD per million.
    let known = unbounded.replacen(
        "output_price = \"10\"\n",
        "output_price = \"10\"\ncontext_size = 100000\n",
        1,
    );
    let pinned = PLAIN.replacen("\"chat\"", "\"first/chat\"", 1);
    let poor = gateway(&upstream, &known, "0.99");
    assert_eq!(poor.chat(&pinned).status(), 402);
    let rich = gateway(&upstream, &known, "1.01");
    assert_eq!(rich.chat(&pinned).status(), 200);
    assert_eq!(upstream.request(3).json().get("max_tokens"), None);
}
