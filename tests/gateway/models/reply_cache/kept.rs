//! Which replies are stored.

use super::*;
use crate::support::script::Cut;

fn choice(message: Value, finish: Value) -> Reply {
    let body = json!({"id": "c", "object": "chat.completion", "created": 5, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}});
    Reply::json(200, body.to_string())
}

fn saying(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

/// Returns whether the second of two equal requests is answered from the cache.
fn is_kept(first_reply: Reply) -> bool {
    let first = Upstream::sequence([first_reply, reply()]);
    let gateway = caching(&first);
    // Pinned, so that no other provider answers in its place.
    let pinned = PLAIN.replace("\"chat\"", "\"first/chat\"");
    gateway.chat(&pinned);
    is_hit(&gateway.chat(&pinned))
}

#[test]
fn whole_answers_are_stored_and_others_are_not() {
    let call =
        json!({"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let calling = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let thinking = json!({"role": "assistant", "content": "", "reasoning": "hm"});
    let refusing = json!({"role": "assistant", "content": null, "refusal": "no"});
    for (name, reply, kept) in [
        ("stop", choice(saying("a"), json!("stop")), true),
        ("length", choice(saying("a"), json!("length")), true),
        ("calls", choice(calling, json!("tool_calls")), true),
        (
            "filtered",
            choice(saying("a"), json!("content_filter")),
            false,
        ),
        ("refused", choice(refusing, json!("stop")), false),
        ("empty", choice(saying(""), json!("stop")), false),
        ("reasoning alone", choice(thinking, json!("stop")), false),
        ("500", Reply::json(500, "{}"), false),
        (
            "400",
            Reply::json(400, r#"{"error":{"message":"no"}}"#),
            false,
        ),
        (
            "an error of status 200",
            Reply::json(200, r#"{"error":{"message":"down"}}"#),
            false,
        ),
        ("cut", reply().cut(200, Cut::Close), false),
    ] {
        assert_eq!(is_kept(reply), kept, "{name}");
    }
}

#[test]
fn a_stream_that_breaks_or_that_its_client_leaves_is_not_stored() {
    let whole = crate::models::fronts::chat_completions::stream();
    let cut = whole.clone().cut(whole.wire_len() - 200, Cut::Close);
    let first = Upstream::sequence([cut, whole]);
    let gateway = caching(&first);
    let broken = gateway.chat(STREAM);
    assert!(!broken.events().says_done());
    // The broken call is over, so the next one is not its follower.
    gateway.log_line(broken.header("x-request-id").unwrap());
    assert!(!is_hit(&gateway.chat(STREAM)));
    assert!(is_hit(&gateway.chat(STREAM)));

    let hanging = crate::ledger::begun().and_hang();
    let first = Upstream::sequence([hanging, crate::models::fronts::chat_completions::stream()]);
    let gateway = caching(&first);
    let mut client = Client::connect(gateway.address());
    client.send(&gateway.chat_ask(STREAM));
    client.head();
    client.chunk().unwrap();
    drop(client);
    first.wait_closed(0);
    assert!(!is_hit(&gateway.chat(STREAM)));
}

#[test]
fn an_answer_of_the_second_provider_is_stored_with_its_attempts() {
    let (first, second) = (
        Upstream::always(Reply::json(500, "{}")),
        Upstream::always(reply()),
    );
    let gateway = Gateway::between(&first.url(), &second.url());
    gateway.cache_for(3600);
    let (answer, replay) = (gateway.chat(PLAIN), gateway.chat(PLAIN));
    assert!(!is_hit(&answer) && is_hit(&replay));
    let (one, other) = (answer.json(), replay.json());
    assert_eq!(one["metadata"]["routing"].as_array().unwrap().len(), 2);
    assert_eq!(without(one, &OWN), without(other, &OWN));
}

#[test]
fn a_reply_over_a_sixteenth_of_the_memory_is_not_stored() {
    let text = "x".repeat(5000);
    let first = Upstream::always(choice(saying(&text), json!("stop")));
    for (max_bytes, kept) in [(64 << 10, false), (256 << 10, true)] {
        let more = format!("[cache]\nmax_bytes = {max_bytes}");
        let gateway = Gateway::with(&first.url(), &first.url(), &more);
        gateway.cache_for(3600);
        for body in [PLAIN, STREAM] {
            gateway.chat(body);
        }
        assert_eq!(is_hit(&gateway.chat(PLAIN)), kept, "{max_bytes}");
    }
}

#[test]
fn opaque_state_and_what_we_do_not_know_are_stored_whole() {
    let message = json!({"role": "assistant", "content": "a", "reasoning": "hm",
        "reasoning_details": [{"type": "reasoning.text", "text": "hm", "signature": "s=="}], "x_unknown": {"a": [1.0]}});
    let body = json!({"id": "c", "object": "chat.completion", "created": 5, "model": "m", "system_fingerprint": "fp_1",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": {"content": []}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}});
    let first = Upstream::always(Reply::json(200, body.to_string()));
    let gateway = caching(&first);
    let (answer, replay) = (gateway.chat(PLAIN), gateway.chat(PLAIN));
    assert!(is_hit(&replay));
    assert!(answer.text().contains("fp_1") && answer.text().contains("x_unknown"));
    assert_eq!(without(answer.json(), &OWN), without(replay.json(), &OWN));
}

#[test]
fn several_choices_are_stored_together() {
    let choice = |index| json!({"index": index, "message": saying(&format!("no {index}")), "finish_reason": "stop"});
    let body = json!({"id": "c", "object": "chat.completion", "created": 5, "model": "m", "choices": [choice(0), choice(1)],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}});
    let first = Upstream::always(Reply::json(200, body.to_string()));
    let gateway = caching(&first);
    let two = PLAIN.replace("\"model\"", "\"n\":2,\"model\"");
    let (answer, replay) = (gateway.chat(&two), gateway.chat(&two));
    assert!(!is_hit(&answer) && is_hit(&replay));
    assert_eq!(answer.json()["choices"], replay.json()["choices"]);
    assert!(!is_hit(&gateway.chat(PLAIN)));
}
