//! Large requests of Messages, and what stops an answer, on every wire.

use serde_json::{Value, json};

use super::messages::{WIRES, called, first_turn, gateway_with, send};
use crate::support::scripted::{self, Turn};
use crate::support::upstream::Upstream;

#[test]
fn two_thousand_tools_reach_every_wire_and_too_many_are_refused_by_name() {
    let upstream = Upstream::answering(called);
    let gateway = gateway_with(&upstream, "");
    let tools = |count: usize| -> Value {
        let all = (0..count).map(|number| json!({"name": format!("tool_{number}"), "description": "Does it.", "input_schema": {"type": "object"}}));
        all.collect()
    };
    for model in WIRES {
        let mut asked = first_turn(model);
        asked["tools"] = tools(2000);
        let answer = send(&gateway, &asked);
        assert_eq!(answer.status(), 200, "{model}: {}", answer.text());
        let sent = String::from_utf8(upstream.requests().pop().unwrap().body).unwrap();
        for name in ["\"tool_0\"", "\"tool_1999\""] {
            assert_eq!(sent.matches(name).count(), 1, "{model}");
        }
        asked["tools"] = tools(4097);
        let refused = send(&gateway, &asked);
        assert_eq!(refused.status(), 400, "{model}");
        assert!(
            refused.text().contains("`tools` holds 4097 tools"),
            "{}",
            refused.text()
        );
    }
}

#[test]
fn a_picture_of_many_megabytes_reaches_every_wire() {
    let upstream = Upstream::answering(called);
    let gateway = gateway_with(&upstream, "");
    let data = "iVBORw0KGgoA".to_owned() + &"AAAA".repeat(3 << 20);
    for model in WIRES {
        let mut asked = first_turn(model);
        asked["messages"] = json!([{"role": "user", "content": [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}, {"type": "text", "text": "Look"}]}]);
        let answer = send(&gateway, &asked);
        assert_eq!(answer.status(), 200, "{model}: {}", answer.text());
        let sent = upstream.requests().pop().unwrap().body;
        assert!(
            memchr::memmem::find(&sent, data.as_bytes()).is_some(),
            "{model}"
        );
    }
}

/// The gateway cuts where a provider does not.
#[test]
fn stop_sequences_hold_on_every_wire() {
    let provider = scripted::saying(|_| Turn::text("one two END three").into());
    let gateway = scripted::gateway(&provider);
    for model in scripted::MODELS
        .into_iter()
        .filter(|model| *model != "blocks")
    {
        for is_stream in [false, true] {
            let asked = json!({"model": model, "max_tokens": 100, "stream": is_stream, "stop_sequences": ["zzz", " END"],
                "messages": [{"role": "user", "content": "Hi"}]});
            let answer = send(&gateway, &asked);
            assert_eq!(answer.status(), 200, "{model}: {}", answer.text());
            let text = answer.text();
            assert!(
                text.contains("two") && !text.contains("three") && !text.contains("END three"),
                "{model}: {text}"
            );
            for said in [
                r#""stop_reason":"stop_sequence""#,
                r#""stop_sequence":" END""#,
            ] {
                assert!(text.contains(said), "{model}: {text}");
            }
        }
    }
}
