#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::sync::Arc;

use serde_json::{Value, json};

use crate::fault::Fault;
use crate::models::front::{Front, Received};
use crate::models::fronts::chat_completions::ChatCompletions;
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
    match ChatCompletions.read(request.to_owned().into())? {
        Received::Managed(request) => {
            let prompt = found(file);
            let filling = Filling {
                variation: None,
                prompt: Some(&prompt),
            };
            request.expand(filling, max_bytes)
        }
        Received::Complete(request) => panic!("{request:?} names no prompt"),
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
            .read(request.to_string().into())
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
    let fault = ChatCompletions.read(twice.to_owned().into()).unwrap_err();
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
    let read = ChatCompletions.read(plain.to_string().into()).unwrap();
    assert!(matches!(read, Received::Complete(request) if request.managed.is_none()));
    use crate::models::fronts::embeddings::EMBEDDINGS;
    let body = json!({"model": "@prompt/hi", "input": "a"});
    let fault = EMBEDDINGS.read(body.to_string().into()).unwrap_err();
    assert_eq!(
        (fault.status(), fault.param.as_deref()),
        (400, Some("model"))
    );
    let nested = json!({"model": "@prompt/hi", "messages": [{"role": "user"}]});
    assert!(ChatCompletions.parse(nested.to_string().into()).is_err());
}
