//! Messages and heads, and tools that the gateway answers itself.

use serde_json::{Value, json};

use super::{code, failure, given, result, rpc, tool};
use crate::support::ask::Ask;
use crate::support::boot::{Gateway, MODELS};
use crate::support::client::ask;
use crate::support::flags;
use crate::support::upstream::ClosedPort;

fn gateway() -> Gateway {
    let nobody = ClosedPort::take();
    Gateway::between(&nobody.url(), &nobody.url())
}

/// Contract: model-gateway 4 /mcp
/// Contract: model-gateway 1 /mcp is a
#[test]
fn a_client_begins_with_a_revision_that_both_speak() {
    let gateway = gateway();
    for (asked, agreed) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2024-11-05", "2025-11-25"),
    ] {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": asked, "capabilities": {}, "clientInfo": client});
        let request = rpc(&gateway, "initialize", params).without("MCP-Protocol-Version");
        let result = result(&gateway, &request);
        assert_eq!(result["protocolVersion"], agreed);
        assert_eq!(result["serverInfo"]["name"], "weirgate");
        let capabilities = json!({
            "tools": {"listChanged": false},
            "resources": {"subscribe": false, "listChanged": false},
            "completions": {},
            "prompts": {"listChanged": true},
        });
        assert_eq!(result["capabilities"], capabilities);
    }
    let params = json!({"capabilities": {}});
    let answer = ask(gateway.address(), &rpc(&gateway, "initialize", params));
    assert_eq!(code(&answer), (200, json!(-32602)));
    assert_eq!(
        result(&gateway, &rpc(&gateway, "ping", json!({}))),
        json!({})
    );
    let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let told = ask(gateway.address(), &rpc(&gateway, "", json!({})).body(body));
    assert_eq!((told.status(), told.text()), (202, ""));
    let body = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let told = ask(gateway.address(), &rpc(&gateway, "", json!({})).body(body));
    assert_eq!((told.status(), told.text()), (202, ""));
}

#[test]
fn what_is_no_message_is_refused() {
    let gateway = gateway();
    let ping = || rpc(&gateway, "ping", json!({}));
    let batch = format!("[{}]", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    for (request, status, error) in [
        (ping().body(batch), 400, -32600),
        (ping().body("{"), 400, -32700),
        (ping().body("7"), 400, -32600),
        (ping().without("Content-Type"), 415, -32000),
        (
            ping().without("Accept").header("Accept", "text/html"),
            406,
            -32000,
        ),
        (
            ping().header("MCP-Protocol-Version", "2025-11-25"),
            400,
            -32020,
        ),
        (
            ping()
                .without("MCP-Protocol-Version")
                .header("MCP-Protocol-Version", "2024-11-05"),
            400,
            -32600,
        ),
        (rpc(&gateway, "tools/run", json!({})), 200, -32601),
        (
            rpc(&gateway, "tools/list", json!({"cursor": "x"})),
            200,
            -32602,
        ),
        (tool(&gateway, "no-such-tool", json!({})), 200, -32602),
        (rpc(&gateway, "tools/call", json!({"name": 1})), 200, -32602),
    ] {
        let answer = ask(gateway.address(), &request);
        assert_eq!(code(&answer), (status, json!(error)), "{}", answer.text());
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
    for accept in ["*/*", "application/json"] {
        let request = ping().without("Accept").header("Accept", accept);
        assert_eq!(result(&gateway, &request), json!({}));
    }
    let gateway = Gateway::start("[limits.body_bytes]\nchat = 4096\n", MODELS);
    let large = tool(&gateway, "chat", json!({"text": "x".repeat(5000)}));
    let answer = ask(gateway.address(), &large);
    assert_eq!(code(&answer), (413, json!(-32000)));
}

/// Source: docs/hostile-input.md 98.
#[test]
fn a_call_counts_on_the_quota_of_its_route_whatever_its_arguments() {
    let nobody = ClosedPort::take();
    let more = "[limits]\nrequests_per_minute = { chat = 2 }";
    let gateway = Gateway::with(&nobody.url(), &nobody.url(), more);
    let wrong = tool(&gateway, "chat", json!({"nothing": 1}));
    let remaining: Vec<String> = (0..3)
        .map(|_| {
            let answer = ask(gateway.address(), &wrong);
            assert_eq!(answer.status(), 200, "{}", answer.text());
            answer.header("ratelimit-remaining").unwrap().to_owned()
        })
        .collect();
    assert_eq!(remaining, ["1", "0", "0"]);
}

/// Source: docs/hostile-input.md 98.
#[test]
fn a_message_of_very_many_values_is_refused_unread() {
    let gateway = gateway();
    for arguments in [
        json!({"x": vec![json!([]); 20_000]}),
        json!({"x": vec![json!({"a": 1}); 10_000]}),
    ] {
        let answer = ask(gateway.address(), &tool(&gateway, "chat", arguments));
        assert_eq!(code(&answer), (400, json!(-32600)));
        assert!(answer.text().contains("20,000"), "{}", answer.text());
    }
    let large = tool(&gateway, "chat", json!({"text": "x".repeat(1 << 20)}));
    assert_eq!(code(&ask(gateway.address(), &large)), (413, json!(-32000)));
    // Marks in a text are none.
    let text = "[,{:\\\"".repeat(10_000);
    let answer = ask(
        gateway.address(),
        &tool(&gateway, "no-such-tool", json!({"text": text})),
    );
    assert_eq!(code(&answer), (200, json!(-32602)));
}

#[test]
fn nobody_gets_in_without_a_key() {
    let gateway = gateway();
    let unknown = format!("wg_{}", "0".repeat(43));
    let bare = rpc(&gateway, "ping", json!({})).without("Authorization");
    let here = "scope=\"models decisions limits:read account:read\", \
        resource_metadata=\"http://localhost/.well-known/oauth-protected-resource/mcp\"";
    for (request, error) in [
        (bare.clone(), ""),
        (bare.clone().key(&unknown), "error=\"invalid_token\", "),
        (bare.clone().key("no-key"), "error=\"invalid_token\", "),
    ] {
        let answer = ask(gateway.address(), &request);
        assert_eq!(code(&answer), (401, json!(-32001)));
        let expected = format!("Bearer {error}{here}");
        assert_eq!(answer.header("www-authenticate"), Some(&*expected));
        assert_eq!(answer.head.count("www-authenticate"), 1);
    }
    let elsewhere = bare.clone().without("Host").header("Host", "gw.example");
    let answer = ask(gateway.address(), &elsewhere);
    assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    let other_header = bare.header("x-api-key", &gateway.key);
    assert_eq!(result(&gateway, &other_header), json!({}));
}

#[test]
fn pages_of_other_origins_are_refused() {
    let gateway = Gateway::start(
        "[mcp]\nallowed_origins = [\"https://app.example.com\"]\n",
        MODELS,
    );
    let from = |origin: &str| rpc(&gateway, "ping", json!({})).header("Origin", origin);
    // A foreign page is refused before its key is looked at.
    let evil = from("https://evil.example.com");
    for request in [evil.clone(), evil.without("Authorization")] {
        let answer = ask(gateway.address(), &request);
        assert_eq!(code(&answer), (403, json!(-32000)));
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
    for page in ["https://app.example.com", "http://localhost:6274"] {
        let answer = ask(gateway.address(), &from(page));
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.header("access-control-allow-origin"), Some(page));
        let exposed = answer.header("access-control-expose-headers").unwrap();
        assert!(exposed.contains("mcp-session-id"), "{exposed}");
        // A page has to be able to read why it was refused.
        let refused = ask(gateway.address(), &from(page).without("Authorization"));
        assert_eq!(refused.status(), 401);
        assert_eq!(refused.header("access-control-allow-origin"), Some(page));
    }
    let gateway = Gateway::start(
        "[mcp]\npublic_url = \"https://gateway.example.com\"\n",
        MODELS,
    );
    let at = |host: &str| {
        rpc(&gateway, "ping", json!({}))
            .without("Host")
            .header("Host", host)
    };
    assert_eq!(
        ask(gateway.address(), &at("gateway.example.com")).status(),
        200
    );
    let answer = ask(gateway.address(), &at("evil.example.com"));
    assert_eq!(code(&answer), (403, json!(-32000)));
}

/// A request of 2026-07-28.
fn stateless(gateway: &Gateway, method: &str, mut params: Value) -> Ask {
    params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    rpc(gateway, method, params)
        .without("MCP-Protocol-Version")
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", method)
}

#[test]
fn a_stateless_request_stands_for_itself() {
    let gateway = gateway();
    let found = result(&gateway, &stateless(&gateway, "server/discover", json!({})));
    assert_eq!(found["supportedVersions"][0], "2026-07-28");
    assert_eq!(found["resultType"], "complete");
    // A revision without sessions has no stream to tell of changes.
    assert_eq!(
        found["capabilities"]["prompts"],
        json!({"listChanged": false})
    );
    let server = &found["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(server["name"], "weirgate");
    let list = result(&gateway, &stateless(&gateway, "tools/list", json!({})));
    assert_eq!(list["cacheScope"], "private");
    assert!(list["ttlMs"].is_u64(), "{list}");
    let params = json!({"name": "get-account", "arguments": {}});
    let call = stateless(&gateway, "tools/call", params).header("Mcp-Name", "get-account");
    let called = result(&gateway, &call);
    assert_eq!(
        (&called["resultType"], &called["isError"]),
        (&json!("complete"), &json!(false))
    );
    for (request, status, error) in [
        (call.clone().without("Mcp-Name"), 400, -32020),
        (stateless(&gateway, "initialize", json!({})), 404, -32601),
        (stateless(&gateway, "ping", json!({})), 404, -32601),
        (
            call.without("MCP-Protocol-Version")
                .header("MCP-Protocol-Version", "2027-01-01"),
            400,
            -32020,
        ),
    ] {
        let answer = ask(gateway.address(), &request);
        assert_eq!(code(&answer), (status, json!(error)), "{}", answer.text());
    }
}

fn names(gateway: &Gateway) -> Vec<String> {
    let list = result(gateway, &rpc(gateway, "tools/list", json!({})));
    let tools = list["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Contract: model-gateway 4 /mcp
#[test]
fn the_tools_are_those_whose_routes_are_on() {
    let plain = names(&gateway());
    let of_models = [
        "chat",
        "list-models",
        "generate-image",
        "list-image-models",
        "generate-nano-banana",
        "get-account",
        "key-status",
        "get-usage",
        "get-usage-breakdown",
        "embeddings",
        "search",
        "speech",
    ];
    assert_eq!(plain, of_models);
    let with_flags = names(&flags::gateway("overrides = false"));
    assert_eq!(
        with_flags[of_models.len()..],
        ["list-flags", "decide", "explain-decision"]
    );
    let with_overrides = names(&flags::gateway(""));
    assert_eq!(with_overrides.last().unwrap(), "set-override");
    let off = Gateway::start("[mcp]\nenabled = false\n", MODELS);
    let mut routes = off.running.app.proxy.router.routes().iter();
    assert!(!routes.any(|route| route.path == "/mcp"));
}

#[test]
fn models_and_money_are_those_of_the_http_api() {
    let gateway = gateway();
    let listed = given(&gateway, "list-models", json!({}));
    let models = listed["models"].as_array().unwrap().iter();
    let ids: Value = models.map(|model| model["id"].clone()).collect();
    assert_eq!(
        (ids, &listed["total"]),
        (json!(["chat", "only-first"]), &json!(2))
    );
    assert_eq!(listed["models"][0]["providers"], json!(["first", "second"]));
    let one = given(
        &gateway,
        "list-models",
        json!({"limit": 1, "family": "test"}),
    );
    assert_eq!(
        (one["models"].as_array().unwrap().len(), &one["total"]),
        (1, &json!(2))
    );
    let none = given(&gateway, "list-models", json!({"family": "other"}));
    assert_eq!(none, json!({"models": [], "total": 0}));
    assert_eq!(
        given(&gateway, "list-image-models", json!({})),
        json!({"models": []})
    );
    let account = json!({"balance": "1000000", "total_used": "0"});
    assert_eq!(given(&gateway, "get-account", json!({})), account);
    let status = given(&gateway, "key-status", json!({}));
    assert_eq!(status, gateway.key_data(&gateway.key));
    // A key sees what it may use.
    let bounded = gateway.key_with(r#"{"deny_models":["only-first"]}"#);
    let request = tool(&gateway, "list-models", json!({}))
        .without("Authorization")
        .key(&bounded);
    let listed = result(&gateway, &request);
    assert_eq!(listed["structuredContent"]["total"], 1);
}

#[test]
fn flags_are_decided_by_the_key_of_their_project() {
    let gateway = flags::gateway("");
    let key = |mut arguments: Value| {
        arguments["sdk_key"] = json!("sandbox");
        arguments
    };
    let listed = given(&gateway, "list-flags", key(json!({})));
    assert!(
        listed["configuration"]["featuresMap"]["dark_mode"].is_object(),
        "{listed}"
    );
    let ada = json!({"user_id": "ada", "attributes": {"version": "2.1", "country": "FR"}});
    let all = given(&gateway, "decide", key(ada.clone()));
    assert_eq!(all["decisions"].as_array().unwrap().len(), 2);
    let mut one = key(ada);
    one["flag_keys"] = json!(["dark_mode"]);
    let decided = given(&gateway, "decide", one.clone());
    assert_eq!(decided["decisions"][0]["variationKey"], "on");
    assert_eq!(decided["decisions"][0]["reasons"], json!([]));
    let explained = given(&gateway, "explain-decision", one);
    let explained = &explained["decisions"][0];
    assert!(!explained["reasons"].as_array().unwrap().is_empty());
    let rule = &explained["rules"][0];
    assert_eq!(
        (&rule["key"], &rule["has_decided"]),
        (&json!("new_versions"), &json!(true))
    );
    assert_eq!(rule["bucket"], filters::decisions::bucket("ada", "921"));
    let set =
        json!({"user_id": "ada", "experiment_key": "checkout_test", "variation_key": "one_page"});
    let set = given(&gateway, "set-override", key(set));
    assert_eq!(set["overrides"][0]["variationKey"], "one_page");
    // A client may send the SDK key in its header; the API key is none.
    let bare = tool(&gateway, "list-flags", json!({}));
    let result = result(
        &gateway,
        &bare.clone().header("X-Platform-SDK-Key", "sandbox"),
    );
    assert_eq!(result["isError"], false);
    let (_, error) = failure(&gateway, &bare);
    assert!(
        matches!(error["status"].as_u64(), Some(400 | 401)),
        "{error}"
    );
    let (_, error) = failure(
        &gateway,
        &tool(&gateway, "list-flags", json!({"sdk_key": "other"})),
    );
    assert_eq!(error["status"], 401);
}

#[test]
fn arguments_are_checked_before_anything_runs() {
    let gateway = gateway();
    for (name, arguments, param) in [
        (
            "chat",
            json!({"messages": [{"role": "user", "content": "Hi"}]}),
            Value::Null,
        ),
        (
            "chat",
            json!({"model": "chat", "messages": []}),
            json!("messages"),
        ),
        (
            "chat",
            json!({"model": "chat", "messages": [{"role": "tool", "content": "Hi"}]}),
            json!("messages[0].role"),
        ),
        (
            "chat",
            json!({"model": "chat", "messages": [{"role": "user", "content": "Hi"}], "temperature": 3}),
            json!("temperature"),
        ),
        (
            "chat",
            json!({"model": "chat", "messages": [{"role": "user", "content": "Hi"}], "stream": true}),
            Value::Null,
        ),
        ("list-models", json!({"limit": "20"}), json!("limit")),
        ("generate-image", json!({"prompt": "p", "n": 5}), json!("n")),
        ("get-account", json!([]), Value::Null),
    ] {
        let (message, error) = failure(&gateway, &tool(&gateway, name, arguments.clone()));
        let told = (&error["status"], &error["param"]);
        assert_eq!(told, (&json!(400), &param), "{name} {arguments}: {message}");
        assert!(!message.is_empty());
    }
    let request = tool(&gateway, "list-models", json!({"limit": 0})).header("x-request-id", "r-1");
    failure(&gateway, &request);
    let line = gateway.log_line("r-1");
    let logged = (
        &line["route"],
        &line["tool"],
        &line["status"],
        &line["outcome"],
    );
    let expected = (
        &json!("mcp"),
        &json!("list-models"),
        &json!(200),
        &json!("refused"),
    );
    assert_eq!(logged, expected, "{line}");
    assert_eq!(line["error"]["param"], "limit", "{line}");
}
