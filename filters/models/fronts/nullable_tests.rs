//! Null counts as absent in every field that the convention makes nullable.
#![allow(clippy::unwrap_used, reason = "tests")]

use serde_json::{Value, json};

use super::chat_completions::ChatCompletions;
use super::images::{ImageEdits, ImageGenerations};
use crate::models::front::Front;
use crate::models::request::ModelRequest;

/// The members of a chat whose type is `Optional` in `openai/types/chat/completion_create_params.py` of openai-python 3.52.0.
const CHAT: [&str; 27] = [
    "audio",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "metadata",
    "modalities",
    "moderation",
    "n",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning_effort",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
];

/// The members of a chat that the contract makes nullable and the library does not, and those of the contract alone, which
/// clients of the library send as they send the others.
const CHAT_OF_THE_CONTRACT: [&str; 18] = [
    "effort",
    "parallel_tool_calls",
    "prompt_cache_options",
    "model",
    "response_format",
    "prompt",
    "tools",
    "tool_choice",
    "reasoning",
    "vendor_safeguards",
    "routing",
    "free_models_only",
    "onboarding",
    "no_reasoning",
    "sensitive_word_check",
    "image_config",
    "web_search",
    "plugins",
];

/// Those inside a chat: where the value stands, and the member that holds it. `Optional` in
/// `chat_completion_assistant_message_param.py`, `chat_completion_function_message_param.py`, `function_definition.py`,
/// `response_format_json_schema.py` and `reasoning.py` of the same version.
fn inside() -> [(&'static str, Value); 12] {
    let called = |member: &str| {
        let mut turn = json!({"role": "assistant", "content": "a"});
        turn[member] = Value::Null;
        json!([{"role": "user", "content": "a"}, turn])
    };
    let schema = json!({"name": "n", "schema": {}, "strict": null, "description": null});
    let function = json!({"name": "f", "strict": null, "description": null, "parameters": null});
    let function = json!({"type": "function", "function": function, "defer_loading": null, "allowed_callers": null});
    let search = json!({"type": "web_search", "user_location": {"city": null}, "search_context_size": null, "max_uses": null});
    let image =
        json!({"type": "image_url", "image_url": {"url": "https://a.test/b.png", "detail": null}});
    [
        ("messages", called("content")),
        ("messages", called("audio")),
        ("messages", called("function_call")),
        ("messages", called("refusal")),
        ("messages", called("content_before_tool_calls")),
        ("messages", called("message_items")),
        ("messages", json!([{"role": "user", "content": [image]}])),
        (
            "response_format",
            json!({"type": "json_schema", "json_schema": schema}),
        ),
        ("tools", json!([function, search])),
        (
            "reasoning",
            json!({"effort": null, "max_tokens": null, "context": null, "mode": null, "summary": null}),
        ),
        (
            "image_config",
            json!({"aspect_ratio": null, "image_size": null, "image_quality": null, "moderation": null, "n": null, "seed": null}),
        ),
        ("prompt_cache_options", json!({"mode": null, "ttl": null})),
    ]
}

/// `Optional` in `openai/types/image_generate_params.py` of the same version.
const IMAGES: [&str; 18] = [
    "background",
    "complexity",
    "frame_count",
    "frame_duration_ms",
    "moderation",
    "n",
    "output_compression",
    "output_format",
    "partial_images",
    "quality",
    "response_format",
    "safety_identifier",
    "style",
    "svg",
    "stream",
    "effort",
    "reasoning",
    "service_tier",
];

/// `Optional` in `openai/types/image_edit_params.py` of the same version.
const EDITS: [&str; 16] = [
    "background",
    "complexity",
    "frame_count",
    "frame_duration_ms",
    "input_fidelity",
    "moderation",
    "n",
    "output_compression",
    "output_format",
    "partial_images",
    "quality",
    "response_format",
    "safety_identifier",
    "stream",
    "svg",
    "service_tier",
];

fn checked(front: &dyn Front, body: &Value) -> ModelRequest {
    let checked = front.parse(body.to_string().into());
    checked.unwrap_or_else(|fault| panic!("{body}: {fault}"))
}

/// What all but the wires read of a request.
fn found(request: &ModelRequest) -> String {
    let ModelRequest {
        is_stream,
        strategy,
        session,
        needs,
        asked,
        ..
    } = request;
    format!("{is_stream} {strategy:?} {session:?} {needs:?} {asked:?}")
}

/// Source: model-gateway 1, 2.1
#[test]
fn every_field_that_the_convention_makes_nullable_takes_null_as_absent() {
    let chat = json!({"messages": [{"role": "user", "content": "a"}]});
    let draws = json!({"prompt": "a cat"});
    let edits = json!({"prompt": "a cat", "images": [{"image_url": "https://a.test/b.png"}]});
    let fronts: [(&dyn Front, &Value, &[&str]); 4] = [
        (&ChatCompletions, &chat, &CHAT),
        (&ChatCompletions, &chat, &CHAT_OF_THE_CONTRACT),
        (&ImageGenerations, &draws, &IMAGES),
        (&ImageEdits, &edits, &EDITS),
    ];
    for (front, plain, fields) in fronts {
        let without = checked(front, plain);
        for field in fields {
            let mut body = plain.clone();
            body[*field] = Value::Null;
            let request = checked(front, &body);
            assert_eq!(found(&request), found(&without), "{field}");
            assert_eq!(request.model, without.model, "{field}");
        }
    }
}

/// Source: model-gateway 2.1, 2.2, 2.3, 2.4
#[test]
fn a_null_inside_a_field_is_absent_too() {
    let plain = json!({"model": "m", "messages": [{"role": "user", "content": "a"}]});
    for (field, value) in inside() {
        let (mut with, mut without) = (plain.clone(), plain.clone());
        with[field] = value.clone();
        without[field] = stripped(value);
        let (with, without) = (
            checked(&ChatCompletions, &with),
            checked(&ChatCompletions, &without),
        );
        assert_eq!(found(&with), found(&without), "{field}");
    }
}

/// A value without the members that are null.
fn stripped(value: Value) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key, stripped(value)))
            .collect(),
        Value::Array(items) => items.into_iter().map(stripped).collect(),
        other => other,
    }
}

/// Source: model-gateway 2.1: no top-level field is required.
#[test]
fn a_chat_without_a_model_is_auto_and_one_without_messages_is_told_who_may_have_them() {
    let request = checked(
        &ChatCompletions,
        &json!({"messages": [{"role": "user", "content": "a"}]}),
    );
    assert_eq!(&*request.model, "auto");
    for body in [json!({"model": "m"}), json!({"messages": null}), json!({})] {
        let fault = ChatCompletions.parse(body.to_string().into()).unwrap_err();
        assert_eq!(
            (fault.status(), fault.param.as_deref()),
            (400, Some("messages"))
        );
        assert!(fault.message.contains("a managed prompt"), "{fault}");
    }
}
