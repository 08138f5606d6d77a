//! `GET /v1/models`.

use serde_json::json;

use super::chat_completions::reply;
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::ask;
use crate::support::upstream::Upstream;

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
