#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use serde_json::{Value, json};

use super::*;
use crate::fault::Fault;
use crate::models::front::Front;
use crate::models::fronts::chat_completions::ChatCompletions;
use crate::models::fronts::messages::Messages;
use crate::models::wires::tests::replay;
use crate::models::wires::{Failure, FailureKind, Quirks, Target};

fn target(quirks: &Quirks) -> Target<'_> {
    let told = replay::told(&COHERE, None, &[]);
    Target {
        parameters: &told.parameters,
        thinking: &told.thinking,
        ..Target::plain("cohere", "command-x", quirks)
    }
}

fn fold(text: &str, piece: usize) -> Result<Value, Failure> {
    let quirks = Quirks::default();
    replay::fold(&COHERE, &target(&quirks), text, piece)
}

fn whole(body: &Value) -> Result<Value, Failure> {
    let quirks = Quirks::default();
    replay::whole(&COHERE, &target(&quirks), body)
}

/// What goes up for a request.
fn sent_by(front: &'static dyn Front, request: &Value) -> Result<Value, Fault> {
    let quirks = Quirks::default();
    let request = front.parse(request.to_string().into()).unwrap();
    let encoded = COHERE.encode(&request, &target(&quirks))?;
    let operation = request.payload.operation();
    let head = COHERE.head(operation, request.is_stream, "m", &quirks);
    assert_eq!(head.unwrap().path, "/v2/chat");
    Ok(serde_json::from_slice(&encoded.concat()).unwrap())
}

fn sent(request: &Value) -> Result<Value, Fault> {
    sent_by(&ChatCompletions, request)
}

fn sse_of(events: &[Value]) -> String {
    let said = events.iter().map(|event| {
        let kind = event["type"].as_str().unwrap();
        format!("event: {kind}\ndata: {event}\n\n")
    });
    said.collect()
}

fn content(kind: &str, index: u64, part: Value) -> Value {
    json!({"type": kind, "index": index, "delta": {"message": {"content": part}}})
}

fn call(kind: &str, index: u64, call: Value) -> Value {
    json!({"type": kind, "index": index, "delta": {"message": {"tool_calls": call}}})
}

fn citation() -> Value {
    json!({"start": 0, "end": 5, "text": "Hello", "content_index": 1, "type": "TEXT_CONTENT", "sources": [
        {"type": "document", "id": "d:0", "document": {"id": "d", "title": "Page", "url": "https://a.example/x", "snippet": "s"}},
        {"type": "tool", "id": "t:0", "tool_output": {"content": "no page"}}]})
}

fn usage() -> Value {
    json!({"billed_units": {"input_tokens": 12, "output_tokens": 7}, "tokens": {"input_tokens": 507.0, "output_tokens": 10}, "cached_tokens": 448})
}

fn events() -> Vec<Value> {
    vec![
        json!({"id": "3", "type": "message-start", "delta": {"message": {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}}}),
        json!({"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "I will "}}}),
        json!({"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "look.\n"}}}),
        content(
            "content-start",
            0,
            json!({"type": "thinking", "thinking": ""}),
        ),
        content("content-delta", 0, json!({"thinking": "hm"})),
        json!({"type": "content-end", "index": 0}),
        content("content-start", 1, json!({"type": "text", "text": ""})),
        content("content-delta", 1, json!({"text": "Hel"})),
        content("content-delta", 1, json!({"text": "lo\n"})),
        json!({"type": "citation-start", "index": 0, "delta": {"message": {"citations": citation()}}}),
        json!({"type": "citation-end", "index": 0}),
        json!({"type": "content-end", "index": 1}),
        call(
            "tool-call-start",
            0,
            json!({"id": "f_1", "type": "function", "function": {"name": "f", "arguments": ""}}),
        ),
        call(
            "tool-call-delta",
            0,
            json!({"function": {"arguments": "{\"a\""}}),
        ),
        call(
            "tool-call-delta",
            0,
            json!({"function": {"arguments": ":1}"}}),
        ),
        json!({"type": "tool-call-end", "index": 0}),
        call(
            "tool-call-start",
            1,
            json!({"id": "g_1", "type": "function", "function": {"name": "g", "arguments": ""}}),
        ),
        json!({"type": "tool-call-end", "index": 1}),
        json!({"type": "unheard-of", "delta": 5, "message": {}}),
        json!({"type": "message-end", "delta": {"finish_reason": "TOOL_CALL", "usage": usage()}}),
    ]
}

#[test]
fn the_folded_stream_equals_the_whole_reply_however_it_is_cut() {
    let mut events = events();
    let unheard = events.len() - 2;
    events[unheard]["delta"] = json!({});
    let body = json!({"id": "3", "finish_reason": "TOOL_CALL", "usage": usage(), "message": {"role": "assistant", "tool_plan": "I will look.\n",
        "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Hello\n"}], "citations": [citation()],
        "tool_calls": [{"id": "f_1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}},
            {"id": "g_1", "type": "function", "function": {"name": "g", "arguments": "null"}}]}});
    let expected = whole(&body).unwrap();
    let message = &expected["choices"][0]["message"];
    assert_eq!(message["content"], "Hello\n");
    assert_eq!(message["reasoning"], "I will look.\nhm");
    let page = &message["annotations"][0]["url_citation"];
    assert_eq!(
        (&page["url"], &page["start_index"], &page["end_index"]),
        (&"https://a.example/x".into(), &0.into(), &5.into())
    );
    assert_eq!(message["annotations"].as_array().unwrap().len(), 1);
    let calls = message["tool_calls"].as_array().unwrap();
    let arguments: Vec<&str> = calls
        .iter()
        .map(|call| call["function"]["arguments"].as_str().unwrap())
        .collect();
    assert_eq!(arguments, ["{\"a\":1}", "{}"]);
    assert_eq!(expected["choices"][0]["finish_reason"], "tool_calls");
    let usage = &expected["usage"];
    assert_eq!(usage["prompt_tokens"], 507);
    assert_eq!(usage["completion_tokens"], 10);
    assert_eq!(usage["prompt_tokens_details"]["cached_tokens"], 448);
    for text in [sse_of(&events), sse_of(&events).replace('\n', "\r\n")] {
        for piece in 1..80 {
            assert_eq!(fold(&text, piece).unwrap(), expected, "{piece}");
        }
    }
}

#[test]
fn a_stream_without_its_end_is_truncated() {
    let mut events = events();
    let unheard = events.len() - 2;
    events.remove(unheard);
    for end in 0..events.len() {
        let ended = fold(&sse_of(&events[..end]), 64);
        assert_eq!(ended.unwrap_err().kind, FailureKind::Truncated, "{end}");
    }
}

#[test]
fn an_end_that_is_an_error_is_a_failure() {
    for (reason, status) in [("ERROR", 500), ("TIMEOUT", 504)] {
        let end = json!({"type": "message-end", "delta": {"finish_reason": reason, "error": "no"}});
        let failure = fold(&sse_of(&[end]), 64).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Status(status), "{reason}");
        assert!(failure.is_retryable);
    }
    let end = json!({"type": "message-end", "delta": {}});
    assert_eq!(
        fold(&sse_of(&[end]), 64).unwrap_err().kind,
        FailureKind::Malformed
    );
    let error = "data: {\"message\":\"too many requests\"}\n\n";
    assert_eq!(fold(error, 64).unwrap_err().kind, FailureKind::Status(429));
}

#[test]
fn a_200_without_an_answer_is_a_failure() {
    let failure = whole(&json!({"id": "1", "message": "rate limited"})).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Status(429));
    for body in [
        json!({}),
        json!({"message": {}}),
        json!({"finish_reason": "COMPLETE"}),
    ] {
        assert_eq!(whole(&body).unwrap_err().kind, FailureKind::Malformed);
    }
    for (reason, finish) in [
        ("COMPLETE", "stop"),
        ("STOP_SEQUENCE", "stop"),
        ("MAX_TOKENS", "length"),
        ("ERROR_TOXIC", "content_filter"),
    ] {
        let body = json!({"finish_reason": reason, "message": {"content": [{"type": "text", "text": "Hi"}]}});
        let answer = whole(&body).unwrap();
        assert_eq!(answer["choices"][0]["finish_reason"], finish, "{reason}");
    }
}

fn function(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "description": "d", "parameters": {"type": "object", "properties": {}}, "strict": true}})
}

#[test]
fn a_conversation_with_tools_is_said_as_the_wire_wants_it() {
    let used = |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}});
    let body = sent(&json!({"model": "m", "stream": true, "stop": ["END"], "user": "u", "temperature": 1.7, "top_p": 1, "seed": 5, "max_tokens": 64,
        "frequency_penalty": -1, "presence_penalty": 0.5, "messages": [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}}]},
        {"role": "assistant", "content": "I look.", "tool_calls": [used("a/1"), used("b")]},
        {"role": "tool", "tool_call_id": "b", "content": "two"},
        {"role": "tool", "tool_call_id": "a/1", "content": [{"type": "text", "text": "one"}]},
        {"role": "system", "content": "Go on."}, {"role": "user", "content": "Go on"}],
        "tools": [function("f"), function("g")], "tool_choice": "required"}))
    .unwrap();
    assert_eq!(
        body["messages"],
        json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}}]},
            {"role": "assistant", "content": "I look.", "tool_calls": [used("a_1"), used("b")]},
            {"role": "tool", "tool_call_id": "b", "content": "two"},
            {"role": "tool", "tool_call_id": "a_1", "content": "one"},
            {"role": "system", "content": "Go on."}, {"role": "user", "content": "Go on"}
        ])
    );
    let numbers = [
        "temperature",
        "p",
        "seed",
        "max_tokens",
        "frequency_penalty",
        "presence_penalty",
    ];
    let numbers = numbers.map(|key| body[key].as_f64().unwrap());
    assert_eq!(numbers, [1.0, 0.99, 5.0, 64.0, 0.0, 0.5]);
    assert_eq!(body["stop_sequences"], json!(["END"]));
    assert_eq!(body["tool_choice"], "REQUIRED");
    assert_eq!(
        (&body["strict_tools"], &body["stream"], &body["model"]),
        (&true.into(), &true.into(), &"command-x".into())
    );
    let parameters = json!({"type": "object", "properties": {}});
    assert_eq!(
        body["tools"][1],
        json!({"type": "function", "function": {"name": "g", "description": "d", "parameters": parameters}})
    );
}

#[test]
fn a_forced_function_is_the_only_one() {
    let hi = json!([{"role": "user", "content": "Hi"}]);
    let forced = json!({"type": "function", "function": {"name": "g"}});
    let body = sent(&json!({"model": "m", "messages": hi, "tools": [function("f"), function("g")], "tool_choice": forced})).unwrap();
    assert_eq!(body["tool_choice"], "REQUIRED");
    assert_eq!(body["tools"].as_array().unwrap().len(), 1);
    assert_eq!(body["tools"][0]["function"]["name"], "g");
    let body = sent(
        &json!({"model": "m", "messages": hi, "tools": [function("f")], "tool_choice": "none"}),
    )
    .unwrap();
    assert_eq!(body["tool_choice"], "NONE");
}

#[test]
fn reasoning_of_its_maker_goes_back_as_the_plan_of_its_calls() {
    let seal = |maker: &str| replay::seal(Dialect::ChatV2, maker, "");
    let thought = |maker: &str| json!({"type": "thinking", "thinking": "I will look.", "signature": seal(maker)});
    let request = json!({"model": "m", "max_tokens": 64, "messages": [{"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [thought("cohere/command-x"), thought("other/x"), {"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "is_error": true, "content": "no"}]},
        {"role": "assistant", "content": [thought("cohere/command-x"), {"type": "text", "text": "Sorry"}]},
        {"role": "user", "content": "Again"}],
        "tools": [{"name": "f", "input_schema": {"type": "object"}}]});
    let body = sent_by(&Messages, &request).unwrap();
    assert_eq!(body["messages"][1]["tool_plan"], "I will look.");
    assert_eq!(
        body["messages"][2],
        json!({"role": "tool", "tool_call_id": "t", "content": "Error: no"})
    );
    assert_eq!(
        body["messages"][3],
        json!({"role": "assistant", "content": "Sorry"})
    );
}

#[test]
fn thinking_has_a_budget_or_is_off() {
    let hi = json!([{"role": "user", "content": "Hi"}]);
    let thinking = |request: Value| sent(&request).unwrap()["thinking"].clone();
    let high = thinking(json!({"model": "m", "messages": hi, "reasoning_effort": "high"}));
    assert_eq!(high["type"], "enabled");
    assert!(high["token_budget"].as_u64().unwrap() > 1000);
    let off = thinking(json!({"model": "m", "messages": hi, "reasoning_effort": "none"}));
    assert_eq!(off, json!({"type": "disabled"}));
    assert_eq!(thinking(json!({"model": "m", "messages": hi})), Value::Null);
}

#[test]
fn the_form_of_an_answer_has_its_schema() {
    let hi = json!([{"role": "user", "content": "Hi"}]);
    let schema =
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
    let form = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema}});
    let body = sent(&json!({"model": "m", "messages": hi, "response_format": form})).unwrap();
    assert_eq!(
        body["response_format"],
        json!({"type": "json_object", "json_schema": schema})
    );
    let any = json!({"type": "json_object"});
    let body = sent(&json!({"model": "m", "messages": hi, "response_format": any})).unwrap();
    assert_eq!(body["response_format"], any);
}

#[test]
fn what_the_wire_cannot_say_is_refused_by_its_place() {
    for part in [
        json!({"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}}),
        json!({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}}),
        json!({"type": "image_url", "image_url": {"url": "ftp://x/y.png"}}),
    ] {
        let request = json!({"model": "m", "messages": [{"role": "user", "content": [part]}]});
        let fault = sent(&request).unwrap_err();
        assert_eq!(fault.param.as_deref(), Some("messages[0].content[0]"));
    }
    let request = json!({"model": "m", "messages": [{"role": "user", "content": ""}]});
    let fault = sent(&request).unwrap_err();
    assert_eq!(fault.param.as_deref(), Some("messages[0].content"));
}

fn file(name: &str, url: &str) -> Value {
    json!({"type": "file", "file": {"filename": name, "file_data": url}})
}

/// Contract: model-gateway 2.3 file
#[test]
fn files_of_texts_are_documents_beside_the_messages() {
    let text = json!({"type": "text", "text": "Read"});
    let chat = |parts: Value, more: Value| {
        let mut body = json!({"model": "m", "messages": [{"role": "user", "content": parts}]});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        sent(&body)
    };
    let files = [
        file("a.txt", "data:text/plain;base64,aGk="),
        file("b.md", "data:text/markdown;base64,w6k="),
    ];
    let body = chat(json!([files[0], text, files[1]]), json!({})).unwrap();
    assert_eq!(
        body["messages"],
        json!([{"role": "user", "content": "Read"}])
    );
    let documents = json!([{"id": "file-0", "data": {"title": "a.txt", "text": "hi"}},
        {"id": "file-1", "data": {"title": "b.md", "text": "\u{e9}"}}]);
    assert_eq!(body["documents"], documents);
    let plain = chat(json!([text]), json!({})).unwrap();
    assert_eq!(plain.get("documents"), None);
    for (parts, more, place) in [
        (json!([files[0]]), json!({}), "messages[0].content"),
        (
            json!([text, file("a", "data:text/plain;base64,/w==")]),
            json!({}),
            "messages[0].content[1]",
        ),
        (
            json!([text, file("a", "data:application/pdf;base64,aGk=")]),
            json!({}),
            "messages[0].content[1]",
        ),
        (
            json!([text, files[0]]),
            json!({"response_format": {"type": "json_object"}}),
            "messages[0].content[1]",
        ),
    ] {
        let fault = chat(parts, more).unwrap_err();
        let param = fault.param.unwrap();
        assert!(param.starts_with(place), "{param}");
    }
}
