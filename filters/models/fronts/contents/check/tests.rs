#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use serde_json::{Value, json};

use super::*;
use crate::models::front::ClientHead;
use crate::models::fronts::contents::{GENERATE, count_tokens};
use crate::money::ServiceTier;

fn body(more: &Value) -> Bytes {
    let mut body = json!({"model": "m", "contents": [{"role": "user", "parts": [{"text": "Hi"}]}]});
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    body.to_string().into()
}

fn read(more: &Value) -> ModelRequest {
    GENERATE.parse(body(more)).unwrap()
}

/// Checks that each request is refused, naming the field.
fn refused(cases: &[(Value, &str)]) {
    for (more, param) in cases {
        let fault = GENERATE.parse(body(more)).unwrap_err();
        let said = &fault.message;
        assert_eq!(fault.param.as_deref(), Some(*param), "{more}: {said}");
        assert!(said.contains(&format!("`{param}`")), "{said}");
    }
}

#[test]
fn a_content_that_breaks_a_rule_is_named_by_its_path() {
    let part =
        |part: Value| json!({"contents": [{"role": "user", "parts": [{"text": "Hi"}, part]}]});
    refused(&[
        (json!({"contents": null}), "contents"),
        (json!({"contents": []}), "contents"),
        (
            json!({"contents": [{"role": "user", "parts": []}]}),
            "contents",
        ),
        (json!({"contents": "Hi"}), "contents"),
        (
            json!({"contents": [{"role": "system", "parts": [{"text": "x"}]}]}),
            "contents[0].role",
        ),
        (json!({"contents": [{"parts": "x"}]}), "contents[0].parts"),
        (part(json!({})), "contents[0].parts[1]"),
        (part(json!({"thought": true})), "contents[0].parts[1]"),
        (part(json!({"text": 5})), "contents[0].parts[1].text"),
        (
            part(json!({"text": "a", "functionCall": {"name": "f"}})),
            "contents[0].parts[1].functionCall",
        ),
        (
            part(json!({"function_call": {"args": {}}})),
            "contents[0].parts[1].function_call.name",
        ),
        (
            part(json!({"functionCall": {"name": "f", "args": "{}"}})),
            "contents[0].parts[1].functionCall.args",
        ),
        (
            part(json!({"functionResponse": {"name": "f", "response": "x"}})),
            "contents[0].parts[1].functionResponse.response",
        ),
        (
            part(json!({"functionResponse": {"name": "f", "parts": [{"text": "x"}]}})),
            "contents[0].parts[1].functionResponse.parts[0]",
        ),
        (
            part(json!({"inlineData": {"data": "AAAA"}})),
            "contents[0].parts[1].inlineData.mimeType",
        ),
        (
            part(json!({"inlineData": {"mimeType": "image/png"}})),
            "contents[0].parts[1].inlineData.data",
        ),
        (
            part(json!({"inlineData": {"mimeType": "image/png", "data": "?"}})),
            "contents[0].parts[1].inlineData.data",
        ),
        (
            part(json!({"inlineData": {"mimeType": "image/png", "data": "SGVsbG8gd29ybGQh"}})),
            "contents[0].parts[1].inlineData.data",
        ),
        (
            part(json!({"fileData": {"mimeType": "image/png"}})),
            "contents[0].parts[1].fileData.fileUri",
        ),
    ]);
}

#[test]
fn a_member_that_breaks_a_rule_is_named_by_its_path() {
    let config = |config: Value| json!({"generationConfig": config});
    let tools = |function: Value| json!({"tools": [{"functionDeclarations": [function]}]});
    let calling = |calling: Value| json!({"toolConfig": {"functionCallingConfig": calling}});
    refused(
        &[
            (json!({"model": "@prompt/x"}), "model"),
            (json!({"model": ""}), "model"),
            (json!({"stream": true}), "stream"),
            (json!({"generation_config": 5}), "generationConfig"),
            (
                config(json!({"temperature": "hot"})),
                "generationConfig.temperature",
            ),
            (
                config(json!({"candidate_count": 9})),
                "generationConfig.candidate_count",
            ),
            (
                config(json!({"stopSequences": [5]})),
                "generationConfig.stopSequences[0]",
            ),
            (
                config(json!({"responseMimeType": "text/html"})),
                "generationConfig.responseMimeType",
            ),
            (
                config(json!({"responseSchema": {}, "responseJsonSchema": {}})),
                "generationConfig.responseJsonSchema",
            ),
            (
                config(json!({"thinkingConfig": {"thinkingLevel": "LOTS"}})),
                "generationConfig.thinkingConfig.thinkingLevel",
            ),
            (
                config(json!({"thinkingConfig": {"thinkingBudget": "1"}})),
                "generationConfig.thinkingConfig.thinkingBudget",
            ),
            (
                config(json!({"topP": 0.5, "top_p": 0.5})),
                "generationConfig.top_p",
            ),
            (tools(json!({})), "tools[0].functionDeclarations[0].name"),
            (
                tools(json!({"name": "f", "parameters": 5})),
                "tools[0].functionDeclarations[0].parameters",
            ),
            (
                tools(json!({"name": "f", "parameters": {}, "parametersJsonSchema": {}})),
                "tools[0].functionDeclarations[0].parametersJsonSchema",
            ),
            (
                calling(json!({"mode": "SOME"})),
                "toolConfig.functionCallingConfig.mode",
            ),
            (
                calling(json!({"mode": "ANY"})),
                "toolConfig.functionCallingConfig.mode",
            ),
            (
                calling(json!({"mode": "VALIDATED", "allowedFunctionNames": ["f"]})),
                "toolConfig.functionCallingConfig.allowedFunctionNames",
            ),
            (json!({"serviceTier": "gold"}), "serviceTier"),
            (json!({"safetySettings": {}}), "safetySettings"),
            (json!({"routing": "best"}), "routing"),
        ]
        .map(
            |(more, param): (Value, &str)| match more.get("generation_config") {
                Some(value) => (json!({"generationConfig": value}), param),
                None => (more, param),
            },
        ),
    );
    let twice =
        r#"{"model":"m","contents":[{"parts":[{"text":"a"}]}],"toolConfig":{},"tool_config":{}}"#;
    let fault = GENERATE.parse(twice.into()).unwrap_err();
    assert_eq!(fault.code(), Some("duplicate_key"));
}

#[test]
fn what_a_request_asks_for_is_found() {
    let request = read(&json!({
        "generation_config": {"temperature": 0.5, "maxOutputTokens": 100, "candidateCount": 2, "seed": 7, "presencePenalty": 0.5,
            "thinkingConfig": {"thinkingLevel": "high"}, "responseMimeType": "application/json"},
        "tools": [{"functionDeclarations": [{"name": "f"}]}, {"googleSearch": {}}], "serviceTier": "PRIORITY", "free_models_only": true}));
    let needs = &request.needs;
    assert_eq!(
        (needs.choices, needs.max_tokens, needs.effort),
        (2, Some(100), Some(Effort::High))
    );
    assert!(
        needs.tools && needs.json_object && needs.free_models_only && needs.web_search.is_some()
    );
    assert_eq!(needs.service_tier, ServiceTier::Priority);
    for parameter in [
        Parameter::Temperature,
        Parameter::Seed,
        Parameter::PresencePenalty,
        Parameter::Tools,
        Parameter::WebSearch,
    ] {
        assert!(request.asked.set.contains(parameter), "{parameter:?}");
    }
    assert!(request.source.member("generationConfig").is_some());
    for (budget, effort) in [
        (0, Some(Effort::None)),
        (-1, None),
        (512, Some(Effort::Low)),
        (8192, Some(Effort::Medium)),
        (24_576, Some(Effort::High)),
    ] {
        let config = json!({"generationConfig": {"thinkingConfig": {"thinkingBudget": budget}}});
        assert_eq!(read(&config).needs.effort, effort, "{budget}");
    }
}

#[test]
fn what_only_the_vendor_knows_is_a_need_of_its_dialect() {
    let config = |config: Value| json!({"generationConfig": config});
    for (more, member) in [
        (
            json!({"cachedContent": "cachedContents/x"}),
            "cachedContent",
        ),
        (json!({"tools": [{"codeExecution": {}}]}), "tools"),
        (
            json!({"tools": [{"googleSearch": {"timeRangeFilter": {}}}]}),
            "tools",
        ),
        (
            json!({"contents": [{"parts": [{"executableCode": {}}]}]}),
            "contents",
        ),
        (
            json!({"contents": [{"parts": [{"fileData": {"fileUri": "gs://a/b"}}]}]}),
            "contents",
        ),
        (
            json!({"contents": [{"parts": [{"inlineData": {"mimeType": "video/mp4", "data": "AAAA"}}]}]}),
            "contents",
        ),
        (
            config(json!({"responseLogprobs": true})),
            "generationConfig.responseLogprobs",
        ),
        (
            config(json!({"speechConfig": {}})),
            "generationConfig.speechConfig",
        ),
        (
            config(json!({"responseModalities": ["AUDIO"]})),
            "generationConfig.responseModalities",
        ),
        (
            config(json!({"imageConfig": {"aspectRatio": "1:1"}})),
            "generationConfig.imageConfig",
        ),
    ] {
        let request = read(&more);
        let native = request.needs.native.unwrap_or_else(|| panic!("{more}"));
        assert_eq!(
            (native.dialect, native.member),
            (Dialect::Contents, member),
            "{more}"
        );
    }
    for wish in [
        json!({"safetySettings": [{}], "labels": {"a": "b"}, "unknown": [1]}),
        config(
            json!({"topK": 5, "mediaResolution": "LOW", "responseLogprobs": false, "unknown": {}}),
        ),
        json!({"toolConfig": {"retrievalConfig": {}}}),
    ] {
        assert_eq!(read(&wish).needs.native, None, "{wish}");
    }
}

#[test]
fn images_by_their_address_are_known_by_their_place() {
    let request = read(
        &json!({"contents": [{"parts": [{"text": "a"}, {"fileData": {"fileUri": "https://a.example/x.png", "mimeType": "image/png"}}]}]}),
    );
    let Payload::Chat(facts) = &request.payload else {
        panic!()
    };
    assert_eq!(
        &*facts.remote_images[0].param,
        "contents[0].parts[1].fileData.fileUri"
    );
    assert_eq!(facts.special_messages.len(), 1);
    assert!(request.needs.vision && request.needs.media.remote_images);
}

#[test]
fn the_numbers_of_parts_and_tools_are_bounded() {
    let part = json!({"text": "a"});
    let many = json!({"contents": [{"parts": vec![part; 200_001]}]});
    let fault = GENERATE.parse(body(&many)).unwrap_err();
    assert_eq!(fault.param.as_deref(), Some("contents[0].parts[200000]"));
    let tools = json!({"tools": [{"functionDeclarations": vec![json!({"name": "f"}); 4096]}]});
    let fault = GENERATE.parse(body(&tools)).unwrap_err();
    assert!(fault.message.contains("more than 4096"), "{fault}");
}

#[test]
fn a_body_cut_anywhere_is_no_json() {
    let body = body(
        &json!({"generationConfig": {"stopSequences": ["é"]}, "tools": [{"functionDeclarations": [{"name": "f"}]}]}),
    );
    for end in 0..body.len() {
        let fault = GENERATE.parse(body.slice(..end)).unwrap_err();
        assert_eq!(fault.code(), Some("invalid_json"), "{end}");
    }
}

#[test]
fn tokens_are_estimated_above_zero() {
    let headers = http::HeaderMap::new();
    let head = ClientHead {
        path: "/v1beta/models/m:countTokens",
        query: "",
        headers: &headers,
    };
    let short = r#"{"contents":[{"parts":[{"text":"a"}]}]}"#;
    assert!(count_tokens(&head, short.into()).unwrap().estimate > 0);
    assert!(count_tokens(&head, "{}".into()).is_err());
}
