//! Prompts that are marked for the provider's cache, and what the writes cost.

use serde_json::{Value, json};

use crate::support::boot::Gateway;
use crate::support::script::Reply;
use crate::support::upstream::{Received, Upstream};

const CACHED: &str = "cached_input_price = \"0.1\"\ncache_write_price = \"1.25\"\n";

/// What the provider gets of a conversation with instructions of 5,000 bytes, and the answer of the gateway.
fn told(provider: &str, mapping: &str) -> (Value, Value) {
    let upstream = Upstream::answering(answer);
    let toml = format!(
        "[providers.first]\nkind = \"anthropic\"\nbase_url = \"{}\"\nkeys = [{{ env = \"FIRST_KEY\" }}]\n{provider}\n",
        upstream.url()
    );
    let models = format!(
        "[[models]]\nid = \"chat\"\n[[models.providers]]\nprovider = \"first\"\nname = \"up\"\nmax_output = 100\n{mapping}\n"
    );
    let gateway = Gateway::start_with_env(&toml, &models, &[("FIRST_KEY", "sk-first")]);
    let said = |role: &str, text: &str| json!({"role": role, "content": text});
    let messages = [
        said("system", &"a".repeat(5000)),
        said("user", "Hi"),
        said("assistant", "Hello"),
        said("user", "And?"),
    ];
    let answer = gateway.chat(json!({"model": "chat", "messages": messages}).to_string());
    assert_eq!(answer.status(), 200, "{}", answer.text());
    (upstream.request(0).json(), answer.json())
}

fn answer(_: &Received) -> Reply {
    let usage = json!({"input_tokens": 10, "output_tokens": 1, "cache_creation_input_tokens": 1000, "cache_read_input_tokens": 100,
        "cache_creation": {"ephemeral_5m_input_tokens": 1000, "ephemeral_1h_input_tokens": 0}});
    let body = json!({"id": "msg_1", "type": "message", "role": "assistant", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "So."}], "usage": usage});
    Reply::json(200, body.to_string())
}

fn marks(body: &Value) -> usize {
    body.to_string()
        .matches("\"cache_control\":{\"type\":\"ephemeral\"}")
        .count()
}

/// Contract: model-gateway 2.5 usage.prompt_tokens_details
#[test]
fn a_conversation_is_marked_and_its_writes_are_charged() {
    let prices = format!("input_price = \"1\"\noutput_price = \"1\"\n{CACHED}");
    let (sent, answer) = told("", &prices);
    assert_eq!(marks(&sent), 3, "{sent}");
    for block in [
        &sent["system"][0],
        &sent["messages"][1]["content"][0],
        &sent["messages"][2]["content"][0],
    ] {
        assert!(block["cache_control"].is_object(), "{sent}");
    }
    let usage = &answer["usage"];
    // 10 plain, 1000 written at 1.25, 100 read at 0.1 and 1 of the answer, each in USD per million.
    assert_eq!(usage["cost"].to_string(), "0.001271", "{usage}");
    let written = json!({"ephemeral_5m_input_tokens": 1000, "ephemeral_1h_input_tokens": 0});
    let details = json!({"cached_tokens": 100, "cache_write_tokens": 1000, "cache_creation_tokens": 1000,
        "cache_creation": written, "audio_tokens": 0, "video_tokens": 0});
    assert_eq!(usage["prompt_tokens_details"], details);
}

#[test]
fn where_marks_cost_more_than_is_charged_or_nobody_wants_them_there_are_none() {
    let plain = "input_price = \"1\"\noutput_price = \"1\"\n";
    let priced = format!("{plain}{CACHED}");
    let long = format!("{priced}min_cached_tokens = 4096\n");
    let cannot = format!("{priced}capabilities = [\"streaming\"]\n");
    let cases = [
        ("", plain, 0),
        ("cache_breakpoints = false", &*priced, 0),
        ("", &*cannot, 0),
        ("", &*long, 0),
        // No prices, no charge: the caller pays its provider.
        ("", "", 3),
    ];
    for (provider, mapping, expected) in cases {
        let (sent, _) = told(provider, mapping);
        assert_eq!(marks(&sent), expected, "{provider} {mapping}: {sent}");
    }
}

#[test]
fn what_is_reserved_covers_a_prompt_that_is_written_to_the_cache() {
    let upstream = Upstream::answering(answer);
    let toml = format!(
        "[providers.first]\nkind = \"anthropic\"\nbase_url = \"{}\"\nkeys = [{{ env = \"FIRST_KEY\" }}]\n",
        upstream.url()
    );
    let models = format!(
        "[[models]]\nid = \"chat\"\n[[models.providers]]\nprovider = \"first\"\nname = \"up\"\nmax_output = 100\n\
         input_price = \"1\"\noutput_price = \"1\"\n{CACHED}"
    );
    let system = json!({"role": "system", "content": "a".repeat(80_000)});
    let body = json!({"model": "chat", "messages": [system, {"role": "user", "content": "Hi"}]});
    // Some 80,100 bytes, each at most a token that is written for 1.25, and 100 tokens of the answer: 0.1003 USD. Plain, they
    // would be 0.0803.
    for (credit, status) in [("0.0999", 402), ("0.101", 200)] {
        let env = [("FIRST_KEY", "sk-first")];
        let gateway = Gateway::start_with_credit(&toml, &models, &env, credit);
        let answer = gateway.chat(body.to_string());
        assert_eq!(answer.status(), status, "{credit}: {}", answer.text());
    }
    assert_eq!(marks(&upstream.request(0).json()), 1);
}
