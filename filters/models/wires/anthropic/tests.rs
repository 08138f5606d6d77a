#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::fault::Fault;
use crate::models::dialects::Dialect;
use crate::models::front::Front;
use crate::models::fronts::chat_completions::ChatCompletions;
use crate::models::routing::thinking::ThinkingControl;
use crate::models::wires::tests::replay;
use crate::models::wires::{Failure, FailureKind, Quirks, Target};

fn target<'a>(quirks: &'a Quirks, efforts: &[&str]) -> Target<'a> {
    let control = (!efforts.is_empty()).then_some(ThinkingControl::Adaptive);
    let told = replay::told(&ANTHROPIC, control, efforts);
    Target {
        parameters: &told.parameters,
        thinking: &told.thinking,
        key_id: Some("key_1"),
        ..Target::plain("anthropic", "claude-x", quirks)
    }
}

/// Folds a stream cut into pieces of this many bytes.
fn fold(text: &str, piece: usize) -> Result<Value, Failure> {
    let quirks = Quirks::default();
    replay::fold(&ANTHROPIC, &target(&quirks, &[]), text, piece)
}

fn whole(body: &Value) -> Result<Value, Failure> {
    let quirks = Quirks::default();
    replay::whole(&ANTHROPIC, &target(&quirks, &[]), body)
}

fn sse_of(events: &[Value]) -> String {
    events
        .iter()
        .map(|event| {
            format!(
                "event: {}\ndata: {event}\n\n",
                event["type"].as_str().unwrap()
            )
        })
        .collect()
}

fn events() -> Vec<Value> {
    vec![
        json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "content": [],
            "usage": {"input_tokens": 10, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 3, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm \"é\""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "sig"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "ping"}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Hel"}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "lo\n"}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ""}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "{\"a\""}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ":1}"}}),
        json!({"type": "content_block_stop", "index": 2}),
        json!({"type": "content_block_start", "index": 3, "content_block": {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}}),
        json!({"type": "content_block_stop", "index": 3}),
        json!({"type": "content_block_start", "index": 4, "content_block": {"type": "tool_use", "id": "toolu_2", "name": "g", "input": {}}}),
        json!({"type": "content_block_stop", "index": 4}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null}, "usage": {"output_tokens": 20, "input_tokens": null}}),
        json!({"type": "message_stop"}),
    ]
}

#[test]
fn the_folded_stream_equals_the_whole_reply_however_it_is_cut() {
    let body = json!({"id": "msg_1", "type": "message", "role": "assistant", "stop_reason": "tool_use", "content": [
        {"type": "thinking", "thinking": "hm \"é\"", "signature": "sig"}, {"type": "text", "text": "Hello\n"},
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        {"type": "tool_use", "id": "toolu_2", "name": "g", "input": {}}],
        "usage": {"input_tokens": 10, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 3, "output_tokens": 20}});
    let expected = whole(&body).unwrap();
    let message = &expected["choices"][0]["message"];
    assert_eq!(
        (&message["content"], &message["reasoning"]),
        (&"Hello\n".into(), &"hm \"é\"".into())
    );
    let sealed = replay::seal(Dialect::Messages, "anthropic/claude-x", "sig");
    assert_eq!(message["reasoning_details"][0]["signature"], sealed);
    let arguments: Vec<&str> = message["tool_calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["function"]["arguments"].as_str().unwrap())
        .collect();
    assert_eq!(arguments, ["{\"a\":1}", "{}"]);
    assert_eq!(expected["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(
        (
            &expected["usage"]["prompt_tokens"],
            &expected["usage"]["completion_tokens"]
        ),
        (&18.into(), &20.into())
    );
    assert_eq!(expected["id"], "chatcmpl-made");
    for text in [sse_of(&events()), sse_of(&events()).replace('\n', "\r\n")] {
        for piece in 1..80 {
            assert_eq!(fold(&text, piece).unwrap(), expected, "{piece}");
        }
    }
}

#[test]
fn a_stream_without_its_terminal_event_is_truncated() {
    let events = events();
    for end in 0..events.len() - 1 {
        assert_eq!(
            fold(&sse_of(&events[..end]), 64).unwrap_err().kind,
            FailureKind::Truncated,
            "{end}"
        );
    }
}

#[test]
fn an_error_event_is_a_failure_of_its_status() {
    let mut events = events();
    events.insert(
        3,
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    );
    let failure = fold(&sse_of(&events), 64).unwrap_err();
    assert_eq!(
        (failure.kind, failure.is_retryable),
        (FailureKind::Status(529), true)
    );
    // A cloud says its own without a type.
    let inner =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    for (message, status) in [("slow".to_owned(), 429), (inner.to_string(), 529)] {
        let error =
            json!({"error": {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED"}});
        let failure = fold(&format!("data: {error}\n\n"), 64).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Status(status));
    }
    let untyped = fold("data: {\"index\":0}\n\n", 64).unwrap_err();
    assert_eq!(untyped.kind, FailureKind::Malformed);
}

#[test]
fn a_repeated_start_is_ignored_and_another_answer_is_not() {
    let mut twice = events();
    twice.insert(1, twice[0].clone());
    assert!(fold(&sse_of(&twice), 64).is_ok());
    twice[1]["message"]["id"] = "msg_2".into();
    assert_eq!(
        fold(&sse_of(&twice), 64).unwrap_err().kind,
        FailureKind::Malformed
    );
}

#[test]
fn refusals_name_the_account_where_it_is_to_blame() {
    let low = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "Your credit balance is too low"}});
    assert!(
        ANTHROPIC
            .classify(400, low.to_string().as_bytes())
            .is_retryable
    );
    let bad = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "max_tokens: too large"}});
    let bad = ANTHROPIC.classify(400, bad.to_string().as_bytes());
    let bad = bad.scrubbed(&[""; 0]);
    assert!(!bad.is_retryable && bad.message.contains("too large"));
    assert!(ANTHROPIC.classify(502, b"<html>").is_retryable);
}

/// What goes up for a request.
fn sent(request: Value, efforts: &[&str]) -> Result<Value, Fault> {
    let quirks = Quirks::default();
    let request = ChatCompletions.parse(request.to_string().into()).unwrap();
    let encoded = ANTHROPIC.encode(&request, &target(&quirks, efforts))?;
    let operation = request.payload.operation();
    let head = ANTHROPIC.head(operation, request.is_stream, "m", &quirks);
    assert_eq!(head.unwrap().path, "/v1/messages");
    let (name, value) = ANTHROPIC.host().credential("sk-ant-secret", &quirks)?;
    assert!(name == "x-api-key" && value.is_sensitive());
    Ok(serde_json::from_slice(&encoded.concat()).unwrap())
}

fn call(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}})
}

/// Contract: model-gateway 2.1 tools
/// Contract: model-gateway 2.2 tool_call_id
#[test]
fn a_conversation_with_tools_is_said_as_the_wire_wants_it() {
    let body = sent(json!({"model": "m", "stop": ["END"], "user": "u", "temperature": 1.7, "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Look", "cache_control": {"type": "ephemeral"}},
            {"type": "image_url", "image_url": {"url": "data:image/jpg;base64,AAEC"}}, {"type": "image_url", "image_url": {"url": "https://x/y.png"}}]},
        {"role": "assistant", "content": null, "tool_calls": [call("a.1"), call("b")],
         "reasoning_details": [{"type": "reasoning.text", "format": "anthropic-claude-v1", "text": "t", "signature": replay::seal(Dialect::Messages, "anthropic/claude-x", "s")},
                               {"type": "reasoning.text", "format": "anthropic-claude-v1", "text": "t", "signature": replay::seal(Dialect::Messages, "other/claude-x", "s")}]},
        {"role": "tool", "tool_call_id": "b", "content": "two"},
        {"role": "tool", "tool_call_id": "a.1", "content": "one"},
        {"role": "user", "content": "Go on"}],
        "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}}],
        "tool_choice": "required", "parallel_tool_calls": false}), &[]).unwrap();
    assert_eq!(
        body["system"],
        json!([{"type": "text", "text": "Be brief."}])
    );
    assert_eq!(
        (
            &body["temperature"],
            &body["stop_sequences"],
            &body["metadata"]["user_id"]
        ),
        (&1.into(), &json!(["END"]), &"u".into())
    );
    assert_eq!(
        body["tool_choice"],
        json!({"type": "any", "disable_parallel_tool_use": true})
    );
    let turns = body["messages"].as_array().unwrap();
    assert_eq!(
        turns
            .iter()
            .map(|turn| turn["role"].as_str().unwrap())
            .collect::<Vec<_>>(),
        ["user", "assistant", "user"]
    );
    assert_eq!(turns[0]["content"][0]["cache_control"]["type"], "ephemeral");
    assert_eq!(
        turns[0]["content"][1]["source"],
        json!({"type": "base64", "media_type": "image/jpeg", "data": "AAEC"})
    );
    assert_eq!(
        turns[0]["content"][2]["source"],
        json!({"type": "url", "url": "https://x/y.png"})
    );
    assert_eq!(
        turns[1]["content"][0],
        json!({"type": "thinking", "thinking": "t", "signature": "s"})
    );
    assert_eq!(
        turns[1]["content"][1],
        json!({"type": "tool_use", "id": "a_1", "name": "f", "input": {"a": 1}})
    );
    assert_eq!(
        turns[1]["content"].as_array().unwrap().len(),
        3,
        "foreign thinking stays behind"
    );
    let results: Vec<&str> = turns[2]["content"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|b| b["tool_use_id"].as_str())
        .collect();
    assert_eq!(results, ["b", "a_1"]);
    assert_eq!(turns[2]["content"][2]["text"], "Go on");
}

#[test]
fn histories_that_the_wire_would_refuse_are_refused_by_name() {
    for (messages, param) in [
        (
            json!([{"role": "user", "content": "a"}, {"role": "tool", "tool_call_id": "x", "content": "r"}]),
            "messages[1].tool_call_id",
        ),
        (
            json!([{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": [call("x")]}, {"role": "user", "content": "b"}]),
            "messages[1].tool_calls",
        ),
        (
            json!([{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": [call("x")]}]),
            "messages[1].tool_calls",
        ),
        (
            json!([{"role": "assistant", "content": "a"}]),
            "messages[0].role",
        ),
        (
            json!([{"role": "user", "content": "  "}]),
            "messages[0].content",
        ),
        (json!([{"role": "system", "content": "a"}]), "messages"),
        (
            json!([{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "QQ", "format": "wav"}}]}]),
            "messages[0].content[0]",
        ),
    ] {
        let fault = sent(json!({"model": "m", "messages": messages}), &[]).unwrap_err();
        assert_eq!((fault.status(), fault.param.as_deref()), (400, Some(param)));
    }
}

#[test]
fn effort_becomes_a_budget_or_is_taken_as_it_is() {
    let ask = |effort: &str| json!({"model": "m", "temperature": 0.5, "reasoning_effort": effort, "max_tokens": 2000, "messages": [{"role": "user", "content": "a"}]});
    let budget = sent(ask("high"), &[]).unwrap();
    assert_eq!(
        (&budget["thinking"]["budget_tokens"], &budget["max_tokens"]),
        (&4000.into(), &5000.into())
    );
    assert!(budget.get("temperature").is_none());
    let adaptive = sent(ask("high"), &["low", "high"]).unwrap();
    assert_eq!(
        (
            &adaptive["thinking"]["type"],
            &adaptive["output_config"]["effort"]
        ),
        (&"adaptive".into(), &"high".into())
    );
    let off = sent(ask("none"), &[]).unwrap();
    assert_eq!(off["thinking"], json!({"type": "disabled"}));
    assert_eq!(off["temperature"], 0.5);
}

/// Source: model-gateway 2.1, rules for `reasoning_effort` 1 and 3
/// Contract: model-gateway 2.1 reasoning_effort 1
/// Contract: model-gateway 2.1 reasoning_effort 2
/// Contract: model-gateway 2.1 reasoning_effort 3
#[test]
fn every_effort_has_a_budget_or_goes_as_a_word() {
    let ask = |effort: &str| json!({"model": "m", "reasoning_effort": effort, "messages": [{"role": "user", "content": "a"}]});
    for (effort, budget) in [
        ("minimal", 1024),
        ("low", 1024),
        ("xhigh", 16_000),
        ("max", 32_000),
    ] {
        let body = sent(ask(effort), &[]).unwrap();
        assert_eq!(
            body["thinking"],
            json!({"type": "enabled", "budget_tokens": budget}),
            "{effort}"
        );
    }
    for effort in ["minimal", "xhigh", "max"] {
        let body = sent(ask(effort), &["low", "high"]).unwrap();
        assert_eq!(
            body["output_config"]["effort"], effort,
            "the provider judges"
        );
    }
    let least = sent(ask("none"), &["low", "high"]).unwrap();
    assert_eq!(
        (
            &least["thinking"]["type"],
            &least["output_config"]["effort"]
        ),
        (&"adaptive".into(), &"low".into()),
        "what cannot be switched off thinks least"
    );
    let off = sent(ask("none"), &["none", "low"]).unwrap();
    assert_eq!(off["thinking"], json!({"type": "disabled"}));
    assert!(off.get("output_config").is_none(), "{off}");
}

/// Contract: model-gateway 2.1 max_tokens
#[test]
fn the_bound_of_the_answer_is_the_one_that_is_sent() {
    let quirks = Quirks::default();
    for more in [
        json!({}),
        json!({"max_tokens": 1}),
        json!({"max_tokens": 1, "reasoning": {"max_tokens": 60_000}}),
        json!({"max_tokens": 50_000, "reasoning_effort": "max"}),
        json!({"reasoning_effort": "max"}),
    ] {
        let mut ask = json!({"model": "m", "messages": [{"role": "user", "content": "a"}]});
        let members = more.as_object().unwrap().clone();
        ask.as_object_mut().unwrap().extend(members);
        let request = ChatCompletions.parse(ask.to_string().into()).unwrap();
        let bound = ANTHROPIC
            .codec_of(&request)
            .max_output(&request, &target(&quirks, &[]));
        let body = sent(ask, &[]).unwrap();
        assert_eq!(body["max_tokens"].as_u64(), bound, "{more}");
    }
}

#[test]
fn a_schema_is_closed_and_cleaned_but_its_properties_keep_their_names() {
    let schema = json!({"type": "object", "properties": {"pattern": {"type": "string", "pattern": "x"}, "list": {"type": "array", "minItems": 1, "items": {"type": "object", "properties": {}}}}});
    let body = sent(json!({"model": "m", "messages": [{"role": "user", "content": "a"}], "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}}), &[]).unwrap();
    let sent = &body["output_config"]["format"]["schema"];
    assert_eq!(sent["additionalProperties"], false);
    assert_eq!(sent["properties"]["pattern"], json!({"type": "string"}));
    assert_eq!(
        sent["properties"]["list"]["items"]["additionalProperties"],
        false
    );
    assert!(sent["properties"]["list"].get("minItems").is_none());
}

#[test]
fn arguments_that_are_no_object_are_wrapped() {
    for (arguments, input) in [
        ("", json!({})),
        ("null", json!({})),
        ("[1]", json!({"_raw": "[1]"})),
        ("{\"a\":", json!({"_raw": "{\"a\":"})),
    ] {
        let mut call = call("x");
        call["function"]["arguments"] = arguments.into();
        let body = sent(json!({"model": "m", "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "x", "content": ""}]}), &[]).unwrap();
        assert_eq!(
            body["messages"][1]["content"][0]["input"], input,
            "{arguments}"
        );
    }
}

proptest! {
    #[test]
    fn random_histories_are_sayable_or_refused_by_name(roles in proptest::collection::vec(0..6_u8, 1..12)) {
        let mut calls = 0;
        let messages: Vec<Value> = roles.iter().map(|role| match role {
            0 => json!({"role": "user", "content": "u"}),
            1 => json!({"role": "assistant", "content": "a"}),
            2 => { calls += 1; json!({"role": "assistant", "content": "", "tool_calls": [call(&format!("c{calls}"))]}) }
            3 => json!({"role": "tool", "tool_call_id": format!("c{calls}"), "content": "r"}),
            4 => json!({"role": "system", "content": "s"}),
            _ => json!({"role": "user", "content": ""}),
        }).collect();
        match sent(json!({"model": "m", "messages": messages}), &[]) {
            Err(fault) => prop_assert!(fault.param.unwrap().starts_with("messages")),
            Ok(body) => {
                let turns = body["messages"].as_array().unwrap();
                prop_assert_eq!(&turns[0]["role"], "user");
                for pair in turns.windows(2) {
                    prop_assert_ne!(&pair[0]["role"], &pair[1]["role"]);
                    let asked: Vec<&Value> = pair[0]["content"].as_array().unwrap().iter().filter(|b| b["type"] == "tool_use").map(|b| &b["id"]).collect();
                    let answered: Vec<&Value> = pair[1]["content"].as_array().unwrap().iter().take(asked.len()).map(|b| &b["tool_use_id"]).collect();
                    prop_assert_eq!(asked, answered);
                }
            }
        }
    }
}
