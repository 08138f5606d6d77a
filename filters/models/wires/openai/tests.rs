#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]

use serde_json::{Value, json};

use super::*;
use crate::models::front::Front;
use crate::models::fronts::chat_completions::ChatCompletions;
use crate::models::fronts::chat_completions::chunks::ChunkWriter;
use crate::models::fronts::chat_completions::whole::WholeWriter;
use crate::models::metadata::write_usage;
use crate::models::reply::ReplyIdentity;
use crate::models::reply::Writer;
use crate::models::routing::parameters::Parameters;
use crate::models::routing::thinking::ThinkingControl;
use crate::models::usage::{Settlement, Usage};
use crate::models::wires::tests::replay;
use crate::models::wires::{Failure, FailureKind, Quirks, Target};

fn envelope() -> ReplyIdentity {
    ReplyIdentity {
        id: "chatcmpl-made".into(),
        created: 7,
        model: "here/model".into(),
        maker: "here/upstream-model".into(),
    }
}

fn target(quirks: &Quirks) -> Target<'_> {
    Target {
        key_id: Some("key_1"),
        ..Target::plain("here", "upstream-model", quirks)
    }
}

fn write_reported(usage: Option<Usage>, out: &mut Vec<u8>) {
    match usage {
        Some(usage) => write_usage(&Settlement { usage, cost: None }, out),
        None => out.extend_from_slice(b"null"),
    }
}

fn no_metadata(out: &mut Vec<u8>) {
    out.extend_from_slice(b"{}");
}

/// Reads chunks of a provider's stream; answers what the client gets, or the failure.
fn stream(quirks: &Quirks, chunks: &[&[u8]]) -> Result<String, Failure> {
    let mut sink = ChunkWriter::new(envelope(), true);
    let chunks = chunks.iter().copied();
    replay::feed(&OPENAI, &target(quirks), &replay::EVENTS, chunks, &mut sink)?;
    let usage = sink.reported().usage;
    sink.finish_stream(|out| write_reported(usage, out), no_metadata);
    Ok(String::from_utf8(sink.take().into()).unwrap())
}

fn whole(quirks: &Quirks, body: &[u8]) -> Result<Value, Failure> {
    let mut sink = WholeWriter::new(envelope());
    replay::feed(&OPENAI, &target(quirks), &replay::WHOLE, [body], &mut sink)?;
    let usage = sink.reported().usage;
    let response = sink.render(0, |out| write_reported(usage, out), no_metadata);
    Ok(serde_json::from_slice(&response).unwrap())
}

/// What a client folds out of a stream: the message and finish reason of each choice, and usage.
/// Source: docs/facts/wire-formats.md R1–R4.
fn fold(text: &str) -> (Vec<Value>, Value) {
    let events: Vec<&str> = text
        .split("\n\n")
        .filter(|event| !event.is_empty())
        .collect();
    assert_eq!(*events.last().unwrap(), "data: [DONE]");
    let mut choices: Vec<Value> = Vec::new();
    let mut usage = Value::Null;
    let mut head = None;
    for event in &events[..events.len() - 1] {
        let chunk: Value = serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap();
        let now = (
            chunk["id"].clone(),
            chunk["created"].clone(),
            chunk["model"].clone(),
            chunk["object"].clone(),
        );
        assert_eq!(
            *head.get_or_insert_with(|| now.clone()),
            now,
            "one head for all chunks"
        );
        if !chunk["usage"].is_null() {
            assert!(usage.is_null(), "usage once");
            usage = chunk["usage"].clone();
        }
        for piece in chunk["choices"].as_array().unwrap() {
            let index = piece["index"].as_u64().unwrap() as usize;
            while choices.len() <= index {
                choices.push(json!({"content": "", "reasoning": "", "calls": [], "finish": null}));
            }
            let choice = &mut choices[index];
            assert!(choice["finish"].is_null(), "nothing behind the finish");
            let delta = &piece["delta"];
            let is_first = choice.get("role").is_none();
            assert_eq!(
                !delta["role"].is_null(),
                is_first,
                "the role once and first: {event}"
            );
            choice["role"] = "assistant".into();
            for key in ["content", "reasoning"] {
                let text = format!(
                    "{}{}",
                    choice[key].as_str().unwrap(),
                    delta[key].as_str().unwrap_or("")
                );
                choice[key] = text.into();
            }
            for call in delta["tool_calls"].as_array().into_iter().flatten() {
                let calls = choice["calls"].as_array_mut().unwrap();
                let at = call["index"].as_u64().unwrap() as usize;
                if at == calls.len() {
                    assert!(call["id"].is_string() && call["function"]["name"].is_string());
                    calls.push(json!({"id": call["id"], "name": call["function"]["name"], "arguments": ""}));
                }
                let arguments = calls[at]["arguments"].as_str().unwrap().to_owned();
                calls[at]["arguments"] =
                    (arguments + call["function"]["arguments"].as_str().unwrap()).into();
            }
            choice["finish"] = piece["finish_reason"].clone();
        }
    }
    assert!(
        choices.iter().all(|choice| choice["finish"].is_string()),
        "one finish per choice"
    );
    (choices, usage)
}

fn fold_whole(reply: &Value) -> (Vec<Value>, Value) {
    let choices = reply["choices"].as_array().unwrap().iter().map(|choice| {
        let message = &choice["message"];
        let calls: Vec<Value> = message["tool_calls"].as_array().into_iter().flatten().map(|call| {
            json!({"id": call["id"], "name": call["function"]["name"], "arguments": call["function"]["arguments"]})
        }).collect();
        json!({
            "content": message["content"].as_str().unwrap_or(""),
            "reasoning": message["reasoning"].as_str().unwrap_or(""),
            "calls": calls, "finish": choice["finish_reason"], "role": "assistant",
        })
    });
    (choices.collect(), reply["usage"].clone())
}

fn sse_of(events: &[Value]) -> String {
    let mut text: String = events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    text.push_str("data: [DONE]\n\n");
    text
}

fn chunk(delta: Value, finish: Option<&str>) -> Value {
    json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 5, "model": "m",
           "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

fn usage() -> Value {
    json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 5, "model": "m", "choices": [],
           "usage": {"prompt_tokens": 11, "completion_tokens": 4, "total_tokens": 15}})
}

#[test]
fn a_stream_cut_at_every_byte_gives_the_same_answer() {
    let text = sse_of(&[
        chunk(
            json!({"role": "assistant", "content": "", "refusal": null}),
            None,
        ),
        chunk(json!({"reasoning_content": "hm \"é\""}), None),
        chunk(json!({"content": "Hel\n"}), None),
        chunk(json!({"content": "lo 😀"}), None),
        chunk(
            json!({"tool_calls": [{"index": 3, "id": "call_a", "type": "function", "function": {"name": "f", "arguments": ""}}]}),
            None,
        ),
        chunk(
            json!({"tool_calls": [{"index": 3, "function": {"arguments": "{\"a\":"}}]}),
            None,
        ),
        chunk(
            json!({"tool_calls": [{"index": 3, "id": "", "function": {"arguments": "1}"}}]}),
            None,
        ),
        chunk(
            json!({"tool_calls": [{"index": 4, "id": "call_b", "type": "function", "function": {"name": "g", "arguments": ""}}]}),
            None,
        ),
        chunk(json!({}), Some("tool_calls")),
        usage(),
    ]);
    for text in [text.clone(), text.replace('\n', "\r\n")] {
        let expected = stream(&Quirks::default(), &[text.as_bytes()]).unwrap();
        let (choices, usage) = fold(&expected);
        assert_eq!(choices[0]["content"], "Hel\nlo 😀");
        assert_eq!(choices[0]["reasoning"], "hm \"é\"");
        assert_eq!(
            choices[0]["calls"],
            json!([
            {"id": "call_a", "name": "f", "arguments": "{\"a\":1}"}, {"id": "call_b", "name": "g", "arguments": "{}"}])
        );
        assert_eq!(
            (&choices[0]["finish"], &usage["total_tokens"]),
            (&"tool_calls".into(), &15.into())
        );
        for at in 0..text.len() {
            let (head, tail) = text.as_bytes().split_at(at);
            assert_eq!(
                stream(&Quirks::default(), &[head, tail]).unwrap(),
                expected,
                "cut at {at}"
            );
        }
    }
}

#[test]
fn a_stream_that_ends_anywhere_before_its_finish_is_truncated() {
    let text = sse_of(&[
        chunk(json!({"role": "assistant", "content": "a"}), None),
        chunk(json!({"content": "b"}), None),
    ]);
    let text = text.strip_suffix("data: [DONE]\n\n").unwrap();
    assert_eq!(
        stream(&Quirks::default(), &[text.as_bytes()])
            .unwrap_err()
            .kind,
        FailureKind::Truncated
    );
}

#[test]
fn an_error_as_an_event_is_a_failure_that_the_next_provider_may_mend() {
    for (event, status) in [
        (
            json!({"error": {"message": "Rate limit reached", "type": "rate_limit_error", "code": "rate_limit_exceeded"}}),
            429,
        ),
        (json!({"error": {"code": 503, "message": "down"}}), 503),
        (json!({"error": "boom"}), 500),
    ] {
        let failure = stream(
            &Quirks::default(),
            &[format!("data: {event}\n\n").as_bytes()],
        )
        .unwrap_err();
        assert_eq!(
            (failure.kind, failure.is_retryable),
            (FailureKind::Status(status), true),
            "{event}"
        );
    }
    let named = stream(
        &Quirks::default(),
        &[b"event: error\ndata: {\"message\":\"x\"}\n\n"],
    )
    .unwrap_err();
    assert!(matches!(named.kind, FailureKind::Status(_)));
}

#[test]
fn a_broken_event_is_malformed_and_never_silence() {
    let failure = stream(
        &Quirks::default(),
        &[b"data: {\"choices\":[{\"index\":0,\n\ndata: [DONE]\n\n"],
    )
    .unwrap_err();
    assert_eq!(failure.kind, FailureKind::Malformed);
}

#[test]
fn usage_on_every_chunk_is_taken_once() {
    let mut first = chunk(json!({"role": "assistant", "content": "a"}), None);
    first["usage"] = json!({"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4});
    let mut last = chunk(json!({"role": "assistant", "content": "b"}), Some("stop"));
    last["usage"] = json!({"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5});
    last["x_groq"] = json!({"usage": {"prompt_tokens": 99, "completion_tokens": 99}});
    let (_, usage) =
        fold(&stream(&Quirks::default(), &[sse_of(&[first, last]).as_bytes()]).unwrap());
    assert_eq!(usage["total_tokens"], 5);
}

/// Contract: model-gateway 2.1 sensitive_word_check
#[test]
fn what_few_providers_know_goes_to_those_whose_table_passes_it() {
    let request = json!({"model": "m", "effort": "low", "prompt_cache_options": {"mode": "explicit"},
        "sensitive_word_check": {"status": "ENABLE"}, "messages": [{"role": "user", "content":
            [{"type": "text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit"}}]}]});
    let parsed = ChatCompletions.parse(request.to_string().into()).unwrap();
    let quirks = Quirks::default();
    let sent = |parameters: &Parameters| -> Value {
        let target = Target {
            parameters,
            ..target(&quirks)
        };
        let body = OPENAI.encode(&parsed, &target).unwrap().concat();
        serde_json::from_slice(&body).unwrap()
    };
    let text = |part: Value| json!([{"role": "user", "content": [part]}]);
    let usual = sent(&OPENAI.defaults().parameters);
    let plain = json!({"type": "text", "text": "a"});
    let expected = json!({"model": "upstream-model", "messages": text(plain)});
    assert_eq!(usual, expected);
    let mut whole = request.clone();
    whole["model"] = "upstream-model".into();
    assert_eq!(sent(Parameters::PLAIN), whole);
}

/// Source: model-gateway 2.1, rules for `reasoning_effort` 1 and 3
/// Contract: model-gateway 2.1 reasoning_effort
/// Contract: model-gateway 2.1 reasoning_effort 1
/// Contract: model-gateway 2.1 reasoning_effort 3
#[test]
fn an_effort_is_a_word_a_budget_or_a_switch_with_or_without_a_word() {
    let quirks = Quirks::default();
    let sent = |control, efforts: &[&str], effort: &str| -> Value {
        let told = replay::told(&OPENAI, Some(control), efforts);
        let messages = json!([{"role": "user", "content": "a"}]);
        let request = json!({"model": "m", "reasoning_effort": effort, "messages": messages});
        let parsed = ChatCompletions.parse(request.to_string().into()).unwrap();
        let target = Target {
            thinking: &told.thinking,
            ..target(&quirks)
        };
        let body = OPENAI.encode(&parsed, &target).unwrap().concat();
        let mut body: Value = serde_json::from_slice(&body).unwrap();
        let members = body.as_object_mut().unwrap();
        members.retain(|key, _| key != "model" && key != "messages");
        body
    };
    let word = |effort: &str| json!({"reasoning_effort": effort});
    for effort in ["none", "minimal", "max"] {
        assert_eq!(
            sent(ThinkingControl::Levels, &["low"], effort),
            word(effort)
        );
    }
    for (effort, budget) in [("minimal", 512), ("xhigh", 65_536), ("max", 128_000)] {
        let expected = json!({"enable_thinking": true, "thinking_budget": budget});
        assert_eq!(sent(ThinkingControl::Budget, &[], effort), expected);
    }
    let off = json!({"enable_thinking": false});
    assert_eq!(sent(ThinkingControl::Budget, &[], "none"), off);
    let (on, off) = (json!({"type": "enabled"}), json!({"type": "disabled"}));
    let plain = |effort| sent(ThinkingControl::Switch, &["none", "high"], effort);
    assert_eq!(plain("max"), json!({"thinking": on}));
    assert_eq!(plain("none"), json!({"thinking": off}));
    let worded = |effort| sent(ThinkingControl::Switch, &["none", "low", "high"], effort);
    assert_eq!(
        worded("max"),
        json!({"thinking": on, "reasoning_effort": "max"})
    );
    assert_eq!(worded("none"), json!({"thinking": off}));
}

#[test]
fn reasoning_left_out_of_the_completion_is_added() {
    let quirks = Quirks {
        reasoning_excluded_from_completion: true,
        ..Quirks::default()
    };
    let mut last = chunk(json!({"content": "a"}), Some("stop"));
    last["usage"] = json!({"prompt_tokens": 12, "completion_tokens": 1, "total_tokens": 303,
        "completion_tokens_details": {"reasoning_tokens": 290}});
    let (_, usage) = fold(&stream(&quirks, &[sse_of(&[last]).as_bytes()]).unwrap());
    assert_eq!(
        (&usage["completion_tokens"], &usage["total_tokens"]),
        (&291.into(), &303.into())
    );
}

#[test]
fn parallel_calls_that_repeat_an_index_or_have_none_stay_apart() {
    for calls in [
        json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}, {"index": 0, "id": "b", "function": {"name": "g", "arguments": "{}"}}]),
        json!([{"id": "a", "function": {"name": "f", "arguments": "{}"}}, {"id": "b", "function": {"name": "g", "arguments": "{}"}}]),
        json!([{"id": "null", "function": {"name": "f", "arguments": ""}}, {"id": "null", "function": {"name": "g", "arguments": {}}}]),
    ] {
        let text = sse_of(&[chunk(json!({"tool_calls": calls}), Some("tool_calls"))]);
        let (choices, _) = fold(&stream(&Quirks::default(), &[text.as_bytes()]).unwrap());
        let calls = choices[0]["calls"].as_array().unwrap();
        assert_eq!(
            (calls.len(), &calls[0]["name"], &calls[1]["name"]),
            (2, &"f".into(), &"g".into()),
            "{text}"
        );
        assert_eq!(
            (&calls[0]["arguments"], &calls[1]["arguments"]),
            (&"{}".into(), &"{}".into())
        );
        assert_ne!(calls[0]["id"], calls[1]["id"]);
    }
}

#[test]
fn stop_with_calls_is_tool_calls_and_tool_calls_without_calls_is_stop() {
    let call = json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}]});
    for (delta, said, meant) in [
        (call.clone(), "stop", "tool_calls"),
        (json!({"content": "x"}), "tool_calls", "stop"),
        (call, "length", "length"),
    ] {
        let (choices, _) = fold(
            &stream(
                &Quirks::default(),
                &[sse_of(&[chunk(delta, Some(said))]).as_bytes()],
            )
            .unwrap(),
        );
        assert_eq!(choices[0]["finish"], meant);
    }
}

#[test]
fn thinking_parts_become_reasoning() {
    let parts = json!([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "yes"}]);
    let reply = json!({"id": "1", "created": 1, "model": "m", "choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": parts}}]});
    let (choices, _) =
        fold_whole(&whole(&Quirks::default(), reply.to_string().as_bytes()).unwrap());
    assert_eq!(
        (&choices[0]["reasoning"], &choices[0]["content"]),
        (&"hm".into(), &"yes".into())
    );
}

#[test]
fn a_200_that_is_no_answer_is_a_failure() {
    for body in [
        "",
        "{}",
        "{\"choices\":[]}",
        "<html>",
        "{\"error\":{\"message\":\"x\"}}",
        "{\"choices\":[{\"index\":0,\"message\":{\"content\":\"a\"}}]}",
        "{\"choices\":[{\"index\":0,\"message\":{\"content\":\"a\"},\"finish_reason\":\"error\"}]}",
    ] {
        assert!(
            whole(&Quirks::default(), body.as_bytes())
                .unwrap_err()
                .is_retryable,
            "{body}"
        );
    }
}

#[test]
fn the_whole_reply_equals_the_folded_stream() {
    let message = json!({"role": "assistant", "content": "Hi", "reasoning": "r",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}}]});
    let reply = json!({"id": "chatcmpl-1", "created": 5, "model": "m", "service_tier": "default",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 4, "total_tokens": 15}});
    let events = sse_of(&[
        chunk(
            json!({"role": "assistant", "content": "Hi", "reasoning": "r"}),
            None,
        ),
        chunk(
            json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{\"a\""}}]}),
            None,
        ),
        chunk(
            json!({"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]}),
            Some("tool_calls"),
        ),
        usage(),
    ]);
    let reply = whole(&Quirks::default(), reply.to_string().as_bytes()).unwrap();
    assert_eq!(
        fold_whole(&reply),
        fold(&stream(&Quirks::default(), &[events.as_bytes()]).unwrap())
    );
    assert_eq!(
        (&reply["id"], &reply["model"], &reply["service_tier"]),
        (
            &"chatcmpl-1".into(),
            &"here/model".into(),
            &"default".into()
        )
    );
}

/// Contract: model-gateway 2.1 n 2
/// Contract: model-gateway 6 1
#[test]
fn choices_of_one_stream_keep_apart() {
    let piece = |index: u32, delta: Value, finish: Option<&str>| json!({"id": "x", "created": 1, "choices": [{"index": index, "delta": delta, "finish_reason": finish}]});
    let text = sse_of(&[
        piece(1, json!({"role": "assistant", "content": "b"}), None),
        piece(0, json!({"role": "assistant", "content": "a"}), None),
        piece(1, json!({}), Some("stop")),
        piece(0, json!({"content": "A"}), Some("length")),
    ]);
    let (choices, _) = fold(&stream(&Quirks::default(), &[text.as_bytes()]).unwrap());
    assert_eq!(
        (&choices[0]["content"], &choices[1]["content"]),
        (&"aA".into(), &"b".into())
    );
    assert_eq!(
        (&choices[0]["finish"], &choices[1]["finish"]),
        (&"length".into(), &"stop".into())
    );
}

#[test]
fn values_over_several_lines_stay_in_one_event() {
    let body = br#"{"id": "c", "system_fingerprint": ["a",
        "b"], "choices": [{"index": 0, "finish_reason": "stop", "logprobs": {
        "content": []}, "message": {"role": "assistant", "content": "Hi", "annotations": [{"a":
        1}], "unknown": {
        }}}]}"#;
    let whole = [&body[..]];
    let several = format!(
        "data: {}\n\n",
        str::from_utf8(body).unwrap().replace('\n', "\ndata: ")
    );
    let several = several.replace("\"message\"", "\"delta\"");
    for (head, pieces) in [
        (&replay::WHOLE, whole),
        (&replay::EVENTS, [several.as_bytes()]),
    ] {
        let mut sink = ChunkWriter::new(envelope(), true);
        let quirks = Quirks::default();
        replay::feed(&OPENAI, &target(&quirks), head, pieces, &mut sink).unwrap();
        let out = String::from_utf8(sink.take().into()).unwrap();
        assert!(out.contains("system_fingerprint") && out.contains("annotations"));
        for event in out.split_terminator("\n\n") {
            let data = event.strip_prefix("data: ").unwrap();
            serde_json::from_str::<Value>(data).unwrap();
            assert!(!data.contains(['\n', '\r']), "{data}");
        }
    }
}
