//! Chats of Cohere's own API.

use serde_json::{Value, json};

use crate::models::fronts::chat_completions::{PLAIN, STREAM};
use crate::support::boot::Gateway;
use crate::support::script::Reply;
use crate::support::upstream::{Received, Upstream};

const MODELS: &str = r#"
[[models]]
id = "chat"
[[models.providers]]
provider = "first"
name = "command-up"
input_price = "2.5"
output_price = "10"
capabilities = ["streaming", "tools", "json_object", "json_schema"]
"#;

fn gateway(first: &Upstream) -> Gateway {
    let toml = format!(
        "[providers.first]\nkind = \"cohere\"\nbase_url = \"{}\"\nkeys = [{{ env = \"FIRST_KEY\" }}]\n",
        first.url()
    );
    Gateway::start_with_env(&toml, MODELS, &[("FIRST_KEY", "co-first")])
}

fn usage() -> Value {
    json!({"billed_units": {"input_tokens": 12, "output_tokens": 7}, "tokens": {"input_tokens": 507, "output_tokens": 10}, "cached_tokens": 448})
}

fn streamed() -> Reply {
    let text = |kind: &str, text: &str| json!({"type": kind, "index": 0, "delta": {"message": {"content": {"type": "text", "text": text}}}});
    let events = [
        json!({"type": "message-start", "id": "1", "delta": {"message": {"role": "assistant", "content": [], "tool_calls": []}}}),
        text("content-start", ""),
        text("content-delta", "hel"),
        text("content-delta", "lo"),
        json!({"type": "content-end", "index": 0}),
        json!({"type": "message-end", "id": "1", "delta": {"finish_reason": "COMPLETE", "usage": usage()}}),
    ];
    let send = |reply: Reply, event: &Value| {
        reply.named_event(event["type"].as_str().unwrap(), &event.to_string())
    };
    events.iter().fold(Reply::stream(), send).end()
}

fn answer(request: &Received) -> Reply {
    if request.json()["stream"] == true {
        return streamed();
    }
    let message = json!({"role": "assistant", "content": [{"type": "text", "text": "hello"}]});
    let body =
        json!({"id": "1", "finish_reason": "COMPLETE", "message": message, "usage": usage()});
    Reply::json(200, body.to_string())
}

#[test]
fn billed_units_are_charged_and_all_tokens_are_shown() {
    let first = Upstream::answering(answer);
    let gateway = gateway(&first);
    let whole = gateway.chat(PLAIN);
    assert_eq!(whole.status(), 200, "{}", whole.text());
    let whole = whole.json();
    assert_eq!(whole["choices"][0]["message"]["content"], "hello");
    let stream = gateway.chat(STREAM).events();
    assert!(stream.is_done());
    assert_eq!(stream.content(), "hello");
    let last = stream.json().last().unwrap().clone();
    for usage in [&whole["usage"], &last["usage"]] {
        assert_eq!(usage["prompt_tokens"], 507, "{usage}");
        assert_eq!(usage["completion_tokens"], 10);
        assert_eq!(usage["prompt_tokens_details"]["cached_tokens"], 448);
        // 12 at 2.5 and 7 at 10 USD per million.
        assert_eq!(usage["cost"].to_string(), "0.0001");
    }
    let request = first.request(0);
    assert_eq!(request.path, "/v2/chat");
    assert_eq!(request.header("authorization"), Some("Bearer co-first"));
    assert_eq!(request.json()["model"], "command-up");
}
