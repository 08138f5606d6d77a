#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]
//! Unit tests of the replies; `tests/gateway/sandbox.rs` tests the sandbox over sockets.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::budget::{Budget, TooLarge};
use super::request::SandboxRequest;
use super::response::SandboxResponse;
use super::schema::make_example;
use super::{decisions, embeddings, rerank};

fn request(extra: Value) -> SandboxRequest {
    let mut body = json!({
        "model": "sandbox-chat",
        "messages": [{"role": "system", "content": "x"}, {"role": "user", "content": "hello there"}],
    });
    body.as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    SandboxRequest::parse(body.to_string().as_bytes()).unwrap()
}

fn whole(extra: Value) -> Value {
    SandboxResponse::new(&request(extra)).unwrap().to_whole()
}

fn tool(name: &str) -> Value {
    let parameters = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    });
    json!({"type": "function", "function": {"name": name, "parameters": parameters}})
}

fn called(answer: &Value) -> Vec<&str> {
    let calls = answer["choices"][0]["message"]["tool_calls"].as_array();
    calls
        .into_iter()
        .flatten()
        .map(|call| call["function"]["name"].as_str().unwrap())
        .collect()
}

#[test]
fn the_last_user_text_is_echoed() {
    let choice = &whole(json!({}))["choices"][0];
    assert_eq!(choice["message"]["content"], "You said: hello there");
    assert_eq!(choice["finish_reason"], "stop");
}

#[test]
fn parts_are_joined_and_other_parts_ignored() {
    let parts = json!([{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}]);
    let answer = whole(json!({"messages": [{"role": "user", "content": parts}]}));
    assert_eq!(answer["choices"][0]["message"]["content"], "You said: a\nb");
}

#[test]
fn a_long_text_is_echoed_in_part() {
    let answer = whole(json!({"messages": [{"role": "user", "content": "é".repeat(5000)}]}));
    let content = answer["choices"][0]["message"]["content"].as_str().unwrap();
    assert_eq!(content.chars().count(), "You said: ".len() + 400);
}

#[test]
fn usage_adds_up() {
    // Messages: 3 + 1 ("x") and 3 + 3 ("hello there"); answer: 21 bytes, 6 tokens.
    let usage = &whole(json!({}))["usage"];
    assert_eq!(
        (&usage["prompt_tokens"], &usage["completion_tokens"]),
        (&json!(10), &json!(6))
    );
    assert_eq!(usage["total_tokens"], 16);
}

#[test]
fn a_token_limit_cuts_the_text_at_a_character() {
    let said = json!([{"role": "user", "content": "éééééé"}]);
    let answer = whole(json!({"messages": said, "max_completion_tokens": 3}));
    assert_eq!(answer["choices"][0]["message"]["content"], "You said: é");
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    assert_eq!(answer["usage"]["completion_tokens"], 3);
}

#[test]
fn n_answers_are_numbered_and_paid_for() {
    let answer = whole(json!({"n": 3}));
    let indexes: Vec<_> = answer["choices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| &c["index"])
        .collect();
    assert_eq!(indexes, [&json!(0), &json!(1), &json!(2)]);
    assert_eq!(answer["usage"]["completion_tokens"], 18);
}

#[test]
fn reasoning_is_said_only_when_asked_for() {
    let answer = whole(json!({"reasoning_effort": "low"}));
    assert!(answer["choices"][0]["message"]["reasoning_content"].is_string());
    let reasoning = &answer["usage"]["completion_tokens_details"]["reasoning_tokens"];
    assert_eq!(reasoning, 10);
    assert_eq!(answer["usage"]["completion_tokens"], 16);
    let silent = whole(json!({"reasoning_effort": "none"}));
    assert_eq!(
        silent["choices"][0]["message"].get("reasoning_content"),
        None
    );
}

#[test]
fn tools_are_called_when_named_required_or_forced() {
    let tools = json!([tool("weather"), tool("clock")]);
    let messages = json!([{"role": "user", "content": "Weather and clock, please"}]);
    let forced = json!({"type": "function", "function": {"name": "clock"}});
    let is = |extra: Value| called(&whole(extra)).join(",");
    assert_eq!(is(json!({"tools": tools})), "");
    assert_eq!(
        is(json!({"tools": tools, "messages": messages})),
        "weather,clock"
    );
    let one = json!({"tools": tools, "messages": messages, "parallel_tool_calls": false});
    assert_eq!(is(one), "weather");
    assert_eq!(
        is(json!({"tools": tools, "tool_choice": "required"})),
        "weather"
    );
    assert_eq!(is(json!({"tools": tools, "tool_choice": forced})), "clock");
    let none = json!({"tools": tools, "messages": messages, "tool_choice": "none"});
    assert_eq!(is(none), "");
}

#[test]
fn a_call_has_the_required_arguments() {
    let answer = whole(json!({"tools": [tool("weather")], "tool_choice": "required"}));
    let choice = &answer["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    assert_eq!(choice["message"]["content"], Value::Null);
    let arguments = choice["message"]["tool_calls"][0]["function"]["arguments"]
        .as_str()
        .unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(arguments).unwrap(),
        json!({"city": "sandbox"})
    );
}

#[test]
fn a_tools_result_is_answered_with_text() {
    let messages =
        json!([{"role": "user", "content": "weather"}, {"role": "tool", "content": "sunny"}]);
    let answer = whole(json!({"tools": [tool("weather")], "messages": messages}));
    assert_eq!(
        answer["choices"][0]["message"]["content"],
        "The tool said: sunny"
    );
}

#[test]
fn json_formats_are_answered_with_json() {
    let content = |format: Value| {
        let answer = whole(json!({"response_format": format}));
        let text = answer["choices"][0]["message"]["content"]
            .as_str()
            .unwrap()
            .to_owned();
        serde_json::from_str::<Value>(&text).unwrap()
    };
    assert_eq!(
        content(json!({"type": "json_object"})),
        json!({"you_said": "hello there"})
    );
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 7}}, "required": ["n"]});
    let format = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}});
    assert_eq!(content(format), json!({"n": 7}));
}

#[test]
fn the_folded_stream_is_the_whole_answer() {
    let cases = [
        json!({"reasoning_effort": "high", "n": 2}),
        json!({"tools": [tool("hello"), tool("there")]}),
        json!({"max_tokens": 3}),
    ];
    for mut case in cases {
        case["stream_options"] = json!({"include_usage": true});
        let request = request(case);
        let answer = SandboxResponse::new(&request).unwrap();
        let (whole, chunks) = (answer.to_whole(), answer.to_chunks());
        for choice in whole["choices"].as_array().unwrap() {
            let mut folded = fold(&chunks, &choice["index"]);
            folded["message"]["refusal"] = Value::Null;
            assert_eq!(folded["message"], choice["message"]);
            assert_eq!(folded["finish_reason"], choice["finish_reason"]);
        }
        assert_eq!(chunks.last().unwrap()["usage"], whole["usage"]);
        assert_eq!(chunks.last().unwrap()["choices"], json!([]));
    }
}

/// Joins the deltas of one choice, as a client does.
fn fold(chunks: &[Value], index: &Value) -> Value {
    let (mut message, mut finish) = (json!({"content": null}), Value::Null);
    let choices = chunks
        .iter()
        .flat_map(|chunk| chunk["choices"].as_array().unwrap());
    for choice in choices.filter(|choice| choice["index"] == *index) {
        for (name, value) in choice["delta"].as_object().unwrap() {
            match value.as_str() {
                Some("") => {}
                Some(text) => {
                    let said = message[name].as_str().unwrap_or_default().to_owned();
                    message[name] = (said + text).into();
                }
                None => value
                    .as_array()
                    .unwrap()
                    .iter()
                    .for_each(|call| fold_call(&mut message, call)),
            }
        }
        finish = choice["finish_reason"].clone();
    }
    json!({"message": message, "finish_reason": finish})
}

fn fold_call(message: &mut Value, delta: &Value) {
    if message["tool_calls"].is_null() {
        message["tool_calls"] = json!([]);
    }
    let calls = message["tool_calls"].as_array_mut().unwrap();
    let index = delta["index"].as_u64().unwrap() as usize;
    if index == calls.len() {
        let mut call = delta.clone();
        call.as_object_mut().unwrap().shift_remove("index");
        calls.push(call);
        return;
    }
    let piece = delta["function"]["arguments"].as_str().unwrap();
    let arguments = &mut calls[index]["function"]["arguments"];
    *arguments = (arguments.as_str().unwrap().to_owned() + piece).into();
}

#[test]
fn usage_is_streamed_only_when_asked_for() {
    let request = request(json!({}));
    assert!(
        SandboxResponse::new(&request)
            .unwrap()
            .to_chunks()
            .iter()
            .all(|chunk| chunk.get("usage").is_none())
    );
}

#[test]
fn wrong_types_count_as_absent() {
    let request = request(
        json!({"n": "many", "messages": 7, "tools": {}, "max_tokens": -1, "stream": "yes"}),
    );
    assert_eq!(
        (
            request.choices,
            request.user_text.as_str(),
            request.is_stream
        ),
        (1, "", false)
    );
    assert!(SandboxRequest::parse(b"{").is_none());
}

fn example(schema: &Value) -> Result<Value, TooLarge> {
    make_example(schema, &mut Budget::new(64 << 10))
}

#[test]
fn a_schema_that_names_itself_many_times_is_too_large() {
    let long = "x".repeat(2000);
    let twice =
        |inner: Value| json!({"required": ["a", "b"], "properties": {"a": inner, "b": inner}});
    let itself = json!({"$ref": "#"});
    for schema in [
        json!({"type": "array", "minItems": 64, "items": itself}),
        twice(itself.clone()),
        json!({"allOf": [itself, itself, itself]}),
        json!({"type": "array", "minItems": 64, "items": {"const": long}}),
        json!({"type": "array", "minItems": 64, "items": {"$ref": format!("#/{long}")}}),
        json!({"type": "array", "minItems": 64, "items": {"type": vec!["x"; 2000]}}),
        json!({"type": "array", "minItems": 64, "items": {"required": vec![0; 2000], "type": "object"}}),
    ] {
        assert_eq!(example(&schema), Err(TooLarge), "{schema}");
    }
}

#[test]
fn calls_of_one_reply_share_a_budget() {
    let list = json!({"type": "array", "minItems": 64, "items": {"type": "array", "minItems": 16}});
    let tool = |at: usize| json!({"type": "function", "function": {"name": format!("t{at}"), "parameters": list}});
    let request = |count: usize| {
        let named: String = (0..count).map(|at| format!("t{at} ")).collect();
        request(
            json!({"tools": (0..count).map(tool).collect::<Vec<_>>(), "messages": [{"role": "user", "content": named}]}),
        )
    };
    assert!(SandboxResponse::new(&request(2)).is_ok());
    assert!(SandboxResponse::new(&request(9)).is_err());
}

#[test]
fn a_long_text_is_streamed_in_few_pieces() {
    let words = "a ".repeat(60_000);
    let schema = json!({"const": words});
    let request = request(
        json!({"stream": true, "response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}),
    );
    let chunks = SandboxResponse::new(&request).unwrap().to_chunks();
    assert!(chunks.len() < 1000, "{}", chunks.len());
    let content = fold(&chunks, &json!(0))["message"]["content"].clone();
    assert_eq!(content, format!("{:?}", words));
}

#[test]
fn vectors_of_one_reply_have_a_bound_together() {
    let body = |count: usize| json!({"input": vec!["a"; count], "dimensions": 4096});
    assert!(embeddings::embed(&body(64)).is_some());
    assert!(embeddings::embed(&body(65)).is_none());
}

#[test]
fn words_are_shared_in_any_case_and_counted_as_the_query_repeats_them() {
    let request = json!({"query": "Red red house", "documents": ["a RED dog", "the house", "red, red house!", ""]});
    let ranked = rerank::rank(&request).unwrap();
    let score = |at: usize| &ranked["results"][at]["relevance_score"];
    assert_eq!(
        [score(0), score(1), score(2), score(3)],
        [
            &json!(1.0),
            &json!(2.0 / 3.0),
            &json!(1.0 / 3.0),
            &json!(0.0)
        ]
    );
    let request = json!({"input": "Is it RED?", "questions": [
        {"type": "predicate", "name": "q", "instructions": "red car"}]});
    let decided = decisions::decide(&request).unwrap();
    assert_eq!(decided["answers"][0]["probability"], 0.5);
}

/// Every document had each word of the query looked up in a list of its own words.
#[test]
fn ranking_looks_at_each_word_once() {
    let words = |from: usize| {
        (from..from + 40_000)
            .map(|at| format!("w{at} "))
            .collect::<String>()
    };
    let documents: Vec<String> = std::iter::once(words(40_000))
        .chain((0..5000).map(|at| format!("w{at}")))
        .collect();
    let request = json!({"query": words(0), "documents": documents});
    let started = Instant::now();
    let ranked = rerank::rank(&request).unwrap();
    assert_eq!(ranked["results"].as_array().unwrap().len(), 5001);
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn examples_fit_their_schemas() {
    let cases = [
        (json!({"const": 5}), json!(5)),
        (json!({"enum": ["b", "a"]}), json!("b")),
        (json!({"type": ["null", "boolean"]}), json!(true)),
        (json!({"type": "number", "exclusiveMinimum": 2}), json!(3)),
        (json!({"type": "integer", "maximum": -4}), json!(-4)),
        (
            json!({"type": "string", "minLength": 9}),
            json!("sandboxxx"),
        ),
        (json!({"type": "string", "maxLength": 2}), json!("sa")),
        (
            json!({"type": "string", "format": "date"}),
            json!("2026-01-01"),
        ),
        (
            json!({"type": "array", "items": {"type": "null"}, "minItems": 2}),
            json!([null, null]),
        ),
        (
            json!({"anyOf": [{"type": "null"}, {"type": "string"}]}),
            Value::Null,
        ),
        (
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"const": 1}}}),
            json!(1),
        ),
        (
            json!({"properties": {"a": {"const": 1}}, "required": ["a"]}),
            json!({"a": 1}),
        ),
        (
            json!({"allOf": [
                {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]},
                {"type": "object", "properties": {"b": {"const": 2}}, "required": ["b"]},
            ]}),
            json!({"a": 1, "b": 2}),
        ),
    ];
    for (schema, expected) in cases {
        assert_eq!(example(&schema), Ok(expected), "{schema}");
    }
}

#[test]
fn a_schema_that_contains_itself_comes_to_an_end() {
    let schema = json!({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]});
    assert!(example(&schema).unwrap().is_object());
}
