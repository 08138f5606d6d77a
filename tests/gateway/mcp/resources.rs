//! Resources: what the key may read, as the HTTP API has it.

use serde_json::{Value, json};

use super::{code, result, rpc};
use crate::models::endpoints::prompt::greeting;
use crate::models::fronts::chat_completions::reply;
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::ask;
use crate::support::flags;
use crate::support::upstream::Upstream;

fn read(gateway: &Gateway, uri: &str) -> Ask {
    rpc(gateway, "resources/read", json!({"uri": uri}))
}

/// The text of a resource, which is JSON.
fn text(gateway: &Gateway, request: &Ask) -> Value {
    let result = result(gateway, request);
    let contents = result["contents"].as_array().unwrap();
    assert_eq!(contents.len(), 1, "{result}");
    assert_eq!(contents[0]["mimeType"], "application/json");
    serde_json::from_str(contents[0]["text"].as_str().unwrap()).unwrap()
}

fn uris(gateway: &Gateway, request: &Ask, list: &str, member: &str) -> Vec<Value> {
    let result = result(gateway, request);
    let listed = result[list].as_array().unwrap().iter();
    listed
        .map(|entry| {
            for name in ["name", "title", "description"] {
                assert!(!entry[name].as_str().unwrap().is_empty(), "{entry}");
            }
            entry[member].clone()
        })
        .collect()
}

#[test]
fn resources_and_templates_are_those_whose_routes_are_on() {
    let first = Upstream::always(reply());
    let plain = Gateway::between(&first.url(), &first.url());
    let list = rpc(&plain, "resources/list", json!({}));
    assert_eq!(
        uris(&plain, &list, "resources", "uri"),
        ["weirgate://models", "weirgate://prompts"]
    );
    let list = rpc(&plain, "resources/templates/list", json!({}));
    let templates = ["weirgate://models/{id}", "weirgate://prompts/{name}"];
    assert_eq!(
        uris(&plain, &list, "resourceTemplates", "uriTemplate"),
        templates
    );
    let paged = rpc(&plain, "resources/list", json!({"cursor": "1"}));
    assert_eq!(code(&ask(plain.address(), &paged)), (200, json!(-32602)));
    // Flags are listed for those who can read them.
    let flags = flags::gateway_with_env("", &[("WEIRGATE_PROMPTS__ENABLED", "false")]);
    let list = rpc(&flags, "resources/list", json!({}));
    assert_eq!(
        uris(&flags, &list, "resources", "uri"),
        ["weirgate://models"]
    );
    let list = list.header("X-Platform-SDK-Key", "sandbox");
    assert_eq!(
        uris(&flags, &list, "resources", "uri"),
        ["weirgate://models", "weirgate://flags"]
    );
}

#[test]
fn a_resource_is_what_the_route_answers() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    gateway.put("support/hi", &[], &greeting());
    for (uri, path) in [
        ("weirgate://models", "/v1/models"),
        ("weirgate://models/chat", "/v1/models/chat"),
        ("weirgate://models/nick", "/v1/models/chat"),
        ("weirgate://models/first/chat", "/v1/models/first/chat"),
        ("weirgate://models/first%2Fchat", "/v1/models/first/chat"),
        ("weirgate://prompts", "/v1/prompts"),
        (
            "weirgate://prompts/support%2Fhi@1",
            "/v1/prompts/support/hi@1",
        ),
    ] {
        let expected = ask(gateway.address(), &Ask::get(path).key(&gateway.key));
        assert_eq!(expected.status(), 200);
        assert_eq!(
            text(&gateway, &read(&gateway, uri)),
            expected.json(),
            "{uri}"
        );
    }
    // A key reads what it may use.
    let bounded = gateway.key_with(r#"{"deny_models":["only-first"]}"#);
    let of_key = |uri: &str| read(&gateway, uri).without("Authorization").key(&bounded);
    let models = text(&gateway, &of_key("weirgate://models"));
    assert_eq!(models["data"].as_array().unwrap().len(), 1);
    let forbidden = ask(gateway.address(), &of_key("weirgate://models/only-first"));
    assert_eq!(code(&forbidden), (200, json!(-32002)));
}

#[test]
fn flags_are_those_of_the_sdk_key_in_the_header() {
    let gateway = flags::gateway("");
    let bare = read(&gateway, "weirgate://flags");
    let with_key = |key: &str| bare.clone().header("X-Platform-SDK-Key", key);
    let configuration = text(&gateway, &with_key("sandbox"));
    assert!(configuration["featuresMap"]["dark_mode"].is_object());
    for refused in [bare.clone(), with_key("other")] {
        let answer = ask(gateway.address(), &refused);
        assert_eq!(code(&answer), (200, json!(-32000)), "{}", answer.text());
        let status = answer.json()["error"]["data"]["status"].as_u64();
        assert!(matches!(status, Some(400..=403)), "{}", answer.text());
    }
}

#[test]
fn what_is_not_there_is_not_found_in_the_words_of_the_revision() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    for uri in [
        "weirgate://nothing",
        "weirgate://models/",
        "weirgate://models/nobody",
        "weirgate://prompts/no",
        "weirgate://flags",
        "file:///etc/passwd",
        "weirgate://models/../key",
        "weirgate://models/%2e%2e%2fkey",
    ] {
        let answer = ask(gateway.address(), &read(&gateway, uri));
        assert_eq!(code(&answer), (200, json!(-32002)), "{uri}");
        assert_eq!(answer.json()["error"]["data"]["uri"], uri);
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let stateless = rpc(
            &gateway,
            "resources/read",
            json!({"uri": uri, "_meta": meta}),
        )
        .without("MCP-Protocol-Version")
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", "resources/read")
        .header("Mcp-Name", uri);
        assert_eq!(
            code(&ask(gateway.address(), &stateless)),
            (200, json!(-32602)),
            "{uri}"
        );
    }
    for params in [json!({}), json!({"uri": 7})] {
        let answer = ask(gateway.address(), &rpc(&gateway, "resources/read", params));
        assert_eq!(code(&answer), (200, json!(-32602)));
    }
    let unknown = rpc(
        &gateway,
        "resources/subscribe",
        json!({"uri": "weirgate://models"}),
    );
    assert_eq!(
        code(&ask(gateway.address(), &unknown)),
        (200, json!(-32601))
    );
}

#[test]
fn the_variable_of_a_template_is_completed() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    gateway.put("support/hi", &[], &greeting());
    let complete = |reference: Value, name: &str, value: Value| {
        let argument = json!({"name": name, "value": value});
        rpc(
            &gateway,
            "completion/complete",
            json!({"ref": reference, "argument": argument}),
        )
    };
    let of = |uri: &str| json!({"type": "ref/resource", "uri": uri});
    for (reference, name, begun, values) in [
        (
            of("weirgate://models/{id}"),
            "id",
            "",
            json!(["chat", "only-first"]),
        ),
        (
            of("weirgate://models/{id}"),
            "id",
            "on",
            json!(["only-first"]),
        ),
        (
            of("weirgate://prompts/{name}"),
            "name",
            "s",
            json!(["support/hi"]),
        ),
        (of("weirgate://prompts/{name}"), "name", "x", json!([])),
        (
            json!({"type": "ref/prompt", "name": "support/hi"}),
            "name",
            "A",
            json!([]),
        ),
    ] {
        let completed = result(&gateway, &complete(reference, name, json!(begun)));
        let total = values.as_array().unwrap().len();
        let expected = json!({"values": values, "total": total, "hasMore": false});
        assert_eq!(completed["completion"], expected, "{begun}");
    }
    for (reference, name, value) in [
        (of("weirgate://models"), "id", json!("")),
        (of("weirgate://models/{id}"), "name", json!("")),
        (of("weirgate://models/{id}"), "id", json!(1)),
        (
            json!({"type": "ref/tool", "name": "chat"}),
            "model",
            json!(""),
        ),
        (json!({}), "id", json!("")),
    ] {
        let refused = ask(gateway.address(), &complete(reference, name, value));
        assert_eq!(code(&refused), (200, json!(-32602)));
    }
}
