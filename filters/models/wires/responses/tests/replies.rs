//! Replies, whole and as events.

use super::*;
use crate::models::dialects::Dialect;
use crate::models::wires::failure::FailureKind;
use crate::models::wires::tests::replay;

fn whole(body: &Value) -> Result<Value, Failure> {
    replay::whole(&RESPONSES, &target(&Quirks::default()), body)
}

fn fold(text: &str, piece: usize) -> Result<Value, Failure> {
    replay::fold(&RESPONSES, &target(&Quirks::default()), text, piece)
}

fn fold_events(events: &[Value]) -> Result<Value, Failure> {
    fold(&sse_of(events), 4096)
}

fn message(answer: &Value) -> &Value {
    &answer["choices"][0]["message"]
}

/// Contract: model-gateway 2.5 choices[].message
/// Contract: model-gateway 2.5 usage.prompt_tokens_details
#[test]
fn a_whole_reply_is_said_in_the_words_of_the_convention() {
    let answer = whole(&response("completed", output())).unwrap();
    let said = message(&answer);
    assert_eq!(said["content"], "I look\nit up 😀.Done");
    assert_eq!(said["reasoning"], "First \"é\"\n\nsecond");
    assert_eq!(
        said["tool_calls"],
        json!([
            {"id": "call_a", "type": "function", "function": {"name": "f", "arguments": "{\"a\": \"\\u00e9\"}"}},
            {"id": "call_b", "type": "function", "function": {"name": "g", "arguments": "{}"}},
        ])
    );
    assert_eq!(
        said["reasoning_details"],
        json!([
            {"type": "reasoning.encrypted", "format": "openai-responses-v1", "index": 0, "id": "rs_1",
             "summary": output()[0]["summary"], "data": replay::seal(Dialect::Responses, "here/gpt-x", "gAAA+/==")},
            {"type": "reasoning.encrypted", "format": "openai-responses-v1", "index": 2, "id": "rs_2",
             "summary": [], "data": replay::seal(Dialect::Responses, "here/gpt-x", "gBBB")},
        ])
    );
    assert_eq!(
        said["message_items"],
        json!([
            {"text": "I look\nit up 😀.", "phase": "commentary", "preceding_tool_calls": 0},
            {"text": "Done", "phase": "final_answer", "preceding_tool_calls": 2},
        ])
    );
    assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(answer["service_tier"], "flex");
    assert_eq!(
        (&answer["id"], &answer["created"]),
        (&"chatcmpl-made".into(), &5.into())
    );
    let usage = &answer["usage"];
    assert_eq!(
        (
            &usage["prompt_tokens"],
            &usage["completion_tokens"],
            &usage["total_tokens"]
        ),
        (&30.into(), &20.into(), &50.into())
    );
    assert_eq!(usage["prompt_tokens_details"]["cached_tokens"], 12);
    assert_eq!(usage["prompt_tokens_details"]["cache_write_tokens"], 5);
    assert_eq!(usage["completion_tokens_details"]["reasoning_tokens"], 8);
}

#[test]
fn the_folded_stream_equals_the_whole_reply_however_it_is_cut() {
    for response in [
        response("completed", output()),
        response("incomplete", output()),
    ] {
        let expected = whole(&response).unwrap();
        let text = sse_of(&events_of(&response));
        for text in [text.clone(), text.replace('\n', "\r\n")] {
            for piece in 1..80 {
                assert_eq!(fold(&text, piece).unwrap(), expected, "{piece}");
            }
        }
    }
}

#[test]
fn a_stream_split_anywhere_is_the_same_and_a_beginning_of_it_is_no_success() {
    let response = response("completed", output());
    let expected = whole(&response).unwrap();
    let mut events = events_of(&response);
    // What is told twice would only make the stream longer.
    events.retain(|event| event["type"] != "response.in_progress");
    for event in &mut events {
        if let Some(response) = event.get_mut("response").and_then(Value::as_object_mut) {
            response.retain(|key, _| {
                matches!(&**key, "created_at" | "status" | "service_tier" | "usage")
            });
        }
    }
    let text = sse_of(&events);
    let quirks = Quirks::default();
    let target = target(&quirks);
    let end = text.trim_end().len();
    for at in 0..text.len() {
        let (head, tail) = text.as_bytes().split_at(at);
        let pieces = replay::fold_pieces(&RESPONSES, &target, [head, tail]);
        assert_eq!(pieces.unwrap(), expected, "split at {at}");
        let beginning = replay::fold_pieces(&RESPONSES, &target, [head]);
        assert_eq!(beginning.is_ok(), at >= end, "cut at {at}");
    }
}

#[test]
fn a_whole_reply_cut_short_is_no_success() {
    let body = response("completed", output()).to_string();
    let quirks = Quirks::default();
    for at in 0..body.len() {
        let piece = body.as_bytes().get(..at).unwrap();
        assert!(
            replay::whole_bytes(&RESPONSES, &target(&quirks), piece).is_err(),
            "{at}"
        );
    }
}

#[test]
fn an_answer_may_come_without_its_pieces() {
    let response = response("completed", output());
    let expected = whole(&response).unwrap();
    let all = events_of(&response);
    let only = |kept: &[&str]| {
        let is_kept = |event: &&Value| {
            kept.iter()
                .any(|kind| event["type"] == format!("response.{kind}"))
        };
        let kept: Vec<Value> = all.iter().filter(is_kept).cloned().collect();
        fold_events(&kept).unwrap()
    };
    assert_eq!(
        only(&["created", "output_item.done", "completed"]),
        expected
    );
    assert_eq!(only(&["completed"]), expected);
    let mut silent = all.clone();
    silent.retain(|event| !event["type"].as_str().unwrap().ends_with(".delta"));
    assert_eq!(fold_events(&silent).unwrap(), expected);
}

#[test]
fn unknown_events_and_items_say_nothing() {
    let call = json!({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}});
    let mut items = output();
    let last = items.as_array().unwrap().len();
    items.as_array_mut().unwrap().insert(last - 1, call);
    let response = response("completed", items);
    let expected = whole(&super::response("completed", output())).unwrap();
    assert_eq!(whole(&response).unwrap(), expected);
    let mut events = events_of(&response);
    events.insert(3, json!({"type": "keepalive"}));
    events.insert(
        4,
        json!({"type": "response.steer.accepted", "delta": "no text", "output_index": 0}),
    );
    assert_eq!(fold_events(&events).unwrap(), expected);
}

#[test]
fn reasoning_that_nothing_of_ours_follows_is_not_handed_out() {
    let reasoning =
        |id: &str| json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": "g"});
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed"});
    let text = json!({"type": "message", "content": [{"type": "output_text", "text": "Hi", "annotations": []}]});
    let output = json!([
        reasoning("rs_1"),
        search,
        reasoning("rs_2"),
        reasoning("rs_3"),
        text,
        reasoning("rs_4")
    ]);
    let response = response("incomplete", output);
    let answer = whole(&response).unwrap();
    let details = message(&answer)["reasoning_details"].as_array().unwrap();
    let ids: Vec<&Value> = details.iter().map(|details| &details["id"]).collect();
    assert_eq!(ids, ["rs_2", "rs_3"]);
    assert_eq!(fold_events(&events_of(&response)).unwrap(), answer);
}

#[test]
fn the_end_has_its_reason() {
    let text = json!([{"type": "message", "content": [{"type": "output_text", "text": "Hi", "annotations": []}]}]);
    let call =
        json!([{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{\"a\":"}]);
    for (status, reason, output, finish) in [
        ("completed", None, &text, "stop"),
        ("completed", None, &call, "tool_calls"),
        ("incomplete", Some("max_output_tokens"), &text, "length"),
        ("incomplete", Some("max_output_tokens"), &call, "length"),
        (
            "incomplete",
            Some("max_output_tokens"),
            &json!([]),
            "length",
        ),
        (
            "incomplete",
            Some("content_filter"),
            &text,
            "content_filter",
        ),
        ("incomplete", Some("steered"), &text, "length"),
        ("incomplete", None, &text, "length"),
    ] {
        let mut response = response(status, output.clone());
        response["incomplete_details"] = json!({ "reason": reason });
        for answer in [whole(&response), fold_events(&events_of(&response))] {
            assert_eq!(
                answer.unwrap()["choices"][0]["finish_reason"],
                finish,
                "{status} {reason:?}"
            );
        }
    }
}

#[test]
fn a_refusal_and_reasoning_as_it_is_are_told() {
    let output = json!([
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
        {"type": "message", "content": [{"type": "refusal", "refusal": "I will not"}]},
    ]);
    let response = response("completed", output);
    let answer = whole(&response).unwrap();
    let said = message(&answer);
    assert_eq!(
        (&said["reasoning"], &said["refusal"]),
        (&"hm".into(), &"I will not".into())
    );
    assert_eq!(said["content"], "");
    assert!(
        said.get("reasoning_details").is_none(),
        "nothing can go back"
    );
    assert_eq!(fold_events(&events_of(&response)).unwrap(), answer);
}

#[test]
fn annotations_are_nested_and_move_with_their_text() {
    let citation = |start: u64| json!({"type": "url_citation", "url": "https://x.example", "title": "X \"y\"", "start_index": start, "end_index": start + 2});
    let output = json!([
        {"type": "message", "content": [{"type": "output_text", "text": "é😀b", "annotations": [citation(0)]}]},
        {"type": "message", "content": [{"type": "output_text", "text": "more", "annotations": [{"type": "file_citation"}, citation(1)]}]},
    ]);
    let response = response("completed", output);
    let answer = whole(&response).unwrap();
    let nested = |start: u64| json!({"type": "url_citation", "url_citation": {"url": "https://x.example", "title": "X \"y\"", "start_index": start, "end_index": start + 2}});
    assert_eq!(
        message(&answer)["annotations"],
        json!([nested(0), nested(4)])
    );
    assert_eq!(fold_events(&events_of(&response)).unwrap(), answer);
}

#[test]
fn a_200_that_is_no_answer_is_a_failure_that_the_next_provider_may_mend() {
    let mut failed = response("failed", json!([]));
    failed["error"] = json!({"code": "rate_limit_exceeded", "message": "slow down"});
    let mut none = response("completed", json!([]));
    none.as_object_mut().unwrap().remove("output");
    for (body, kind) in [
        (failed, FailureKind::Status(429)),
        (response("failed", json!([])), FailureKind::Status(502)),
        (response("cancelled", output()), FailureKind::Status(502)),
        (response("in_progress", output()), FailureKind::Malformed),
        (response("queued", json!([])), FailureKind::Malformed),
        (response("completed", json!([])), FailureKind::Malformed),
        (none, FailureKind::Malformed),
        (json!({}), FailureKind::Malformed),
        (json!([]), FailureKind::Malformed),
        (
            json!({"error": {"code": "server_error", "message": "down"}}),
            FailureKind::Status(500),
        ),
    ] {
        let failure = whole(&body).unwrap_err();
        assert_eq!((failure.kind, failure.is_retryable), (kind, true), "{body}");
    }
}

#[test]
fn an_error_as_an_event_is_a_failure_in_both_of_its_shapes() {
    let response = response("completed", output());
    let begun = &events_of(&response)[..5];
    let mut failed = response.clone();
    failed["status"] = "failed".into();
    failed["error"] = json!({"code": "server_error", "message": "boom"});
    for (event, status) in [
        (
            json!({"type": "error", "code": "rate_limit_exceeded", "message": "slow down", "param": null}),
            429,
        ),
        (
            json!({"type": "error", "code": null, "message": "boom", "param": null}),
            500,
        ),
        (
            json!({"type": "error", "error": {"type": "insufficient_quota", "code": "insufficient_quota", "message": "You exceeded your current quota"}}),
            429,
        ),
        (json!({"type": "response.failed", "response": failed}), 500),
    ] {
        let events = [begun, std::slice::from_ref(&event)].concat();
        let failure = fold_events(&events).unwrap_err();
        assert_eq!(
            (failure.kind, failure.is_retryable),
            (FailureKind::Status(status), true),
            "{event}"
        );
    }
}

#[test]
fn a_stream_without_its_terminal_event_is_truncated() {
    let events = events_of(&response("completed", output()));
    for end in 0..events.len() - 1 {
        let text = sse_of(&events[..end]);
        for text in [text.clone(), text + "data: [DONE]\n\n"] {
            assert_eq!(
                fold(&text, 64).unwrap_err().kind,
                FailureKind::Truncated,
                "{end}"
            );
        }
    }
    let marked = sse_of(&events) + "data: [DONE]\n\n";
    assert!(fold(&marked, 64).is_ok());
}

#[test]
fn a_broken_event_is_malformed_and_never_silence() {
    let text = sse_of(&events_of(&response("completed", output())));
    for broken in [
        "data: {\"type\": \"response.output_text.delta\", \"delta\": \"a\n\n",
        "data: {\"type\": \"response.output_item.done\", \"item\": {\"content\": [1,}}\n\n",
        "data: nonsense\n\n",
    ] {
        let failure = fold(&format!("{broken}{text}"), 64).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Malformed, "{broken}");
    }
}

#[test]
fn refusals_are_those_of_the_family() {
    let body = json!({"error": {"message": "Unknown parameter: 'input[1].name'.", "type": "invalid_request_error", "param": "input[1].name", "code": "unknown_parameter"}});
    let failure = RESPONSES
        .classify(400, body.to_string().as_bytes())
        .scrubbed(&[""; 0]);
    assert!(!failure.is_retryable);
    assert_eq!(failure.param.as_deref(), Some("input[1].name"));
    let empty = json!({"error": {"message": "You exceeded your current quota", "type": "insufficient_quota", "code": "insufficient_quota"}});
    let failure = RESPONSES.classify(429, empty.to_string().as_bytes());
    assert!(failure.is_retryable && failure.blames_key);
}
