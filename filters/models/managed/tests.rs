#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::sync::Arc;

use serde_json::{Value, json};

use crate::fault::Fault;
use crate::models::front::{ClientHead, Front, Received};
use crate::models::fronts::chat_completions::ChatCompletions;
use crate::models::fronts::messages::Messages;
use crate::models::fronts::responses::Responses;
use crate::models::managed::expand::{Expansion, Filling};
use crate::models::prompts::library::FoundPrompt;
use crate::models::prompts::prompt::Prompt;
use crate::models::prompts::tree::Node;
use crate::models::request::ModelRequest;

fn found(file: &Value) -> FoundPrompt {
    let root = Node::parse_json(&file.to_string()).unwrap();
    FoundPrompt {
        prompt: Arc::new(Prompt::compile(&root).unwrap()),
        name: "hi".into(),
        version: 3,
        label: Some("production".into()),
    }
}

fn expand(file: &Value, request: &str, max_bytes: usize) -> Result<Expansion, Fault> {
    match ChatCompletions.read(&ClientHead::silent(), request.to_owned().into())? {
        Received::Managed(request) => {
            let prompt = found(file);
            let filling = Filling {
                variation: None,
                prompt: Some(&prompt),
            };
            request.expand(filling, max_bytes)
        }
        other => panic!("{other:?} names no prompt"),
    }
}

fn expanded(file: &Value, request: &Value) -> Value {
    let expansion = expand(file, &request.to_string(), 1 << 20).unwrap();
    let body = serde_json::from_slice(&expansion.body).unwrap();
    ChatCompletions.parse(expansion.body).unwrap();
    body
}

/// What a request becomes, or the fault of the result.
fn complete(file: &Value, request: &Value) -> Result<ModelRequest, Fault> {
    let expansion = expand(file, &request.to_string(), 1 << 20)?;
    let managed = expansion.managed;
    ChatCompletions
        .parse(expansion.body)
        .map_err(|fault| managed.explain(fault))
}

fn hello() -> Value {
    json!({"model": "m", "messages": [{"role": "system", "content": "Hello {{name}}"}], "variables": {"name": "you"}})
}

fn with(mut value: Value, key: &str, inner: Value) -> Value {
    value[key] = inner;
    value
}

#[test]
fn messages_come_first_and_the_callers_members_stay_as_they_are_written() {
    let request = r#"{ "x" : 1.50 , "messages": [ {"role":"user","content":"Hi"} ] ,"model":"@prompt/hi", "seed":1e3}"#;
    let expansion = expand(&hello(), request, 1 << 20).unwrap();
    assert_eq!(
        String::from_utf8(expansion.body.to_vec()).unwrap(),
        r#"{"messages":[{"role":"system","content":"Hello you"},{"role":"user","content":"Hi"}],"model":"m","x" : 1.50,"seed":1e3}"#
    );
    assert_eq!(
        &*expansion.managed.members,
        r#""prompt":{"id":"hi","version":3,"label":"production"}"#
    );
    assert_eq!(
        expansion.managed.requested_model.as_deref(),
        Some("@prompt/hi")
    );
}

#[test]
fn without_messages_of_the_caller_the_prompts_are_all() {
    for request in [json!({}), json!({"messages": []})] {
        let request = with(request, "model", json!("@prompt/hi"));
        let body = expanded(&hello(), &request);
        assert_eq!(body["messages"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn variables_of_the_request_are_put_in_without_being_read_again() {
    let variables = json!({"name": "\"A\u{1}\n{{name}}\\"});
    let request = json!({"prompt": {"id": "hi", "variables": variables}});
    let body = expanded(&hello(), &request);
    assert_eq!(body["messages"][0]["content"], "Hello \"A\u{1}\n{{name}}\\");
    assert!(body.get("prompt").is_none());
    for (value, text) in [
        (json!(1.5), "Hello 1.5"),
        (json!(true), "Hello true"),
        (json!(""), "Hello "),
    ] {
        let file =
            json!({"model": "m", "messages": [{"role": "system", "content": "Hello {{name}}"}]});
        let request = json!({"prompt": {"id": "hi", "variables": {"name": value}}});
        assert_eq!(expanded(&file, &request)["messages"][0]["content"], text);
    }
}

#[test]
fn a_prompt_fills_what_the_caller_left_unset_in_every_spelling() {
    for (parameters, own, expected) in [
        (
            json!({"temperature": 0.5, "top_p": 1}),
            json!({"temperature": 0}),
            json!({"temperature": 0, "top_p": 1}),
        ),
        (
            json!({"temperature": 0.5}),
            json!({"temperature": null}),
            json!({"temperature": 0.5}),
        ),
        (
            json!({"max_tokens": 5}),
            json!({"max_completion_tokens": 9}),
            json!({"max_completion_tokens": 9}),
        ),
        (
            json!({"max_completion_tokens": 5}),
            json!({"max_tokens": 9}),
            json!({"max_tokens": 9}),
        ),
        (
            json!({"max_completion_tokens": 5}),
            json!({"max_tokens": null}),
            json!({"max_tokens": null, "max_completion_tokens": 5}),
        ),
        (
            json!({"reasoning_effort": "low"}),
            json!({"reasoning": {"effort": "high"}}),
            json!({"reasoning": {"effort": "high"}}),
        ),
        (
            json!({"reasoning_effort": "low"}),
            json!({"reasoning": {"effort": null, "max_tokens": 9}}),
            json!({"reasoning": {"effort": null, "max_tokens": 9}, "reasoning_effort": "low"}),
        ),
        (
            json!({"reasoning": {"effort": "low"}}),
            json!({"reasoning_effort": "high"}),
            json!({"reasoning_effort": "high"}),
        ),
        (
            json!({"reasoning": {"mode": "pro"}}),
            json!({"reasoning_effort": "high"}),
            json!({"reasoning_effort": "high", "reasoning": {"mode": "pro"}}),
        ),
        (
            json!({"stop": ["a"], "top_k": 5}),
            json!({"stop": []}),
            json!({"stop": [], "top_k": 5}),
        ),
    ] {
        let file = with(hello(), "parameters", parameters);
        let mut body = expanded(&file, &with(own, "model", json!("@prompt/hi")));
        let members = body.as_object_mut().unwrap();
        members.remove("messages");
        members.remove("model");
        assert_eq!(body, expected);
    }
}

#[test]
fn the_callers_model_counts_before_the_prompts() {
    let by_object = |model: Value| with(json!({"prompt": {"id": "hi"}}), "model", model);
    assert_eq!(expanded(&hello(), &by_object(json!("own")))["model"], "own");
    for request in [
        json!({"prompt": {"id": "hi"}}),
        by_object(Value::Null),
        by_object(json!("@prompt/hi")),
    ] {
        assert_eq!(expanded(&hello(), &request)["model"], "m");
    }
    let mut file = hello();
    file.as_object_mut().unwrap().remove("model");
    assert_eq!(expanded(&file, &by_object(json!("own")))["model"], "own");
    for request in [
        json!({"prompt": {"id": "hi"}}),
        by_object(Value::Null),
        json!({"model": "@prompt/hi"}),
    ] {
        assert_eq!(expanded(&file, &request).get("model"), None);
        let completed = complete(&file, &request).unwrap();
        assert_eq!(&*completed.model, "auto", "{request}");
    }
}

#[test]
fn a_name_that_is_no_reference_and_two_that_differ_are_refused() {
    let both = |model: &str, prompt: Value| json!({"model": model, "prompt": prompt});
    for (request, param, said) in [
        (
            json!({"model": "@prompt/"}),
            "model",
            "`@prompt/NAME@LABEL`",
        ),
        (
            json!({"model": "@prompt/a@"}),
            "model",
            "`@prompt/NAME@LABEL`",
        ),
        (json!({"prompt": {"id": ""}}), "prompt.id", "is empty"),
        (json!({"prompt": {"version": 1}}), "prompt.id", "is missing"),
        (
            json!({"prompt": {"id": "a", "version": 0}}),
            "prompt.version",
            "accepted is an integer of at least 1",
        ),
        (
            json!({"prompt": {"id": "a", "label": ""}}),
            "prompt.label",
            "is empty",
        ),
        (
            json!({"prompt": {"id": "a", "variables": {"x": null}}}),
            "prompt.variables.x",
            "a string, a number or a boolean",
        ),
        (
            json!({"prompt": {"id": "a", "variables": {"x": []}}}),
            "prompt.variables.x",
            "a string, a number or a boolean",
        ),
        (json!({"prompt": "a"}), "prompt", "accepted is an object"),
        (
            both("@prompt/a", json!({"id": "b"})),
            "prompt",
            "names b@production and `model` names a@production",
        ),
        (
            both("@prompt/a", json!({"id": "a", "version": 2})),
            "prompt",
            "accepted is one of them, or the same in both",
        ),
        (
            both("@prompt/a@2", json!({"id": "a", "label": "x"})),
            "prompt",
            "names a@x and `model` names a@2",
        ),
        (
            json!({"model": "@prompt/a", "temperature": "hot"}),
            "temperature",
            "a number or null",
        ),
        (
            json!({"model": "@prompt/a", "messages": [{"role": "x"}]}),
            "messages[0].role",
            "one of",
        ),
    ] {
        let fault = ChatCompletions
            .read(&ClientHead::silent(), request.to_string().into())
            .unwrap_err();
        assert_eq!(
            (fault.status(), fault.param.as_deref()),
            (400, Some(param)),
            "{fault}"
        );
        assert!(fault.message.contains(said), "{fault}");
    }
    for same in [
        both("@prompt/hi", json!({"id": "hi", "label": "production"})),
        both("@prompt/hi@3", json!({"id": "hi", "version": 3})),
    ] {
        expanded(&hello(), &same);
    }
    let twice = r#"{"prompt":{"id":"a","variables":{"x":1,"x":2}}}"#;
    let fault = ChatCompletions
        .read(&ClientHead::silent(), twice.to_owned().into())
        .unwrap_err();
    assert_eq!(fault.param.as_deref(), Some("prompt.variables.x"));
}

#[test]
fn a_fault_of_the_result_says_who_has_written_the_member() {
    let image = json!({"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "QQ", "format": "{{f}}"}}]});
    let audio = json!({"model": "m", "messages": [image]});
    let tools = json!([{"type": "function", "function": {"name": "f"}}]);
    for (file, request, param, is_prompts) in [
        (
            audio,
            json!({"prompt": {"id": "hi", "variables": {"f": "midi"}}}),
            "messages[0].content[0].input_audio.format",
            true,
        ),
        (
            with(hello(), "parameters", json!({"tool_choice": "required"})),
            json!({"model": "@prompt/hi"}),
            "tool_choice",
            true,
        ),
        (
            hello(),
            json!({"model": "@prompt/hi", "tool_choice": "required"}),
            "tool_choice",
            false,
        ),
        (
            with(hello(), "parameters", json!({"n": 2})),
            json!({"model": "@prompt/hi", "stream": true, "tools": tools}),
            "n",
            true,
        ),
    ] {
        let fault = complete(&file, &request).unwrap_err();
        assert_eq!(
            (fault.status(), fault.param.as_deref()),
            (400, Some(param)),
            "{fault}"
        );
        let says = fault
            .message
            .contains("(written by the prompt `hi`, version 3)");
        assert_eq!(says, is_prompts, "{fault}");
    }
    let managed = expand(&hello(), r#"{"model":"@prompt/hi"}"#, 1 << 20)
        .unwrap()
        .managed;
    let fault = managed.explain(Fault::invalid(
        "messages[2].name",
        "`messages[2].name` is bad",
    ));
    assert_eq!(
        (fault.param.as_deref(), &*fault.message),
        (Some("messages[1].name"), "`messages[1].name` is bad")
    );
    let fault = managed.explain(Fault::invalid("messages[0]", "bad"));
    assert!(fault.message.contains("written by the prompt"), "{fault}");
    let fault = managed.explain(Fault::invalid("model", "bad"));
    assert!(fault.message.contains("written by the prompt"), "{fault}");
}

#[test]
fn a_request_never_grows_beyond_its_limit() {
    let repeated = "{{name}}".repeat(1000);
    let file = json!({"model": "m", "messages": [{"role": "user", "content": repeated}]});
    let request = |bytes: usize| {
        json!({"prompt": {"id": "hi", "variables": {"name": "x".repeat(bytes)}}}).to_string()
    };
    let fault = expand(&file, &request(1 << 20), 20 << 20).unwrap_err();
    assert_eq!(
        (fault.status(), fault.param.as_deref()),
        (413, Some("prompt"))
    );
    assert!(expand(&file, &request(1 << 10), 20 << 20).is_ok());
    // The default of a variable may have escapes.
    let file = with(file, "variables", json!({"name": "\u{1}".repeat(50)}));
    assert!(expand(&file, r#"{"model":"@prompt/hi"}"#, 200_000).is_err());
    assert!(
        expand(
            &hello(),
            &json!({"prompt": {"id": "hi", "variables": {"name": "x".repeat(1 << 20)}}})
                .to_string(),
            3 << 20
        )
        .is_ok()
    );
}

#[test]
fn a_request_without_a_prompt_is_complete_and_another_operation_takes_none() {
    let plain = json!({"model": "m", "messages": [{"role": "user", "content": "@prompt/hi"}]});
    let read = ChatCompletions
        .read(&ClientHead::silent(), plain.to_string().into())
        .unwrap();
    assert!(matches!(read, Received::Complete(request) if request.managed.is_none()));
    use crate::models::fronts::embeddings::EMBEDDINGS;
    let body = json!({"model": "@prompt/hi", "input": "a"});
    let fault = EMBEDDINGS
        .read(&ClientHead::silent(), body.to_string().into())
        .unwrap_err();
    assert_eq!(
        (fault.status(), fault.param.as_deref()),
        (400, Some("model"))
    );
    let nested = json!({"model": "@prompt/hi", "messages": [{"role": "user"}]});
    assert!(ChatCompletions.parse(nested.to_string().into()).is_err());
}

/// What a request of another API becomes, or the fault of the result.
fn completed(front: &'static dyn Front, file: &Value, request: &Value) -> Result<Value, Fault> {
    let Received::Managed(request) =
        front.read(&ClientHead::silent(), request.to_string().into())?
    else {
        panic!("{request} names no prompt");
    };
    let prompt = found(file);
    let filling = Filling {
        variation: None,
        prompt: Some(&prompt),
    };
    let expansion = request.expand(filling, 1 << 20)?;
    let body = serde_json::from_slice(&expansion.body).unwrap();
    let parsed = front.parse(expansion.body);
    parsed.map_err(|fault| expansion.managed.explain(fault))?;
    Ok(body)
}

fn in_messages(file: &Value, request: &Value) -> Result<Value, Fault> {
    completed(&Messages, file, request)
}

fn in_responses(file: &Value, request: &Value) -> Result<Value, Fault> {
    completed(&Responses, file, request)
}

#[test]
fn a_request_of_responses_is_completed_in_its_own_words() {
    let file = json!({
        "model": "m",
        "parameters": {"temperature": 0.2, "max_completion_tokens": 800, "reasoning_effort": "high", "verbosity": "low",
            "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": true}},
            "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}],
            "parallel_tool_calls": false, "tool_choice": {"type": "function", "function": {"name": "f"}}, "of_the_vendor": [1]},
        "messages": [
            {"role": "system", "content": "Answer {{name}}."},
            {"role": "user", "content": [{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAE="}}]},
            {"role": "assistant", "content": "I see."}],
        "variables": {"name": "you"},
    });
    let request = json!({"model": "@prompt/hi", "instructions": "Be kind.", "stream": true, "temperature": 1, "input": "Go on"});
    let body = in_responses(&file, &request).unwrap();
    let item =
        |role: &str, content: Value| json!({"type": "message", "role": role, "content": content});
    let text = |text: &str| json!({"type": "input_text", "text": text});
    let image =
        json!({"type": "input_image", "image_url": "data:image/png;base64,AAE=", "detail": "auto"});
    let expected = json!({
        "model": "m", "stream": true, "temperature": 1, "max_output_tokens": 800, "instructions": "Be kind.",
        "input": [item("system", json!([text("Answer you.")])), item("user", json!([text("Look"), image])),
            item("assistant", json!([{"type": "output_text", "text": "I see."}])), {"role": "user", "content": "Go on"}],
        "reasoning": {"effort": "high"}, "parallel_tool_calls": false,
        "text": {"verbosity": "low", "format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": true}},
        "tools": [{"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}}],
        "tool_choice": {"type": "function", "name": "f"},
        "of_the_vendor": [1],
    });
    assert_eq!(body, expected);
    // What the caller has said counts, and the caller's items are counted as the caller does.
    let own = json!({"model": "own", "max_output_tokens": 50, "prompt": {"id": "hi", "variables": {"name": "Ada"}}, "text": {"verbosity": "high"},
        "tools": [{"type": "function", "name": "g"}], "tool_choice": "auto", "input": [{"role": "user", "content": "Go on"}]});
    let body = in_responses(&file, &own).unwrap();
    for key in ["model", "max_output_tokens", "tools", "tool_choice", "text"] {
        assert_eq!(body[key], own[key], "{key}");
    }
    let mut broken = own.clone();
    broken["input"] = json!([{"role": "user", "content": 5}]);
    let fault = in_responses(&file, &broken).unwrap_err();
    assert_eq!(fault.param.as_deref(), Some("input[0].content"));
    let seeded = with(hello(), "parameters", json!({"seed": 5}));
    let fault = in_responses(&seeded, &request).unwrap_err();
    let said = "has `seed`, which requests of Responses cannot say";
    assert!(fault.message.contains(said), "{}", fault.message);
}

#[test]
fn a_request_of_messages_is_completed_in_its_own_words() {
    let file = json!({
        "model": "m",
        "parameters": {"temperature": 0.2, "max_completion_tokens": 800, "stop": "END", "reasoning_effort": "high",
            "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
            "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}],
            "parallel_tool_calls": false, "tool_choice": "required", "of_the_vendor": [1]},
        "messages": [
            {"role": "system", "content": "Answer {{name}}."},
            {"role": "user", "content": [{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAE="}}]},
            {"role": "assistant", "content": "I see."}],
        "variables": {"name": "you"},
    });
    let request = json!({"model": "@prompt/hi", "system": "Be kind.", "stream": true, "temperature": 1, "stop_sequences": null,
        "messages": [{"role": "user", "content": "Go on"}]});
    let body = in_messages(&file, &request).unwrap();
    let text = |text: &str| json!({"type": "text", "text": text});
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAE="}});
    let expected = json!({
        "model": "m", "stream": true, "temperature": 1, "max_tokens": 800, "stop_sequences": ["END"],
        "system": [text("Answer you."), text("Be kind.")],
        "messages": [{"role": "user", "content": [text("Look"), image]}, {"role": "assistant", "content": [text("I see.")]},
            {"role": "user", "content": "Go on"}],
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "high", "format": {"type": "json_schema", "schema": {"type": "object"}}},
        "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": true},
        "of_the_vendor": [1],
    });
    assert_eq!(body, expected);
    // What the caller has said counts.
    let own = json!({"model": "own", "max_tokens": 5, "prompt": {"id": "hi", "variables": {"name": "Ada"}},
        "tools": [{"name": "g", "input_schema": {"type": "object"}}], "tool_choice": {"type": "auto"}, "output_config": {"effort": "low"},
        "messages": [{"role": "user", "content": "Go on"}]});
    let body = in_messages(&file, &own).unwrap();
    for key in [
        "model",
        "max_tokens",
        "tools",
        "tool_choice",
        "output_config",
    ] {
        assert_eq!(body[key], own[key], "{key}");
    }
    assert_eq!(body["system"], json!([text("Answer Ada.")]));
}

#[test]
fn what_messages_cannot_say_is_named() {
    let request = json!({"model": "@prompt/hi", "max_tokens": 5, "messages": [{"role": "user", "content": "Go on"}]});
    let parts = json!([{"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}}]);
    for (key, value, said) in [
        ("parameters", json!({"seed": 5}), "`seed`"),
        (
            "parameters",
            json!({"response_format": {"type": "json_object"}}),
            "`response_format`",
        ),
        (
            "messages",
            json!([{"role": "user", "content": parts}]),
            "a part of type `input_audio` in its message 1",
        ),
        (
            "messages",
            json!([{"role": "user", "content": "a"}, {"role": "tool", "tool_call_id": "c", "content": "b"}]),
            "`tool_call_id`",
        ),
    ] {
        let fault = in_messages(&with(hello(), key, value), &request).unwrap_err();
        let message = format!("version 3 of the prompt `hi` has {said}");
        assert_eq!(fault.status(), 400);
        assert!(fault.message.starts_with(&message), "{}", fault.message);
    }
}

#[test]
fn faults_of_messages_count_the_callers_messages_as_the_caller_does() {
    let file = json!({"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}], "parameters": {"max_tokens": 5}});
    let mut request = json!({"model": "m", "prompt": {"id": "hi"}, "messages": [{"role": "user", "content": "a"}, {"role": "user", "content": 5}]});
    let fault = in_messages(&file, &request).unwrap_err();
    assert_eq!(
        fault.param.as_deref(),
        Some("messages.1.content"),
        "{}",
        fault.message
    );
    let file = with(file, "parameters", json!({"max_tokens": "many"}));
    request["messages"] = json!([{"role": "user", "content": "a"}]);
    let fault = in_messages(&file, &request).unwrap_err();
    assert_eq!(fault.param.as_deref(), Some("max_tokens"));
    assert!(
        fault
            .message
            .ends_with("(written by the prompt `hi`, version 3)"),
        "{}",
        fault.message
    );
    // Nobody names a limit.
    let fault = in_messages(&with(file, "parameters", json!({})), &request).unwrap_err();
    assert_eq!(fault.param.as_deref(), Some("max_tokens"));
}
