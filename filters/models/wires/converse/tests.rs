#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use serde_json::{Value, json};

use super::*;
use crate::event_frames::written::{event, exception};
use crate::fault::Fault;
use crate::models::front::Front;
use crate::models::fronts::chat_completions::ChatCompletions;
use crate::models::fronts::messages::Messages;
use crate::models::routing::thinking::ThinkingControl;
use crate::models::wires::tests::replay;
use crate::models::wires::{EventFraming, Failure, FailureKind, Quirks, ReplyHead, Target};

const FRAMES: ReplyHead = ReplyHead {
    is_by_quota: false,
    status: 200,
    events: Some(EventFraming::Frames),
    file: None,
    prompt_tokens: None,
};

fn target<'a>(quirks: &'a Quirks, control: ThinkingControl) -> Target<'a> {
    let told = replay::told(&CONVERSE, Some(control), &["none", "low", "high"]);
    Target {
        parameters: &told.parameters,
        thinking: &told.thinking,
        ..Target::plain("bedrock", "us.anthropic.claude-x-v1:0", quirks)
    }
}

fn fold(pieces: &[&[u8]]) -> Result<Value, Failure> {
    let quirks = Quirks::default();
    let target = target(&quirks, ThinkingControl::Budget);
    replay::fold_under(&CONVERSE, &target, &FRAMES, pieces.iter().copied())
}

fn whole(body: &Value) -> Result<Value, Failure> {
    let quirks = Quirks::default();
    let target = target(&quirks, ThinkingControl::Budget);
    replay::whole(&CONVERSE, &target, body)
}

/// What goes up for a request.
fn sent_by(
    front: &'static dyn Front,
    request: &Value,
    control: ThinkingControl,
) -> Result<Value, Fault> {
    let quirks = Quirks::default();
    let request = front.parse(request.to_string().into()).unwrap();
    let encoded = CONVERSE.encode(&request, &target(&quirks, control))?;
    Ok(serde_json::from_slice(&encoded.concat()).unwrap())
}

fn sent(request: &Value) -> Result<Value, Fault> {
    sent_by(&ChatCompletions, request, ThinkingControl::Budget)
}

fn events() -> Vec<(&'static str, Value)> {
    vec![
        ("messageStart", json!({"role": "assistant", "p": "abc"})),
        (
            "contentBlockDelta",
            json!({"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "hm \"é\""}}}),
        ),
        (
            "contentBlockDelta",
            json!({"contentBlockIndex": 0, "delta": {"reasoningContent": {"signature": "sig"}}}),
        ),
        ("contentBlockStop", json!({"contentBlockIndex": 0})),
        (
            "contentBlockDelta",
            json!({"contentBlockIndex": 1, "delta": {"text": "Hel"}}),
        ),
        (
            "contentBlockDelta",
            json!({"contentBlockIndex": 1, "delta": {"text": "lo\n"}}),
        ),
        ("contentBlockStop", json!({"contentBlockIndex": 1})),
        (
            "contentBlockStart",
            json!({"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "tooluse_1", "name": "f"}}}),
        ),
        (
            "contentBlockDelta",
            json!({"contentBlockIndex": 2, "delta": {"toolUse": {"input": "{\"a\""}}}),
        ),
        (
            "contentBlockDelta",
            json!({"contentBlockIndex": 2, "delta": {"toolUse": {"input": ":1}"}}}),
        ),
        ("contentBlockStop", json!({"contentBlockIndex": 2})),
        (
            "contentBlockStart",
            json!({"contentBlockIndex": 3, "start": {"toolUse": {"toolUseId": "tooluse_2", "name": "g"}}}),
        ),
        (
            "contentBlockDelta",
            json!({"contentBlockIndex": 3, "delta": {"toolUse": {"input": ""}}}),
        ),
        ("contentBlockStop", json!({"contentBlockIndex": 3})),
        ("unheardOf", json!([1])),
        ("messageStop", json!({"stopReason": "tool_use"})),
        (
            "metadata",
            json!({"usage": {"inputTokens": 10, "outputTokens": 20, "totalTokens": 38, "cacheReadInputTokens": 5, "cacheWriteInputTokens": 3,
                "cacheDetails": [{"ttl": "5m", "inputTokens": 1}, {"ttl": "1h", "inputTokens": 2}]}, "metrics": {"latencyMs": 5}}),
        ),
    ]
}

fn frames_of(events: &[(&str, Value)]) -> Vec<Vec<u8>> {
    let frame = |(name, data): &(&str, Value)| event(name, data.to_string().as_bytes());
    events.iter().map(frame).collect()
}

#[test]
fn the_folded_stream_equals_the_whole_reply_however_it_is_cut() {
    let body = json!({"output": {"message": {"role": "assistant", "content": [
        {"reasoningContent": {"reasoningText": {"text": "hm \"é\"", "signature": "sig"}}}, {"text": "Hello\n"},
        {"toolUse": {"toolUseId": "tooluse_1", "name": "f", "input": {"a": 1}}}, {"toolUse": {"toolUseId": "tooluse_2", "name": "g", "input": {}}}]}},
        "stopReason": "tool_use", "metrics": {"latencyMs": 5}, "additionalModelResponseFields": null,
        "usage": {"inputTokens": 10, "outputTokens": 20, "totalTokens": 38, "cacheReadInputTokens": 5, "cacheWriteInputTokens": 3,
            "cacheDetails": [{"ttl": "5m", "inputTokens": 1}, {"ttl": "1h", "inputTokens": 2}]}});
    let expected = whole(&body).unwrap();
    let message = &expected["choices"][0]["message"];
    assert_eq!(message["content"], "Hello\n");
    assert_eq!(message["reasoning"], "hm \"é\"");
    let maker = "bedrock/us.anthropic.claude-x-v1:0";
    let sealed = replay::seal(Dialect::Messages, maker, "sig");
    assert_eq!(message["reasoning_details"][0]["signature"], sealed);
    let calls = message["tool_calls"].as_array().unwrap();
    let arguments: Vec<&str> = calls
        .iter()
        .map(|call| call["function"]["arguments"].as_str().unwrap())
        .collect();
    assert_eq!(arguments, ["{\"a\":1}", "{}"]);
    assert_eq!(expected["choices"][0]["finish_reason"], "tool_calls");
    let usage = &expected["usage"];
    assert_eq!(usage["prompt_tokens"], 18);
    assert_eq!(usage["completion_tokens"], 20);
    assert_eq!(usage["prompt_tokens_details"]["cached_tokens"], 5);
    let stream = frames_of(&events()).concat();
    for piece in 1..80 {
        let pieces: Vec<&[u8]> = stream.chunks(piece).collect();
        assert_eq!(fold(&pieces).unwrap(), expected, "{piece}");
    }
    let mut flipped = events();
    let last = flipped.len() - 1;
    flipped.swap(last, last - 1);
    assert_eq!(fold(&[&frames_of(&flipped).concat()]).unwrap(), expected);
}

#[test]
fn a_stream_that_is_cut_anywhere_before_its_stop_is_truncated() {
    let frames = frames_of(&events());
    let stop = frames.len() - 1;
    let whole: Vec<u8> = frames[..stop].concat();
    let before: usize = frames[..stop - 1].iter().map(Vec::len).sum();
    for end in 0..whole.len() {
        let failure = fold(&[&whole[..end]]).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Truncated, "{end} of {before}");
    }
    // The report of usage alone is missing.
    let answer = fold(&[&whole]).unwrap();
    assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls");
}

#[test]
fn a_wrong_checksum_ends_the_answer() {
    let mut stream = frames_of(&events()).concat();
    let at = stream.len() / 2;
    stream[at] ^= 1;
    assert_eq!(fold(&[&stream]).unwrap_err().kind, FailureKind::Malformed);
}

#[test]
fn an_exception_in_the_stream_is_a_failure_of_its_status() {
    for (kind, status) in [
        ("throttlingException", 429),
        ("modelStreamErrorException", 424),
        ("internalServerException", 500),
        ("validationException", 400),
    ] {
        let mut frames = frames_of(&events());
        frames.insert(5, exception(kind, b"{\"message\":\"no\"}"));
        let failure = fold(&[&frames.concat()]).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Status(status), "{kind}");
        assert!(failure.is_retryable);
    }
    // What follows the end is not read.
    let mut frames = frames_of(&events());
    frames.push(exception("throttlingException", b"{}"));
    assert!(fold(&[&frames.concat()]).is_ok());
}

#[test]
fn a_200_without_an_answer_is_a_failure() {
    let unknown = json!({"Output": {"__type": "com.amazon.coral.service#UnknownOperationException"}, "Version": "1.0"});
    let failure = whole(&unknown).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Status(404));
    assert!(failure.is_retryable);
    for body in [
        json!({}),
        json!({"output": {"message": {"content": []}}}),
        json!({"stopReason": "end_turn"}),
        json!({"output": 1, "stopReason": "end_turn"}),
    ] {
        assert_eq!(whole(&body).unwrap_err().kind, FailureKind::Malformed);
    }
}

#[test]
fn every_stop_reason_has_its_finish() {
    let ended = |reason: &str, fields: Value| {
        whole(
            &json!({"output": {"message": {"content": [{"text": "Hi"}]}}, "stopReason": reason,
            "additionalModelResponseFields": fields}),
        )
        .map(|answer| answer["choices"][0]["finish_reason"].clone())
    };
    for (reason, finish) in [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("content_filtered", "content_filter"),
        ("guardrail_intervened", "content_filter"),
        ("unheard_of", "stop"),
    ] {
        for fields in [
            Value::Null,
            json!({"stop_sequence": "x"}),
            json!({"delta": {"stop_sequence": null}}),
            json!({"delta": 5}),
        ] {
            assert_eq!(ended(reason, fields).unwrap(), finish, "{reason}");
        }
    }
    for reason in ["malformed_model_output", "malformed_tool_use"] {
        let failure = ended(reason, Value::Null).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Status(502));
    }
}

fn call(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}})
}

fn function(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "description": "d", "parameters": {"type": "object", "properties": {}}}})
}

#[test]
fn a_conversation_with_tools_is_said_as_the_wire_wants_it() {
    let maker = "bedrock/us.anthropic.claude-x-v1:0";
    let own = replay::seal(Dialect::Messages, maker, "s");
    let other = replay::seal(Dialect::Messages, "other/claude-x", "s");
    let thought = |signature: &str| json!({"type": "reasoning.text", "format": "anthropic-claude-v1", "text": "t", "signature": signature});
    let body = sent(&json!({"model": "m", "stop": ["END", " "], "user": "u", "temperature": 1.7, "top_p": 0.5, "max_tokens": 64,
        "service_tier": "flex", "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Look", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
            {"type": "image_url", "image_url": {"url": "data:image/jpg;base64,AAEC"}},
            {"type": "file", "file": {"filename": "a/b  c.pdf", "file_data": "data:application/pdf;base64,aGk="}}]},
        {"role": "assistant", "content": null, "tool_calls": [call("a/1"), call("b")], "reasoning_details": [thought(&own), thought(&other), thought("bare")]},
        {"role": "tool", "tool_call_id": "b", "content": "two"},
        {"role": "tool", "tool_call_id": "a/1", "content": "one"},
        {"role": "user", "content": "Go on"}],
        "tools": [function("f")], "tool_choice": "required"}))
    .unwrap();
    let point = json!({"cachePoint": {"type": "default", "ttl": "1h"}});
    let used = |id: &str| json!({"toolUse": {"toolUseId": id, "name": "f", "input": {"a": 1}}});
    let result = |id: &str, text: &str| json!({"toolResult": {"toolUseId": id, "content": [{"text": text}]}});
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": [{"text": "Look"}, point, {"image": {"format": "jpeg", "source": {"bytes": "AAEC"}}},
                {"document": {"format": "pdf", "name": "a b c pdf", "source": {"bytes": "aGk="}}}]},
            {"role": "assistant", "content": [{"reasoningContent": {"reasoningText": {"text": "t", "signature": "s"}}}, used("a_1"), used("b")]},
            {"role": "user", "content": [result("b", "two"), result("a_1", "one"), {"text": "Go on"}]},
        ])
    );
    assert_eq!(body["system"], json!([{"text": "Be brief."}]));
    assert_eq!(
        body["inferenceConfig"],
        json!({"maxTokens": 64, "temperature": 1, "topP": 0.5, "stopSequences": ["END"]})
    );
    assert_eq!(
        body["toolConfig"],
        json!({"tools": [{"toolSpec": {"name": "f", "description": "d", "inputSchema": {"json": {"type": "object", "properties": {}}}}}], "toolChoice": {"any": {}}})
    );
    assert_eq!(body["serviceTier"], json!({"type": "flex"}));
    let paths = body["additionalModelResponseFieldPaths"].as_array();
    assert_eq!(paths.unwrap().len(), 2);
    assert!(body.get("model").is_none() && body.get("stream").is_none());
}

#[test]
fn calls_of_the_history_keep_their_functions_where_none_may_be_called() {
    let history = json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": null, "tool_calls": [call("a")]},
        {"role": "tool", "tool_call_id": "a", "content": "one"}]);
    let forbids = |body: &Value| {
        let system = body["system"].as_array().into_iter().flatten();
        let mut texts = system.map(|block| block["text"].as_str().unwrap());
        texts.any(|text| text.contains("Do not call a tool"))
    };
    let none = sent(&json!({"model": "m", "messages": history, "tools": [function("g")], "tool_choice": "none"})).unwrap();
    assert_eq!(none["toolConfig"]["tools"][0]["toolSpec"]["name"], "g");
    assert!(forbids(&none) && none["toolConfig"].get("toolChoice").is_none());
    let unlisted = sent(&json!({"model": "m", "messages": history})).unwrap();
    assert_eq!(unlisted["toolConfig"]["tools"][0]["toolSpec"]["name"], "f");
    assert!(forbids(&unlisted));
    let plain = json!([{"role": "user", "content": "Hi"}]);
    let plain = sent(
        &json!({"model": "m", "messages": plain, "tools": [function("g")], "tool_choice": "none"}),
    )
    .unwrap();
    assert!(plain.get("toolConfig").is_none() && !forbids(&plain));
}

#[test]
fn each_kind_of_reasoning_has_its_words() {
    let hi = json!([{"role": "user", "content": "Hi"}]);
    let fields = |control, effort: &str| {
        let request = json!({"model": "m", "messages": hi, "reasoning_effort": effort});
        let body = sent_by(&ChatCompletions, &request, control).unwrap();
        let most = body["inferenceConfig"]["maxTokens"].as_u64();
        (body["additionalModelRequestFields"].clone(), most)
    };
    let (budget, most) = fields(ThinkingControl::Budget, "high");
    assert_eq!(
        budget,
        json!({"thinking": {"type": "enabled", "budget_tokens": 4000}})
    );
    assert_eq!(most, Some(5000));
    let (adaptive, most) = fields(ThinkingControl::Adaptive, "high");
    assert_eq!(
        adaptive,
        json!({"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "high"}})
    );
    assert_eq!(most, None);
    let (levels, _) = fields(ThinkingControl::Levels, "low");
    assert_eq!(levels, json!({"reasoning_effort": "low"}));
    let (off, _) = fields(ThinkingControl::Budget, "none");
    assert_eq!(off, json!({"thinking": {"type": "disabled"}}));
}

#[test]
fn a_schema_of_the_answer_is_a_text() {
    let request = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}], "response_format": {"type": "json_schema",
        "json_schema": {"name": "n", "description": "d", "schema": {"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}}}}});
    let body = sent(&request).unwrap();
    let form = &body["outputConfig"]["textFormat"];
    assert_eq!(form["type"], "json_schema");
    let own = &form["structure"]["jsonSchema"];
    assert_eq!(
        (&own["name"], &own["description"]),
        (&"n".into(), &"d".into())
    );
    let schema: Value = serde_json::from_str(own["schema"].as_str().unwrap()).unwrap();
    assert_eq!(schema["additionalProperties"], false);
    assert!(schema["properties"]["a"].get("minLength").is_none());
}

#[test]
fn a_result_of_messages_keeps_its_images_and_its_error() {
    let request = json!({"model": "m", "max_tokens": 64, "messages": [{"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "is_error": true, "cache_control": {"type": "ephemeral"}, "content": [
            {"type": "text", "text": "no"}, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAEC"}}]}]}],
        "tools": [{"name": "f", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}}]});
    let body = sent_by(&Messages, &request, ThinkingControl::Budget).unwrap();
    assert_eq!(
        body["messages"][2]["content"],
        json!([{"toolResult": {"toolUseId": "t", "status": "error", "content": [{"text": "no"}, {"image": {"format": "png", "source": {"bytes": "AAEC"}}}]}},
            {"cachePoint": {"type": "default"}}])
    );
    assert_eq!(
        body["toolConfig"]["tools"][1],
        json!({"cachePoint": {"type": "default"}})
    );
}

#[test]
fn what_the_wire_cannot_say_is_refused_by_its_place() {
    for (parts, path) in [
        (
            json!([{"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}}]),
            "messages[0].content[0]",
        ),
        (
            json!([{"type": "image_url", "image_url": {"url": "data:image/tiff;base64,AAEC"}}]),
            "messages[0].content[0]",
        ),
        (
            json!([{"type": "file", "file": {"filename": "a.zip", "file_data": "data:application/zip;base64,aGk="}}]),
            "messages[0].content[0]",
        ),
        (json!(" "), "messages[0].content"),
    ] {
        let request = json!({"model": "m", "messages": [{"role": "user", "content": parts}]});
        let fault = sent(&request).unwrap_err();
        assert_eq!(fault.param.as_deref(), Some(path), "{fault:?}");
    }
}

#[test]
fn names_of_functions_come_back_as_the_client_says_them() {
    let name = "ns.search";
    let request = json!({"model": "m", "max_tokens": 64, "messages": [{"role": "user", "content": "Hi"}],
        "tools": [{"name": "x".repeat(70), "input_schema": {"type": "object"}}]});
    let long = Messages.parse(request.to_string().into()).unwrap();
    let chat = long.front.conversation(&long).unwrap();
    let names = names::ToolNames::read(&chat);
    assert_eq!(names.to_wire(&"x".repeat(70)), "x".repeat(64));
    assert_eq!(names.to_wire(name), name);
    assert_eq!(names.reversed().len(), 1);
}

#[test]
fn what_is_likely_to_be_read_again_is_marked() {
    let long = "word ".repeat(2000);
    let request = json!({"model": "m", "messages": [{"role": "system", "content": long}, {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"}, {"role": "user", "content": "Go on"}]});
    let quirks = Quirks::default();
    let marked = Target {
        auto_cache: Some(1024),
        ..target(&quirks, ThinkingControl::Budget)
    };
    let request = ChatCompletions.parse(request.to_string().into()).unwrap();
    let encoded = CONVERSE.encode(&request, &marked).unwrap().concat();
    let body: Value = serde_json::from_slice(&encoded).unwrap();
    let point = json!({"cachePoint": {"type": "default"}});
    assert_eq!(body["system"][1], point);
    assert_eq!(body["messages"][0]["content"][1], point);
    assert_eq!(body["messages"][2]["content"][1], point);
}
