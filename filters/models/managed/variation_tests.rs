#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::sync::Arc;

use serde_json::{Value, json};

use super::expand::Filling;
use super::variation::{DecidedVariation, Variation};
use crate::fault::Fault;
use crate::ledger::ExperimentNames;
use crate::models::front::{ClientHead, Front, Received};
use crate::models::fronts::chat_completions::ChatCompletions;
use crate::models::fronts::chat_completions::prompt_file::is_field;
use crate::models::prompts::library::FoundPrompt;
use crate::models::prompts::prompt::Prompt;
use crate::models::prompts::tree::Node;

fn variation(variables: &Value) -> Result<Variation, Fault> {
    let variables = variables.as_object().unwrap().iter();
    let decided = DecidedVariation {
        names: Arc::new(ExperimentNames {
            flag: "models".into(),
            rule: "test".into(),
            variation: "b".into(),
        }),
        variables: variables
            .map(|(key, value)| (key.as_str().into(), value.to_string().into()))
            .collect(),
    };
    Variation::read(decided, is_field)
}

fn prompt() -> FoundPrompt {
    let file = json!({"model": "of-prompt", "parameters": {"temperature": 0.1, "max_tokens": 5, "reasoning_effort": "low"},
        "messages": [{"role": "system", "content": "{{tone}} {{n}}"}], "variables": {"tone": "kind", "n": 1}});
    FoundPrompt {
        prompt: Arc::new(Prompt::compile(&Node::parse_json(&file.to_string()).unwrap()).unwrap()),
        name: "hi".into(),
        version: 2,
        label: None,
    }
}

fn completed(
    request: &Value,
    variables: &Value,
    prompt: Option<&FoundPrompt>,
) -> Result<Value, Fault> {
    let Received::Managed(request) =
        ChatCompletions.read(&ClientHead::silent(), request.to_string().into())?
    else {
        panic!("{request} names no flag");
    };
    let variation = variation(variables)?;
    let filling = Filling {
        variation: Some(&variation),
        prompt,
    };
    let expansion = request.expand(filling, 1 << 20)?;
    let body = serde_json::from_slice(&expansion.body).unwrap();
    let managed = expansion.managed;
    ChatCompletions
        .parse(expansion.body)
        .map_err(|fault| managed.explain(fault))?;
    Ok(body)
}

fn asked(members: &Value) -> Value {
    let mut request =
        json!({"model": "@flag/models", "messages": [{"role": "user", "content": "Hi"}]});
    request
        .as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    request
}

#[test]
fn a_variation_fills_what_the_caller_left_unset_before_the_prompt_does() {
    let variables = json!({"model": "of-variation", "prompt": "hi@2", "temperature": 0.9, "max_completion_tokens": 7,
        "reasoning": {"effort": "high"}, "tone": "dry", "top_p": null, "reasoning_effort": ""});
    let own = asked(&json!({"temperature": null, "seed": 3}));
    let body = completed(&own, &variables, Some(&prompt())).unwrap();
    assert_eq!(
        body,
        json!({"messages": [{"role": "system", "content": "dry 1"}, {"role": "user", "content": "Hi"}], "model": "of-variation",
            "seed": 3, "temperature": 0.9, "max_completion_tokens": 7, "reasoning": {"effort": "high"}})
    );
    let own = asked(
        &json!({"temperature": 0, "max_tokens": 1, "prompt": {"id": "hi", "version": 2, "variables": {"tone": "own"}}}),
    );
    let body = completed(&own, &variables, Some(&prompt())).unwrap();
    assert_eq!(
        (&body["temperature"], &body["max_tokens"]),
        (&json!(0), &json!(1))
    );
    assert_eq!(body.get("max_completion_tokens"), None);
    assert_eq!(body["messages"][0]["content"], "own 1");
}

#[test]
fn without_a_prompt_the_messages_are_the_callers_and_without_a_model_the_prompts() {
    let body = completed(
        &asked(&json!({})),
        &json!({"model": "m", "verbosity": "low"}),
        None,
    )
    .unwrap();
    assert_eq!(
        body,
        json!({"messages": [{"role": "user", "content": "Hi"}], "model": "m", "verbosity": "low"})
    );
    let body = completed(&asked(&json!({})), &json!({"n": 2}), Some(&prompt())).unwrap();
    assert_eq!(
        (&body["model"], &body["n"]),
        (&json!("of-prompt"), &json!(2)),
        "a field of the request counts first"
    );
}

#[test]
fn a_variable_of_another_type_or_of_no_use_is_refused_by_name() {
    for (variables, param, said) in [
        (
            json!({"model": 5}),
            "model",
            "the variable `model` of the variation `b` of the flag `models` is a number; accepted is a model id",
        ),
        (
            json!({"prompt": true}),
            "model",
            "the variable `prompt` of the variation `b`",
        ),
        (
            json!({"model": "m", "prompt": "@"}),
            "model",
            "accepted is NAME, NAME@LABEL",
        ),
        (
            json!({"model": "m", "temperature": "hot"}),
            "temperature",
            "(written by the variation `b` of the flag `models`)",
        ),
        (
            json!({"model": "m", "reasoning_effort": "huge"}),
            "reasoning_effort",
            "(written by the variation `b`",
        ),
        (
            json!({"model": "@flag/other"}),
            "model",
            "names a prompt or a flag; accepted is a model id (written by the variation",
        ),
        (
            json!({}),
            "model",
            "the variation `b` of the flag `models` names none",
        ),
    ] {
        let fault = completed(&asked(&json!({})), &variables, None).unwrap_err();
        assert_eq!(
            (fault.status(), fault.param.as_deref()),
            (400, Some(param)),
            "{fault}"
        );
        assert!(fault.message.contains(said), "{said}: {fault}");
    }
}

#[test]
fn variables_that_are_for_other_prompts_are_left_out() {
    let variables = json!({"model": "m", "style": "terse", "stream": true, "settings": {"a": 1}});
    let body = completed(&asked(&json!({})), &variables, None).unwrap();
    assert_eq!(
        body,
        json!({"messages": [{"role": "user", "content": "Hi"}], "model": "m"})
    );
    let variables = json!({"tone": {"a": "\"b\""}, "style": "terse"});
    let body = completed(&asked(&json!({})), &variables, Some(&prompt())).unwrap();
    assert_eq!(body["messages"][0]["content"], "{\"a\":\"\\\"b\\\"\"} 1");
}

#[test]
fn a_value_that_does_not_fit_the_prompts_variable_is_told_with_its_flag() {
    let variables = json!({"model": "m", "tone": 5});
    let fault = completed(&asked(&json!({})), &variables, Some(&prompt())).unwrap_err();
    assert_eq!(
        (fault.status(), fault.param.as_deref()),
        (400, Some("prompt.variables.tone"))
    );
    assert!(
        fault
            .message
            .contains("(given by the variation `b` of the flag `models`)"),
        "{fault}"
    );
    let own = asked(&json!({"prompt": {"id": "hi", "variables": {"tone": 5}}}));
    let fault = completed(&own, &variables, Some(&prompt())).unwrap_err();
    assert!(!fault.message.contains("given by"), "{fault}");
}

#[test]
fn a_flag_is_named_by_its_key() {
    for (model, key) in [
        ("@flag/models", Some("models")),
        ("@flag/a/b", Some("a/b")),
        ("@flag/", None),
    ] {
        let read = ChatCompletions.read(
            &ClientHead::silent(),
            json!({"model": model, "user": "u", "prompt_cache_key": "s"})
                .to_string()
                .into(),
        );
        match key {
            Some(key) => {
                let Ok(Received::Managed(request)) = read else {
                    panic!("{model}")
                };
                assert_eq!(request.flag.as_deref(), Some(key));
                assert_eq!(
                    (request.user.as_deref(), request.session.as_deref()),
                    (Some("u"), Some("s"))
                );
            }
            None => assert_eq!(read.unwrap_err().param.as_deref(), Some("model")),
        }
    }
}
