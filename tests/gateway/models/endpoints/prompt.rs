//! `GET /v1/prompts/{name}`: a version of a managed prompt as it was written.

use serde_json::{Value, json};

use crate::support::ask::Ask;
use crate::support::boot::{Gateway, MODELS, create_organization};
use crate::support::client::{Answer, ask};

/// A prompt with variables of all kinds.
pub fn greeting() -> Value {
    json!({
        "model": "chat",
        "parameters": {"temperature": 0.5},
        "messages": [
            {"role": "system", "content": "Greet {{ name }} {{times}} times, \"{{loud}}\"."},
            {"role": "user", "content": [{"type": "text", "text": "{{free}}"}]},
        ],
        "variables": {
            "name": {"type": "string", "description": "whom to greet"},
            "times": {"type": "number", "default": 2.50},
            "loud": false,
        },
    })
}

impl Gateway {
    /// The answer of a path below `/v1/prompts` to the key.
    pub fn of_prompts(&self, rest: &str) -> Answer {
        let path = format!("/v1/prompts{rest}");
        ask(self.address(), &Ask::get(&path).key(&self.key))
    }
}

/// Contract: model-gateway 4 GET /v1/prompts
#[test]
fn a_version_is_shown_by_name_label_or_number() {
    let gateway = Gateway::start("", MODELS);
    gateway.put("support/hi", &[], &greeting());
    let second = json!({"messages": [{"role": "system", "content": "two"}]});
    gateway.put("support/hi", &["next"], &second);
    let shown = gateway.of_prompts("/support/hi").json();
    let expected = json!({
        "name": "support/hi", "version": 1, "label": "production", "model": "chat",
        "parameters": {"temperature": 0.5},
        "variables": [
            {"name": "name", "type": "string", "required": true, "description": "whom to greet"},
            {"name": "times", "type": "number", "required": false, "default": 2.5},
            {"name": "loud", "type": "boolean", "required": false, "default": false},
            {"name": "free", "required": true},
        ],
        "messages": [
            {"role": "system", "content": "Greet {{name}} {{times}} times, \"{{loud}}\"."},
            {"role": "user", "content": [{"type": "text", "text": "{{free}}"}]},
        ],
    });
    assert_eq!(shown, expected);
    for (name, version, label) in [
        ("/support%2Fhi@next", 2, json!("next")),
        ("/support/hi%40latest", 2, json!("latest")),
        ("/support/hi@1", 1, Value::Null),
    ] {
        let shown = gateway.of_prompts(name).json();
        assert_eq!(
            (&shown["version"], &shown["label"]),
            (&json!(version), &label),
            "{name}"
        );
    }
}

#[test]
fn what_is_not_there_or_anothers_is_not_found() {
    let gateway = Gateway::start("", MODELS);
    gateway.put("hi", &[], &greeting());
    for name in ["/no", "/hi@no", "/hi@7", "/hi@", "/@hi", "/h%ff", "/hi+"] {
        let answer = gateway.of_prompts(name);
        assert_eq!(answer.status(), 404, "{name}: {}", answer.text());
        assert_eq!(answer.json()["error"]["code"], "prompt_not_found", "{name}");
    }
    let stranger = gateway.change(async |store| create_organization("other", store).await);
    let of_stranger = |path: &str| ask(gateway.address(), &Ask::get(path).key(&stranger));
    assert_eq!(of_stranger("/v1/prompts/hi").status(), 404);
    assert_eq!(of_stranger("/v1/prompts").json()["data"], json!([]));
    let nobody = ask(gateway.address(), &Ask::get("/v1/prompts/hi"));
    assert_eq!(nobody.status(), 401);
}
