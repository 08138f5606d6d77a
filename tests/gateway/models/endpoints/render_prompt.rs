//! `POST /v1/prompts/{name}`: a managed prompt with the values of its variables.

use serde_json::{Value, json};

use crate::models::endpoints::prompt::greeting;
use crate::support::ask::Ask;
use crate::support::boot::{Gateway, MODELS};
use crate::support::client::{Answer, ask};
use crate::support::described;

fn render(gateway: &Gateway, name: &str, body: &Value) -> Answer {
    let path = format!("/v1/prompts/{name}");
    let request = Ask::post(&path, body.to_string()).key(&gateway.key);
    ask(gateway.address(), &request)
}

/// Contract: model-gateway 4 POST /v1/prompts/{name}
#[test]
fn values_are_put_in_as_in_a_chat() {
    let gateway = Gateway::start("", MODELS);
    gateway.put("hi", &[], &greeting());
    let variables = json!({"name": "\"Ada\" {{free}}", "loud": true, "free": 7});
    let answer = render(&gateway, "hi", &json!({"variables": variables}));
    let expected = json!({
        "name": "hi", "version": 1, "label": "production", "model": "chat",
        "parameters": {"temperature": 0.5},
        "messages": [
            {"role": "system", "content": "Greet \"Ada\" {{free}} 2.5 times, \"true\"."},
            {"role": "user", "content": [{"type": "text", "text": "7"}]},
        ],
    });
    assert_eq!(answer.json(), expected);
    // A number or a boolean may be a text, as it is written.
    let variables = json!({"name": "a", "free": "b", "times": "1.50", "loud": "true"});
    let answer = render(&gateway, "hi", &json!({"variables": variables}));
    assert_eq!(
        answer.json()["messages"][0]["content"],
        "Greet a 1.50 times, \"true\"."
    );
    let plain = json!({"messages": [{"role": "user", "content": "Hi"}]});
    gateway.put("plain", &[], &plain);
    let answer = render(&gateway, "plain", &json!({}));
    assert_eq!(answer.json()["messages"], plain["messages"]);
}

#[test]
fn wrong_values_are_refused_by_name() {
    let gateway = Gateway::start("", MODELS);
    gateway.put("hi", &[], &greeting());
    let full = |name: &str, value: Value| {
        let mut variables = json!({"name": "a", "free": "b"});
        variables[name] = value;
        json!({"variables": variables})
    };
    for (body, param) in [
        (json!({}), "variables.name"),
        (json!({"variables": {"name": "a"}}), "variables.free"),
        (full("name", json!(1)), "variables.name"),
        (full("name", json!(null)), "variables.name"),
        (full("name", json!(["a"])), "variables.name"),
        (full("times", json!("many")), "variables.times"),
        (full("loud", json!("yes")), "variables.loud"),
        (full("other", json!("x")), "variables.other"),
        (json!({"variables": []}), "variables"),
        (json!({"values": {}}), "values"),
    ] {
        let answer = render(&gateway, "hi", &body);
        assert_eq!(answer.status(), 400, "{body}: {}", answer.text());
        let error = answer.json()["error"].take();
        assert_eq!(error["param"], param, "{body}: {error}");
    }
    assert_eq!(render(&gateway, "hi", &json!([])).status(), 400);
    assert_eq!(render(&gateway, "no", &json!({})).status(), 404);
}

#[test]
fn a_prompt_that_its_values_make_too_long_is_refused() {
    let more = "[limits]\nbody_bytes = { chat = 4096 }\n";
    let gateway = Gateway::start(more, MODELS);
    let many = "{{a}}".repeat(100);
    gateway.put(
        "many",
        &[],
        &json!({"messages": [{"role": "user", "content": many}]}),
    );
    let long = json!({"variables": {"a": "x".repeat(100)}});
    let answer = render(&gateway, "many", &long);
    assert_eq!(answer.status(), 413, "{}", answer.text());
    let short = json!({"variables": {"a": "x"}});
    assert_eq!(render(&gateway, "many", &short).status(), 200);
}

#[test]
fn without_managed_prompts_there_are_none() {
    let gateway = Gateway::start("[prompts]\nenabled = false\n", MODELS);
    // What is off is not described.
    described::leave_out(gateway.address());
    assert_eq!(gateway.of_prompts("").status(), 404);
    assert_eq!(gateway.of_prompts("/hi").status(), 404);
    assert_eq!(render(&gateway, "hi", &json!({})).status(), 404);
}
