//! `GET /v1/models/{id}`.

use serde_json::json;

use crate::models::fronts::chat_completions::reply;
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::ask;
use crate::support::upstream::Upstream;

/// Contract: model-gateway 4 GET /v1/models
#[test]
fn one_model_is_found_by_every_name_that_it_has() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let get = |path: &str| gateway.list(&gateway.key, path);
    let whole = gateway.list(&gateway.key, "").json()["data"][0].clone();
    assert_eq!(whole["id"], "chat");
    for name in ["/chat", "/nick", "/%63hat"] {
        let answer = get(name);
        assert_eq!(answer.status(), 200, "{name}: {}", answer.text());
        assert_eq!(answer.json(), whole, "{name}");
    }
    for name in ["/first/chat", "/first%2Fchat", "/first%2fnick"] {
        let one = get(name).json();
        assert_eq!(one["id"], "first/chat", "{name}: {one}");
        assert_eq!(one["providers"].as_array().unwrap().len(), 1, "{name}");
    }
    for name in [
        "/nothing",
        "/third/chat",
        "/chat/",
        "/..%2Fkey",
        "/chat+",
        "/%ff",
    ] {
        let answer = get(name);
        assert_eq!(answer.status(), 404, "{name}");
        let error = answer.json()["error"].clone();
        assert_eq!(
            (&error["code"], &error["param"]),
            (&json!("model_not_found"), &json!("model")),
            "{name}"
        );
    }
    let unknown = ask(gateway.address(), &Ask::get("/v1/models/chat"));
    assert_eq!(unknown.status(), 401);
}
