//! `GET /v1/models`.

use filters::accounts::Mode;
use serde_json::{Value, json};

use crate::models::fronts::chat_completions::reply;
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};
use crate::support::upstream::Upstream;

/// Contract: model-gateway 4 GET /v1/models
#[test]
fn the_list_is_openais_with_prices_per_token_as_decimals() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let body = ask(gateway.address(), &Ask::get("/v1/models").key(&gateway.key)).json();
    assert_eq!(body["object"], "list");
    let model = body["data"]
        .as_array()
        .unwrap()
        .iter()
        .find(|model| model["id"] == "chat")
        .unwrap()
        .clone();
    assert_eq!(
        (&model["object"], &model["owned_by"]),
        (&"model".into(), &"test".into())
    );
    assert_eq!(
        (&model["pricing"]["prompt"], &model["pricing"]["completion"]),
        (&"0.0000025".into(), &"0.00001".into())
    );
    assert_eq!(model["aliases"], serde_json::json!(["nick"]));
    assert_eq!(model["created"], 1_767_312_000);
    assert_eq!(model["providers"].as_array().unwrap().len(), 2);
}

#[test]
fn codex_finds_its_own_list_beside_the_usual_one() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let asked = |query: &str| {
        let asked = Ask::get(&format!("/v1/models{query}")).key(&gateway.key);
        ask(gateway.address(), &asked).json()
    };
    assert_eq!(asked("").get("models"), None);
    let told = asked("?client_version=0.171.0");
    assert_eq!(told["data"], asked("")["data"]);
    // The other model takes no tools.
    let models = told["models"].as_array().unwrap();
    assert_eq!(models.len(), 1, "{told}");
    assert_eq!(
        (&models[0]["slug"], &models[0]["shell_type"]),
        (&json!("chat"), &json!("default"))
    );
    assert_eq!(models[0]["supports_parallel_tool_calls"], true);
    let of_second = asked("?client_version=0.171.0&provider=second");
    assert_eq!(
        of_second["models"][0]["input_modalities"],
        json!(["text", "image"])
    );
}

#[test]
fn the_list_may_have_one_entry_per_provider() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let body = ask(
        gateway.address(),
        &Ask::get("/v1/models?mapped=true").key(&gateway.key),
    )
    .json();
    let ids: Vec<&str> = body["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["first/chat", "second/chat", "first/only-first"]);
}

#[test]
fn the_list_needs_a_key_unless_the_configuration_says_otherwise() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    assert_eq!(
        ask(gateway.address(), &Ask::get("/v1/models")).status(),
        401
    );
    let open = Gateway::with(&first.url(), &first.url(), "[models]\nrequire_key = false");
    assert_eq!(ask(open.address(), &Ask::get("/v1/models")).status(), 200);
}

/// A model that every provider deprecates, and one that is no longer served.
const ENDING: &str = r#"
[[models]]
id = "aging"
successor = "fresh"
[[models.providers]]
provider = "first"
name = "aging-1"
deprecated_at = 2024-01-02

[[models]]
id = "gone"
successor = "fresh"
[[models.providers]]
provider = "first"
name = "gone-1"
deprecated_at = 2024-01-02
deactivated_at = 2025-01-02

[[models]]
id = "fresh"
[[models.providers]]
provider = "first"
name = "fresh-1"
"#;

/// Contract: model-gateway 9 4
#[test]
fn a_model_that_ends_is_told_and_then_refused_with_the_one_to_use() {
    let first = Upstream::always(reply());
    let url = first.url();
    let gateway = Gateway::start(
        &format!(
            "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{url}/v1\"\nkeys = []\n"
        ),
        ENDING,
    );
    let call = |model: &str| gateway.asked(&gateway.key, model, json!({}));

    let answer = call("aging");
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let line = gateway.log_line(answer.header("x-request-id").unwrap());
    assert_eq!(line["deprecated_at"], "2024-01-02");
    assert_eq!(line["log_id"], answer.json()["metadata"]["log_id"]);
    assert_eq!(line["log_id"].as_str().unwrap().len(), 36);
    let answer = call("fresh");
    let line = gateway.log_line(answer.header("x-request-id").unwrap());
    assert!(line.get("deprecated_at").is_none(), "{line}");

    let answer = call("gone");
    assert_eq!(answer.status(), 410);
    let error = answer.json()["error"].clone();
    assert_eq!(error["param"], "model");
    assert_eq!(error["message"], "`gone` is retired: use `fresh`");

    let list = Ask::get("/v1/models?include_deactivated=true").key(&gateway.key);
    let list = ask(gateway.address(), &list).json();
    let told: Vec<_> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            json!([
                one["id"],
                one["successor"],
                one["deprecated_at"],
                one["deactivated_at"]
            ])
        })
        .collect();
    let (aging, gone) = ("2024-01-02T00:00:00Z", "2025-01-02T00:00:00Z");
    assert_eq!(
        told,
        [
            json!(["aging", "fresh", aging, null]),
            json!(["gone", "fresh", aging, gone]),
            json!(["fresh", null, null, null]),
        ]
    );
}

/// A model of two providers, of which one ends.
const HALF_ENDING: &str = r#"
[[models]]
id = "half"
[[models.providers]]
provider = "first"
name = "half-1"
reasoning_efforts = ["low", "high"]
reasoning_modes = ["standard", "pro"]
capabilities = ["streaming"]
deactivated_at = 2999-01-02
[[models.providers]]
provider = "second"
name = "half-2"
"#;

/// Source: model-gateway 9.4; 2.1, rules for `reasoning_effort` 4.
/// Contract: model-gateway 2.1 reasoning_effort 4
/// Contract: model-gateway 9 4
#[test]
fn a_date_of_one_provider_stands_at_that_provider_and_efforts_whatever_its_capabilities() {
    let provider = |name: &str| {
        format!(
            "[providers.{name}]\nkind = \"openai-compatible\"\nbase_url = \"http://127.0.0.1:9/v1\"\nkeys = []\n"
        )
    };
    let gateway = Gateway::start(&(provider("first") + &provider("second")), HALF_ENDING);
    let model = gateway.list(&gateway.key, "/half").json();
    let dates: Vec<_> = model["providers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["deactivated_at"].clone())
        .collect();
    assert_eq!(dates, [json!("2999-01-02T00:00:00Z"), json!(null)]);
    assert!(
        model["deactivated_at"].is_null(),
        "the other provider goes on"
    );
    assert_eq!(model["reasoning_efforts"], json!(["low", "high"]));
    assert_eq!(
        model["providers"][0]["reasoning_efforts"],
        json!(["low", "high"])
    );
    let modes = json!(["standard", "pro"]);
    assert_eq!(model["reasoning_modes"], modes);
    assert_eq!(model["providers"][0]["reasoning_modes"], modes);
    assert!(model["providers"][1].get("reasoning_modes").is_none());
}

impl Gateway {
    /// The answer of `GET /v1/models` with more of the path or a query.
    pub fn list(&self, key: &str, query: &str) -> Answer {
        ask(
            self.address(),
            &Ask::get(&format!("/v1/models{query}")).key(key),
        )
    }

    fn listed(&self, key: &str, query: &str) -> Vec<String> {
        let answer = self.list(key, query);
        assert_eq!(answer.status(), 200, "{}", answer.text());
        let body = answer.json();
        let data = body["data"].as_array().unwrap().iter();
        data.map(|it| it["id"].as_str().unwrap().to_owned())
            .collect()
    }
}

#[test]
fn the_list_has_what_the_rules_of_the_key_allow() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let providers = |key: &str| {
        let model = gateway.list(key, "/chat").json();
        let providers = model["providers"].as_array().unwrap().iter();
        let ids = providers.map(|it| it["providerId"].clone());
        Value::Array(ids.collect())
    };
    let all = gateway.listed(&gateway.key, "");
    let second = gateway.key_with(r#"{"allow_providers":["second"]}"#);
    assert_eq!(gateway.listed(&second, ""), ["chat"]);
    assert_eq!(providers(&second), json!(["second"]));
    let denied = gateway.key_with(r#"{"deny_models":["nick"]}"#);
    assert_eq!(gateway.listed(&denied, ""), all[1..]);
    assert_eq!(gateway.list(&denied, "/chat").status(), 404);
    let cheap = gateway.key_with(r#"{"max_input_price":"0.01"}"#);
    assert!(!gateway.listed(&cheap, "").contains(&"chat".to_owned()));
}

#[test]
fn the_list_has_the_providers_that_the_organization_has_keys_for_if_it_uses_its_own() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    gateway.set_mode(Mode::Byok);
    assert_eq!(gateway.listed(&gateway.key, ""), [""; 0]);
    gateway.own("second", "sk-own");
    assert_eq!(
        gateway.listed(&gateway.key, "?mapped=true"),
        ["second/chat"]
    );
    gateway.set_mode(Mode::Hybrid);
    assert_eq!(gateway.listed(&gateway.key, "?mapped=true").len(), 3);
}

#[test]
fn the_list_may_be_of_one_type_and_of_one_provider() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let listed = |query| gateway.listed(&gateway.key, query);
    assert_eq!(listed("?type=chat"), listed(""));
    assert_eq!(listed("?provider=second"), ["chat"]);
    for (query, param, accepted) in [
        ("?type=songs", "type", "chat"),
        ("?provider=third", "provider", "first, second"),
        ("?provider=", "provider", "first, second"),
        ("?no_training=true", "no_training", "does not say"),
    ] {
        let answer = gateway.list(&gateway.key, query);
        assert_eq!(answer.status(), 400, "{query}");
        let error = answer.json()["error"].clone();
        assert_eq!(error["param"], param, "{query}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(accepted), "{message}");
    }
}
