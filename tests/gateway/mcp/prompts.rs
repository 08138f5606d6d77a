//! Prompts: the managed prompts that the key may use, rendered as the gateway renders them.

use serde_json::{Value, json};

use super::{code, result, rpc};
use crate::models::endpoints::prompt::greeting;
use crate::support::boot::{Gateway, MODELS, create_organization};
use crate::support::client::ask;

fn names(gateway: &Gateway, key: &str) -> Vec<Value> {
    let request = rpc(gateway, "prompts/list", json!({}));
    let mut listed = result(gateway, &request.without("Authorization").key(key));
    let listed = listed["prompts"].take();
    let listed = listed.as_array().unwrap().iter();
    listed.map(|prompt| prompt["name"].clone()).collect()
}

fn gateway() -> Gateway {
    let gateway = Gateway::start("", MODELS);
    gateway.put("support/hi", &[], &greeting());
    // Nobody gets it by its name alone.
    gateway.put("draft", &["next"], &greeting());
    gateway
}

#[test]
fn prompts_are_listed_with_their_variables_as_arguments() {
    let gateway = gateway();
    let listed = result(&gateway, &rpc(&gateway, "prompts/list", json!({})));
    let description = "Version 1 of a managed prompt, which the label `production` names.";
    let expected = json!([{"name": "support/hi", "description": description, "arguments": [
        {"name": "name", "description": "whom to greet A string.", "required": true},
        {"name": "times", "description": "A number. Default: 2.5.", "required": false},
        {"name": "loud", "description": "A boolean. Default: false.", "required": false},
        {"name": "free", "required": true},
    ]}]);
    assert_eq!(listed["prompts"], expected);
    let stranger = gateway.change(async |store| create_organization("other", store).await);
    assert_eq!(names(&gateway, &stranger), Vec::<Value>::new());
    gateway.put("another", &[], &greeting());
    assert_eq!(names(&gateway, &gateway.key), ["another", "support/hi"]);
    let paged = rpc(&gateway, "prompts/list", json!({"cursor": "1"}));
    assert_eq!(code(&ask(gateway.address(), &paged)), (200, json!(-32602)));
}

#[test]
fn a_prompt_is_rendered_with_its_arguments() {
    let gateway = gateway();
    let get = |name: &str| {
        let arguments = json!({"name": "Ada", "free": "{{name}}", "times": "3", "loud": "true"});
        rpc(
            &gateway,
            "prompts/get",
            json!({"name": name, "arguments": arguments}),
        )
    };
    let rendered = result(&gateway, &get("support/hi"));
    let text = |text: &str| json!({"role": "user", "content": {"type": "text", "text": text}});
    assert_eq!(
        rendered["messages"],
        json!([text("Greet Ada 3 times, \"true\"."), text("{{name}}")])
    );
    let about = json!({
        "version": 1, "label": "production", "model": "chat", "parameters": {"temperature": 0.5},
    });
    assert_eq!(rendered["_meta"]["weirgate/prompt"], about);
    let draft = result(&gateway, &get("draft@next"));
    assert_eq!(draft["_meta"]["weirgate/prompt"]["label"], "next");
}

#[test]
fn wrong_names_and_arguments_are_told() {
    let gateway = gateway();
    for (params, said) in [
        (json!({"name": "support/hi"}), "`arguments.name` is missing"),
        (
            json!({"name": "support/hi", "arguments": {"name": "a"}}),
            "`arguments.free` is missing",
        ),
        (
            json!({"name": "support/hi", "arguments": {"name": "a", "free": "b", "times": "x"}}),
            "`arguments.times` is a string; accepted is a number",
        ),
        (
            json!({"name": "support/hi", "arguments": {"name": "a", "free": "b", "more": "x"}}),
            "`arguments.more` is no variable",
        ),
        (
            json!({"name": "support/hi", "arguments": {"name": 1}}),
            "`arguments.name` is no text",
        ),
        (json!({"name": "support/hi", "arguments": []}), "no object"),
        (json!({"name": "no"}), "there is no prompt \"no\""),
        (json!({"name": "draft"}), "no label \"production\""),
        (json!({"name": "../key"}), "there is no prompt"),
        (json!({"arguments": {}}), "`name` is missing"),
    ] {
        let answer = ask(
            gateway.address(),
            &rpc(&gateway, "prompts/get", params.clone()),
        );
        assert_eq!(code(&answer), (200, json!(-32602)), "{params}");
        let message = answer.json()["error"]["message"].take();
        assert!(message.as_str().unwrap().contains(said), "{message}");
    }
}

#[test]
fn without_managed_prompts_there_are_no_methods_of_them() {
    let gateway = Gateway::start("[prompts]\nenabled = false\n", MODELS);
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let begun = result(&gateway, &rpc(&gateway, "initialize", hello));
    assert_eq!(begun["capabilities"].get("prompts"), None);
    assert!(begun["capabilities"]["resources"].is_object());
    for method in ["prompts/list", "prompts/get"] {
        let answer = ask(gateway.address(), &rpc(&gateway, method, json!({})));
        assert_eq!(code(&answer), (200, json!(-32601)));
    }
}
