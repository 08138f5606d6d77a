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
    let control = (!efforts.is_empty()).then_some(ThinkingControl::Levels);
    let told = replay::told(&GOOGLE, control, efforts);
    Target {
        parameters: &told.parameters,
        thinking: &told.thinking,
        key_id: Some("key_1"),
        ..Target::plain("google", "gemini x", quirks)
    }
}

/// Folds a stream cut into pieces of this many bytes.
fn fold(text: &str, piece: usize) -> Result<Value, Failure> {
    let quirks = Quirks::default();
    replay::fold(&GOOGLE, &target(&quirks, &[]), text, piece)
}

fn whole(body: &Value) -> Result<Value, Failure> {
    let quirks = Quirks::default();
    replay::whole(&GOOGLE, &target(&quirks, &[]), body)
}

fn sse_of(events: &[Value]) -> String {
    events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect()
}

fn piece(parts: Value, finish: Option<&str>) -> Value {
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
    if let Some(finish) = finish {
        candidate["finishReason"] = finish.into();
    }
    json!({"candidates": [candidate], "responseId": "r-1", "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 23, "thoughtsTokenCount": 302, "totalTokenCount": 334}})
}

#[test]
fn the_folded_stream_equals_the_whole_reply_however_it_is_cut() {
    let call = json!({"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "sig"});
    let events = [
        json!({"usageMetadata": {"trafficType": "ON_DEMAND"}}),
        piece(json!([{"text": "hm é", "thought": true}]), None),
        piece(json!([{"text": "Hel"}]), None),
        piece(json!([{"text": "lo"}, call]), None),
        piece(json!([{"text": ""}]), Some("STOP")),
        json!({"usageMetadata": {"trafficType": "ON_DEMAND"}}),
    ];
    let body = piece(
        json!([{"text": "hm é", "thought": true}, {"text": "Hello"}, call]),
        Some("STOP"),
    );
    let expected = whole(&body).unwrap();
    let choice = &expected["choices"][0];
    assert_eq!(
        (
            &choice["message"]["content"],
            &choice["message"]["reasoning"]
        ),
        (&"Hello".into(), &"hm é".into())
    );
    assert_eq!(choice["finish_reason"], "tool_calls");
    let sent = &choice["message"]["tool_calls"][0];
    assert_eq!(
        (
            &sent["function"]["arguments"],
            &sent["extra_content"]["google"]["thought_signature"]
        ),
        (
            &"{\"a\":1}".into(),
            &replay::seal(Dialect::Contents, "google/gemini x", "sig").into()
        )
    );
    assert_eq!(
        (
            &expected["usage"]["completion_tokens"],
            &expected["usage"]["total_tokens"]
        ),
        (&325.into(), &334.into())
    );
    for text in [sse_of(&events), sse_of(&events).replace('\n', "\r\n")] {
        for piece in 1..80 {
            assert_eq!(fold(&text, piece).unwrap(), expected, "{piece}");
        }
    }
}

#[test]
fn a_stream_without_a_finish_reason_is_truncated() {
    let events = [piece(json!([{"text": "a"}]), None)];
    assert_eq!(
        fold(&sse_of(&events), 9).unwrap_err().kind,
        FailureKind::Truncated
    );
    assert_eq!(whole(&events[0]).unwrap_err().kind, FailureKind::Malformed);
}

#[test]
fn errors_in_a_200_and_in_arrays_are_failures_of_their_status() {
    let error = json!({"error": {"code": 429, "message": "Resource exhausted", "status": "RESOURCE_EXHAUSTED"}});
    for body in [error.clone(), json!([error])] {
        assert_eq!(whole(&body).unwrap_err().kind, FailureKind::Status(429));
        assert_eq!(
            fold(&format!("data: {body}\n\n"), 9).unwrap_err().kind,
            FailureKind::Status(429)
        );
    }
    let bad_key = json!([{"error": {"code": 400, "message": "API key not valid.", "details": [{"reason": "API_KEY_INVALID"}]}}]);
    assert!(
        GOOGLE
            .classify(400, bad_key.to_string().as_bytes())
            .is_retryable
    );
    assert!(
        !GOOGLE
            .classify(400, br#"{"error":{"code":400,"message":"bad schema"}}"#)
            .is_retryable
    );
}

#[test]
fn a_refusal_says_in_its_body_when_to_try_again() {
    let rest_ms = |details: &str| {
        let body = format!(
            r#"{{"error":{{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED","details":{details}}}}}"#
        );
        GOOGLE
            .classify(429, body.as_bytes())
            .retry_after_ms
            .map(u64::from)
    };
    let info = r#"{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"37.5s"}"#;
    let other = r#"{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[]}"#;
    assert_eq!(rest_ms(&format!("[{other},{info}]")), Some(37_500));
    for details in [
        format!("[{other}]").as_str(),
        "[7]",
        "{}",
        r#"[{"retryDelay":9}]"#,
    ] {
        assert_eq!(rest_ms(details), None, "{details}");
    }
}

#[test]
fn a_blocked_prompt_is_filtered_and_a_malformed_call_is_a_failure() {
    let blocked = whole(&json!({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3}})).unwrap();
    assert_eq!(blocked["choices"][0]["finish_reason"], "content_filter");
    assert!(
        whole(&piece(json!([]), Some("MALFORMED_FUNCTION_CALL")))
            .unwrap_err()
            .is_retryable
    );
}

fn sent(request: Value, efforts: &[&str]) -> Result<(String, Value), Fault> {
    let quirks = Quirks::default();
    let request = ChatCompletions.parse(request.to_string().into()).unwrap();
    let encoded = GOOGLE.encode(&request, &target(&quirks, efforts))?;
    let (name, value) = GOOGLE.host().credential("AIza-secret", &quirks)?;
    assert!(name == "x-goog-api-key" && value.is_sensitive());
    let operation = request.payload.operation();
    let head = GOOGLE.head(operation, request.is_stream, "gemini x", &quirks);
    Ok((
        head.unwrap().path,
        serde_json::from_slice(&encoded.concat()).unwrap(),
    ))
}

fn call(id: &str, name: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": "{\"a\":1}"}, "extra_content": {"google": {"thought_signature": "sig"}}})
}

#[test]
fn pictures_of_a_result_reach_the_model_within_it_or_behind_it() {
    let picture = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAEC"}});
    let request = json!({"model": "m", "messages": [
        {"role": "user", "content": "Look"},
        {"role": "assistant", "tool_calls": [call("x", "f"), call("y", "g")]},
        {"role": "tool", "tool_call_id": "x", "content": [{"type": "text", "text": "seen"}, picture]},
        {"role": "tool", "tool_call_id": "y", "content": "{\"b\":2}"}]});
    let data = json!({"inlineData": {"mimeType": "image/png", "data": "AAEC"}});
    let of_g = json!({"functionResponse": {"name": "g", "response": {"b": 2}}});
    let (_, levels) = sent(request.clone(), &["low"]).unwrap();
    assert_eq!(
        levels["contents"][2]["parts"],
        json!([{"functionResponse": {"name": "f", "response": {"result": "seen"}, "parts": [data]}}, of_g])
    );
    assert_eq!(levels["contents"].as_array().unwrap().len(), 3);
    let (_, budgets) = sent(request, &[]).unwrap();
    assert_eq!(
        budgets["contents"][2]["parts"],
        json!([{"functionResponse": {"name": "f", "response": {"result": "seen"}}}, of_g])
    );
    assert_eq!(
        budgets["contents"][3],
        json!({"role": "user", "parts": [{"text": "f"}, data]})
    );
}

#[test]
fn a_conversation_with_tools_is_said_as_the_wire_wants_it() {
    let (path, body) = sent(json!({"model": "m", "stream": true, "max_tokens": 9, "stop": "END", "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAEC"}}]},
        {"role": "assistant", "tool_calls": [call("x", "f"), call("y", "g")]},
        {"role": "tool", "tool_call_id": "y", "content": "two"}, {"role": "tool", "tool_call_id": "x", "content": "{\"one\":1}"},
        {"role": "user", "content": "Go on"}],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "additionalProperties": false, "properties": {"a": {"type": ["string", "null"]}}}}}],
        "tool_choice": {"type": "function", "function": {"name": "f"}}}), &[]).unwrap();
    assert_eq!(
        path,
        "/v1beta/models/gemini%20x:streamGenerateContent?alt=sse"
    );
    assert_eq!(body["systemInstruction"]["parts"][0]["text"], "Be brief.");
    let contents = body["contents"].as_array().unwrap();
    assert_eq!(
        contents
            .iter()
            .map(|c| c["role"].as_str().unwrap())
            .collect::<Vec<_>>(),
        ["user", "model", "user", "user"]
    );
    assert_eq!(contents[3]["parts"], json!([{"text": "Go on"}]));
    assert_eq!(
        contents[0]["parts"][0]["inlineData"],
        json!({"mimeType": "image/png", "data": "AAEC"})
    );
    assert_eq!(contents[0]["parts"][1]["text"], " ");
    assert_eq!(contents[1]["parts"][0]["thoughtSignature"], "sig");
    let results: Vec<&Value> = contents[2]["parts"]
        .as_array()
        .unwrap()
        .iter()
        .take(2)
        .map(|p| &p["functionResponse"])
        .collect();
    assert_eq!(
        results,
        [
            &json!({"name": "f", "response": {"one": 1}}),
            &json!({"name": "g", "response": {"result": "two"}})
        ]
    );
    assert_eq!(
        body["tools"][0]["functionDeclarations"][0]["parameters"],
        json!({"type": "object", "properties": {"a": {"type": "string", "nullable": true}}})
    );
    assert_eq!(
        body["toolConfig"]["functionCallingConfig"],
        json!({"mode": "ANY", "allowedFunctionNames": ["f"]})
    );
    assert_eq!(
        (
            &body["generationConfig"]["maxOutputTokens"],
            &body["generationConfig"]["stopSequences"]
        ),
        (&9.into(), &json!(["END"]))
    );
}

#[test]
fn what_the_wire_cannot_say_is_refused_by_name() {
    let user = json!({"role": "user", "content": "a"});
    for (request, param) in [
        (
            json!({"model": "m", "messages": [user, {"role": "tool", "tool_call_id": "x", "content": "r"}]}),
            "messages[1].tool_call_id",
        ),
        (
            json!({"model": "m", "messages": [user, {"role": "assistant", "tool_calls": [call("x", "f")]}, user]}),
            "messages[1].tool_calls",
        ),
        (
            json!({"model": "m", "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/y.png"}}]}]}),
            "messages[0].content[0]",
        ),
        (
            json!({"model": "m", "messages": [{"role": "system", "content": "a"}]}),
            "messages",
        ),
    ] {
        let fault = sent(request, &[]).unwrap_err();
        assert_eq!((fault.status(), fault.param.as_deref()), (400, Some(param)));
    }
}

#[test]
fn effort_becomes_a_budget_or_a_level_and_lost_signatures_are_excused() {
    let mut lost = call("x", "f");
    lost.as_object_mut().unwrap().remove("extra_content");
    let ask = json!({"model": "m", "reasoning_effort": "high", "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": [lost]}, {"role": "tool", "tool_call_id": "x", "content": ""}]});
    let (_, budget) = sent(ask.clone(), &[]).unwrap();
    assert_eq!(
        budget["generationConfig"]["thinkingConfig"],
        json!({"thinkingBudget": 24576, "includeThoughts": true})
    );
    assert!(
        budget["contents"][1]["parts"][0]
            .get("thoughtSignature")
            .is_none()
    );
    let (_, level) = sent(ask, &["low", "high"]).unwrap();
    assert_eq!(
        level["generationConfig"]["thinkingConfig"]["thinkingLevel"],
        "HIGH"
    );
    assert_eq!(
        level["contents"][1]["parts"][0]["thoughtSignature"],
        "skip_thought_signature_validator"
    );
}

/// Source: model-gateway 2.1, rules for `reasoning_effort` 1 and 3
/// Contract: model-gateway 2.1 reasoning_effort 1
#[test]
fn every_effort_has_a_budget_or_goes_as_a_level() {
    let config = |effort: &str, efforts: &[&str]| {
        let ask = json!({"model": "m", "reasoning_effort": effort, "messages": [{"role": "user", "content": "a"}]});
        let (_, body) = sent(ask, efforts).unwrap();
        body["generationConfig"]["thinkingConfig"].clone()
    };
    for (effort, budget) in [("minimal", 512), ("xhigh", 65_536), ("max", 128_000)] {
        assert_eq!(config(effort, &[])["thinkingBudget"], budget);
        let level = config(effort, &["low", "high"]);
        assert_eq!(
            level["thinkingLevel"],
            effort.to_uppercase(),
            "the provider judges"
        );
    }
    assert_eq!(
        config("none", &[]),
        json!({"thinkingBudget": 0, "includeThoughts": false})
    );
    assert_eq!(
        config("none", &["low", "high"]),
        json!({"thinkingLevel": "LOW", "includeThoughts": false})
    );
}

fn cleaned(schema: &Value) -> Result<Value, Fault> {
    let cleaned = schema::SchemaBudget::new().clean(&schema.to_string(), || "tools[0]".to_owned());
    cleaned.map(Option::unwrap)
}

#[test]
fn schemas_whose_references_name_too_many_values_are_refused() {
    let node = json!({"$ref": "#/$defs/n"});
    let tree = |inner: Value| json!({"$ref": "#/$defs/n", "$defs": {"n": inner}});
    let long = "x".repeat(200_000);
    let hostile = [
        tree(json!({"anyOf": [node, node, node]})),
        tree(json!({"allOf": [node, node]})),
        tree(json!({"type": "object", "properties": {"left": node, "right": node}})),
        tree(json!({"type": "object", "description": long, "properties": {"next": node}})),
        tree(json!({"enum": [long], "properties": {"next": node}})),
        json!({"enum": vec![0; 40_000]}),
        json!({"description": "x".repeat(2_000_000)}),
    ];
    for schema in hostile {
        let fault = cleaned(&schema).unwrap_err();
        assert_eq!(
            (fault.status(), fault.param.as_deref()),
            (400, Some("tools[0]"))
        );
        assert!(fault.message.contains("32768 values"), "{fault}");
    }
    let list = tree(json!({"type": "object", "properties": {"next": node}}));
    assert!(cleaned(&list).is_ok(), "a list refers to itself once");
}

#[test]
fn a_reference_keeps_its_own_members_beside_those_of_its_target() {
    let schema = json!({"$ref": "#/$defs/a", "title": "own", "$defs": {
        "a": {"$ref": "#/$defs/b", "description": "of a"},
        "b": {"type": "string", "title": "of b", "maxLength": 9}}});
    let expected = json!({"type": "string", "title": "own", "maxLength": 9, "description": "of a"});
    assert_eq!(cleaned(&schema).unwrap(), expected);
}

#[test]
fn schemas_lose_what_the_wire_does_not_know_and_keep_their_properties() {
    let schema = json!({"$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "const": {"const": 5}}}},
        "type": "object", "properties": {"additionalProperties": {"$ref": "#/$defs/Node"}, "n": {"anyOf": [{"type": "integer", "format": "uint8"}, {"type": "null"}]}, "e": {"enum": [1, 2]}, "t": {"type": "array"}},
        "required": ["n", "gone"], "patternProperties": {}, "if": {}});
    let clean = cleaned(&schema).unwrap();
    assert_eq!(
        clean["properties"]["n"],
        json!({"type": "integer", "nullable": true})
    );
    assert_eq!(
        clean["properties"]["e"],
        json!({"type": "string", "enum": ["1", "2"]})
    );
    assert_eq!(clean["properties"]["t"]["items"], json!({"type": "string"}));
    assert_eq!(
        clean["properties"]["additionalProperties"]["properties"]["const"],
        json!({"enum": ["5"], "type": "string"})
    );
    assert_eq!(
        (&clean["required"], clean.get("if"), clean.get("$defs")),
        (&json!(["n"]), None, None)
    );
}

proptest! {
    #[test]
    fn only_known_words_come_out_of_a_schema(words in proptest::collection::vec("(\\$ref|not|if|type|format|properties|items|anyOf|x-y|pattern|const)", 1..6), depth in 0..60_usize) {
        fn words_of(schema: &Value, known: &mut Vec<String>) {
            let Value::Object(object) = schema else { return };
            for (key, value) in object {
                known.push(key.clone());
                match (key.as_str(), value) {
                    ("properties", Value::Object(named)) => named.values().for_each(|v| words_of(v, known)),
                    ("anyOf", Value::Array(list)) => list.iter().for_each(|v| words_of(v, known)),
                    ("items", value) => words_of(value, known),
                    _ => {}
                }
            }
        }
        let mut schema = json!({"type": "string"});
        for _ in 0..depth { schema = json!({"type": "object", "properties": {"p": schema}}); }
        for word in &words { schema[word.as_str()] = json!("#"); }
        let mut found = Vec::new();
        words_of(&cleaned(&schema).unwrap(), &mut found);
        for word in found {
            prop_assert!(!["$ref", "not", "if", "x-y", "const", "$defs"].contains(&word.as_str()), "{}", word);
        }
    }
}
