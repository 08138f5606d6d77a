//! Requests.

use super::*;
use crate::fault::Fault;
use crate::models::dialects::compaction;
use crate::models::fronts::responses::{Compact, Responses};
use crate::models::parameter::Parameter;
use crate::models::routing::parameters::Parameters;
use crate::models::routing::thinking::{Thinking, ThinkingDefaults, WrittenThinking};

#[test]
fn a_plain_request_is_stateless_and_asks_for_its_reasoning() {
    let body = sent(json!({"messages": [{"role": "user", "content": "Hi"}]})).unwrap();
    assert_eq!(
        body,
        json!({"model": "gpt-x", "store": false, "include": ["reasoning.encrypted_content"], "reasoning": {"summary": "auto"},
               "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}]})
    );
    let quirks = Quirks::default();
    let head = RESPONSES.head(Operation::Chat, true, "m", &quirks).unwrap();
    assert_eq!(head.path, "/responses");
    assert!(
        RESPONSES
            .head(Operation::Embeddings, false, "m", &quirks)
            .is_none()
    );
    assert!(RESPONSES.limits(Operation::Embeddings).is_none());
    let (name, value) = RESPONSES.host().credential("sk-secret", &quirks).unwrap();
    assert!(name == "authorization" && value == "Bearer sk-secret" && value.is_sensitive());
}

/// Contract: model-gateway 2.1 response_format
/// Contract: model-gateway 2.1 prompt_cache_key
/// Contract: model-gateway 2.1 prompt_cache_retention
/// Contract: model-gateway 2.1 verbosity
/// Contract: model-gateway 2.1 tools
#[test]
fn every_member_has_its_place() {
    let body = sent(json!({
        "messages": [{"role": "user", "content": "Hi"}], "stream": true, "stream_options": {"include_usage": true},
        "max_tokens": 7, "max_completion_tokens": 50, "temperature": 0.50, "top_p": 0.9, "n": 1, "stop": null, "frequency_penalty": 0,
        "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {"x": {"type": "string"}}}, "strict": true},
                   "cache_control": {"type": "ephemeral"}}, {"type": "function", "function": {"name": "g"}}],
        "tool_choice": {"type": "function", "function": {"name": "f"}}, "parallel_tool_calls": false,
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "description": "d", "schema": {"type": "object"}, "strict": true}},
        "verbosity": "low", "reasoning": {"effort": "high", "context": "all_turns", "mode": "pro"}, "service_tier": "flex",
        "prompt_cache_key": "k\u{e9}", "prompt_cache_retention": "24h", "safety_identifier": "s", "user": "u", "metadata": {"a": "b"},
        "previous_response_id": "resp_of_another", "store": true, "background": true, "conversation": "c", "instructions": "i", "input": [],
    })).unwrap();
    assert_eq!(
        body,
        json!({
            "model": "gpt-x", "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}],
            "store": false, "stream": true, "include": ["reasoning.encrypted_content"], "max_output_tokens": 50, "temperature": 0.5, "top_p": 0.9,
            "tools": [
                {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object", "properties": {"x": {"type": "string"}}}, "strict": true},
                {"type": "function", "name": "g", "parameters": {"type": "object", "properties": {}}, "strict": false},
            ],
            "tool_choice": {"type": "function", "name": "f"}, "parallel_tool_calls": false,
            "text": {"format": {"type": "json_schema", "name": "n", "description": "d", "schema": {"type": "object"}, "strict": true}, "verbosity": "low"},
            "reasoning": {"effort": "high", "summary": "auto", "context": "all_turns", "mode": "pro"}, "service_tier": "flex",
            "prompt_cache_key": "k\u{e9}", "prompt_cache_retention": "24h", "safety_identifier": "s", "user": "u", "metadata": {"a": "b"},
        })
    );
}

/// Contract: model-gateway 2.1 parallel_tool_calls
#[test]
fn members_without_meaning_here_are_left_out() {
    let body = sent(json!({
        "messages": [{"role": "user", "content": "Hi"}], "tools": [], "tool_choice": "auto", "parallel_tool_calls": true,
        "response_format": {"type": "text"}, "verbosity": null, "user": null, "temperature": null, "service_tier": "auto", "reasoning_effort": "none",
    })).unwrap();
    let keys: Vec<&String> = body.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["model", "input", "store", "include", "reasoning"]);
    assert_eq!(body["reasoning"], json!({"effort": "none"}));
    let object = sent(
        json!({"messages": [{"role": "user", "content": "Hi"}], "response_format": {"type": "json_object"}}),
    );
    assert_eq!(
        object.unwrap()["text"],
        json!({"format": {"type": "json_object"}})
    );
}

#[test]
fn what_an_operator_drops_is_left_out() {
    let quirks = Quirks {
        developer_is_system: true,
        ..Quirks::default()
    };
    let messages = json!([{"role": "developer", "content": "Be brief"}]);
    let request =
        json!({"model": "m", "messages": messages, "user": "u", "reasoning_effort": "low"});
    let request = ChatCompletions.parse(request.to_string().into()).unwrap();
    let dropped = [Parameter::User, Parameter::ReasoningSummary];
    let target = Target {
        parameters: &Parameters::plain().without(&dropped, &[]),
        ..target(&quirks)
    };
    let body = RESPONSES.encode(&request, &target).unwrap().concat();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert!(body.get("user").is_none());
    assert_eq!(body["reasoning"], json!({"effort": "low"}));
    assert_eq!(body["input"][0]["role"], "system");
}

#[test]
fn a_model_that_does_not_reason_is_not_asked_to() {
    let quirks = Quirks::default();
    let request = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}], "reasoning_effort": "none"});
    let request = ChatCompletions.parse(request.to_string().into()).unwrap();
    let unwritten = WrittenThinking {
        reasons: Some(false),
        ..WrittenThinking::default()
    };
    let plain = Target {
        thinking: &Thinking::new(&unwritten, &ThinkingDefaults::LEVELS).unwrap(),
        ..target(&quirks)
    };
    let body = RESPONSES.encode(&request, &plain).unwrap().concat();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let keys: Vec<&String> = body.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["model", "input", "store"]);
}

#[test]
fn a_forced_call_that_nobody_honours_is_lowered() {
    let quirks = Quirks::default();
    for (choice, lowered) in [("required", "auto"), ("none", "none"), ("auto", "auto")] {
        let request = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}],
            "tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": choice});
        let request = ChatCompletions.parse(request.to_string().into()).unwrap();
        let target = Target {
            search: crate::models::routing::search::WebSearch::default(),
            lower_tool_choice: true,
            ..target(&quirks)
        };
        let body = RESPONSES.encode(&request, &target).unwrap().concat();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["tool_choice"], lowered);
    }
}

/// Contract: model-gateway 2.1 max_tokens
#[test]
fn the_bound_of_the_answer_is_the_one_that_is_sent() {
    let quirks = Quirks::default();
    for (asked, bound) in [
        (json!(1), Some(16)),
        (json!(16), Some(16)),
        (json!(5000), Some(5000)),
        (Value::Null, None),
    ] {
        let request = json!({"model": "m", "max_tokens": asked, "messages": [{"role": "user", "content": "Hi"}]});
        let body = sent(json!({"max_tokens": asked, "messages": request["messages"]})).unwrap();
        let request = ChatCompletions.parse(request.to_string().into()).unwrap();
        assert_eq!(
            RESPONSES
                .codec_of(&request)
                .max_output(&request, &target(&quirks)),
            bound
        );
        assert_eq!(body["max_output_tokens"].as_u64(), bound);
    }
}

/// Contract: model-gateway 2.1 messages
/// Contract: model-gateway 2.2 role
/// Contract: model-gateway 2.2 content
/// Contract: model-gateway 2.3 image_url
#[test]
fn a_conversation_becomes_items() {
    let items = input(json!([
        {"role": "system", "content": "Be brief.", "name": "s"},
        {"role": "developer", "content": [{"type": "text", "text": "Really."}]},
        {"role": "user", "name": "ann", "content": [{"type": "text", "text": "Look", "cache_control": {"type": "ephemeral"}},
            {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAEC"}},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,QUJD"}}, {"type": "file", "file": {"file_id": "file-1"}},
            {"type": "input_audio", "input_audio": {"data": "QQ", "format": "wav"}}]},
        {"role": "assistant", "content": [{"type": "text", "text": "I look"}, {"type": "refusal", "refusal": "no"}], "tool_calls": [call("a"), call("b")]},
        {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "two "}, {"type": "text", "text": "parts"}]},
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAEC"}}]},
        {"role": "assistant", "content": null, "refusal": "I cannot"},
        {"role": "user", "content": "Go on"},
    ])).unwrap();
    let arguments = "{\"a\": 1}";
    assert_eq!(
        items,
        json!([
            {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "Be brief."}]},
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Really."}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Look"},
                {"type": "input_image", "image_url": "https://x/y.png", "detail": "low"}, {"type": "input_image", "image_url": "data:image/png;base64,AAEC", "detail": "auto"},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,QUJD"}, {"type": "input_file", "file_id": "file-1"},
                {"type": "input_audio", "input_audio": {"data": "QQ", "format": "wav"}}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look"}, {"type": "refusal", "refusal": "no"}]},
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": arguments},
            {"type": "function_call", "call_id": "b", "name": "f", "arguments": arguments},
            {"type": "function_call_output", "call_id": "b", "output": "two parts"},
            {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": "data:image/png;base64,AAEC", "detail": "auto"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "I cannot"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go on"}]},
        ])
    );
}

/// Contract: model-gateway 2.2 role
#[test]
fn a_result_in_the_old_form_answers_the_call_of_its_function() {
    let mut other = call("b");
    other["function"]["name"] = "g".into();
    let items = input(json!([{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": [call("a"), other]},
        {"role": "function", "name": "g", "content": null}, {"role": "function", "name": "f", "content": "r"}])).unwrap();
    assert_eq!(
        items[3],
        json!({"type": "function_call_output", "call_id": "b", "output": ""})
    );
    assert_eq!(
        items[4],
        json!({"type": "function_call_output", "call_id": "a", "output": "r"})
    );
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
            json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": "https://x/y"}}]}]),
            "messages[1].content[0]",
        ),
        (json!([{"role": "assistant", "content": ""}]), "messages"),
    ] {
        let fault = input(messages).unwrap_err();
        assert_eq!((fault.status(), fault.param.as_deref()), (400, Some(param)));
    }
}

/// Contract: model-gateway 2.1 prompt_cache_options
/// Contract: model-gateway 2.3 text
/// Contract: model-gateway 2.3 image_url
#[test]
fn cache_breakpoints_go_to_models_whose_table_passes_them() {
    let point = json!({"mode": "explicit"});
    let part = |kind: &str, members: Value| {
        let mut part = json!({"type": kind, "prompt_cache_breakpoint": point});
        let members = members.as_object().unwrap().clone();
        part.as_object_mut().unwrap().extend(members);
        part
    };
    let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let request = json!({"model": "m", "prompt_cache_options": {"mode": "explicit", "ttl": "30m"}, "messages": [
        {"role": "system", "content": [part("text", json!({"text": "s"})), {"type": "text", "text": "t"}]},
        {"role": "user", "content": [
            part("image_url", json!({"image_url": {"url": "data:image/png;base64,AA=="}})),
            part("file", json!({"file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="}}))]},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": [part("text", json!({"text": "r"}))]},
    ]});
    let parsed = ChatCompletions.parse(request.to_string().into()).unwrap();
    let quirks = Quirks::default();
    let said = |parameters: &Parameters| -> Value {
        let target = Target {
            parameters,
            ..target(&quirks)
        };
        let body = RESPONSES.encode(&parsed, &target).unwrap().concat();
        serde_json::from_slice(&body).unwrap()
    };
    let passed = said(Parameters::PLAIN);
    assert_eq!(
        passed["prompt_cache_options"],
        request["prompt_cache_options"]
    );
    let result = json!([part("input_text", json!({"text": "r"}))]);
    assert_eq!(passed["input"][3]["output"], result);
    assert_eq!(
        passed["input"][0]["content"],
        json!([part("input_text", json!({"text": "s"})), {"type": "input_text", "text": "t"}])
    );
    for place in [0, 1] {
        assert_eq!(
            passed["input"][1]["content"][place]["prompt_cache_breakpoint"],
            point
        );
    }
    let usual = said(&RESPONSES.defaults().parameters);
    assert!(!usual.to_string().contains("prompt_cache"), "{usual}");
    assert_eq!(usual["input"][3]["output"], "r");
}

/// The body that a host gets of a request of the same dialect.
fn spliced(front: &dyn Front, body: &Value, is_vendor: bool) -> Result<Value, Fault> {
    let quirks = Quirks::default();
    let request = front.parse(body.to_string().into()).unwrap();
    let target = Target {
        is_vendor,
        ..target(&quirks)
    };
    let body = RESPONSES.encode(&request, &target)?.concat();
    Ok(serde_json::from_slice(&body).unwrap())
}

#[test]
fn the_vendor_summarizes_by_itself_and_other_hosts_are_asked_for_a_summary() {
    let user = json!({"type": "message", "role": "user", "content": "Hi"});
    let trigger = json!({"type": "compaction_trigger"});
    let by_item = json!({"model": "m", "input": [user, trigger], "x": 1});
    let by_path = json!({"model": "m", "input": "Hi"});
    for (front, body) in [
        (&Responses as &dyn Front, &by_item),
        (&Compact, &by_item),
        (&Compact, &by_path),
    ] {
        let sent = spliced(front, body, true).unwrap();
        assert_eq!(sent["input"], json!([user, trigger]), "{body}");
        let sent = spliced(front, body, false).unwrap();
        let asked = sent["input"].to_string();
        assert!(!asked.contains("compaction_trigger"), "{asked}");
        assert!(asked.contains("replaced by a summary"), "{asked}");
        assert!(sent.get("x").is_none());
    }
}

#[test]
fn a_summary_goes_to_all_hosts_as_text_and_a_foreign_one_to_its_own_alone() {
    let user = json!({"role": "user", "content": "Go on"});
    let with = |content: &str| json!({"model": "m", "input": [{"type": "compaction", "id": "cmp_wg_1_0", "encrypted_content": content}, user]});
    let own = with(&compaction::seal("They said \"Hi\"."));
    for is_vendor in [true, false] {
        let sent = spliced(&Responses, &own, is_vendor).unwrap();
        assert_eq!(sent["input"][0]["role"], "user");
        let said = sent["input"][0]["content"].as_str().unwrap();
        assert!(said.ends_with("They said \"Hi\"."), "{said}");
        assert_eq!(sent["input"][1], user);
    }
    let foreign = with("gAAA");
    let sent = spliced(&Responses, &foreign, true).unwrap();
    assert_eq!(sent["input"][0]["encrypted_content"], "gAAA");
    let fault = spliced(&Responses, &foreign, false).unwrap_err();
    assert_eq!(fault.param.as_deref(), Some("input[0]"));
}
