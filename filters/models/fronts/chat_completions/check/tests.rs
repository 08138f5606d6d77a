#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::fault::Fault;
use crate::models::chat::facts::ChatFacts;
use crate::models::dialects::chat::{self, find_parameter};
use crate::models::front::Front;
use crate::models::fronts::chat_completions::ChatCompletions;
use crate::models::parameter::Parameter;
use crate::models::request::{Effort, ModelRequest, Payload, Strategy as Routing};
use crate::money::ServiceTier;

fn plain() -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]})
}

fn checked(value: &Value) -> Result<ModelRequest, Fault> {
    ChatCompletions.parse(value.to_string().into())
}

fn chat(request: &ModelRequest) -> &ChatFacts {
    match &request.payload {
        Payload::Chat(chat) => chat,
        other => panic!("{other:?}"),
    }
}

/// A plain request with one more member.
fn with(key: &str, value: Value) -> Result<ModelRequest, Fault> {
    let mut request = plain();
    request[key] = value;
    checked(&request)
}

#[track_caller]
fn refused(fault: Result<ModelRequest, Fault>, param: &str) -> Fault {
    let fault = fault.unwrap_err();
    assert_eq!(
        (fault.status(), fault.param.as_deref()),
        (400, Some(param)),
        "{fault}"
    );
    assert!(fault.message.contains(param), "{fault}");
    fault
}

#[test]
fn every_field_takes_its_type_and_names_itself_for_another() {
    let string = json!("text");
    for (key, good, bad) in [
        ("model", string.clone(), json!(5)),
        ("messages", json!([{"role": "user"}]), json!({})),
        ("temperature", json!(0.5), json!("hot")),
        ("temperature", json!(null), json!([])),
        ("max_tokens", json!(0), json!("0")),
        ("max_completion_tokens", json!(1.5), json!([5])),
        ("top_p", json!(1), json!("1")),
        ("frequency_penalty", json!(-1.0), json!(true)),
        ("presence_penalty", json!(null), json!({})),
        (
            "response_format",
            json!({"type": "json_object"}),
            json!("json"),
        ),
        ("stream", json!(true), json!("true")),
        ("n", json!(128), json!(129)),
        ("n", json!(null), json!("1")),
        ("prompt_cache_key", string.clone(), json!(1)),
        ("prompt_cache_retention", json!("24h"), json!("25h")),
        ("user", json!(null), json!(7)),
        (
            "tools",
            json!([{"type": "function", "function": {"name": "f"}}]),
            json!("f"),
        ),
        ("tool_choice", json!("auto"), json!("maybe")),
        ("parallel_tool_calls", json!(null), json!("no")),
        ("reasoning_effort", json!("xhigh"), json!("extreme")),
        (
            "reasoning",
            json!({"effort": "low", "context": "auto"}),
            json!("low"),
        ),
        ("stop", json!(["a"]), json!([5])),
        ("stop", json!("a"), json!(5)),
        ("verbosity", json!("low"), json!("loud")),
        ("service_tier", json!("flex"), json!("fast")),
        ("routing", json!("latency"), json!("fastest")),
        ("free_models_only", json!(true), json!(0)),
        ("onboarding", json!(true), json!("yes")),
        ("no_reasoning", json!(false), json!(0)),
        ("web_search", json!(false), json!("no")),
        ("plugins", json!([]), json!({})),
        (
            "sensitive_word_check",
            json!({"status": "DISABLE"}),
            json!("ENABLE"),
        ),
        ("image_config", json!({}), json!([])),
        ("effort", json!(null), json!(5)),
        (
            "stream_options",
            json!({"include_usage": true}),
            json!(true),
        ),
    ] {
        let passed = with(key, good.clone());
        assert!(passed.is_ok(), "{key}: {good}: {:?}", passed.err());
        let fault = with(key, bad).unwrap_err();
        assert_eq!(fault.status(), 400);
        assert!(fault.param.as_deref().unwrap().starts_with(key), "{fault}");
        assert!(fault.message.contains(key), "{fault}");
    }
}

#[test]
fn wrong_values_inside_are_named_by_their_path() {
    let message = |message: Value| json!({"model": "m", "messages": [{"role": "user", "content": "a"}, message]});
    let part = |part: Value| {
        message(json!({"role": "user", "content": [{"type": "text", "text": "a"}, part]}))
    };
    for (request, param) in [
        (message(json!({"content": "a"})), "messages[1].role"),
        (message(json!({"role": "wizard"})), "messages[1].role"),
        (
            message(json!({"role": "user", "content": 5})),
            "messages[1].content",
        ),
        (
            message(json!({"role": "tool", "tool_call_id": 5, "content": "a"})),
            "messages[1].tool_call_id",
        ),
        (
            message(json!({"role": "assistant", "tool_calls": [{"id": "a", "type": "function"}]})),
            "messages[1].tool_calls[0].function",
        ),
        (
            message(
                json!({"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": {}}}]}),
            ),
            "messages[1].tool_calls[0].function.arguments",
        ),
        (
            message(json!({"role": "assistant", "reasoning_details": [{"text": 5}]})),
            "messages[1].reasoning_details[0].text",
        ),
        (
            message(json!({"role": "assistant", "vendor_native_blocks": [{}]})),
            "messages[1].vendor_native_blocks[0].type",
        ),
        (
            message(
                json!({"role": "tool", "tool_call_id": "a", "tool_result_cache_control": {"type": "ephemeral", "ttl": "2h"}}),
            ),
            "messages[1].tool_result_cache_control.ttl",
        ),
        (part(json!({"text": "a"})), "messages[1].content[1].type"),
        (part(json!({"type": "text"})), "messages[1].content[1].text"),
        (
            part(json!({"type": "image_url", "image_url": {"url": "u", "detail": "ultra"}})),
            "messages[1].content[1].image_url.detail",
        ),
        (
            part(json!({"type": "input_audio", "input_audio": {"data": "QQ", "format": "midi"}})),
            "messages[1].content[1].input_audio.format",
        ),
        (
            part(json!({"type": "file", "file": {"file_id": 5}})),
            "messages[1].content[1].file.file_id",
        ),
        (
            part(json!({"type": "text", "text": "a", "cache_control": {"ttl": "5m"}})),
            "messages[1].content[1].cache_control.type",
        ),
        (
            part(
                json!({"type": "text", "text": "a", "extra_content": {"google": {"thought_signature": 5}}}),
            ),
            "messages[1].content[1].extra_content.google.thought_signature",
        ),
    ] {
        refused(checked(&request), param);
    }
}

/// Contract: model-gateway 2.1 plugins
#[test]
fn an_answer_in_json_is_healed_where_it_is_the_only_one() {
    let object = json!({"type": "json_object"});
    let schema = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": {}}});
    let plugins = json!([{"id": "response-healing", "more": 1}]);
    for (format, plugins, n, heals) in [
        (&object, &plugins, json!(1), true),
        (&schema, &plugins, Value::Null, true),
        (&object, &plugins, json!(2), false),
        (&object, &json!([]), json!(1), false),
        (&json!({"type": "text"}), &plugins, json!(1), false),
        (&Value::Null, &plugins, json!(1), false),
    ] {
        let mut request = plain();
        request["response_format"] = format.clone();
        request["plugins"] = plugins.clone();
        request["n"] = n;
        let checked = checked(&request).unwrap();
        assert_eq!(chat(&checked).heals, heals, "{request}");
    }
    for (plugins, param) in [
        (json!([{"id": "web"}]), "plugins[0].id"),
        (json!([{"id": "response-healing"}, {}]), "plugins[1].id"),
        (json!(["response-healing"]), "plugins[0]"),
        (json!([null]), "plugins[0]"),
        (json!({"id": "response-healing"}), "plugins"),
    ] {
        refused(with("plugins", plugins), param);
    }
}

/// Contract: model-gateway 2.2 message_items
#[test]
fn the_order_of_a_turn_is_checked_and_marks_its_message() {
    let turn = |member: &str, value: Value| {
        with(
            "messages",
            json!([{"role": "assistant", "content": "a", member: value}]),
        )
    };
    let item = json!({"text": "a", "phase": "commentary", "preceding_tool_calls": 1.0});
    for (member, value) in [
        ("phase", json!("final_answer")),
        ("content_before_tool_calls", json!(false)),
        ("message_items", json!([item])),
    ] {
        let request = turn(member, value).unwrap();
        assert_eq!(chat(&request).special_messages.len(), 1, "{member}");
        assert!(request.front.conversation(&request).is_ok());
    }
    // Source: docs/model-gateway.md 2.2: of `message_items` only `text` is required.
    let bare = turn("message_items", json!([{"text": "a"}])).unwrap();
    assert!(bare.front.conversation(&bare).is_ok());
    refused(turn("phase", json!("middle")), "messages[0].phase");
    for (lacking, item) in [
        (
            "text",
            json!({"phase": "commentary", "preceding_tool_calls": 0}),
        ),
        ("phase", json!({"text": "a", "phase": "middle"})),
        (
            "preceding_tool_calls",
            json!({"text": "a", "phase": "commentary", "preceding_tool_calls": -1}),
        ),
    ] {
        let param = format!("messages[0].message_items[0].{lacking}");
        refused(turn("message_items", json!([item])), &param);
    }
}

#[test]
fn the_numbers_of_messages_tools_and_calls_are_bounded() {
    let messages = |count| {
        with(
            "messages",
            vec![json!({"role": "user", "content": "a"}); count].into(),
        )
    };
    assert!(messages(10_000).is_ok());
    refused(messages(10_001), "messages");
    let tool = json!({"type": "function", "function": {"name": "f"}});
    let tools = |count| with("tools", vec![tool.clone(); count].into());
    assert!(tools(1024).is_ok());
    refused(tools(1025), "tools");
    let call = json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let calls = |count| {
        let calls = vec![call.clone(); count];
        let asked = json!({"role": "user", "content": "a"});
        let called = json!({"role": "assistant", "content": null, "tool_calls": calls});
        with("messages", json!([asked, called]))
    };
    assert!(calls(1024).is_ok());
    refused(calls(1025), "messages[1].tool_calls");
    let part = json!({"type": "text", "text": "a"});
    let parts = |count: usize| {
        let message = json!({"role": "user", "content": vec![part.clone(); count / 2]});
        let last = json!({"role": "user", "content": vec![part.clone(); count - count / 2]});
        with("messages", json!([message, last]))
    };
    assert!(parts(20_000).is_ok());
    refused(parts(20_001), "messages[1].content[10000]");
}

#[test]
fn what_excludes_each_other_is_refused() {
    let tools = json!([{"type": "function", "function": {"name": "f"}}]);
    let mut request = plain();
    request["tools"] = tools.clone();
    request["n"] = 2.into();
    assert!(checked(&request).is_ok());
    request["stream"] = true.into();
    assert_eq!(
        refused(checked(&request), "n").code(),
        Some("unsupported_parameter_combination")
    );
    let mut request = plain();
    request["reasoning_effort"] = "low".into();
    request["reasoning"] = json!({"effort": "low"});
    assert_eq!(
        refused(checked(&request), "reasoning_effort").code(),
        Some("invalid_request")
    );
    refused(with("tool_choice", "required".into()), "tool_choice");
    let mut request = plain();
    request["tools"] = tools;
    request["tool_choice"] = json!({"type": "function", "function": {"name": "g"}});
    refused(checked(&request), "tool_choice.function.name");
    let marked = json!({"type": "function", "function": {"name": "f"}, "cache_control": {"type": "ephemeral"}});
    assert!(with("tools", json!(vec![marked.clone(); 4])).is_ok());
    refused(with("tools", json!(vec![marked; 5])), "tools");
}

#[test]
fn keys_that_came_twice_are_refused_also_behind_escapes() {
    for body in [
        r#"{"model":"a","messages":[{"role":"user"}],"model":"b"}"#,
        r#"{"model":"a","messages":[{"role":"user"}],"mod\u0065l":"b"}"#,
        r#"{"model":"a","messages":[{"role":"user"}],"x":1,"x":2}"#,
        r#"{"model":"a","messages":[{"role":"user","role":"system"}]}"#,
    ] {
        let fault = ChatCompletions
            .parse(body.as_bytes().to_vec().into())
            .unwrap_err();
        assert_eq!(fault.code(), Some("duplicate_key"), "{body}");
    }
}

#[test]
fn a_body_cut_anywhere_is_no_json() {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "é\n"}]}], "n": 1}).to_string();
    for end in 0..body.len() {
        let fault = ChatCompletions
            .parse(body.as_bytes()[..end].to_vec().into())
            .unwrap_err();
        assert_eq!(fault.code(), Some("invalid_json"), "{end}");
    }
}

#[test]
fn numbers_beyond_what_a_number_can_be_are_refused_where_they_count_and_passed_where_not() {
    let body = r#"{"model":"m","messages":[{"role":"user"}],"temperature":1e400}"#;
    refused(ChatCompletions.parse(body.into()), "temperature");
    assert!(
        ChatCompletions
            .parse(r#"{"model":"m","messages":[{"role":"user"}],"seed":1e400}"#.into())
            .is_ok()
    );
}

/// Contract: model-gateway 2.1 user
#[test]
fn what_routing_needs_is_found() {
    let request = checked(&json!({
        "model": "m", "stream": true, "stream_options": {"include_usage": true}, "routing": "price", "service_tier": "priority",
        "user": "u", "prompt_cache_key": "k", "max_tokens": 5, "max_completion_tokens": 6, "reasoning": {"max_tokens": 2000, "mode": "pro"},
        "reasoning_effort": "high", "no_reasoning": true, "free_models_only": true,
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}},
        "tools": [{"type": "function", "function": {"name": "f"}, "cache_control": {"type": "ephemeral"}}], "tool_choice": "required",
        "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}, {"type": "input_audio", "input_audio": {"data": "QQ", "format": "mp3"}}, {"type": "file", "file": {"file_id": "f"}}]},
            {"role": "assistant", "content": "a", "reasoning": "r"}],
    })).unwrap();
    assert!(
        request.is_stream
            && chat(&request).includes_usage
            && request.needs.no_reasoning
            && request.needs.free_models_only
            && chat(&request).special_tools
    );
    assert_eq!(
        (request.strategy, request.needs.service_tier),
        (Some(Routing::Price), ServiceTier::Priority)
    );
    assert_eq!(
        (request.session.as_deref(), request.needs.max_tokens),
        (Some("k"), Some(6))
    );
    let needs = &request.needs;
    assert!(
        needs.vision
            && needs.documents
            && needs.tools
            && needs.forced_tools
            && needs.json_schema
            && needs.cache_control
    );
    assert_eq!(
        (
            needs.effort,
            needs.reasoning_tokens,
            needs.reasoning_mode.as_deref()
        ),
        (Some(Effort::High), Some(2000), Some("pro"))
    );
    assert_eq!(request.needs.audio, [Box::from("mp3")]);
    let special = &request.source.body[chat(&request).special_messages[0].clone()];
    assert!(
        special.starts_with(b"{")
            && special.ends_with(b"}")
            && chat(&request).special_messages.len() == 1
    );
    let model = request.source.member("model").unwrap();
    assert_eq!(request.source.value(model), b"\"m\"");
}

#[test]
fn a_parameter_is_asked_for_if_its_value_changes_something() {
    let tool = json!([{"type": "function", "function": {"name": "f", "strict": true}}]);
    for (key, asks, idle) in [
        ("temperature", json!(0), json!(1)),
        ("top_p", json!(0.5), json!(1.0)),
        ("frequency_penalty", json!(0.1), json!(0)),
        ("presence_penalty", json!(-1), json!(0.0)),
        ("max_tokens", json!(1), Value::Null),
        ("stop", json!("a"), json!([])),
        ("seed", json!(0), Value::Null),
        ("logit_bias", json!({"1": 2}), json!({})),
        ("logprobs", json!(true), json!(false)),
        ("top_logprobs", json!(1), json!(0)),
        ("user", json!("u"), json!("")),
        ("prompt_cache_key", json!("k"), Value::Null),
        ("prompt_cache_retention", json!("24h"), Value::Null),
        ("verbosity", json!("low"), Value::Null),
        ("store", json!(true), json!(false)),
        ("modalities", json!(["text", "audio"]), json!(["text"])),
        ("functions", json!([{"name": "f"}]), json!([])),
        (
            "response_format",
            json!({"type": "json_object"}),
            json!({"type": "text"}),
        ),
        ("tools", tool, json!([])),
    ] {
        let parameter = find_parameter(key).unwrap();
        let asked = |value: &Value| with(key, value.clone()).unwrap().asked.set;
        assert!(asked(&asks).contains(parameter), "{key}: {asks}");
        assert!(!asked(&idle).contains(parameter), "{key}: {idle}");
    }
    let request = with("max_completion_tokens", json!(7)).unwrap();
    assert_eq!(request.asked.number(Parameter::MaxTokens), Some(7.0));
    assert_eq!(
        with("stop", json!(["a", "b"]))
            .unwrap()
            .asked
            .number(Parameter::Stop),
        Some(2.0)
    );
}

#[test]
fn parameters_inside_messages_and_tools_are_asked_for_too() {
    let image =
        json!({"type": "image_url", "image_url": {"url": "https://a.test/b.png", "detail": "low"}});
    let request = checked(
        &json!({"model": "m", "parallel_tool_calls": false, "tool_choice": "required",
        "tools": [{"type": "function", "function": {"name": "f", "strict": true}}],
        "messages": [{"role": "user", "name": "ann", "content": [image]},
            {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"content": [image], "tool_call_id": "c", "role": "tool"}]}),
    );
    let asked = request.unwrap().asked.set;
    for parameter in [
        Parameter::MessageName,
        Parameter::ImageDetail,
        Parameter::StrictTools,
        Parameter::ToolResultMedia,
        Parameter::ToolChoice,
        Parameter::ParallelToolCalls,
    ] {
        assert!(asked.contains(parameter), "{}", parameter.as_str());
    }
    let plain = checked(
        &json!({"model": "m", "messages": [{"role": "function", "name": "f", "content": "a"}]}),
    );
    assert!(plain.unwrap().asked.set.is_empty());
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z]{0,6}".prop_map(Value::from),
        Just(json!("user")),
        Just(json!("assistant")),
        Just(json!("text")),
        Just(json!("function")),
        Just(json!("tool")),
    ];
    let keys = "(role|content|type|text|name|tool_calls|id|function|arguments|tool_call_id|image_url|url|x)";
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::hash_map(keys, inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// A message that is well formed but for one member, which may be anything.
fn any_message() -> impl Strategy<Value = Value> {
    let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let parts = json!([
        {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
        {"type": "image_url", "image_url": {"url": "https://a.test/b.png", "detail": "low"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
        {"type": "file", "file": {"file_id": "f"}},
        {"type": "refusal", "refusal": "no"},
    ]);
    let messages = [
        json!({"role": "system", "content": "a"}),
        json!({"role": "developer", "content": null, "name": "a"}),
        json!({"role": "user", "content": parts}),
        json!({"role": "assistant", "tool_calls": [call], "reasoning_details": [{"text": "a"}]}),
        json!({"role": "tool", "tool_call_id": "c", "content": "a"}),
    ];
    let keys = "(role|content|name|tool_call_id|tool_calls|reasoning|reasoning_content|reasoning_details|phase|content_before_tool_calls|message_items|vendor_native_blocks|tool_result_cache_control|x)";
    let member = proptest::option::of((keys, any_json()));
    (proptest::sample::select(messages.to_vec()), member).prop_map(|(mut message, member)| {
        if let Some((key, value)) = member {
            message[key] = value;
        }
        message
    })
}

proptest! {
    #[test]
    fn bytes_of_any_kind_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        _ = ChatCompletions.parse(bytes.into());
    }
}

#[test]
fn what_passes_the_checks_can_be_translated() {
    let messages = proptest::collection::vec(any_message(), 1..4);
    let keys = "(tools|tool_choice|stop|user|x)";
    let requests = (messages, proptest::option::of((keys, any_json())));
    let passed = std::cell::Cell::new(0);
    let mut runner = TestRunner::default();
    let ran = runner.run(&requests, |(messages, member)| {
        let mut request = json!({"model": "m", "messages": messages});
        if let Some((key, value)) = member {
            request[key] = value;
        }
        if let Ok(request) = checked(&request) {
            passed.set(passed.get() + 1);
            let read = request.front.conversation(&request);
            prop_assert!(read.is_ok(), "{:?}", read.err());
        }
        Ok(())
    });
    ran.unwrap();
    assert!(passed.get() >= 20, "only {} requests passed", passed.get());
}

#[test]
fn the_data_of_a_picture_is_counted_apart_from_the_text() {
    let url = format!("data:image/png;base64,{}", "A".repeat(4000));
    let part = json!({"type": "image_url", "image_url": {"url": url}});
    let message = json!([{"role": "user", "content": [part]}]);
    let request = with("messages", message).unwrap();
    assert_eq!(request.cost_inputs.images, 1);
    let bytes = request.source.body.len() as u64 - request.cost_inputs.bytes;
    assert_eq!(bytes, url.len() as u64);
}

#[test]
fn every_checked_member_is_one_of_the_dialect() {
    let rows = super::top::FIELDS.iter().map(|row| row.key);
    for key in rows {
        assert!(chat::KEYS.contains(&key) || chat::is_gateways(key), "{key}");
    }
    let images = super::image_config::IMAGE_CONFIG.iter();
    for row in images {
        assert!(chat::find_image_parameter(row.key).is_some(), "{}", row.key);
    }
}
