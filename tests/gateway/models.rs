//! `GET /v1/models`.

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
