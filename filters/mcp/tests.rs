//! Messages, revisions, origins and the texts of tools.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::message::{self, Message};
use super::origin::Origins;
use super::revision::{Revision, check_head};
use super::stream::CallProgress;
use super::tools::{McpTool, RouteRequest, RouteResponse, TOOLS};
use super::{prompts, resources};

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let pairs = pairs.iter().map(|(name, value)| {
        let name = HeaderName::from_static(name);
        (name, HeaderValue::from_str(value).unwrap())
    });
    pairs.collect()
}

#[test]
fn a_body_is_one_message() {
    for (body, code) in [
        ("", -32700),
        ("{", -32700),
        ("[]", -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
        ("1", -32600),
        (r#"{"id":1,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":1}"#, -32600),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#,
            -32600,
        ),
    ] {
        let error = message::read(body.as_bytes()).unwrap_err();
        assert_eq!((error.code, error.status), (code, 400), "{body}");
    }
    let deep = "[".repeat(10_000);
    assert_eq!(message::read(deep.as_bytes()).unwrap_err().code, -32700);
    let deeper = "[".repeat(100_000);
    assert_eq!(message::read(deeper.as_bytes()).unwrap_err().code, -32600);
    for (body, cancelled) in [
        (
            r#"{"jsonrpc":"2.0","method":"notifications/initialized","params":{"requestId":1}}"#,
            None,
        ),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
            None,
        ),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}"#,
            Some(json!("a")),
        ),
    ] {
        let Ok(Message::Notification(notification)) = message::read(body.as_bytes()) else {
            panic!("{body} is a notification");
        };
        assert_eq!(notification.cancelled_id(), cancelled.as_ref(), "{body}");
    }
    let response = br#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    assert_eq!(message::read(response).unwrap(), Message::Response);
}

#[test]
fn progress_is_told_to_those_who_ask_and_rises() {
    let progress = |meta: Value| {
        let body =
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"_meta": meta}});
        let Ok(Message::Call(call)) = message::read(body.to_string().as_bytes()) else {
            panic!("{body} is a call");
        };
        CallProgress::read(&call)
    };
    assert_eq!(progress(json!({})), Ok(None));
    for token in [Value::Null, json!([1]), json!(true)] {
        let error = progress(json!({"progressToken": token})).unwrap_err();
        assert_eq!((error.code, error.id.as_deref()), (-32602, Some(&json!(1))));
    }
    let mut progress = progress(json!({"progressToken": 7})).unwrap().unwrap();
    assert_eq!(progress.count(0), None);
    for (bytes, sum) in [(3, 3), (4, 7)] {
        let event = String::from_utf8(progress.count(bytes).unwrap()).unwrap();
        let data = event.strip_prefix("event: message\ndata: ").unwrap();
        let message: Value = serde_json::from_str(data.strip_suffix("\n\n").unwrap()).unwrap();
        assert_eq!(message["method"], "notifications/progress");
        assert_eq!(
            (
                &message["params"]["progressToken"],
                &message["params"]["progress"]
            ),
            (&json!(7), &json!(sum))
        );
    }
}

#[test]
fn an_error_repeats_the_id_where_it_is_known() {
    let error = message::read(br#"{"jsonrpc":"2.0","id":"a","method":1}"#).unwrap_err();
    let body: Value = serde_json::from_slice(&error.body()).unwrap();
    let expected = json!({"jsonrpc": "2.0", "id": "a", "error": {"code": -32600, "message": "`method` is not a text"}});
    assert_eq!(body, expected);
    let error = message::read(b"{").unwrap_err();
    let body: Value = serde_json::from_slice(&error.body()).unwrap();
    assert_eq!(body["id"], Value::Null);
}

/// A call of 2026-07-28 with this method and these parameters.
fn stateless(method: &str, params: Value) -> Message {
    let mut params = params;
    params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    message::read(body.to_string().as_bytes()).unwrap()
}

#[test]
fn a_head_repeats_its_body_in_the_stateless_revision() {
    let call = stateless("tools/call", json!({"name": "chat", "arguments": {}}));
    let version = ("mcp-protocol-version", "2026-07-28");
    let method = ("mcp-method", "tools/call");
    for name in ["chat", "=?base64?Y2hhdA==?="] {
        let good = headers(&[version, method, ("mcp-name", name)]);
        assert_eq!(check_head(&good, &call), Ok(Revision::July2026), "{name}");
    }
    for bad in [
        vec![],
        vec![version],
        vec![version, method],
        vec![version, ("mcp-name", "chat")],
        vec![version, method, ("mcp-name", "speech")],
        vec![version, method, ("mcp-name", "=?base64?c3BlZWNo?=")],
        vec![version, ("mcp-method", "tools/list"), ("mcp-name", "chat")],
        vec![
            ("mcp-protocol-version", "2025-11-25"),
            method,
            ("mcp-name", "chat"),
        ],
    ] {
        let error = check_head(&headers(&bad), &call).unwrap_err();
        assert_eq!((error.code, error.status), (-32020, 400), "{bad:?}");
        assert_eq!(error.id.as_deref(), Some(&json!(1)));
    }
    let list = stateless("tools/list", json!({}));
    let good = headers(&[version, ("mcp-method", "tools/list")]);
    assert_eq!(check_head(&good, &list), Ok(Revision::July2026));
}

#[test]
fn a_revision_that_is_not_served_names_those_that_are() {
    let plain = message::read(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).unwrap();
    let unknown = headers(&[("mcp-protocol-version", "2024-11-05")]);
    let error = check_head(&unknown, &plain).unwrap_err();
    assert_eq!((error.code, error.status), (-32600, 400));
    let known = json!(["2026-07-28", "2025-11-25", "2025-06-18"]);
    assert_eq!(error.data.unwrap()["supported"], known);
    let mut doubled = headers(&[("mcp-protocol-version", "2025-11-25")]);
    doubled.append(
        "mcp-protocol-version",
        HeaderValue::from_static("2025-06-18"),
    );
    assert_eq!(check_head(&doubled, &plain).unwrap_err().status, 400);
    assert_eq!(
        check_head(&HeaderMap::new(), &plain),
        Ok(Revision::November2025)
    );
    // Only the header names the revision 2026-07-28.
    let bare = headers(&[
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "ping"),
    ]);
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{}}}"#,
    ] {
        let call = message::read(text.as_bytes()).unwrap();
        let error = check_head(&bare, &call).unwrap_err();
        assert_eq!((error.code, error.status), (-32602, 400));
        assert!(error.message.contains("protocolVersion"));
    }
    assert_eq!(Revision::agree("2025-06-18"), Revision::June2025);
    for asked in ["2024-11-05", "2026-07-28", "2099-01-01"] {
        assert_eq!(Revision::agree(asked), Revision::November2025, "{asked}");
    }
}

#[test]
fn pages_of_other_origins_are_refused() {
    let origins = Origins {
        allowed: vec!["https://app.example.com".to_owned()],
        public: None,
    };
    let check = |host: &str, origin: &str| {
        let headers = headers(&[("origin", origin)]);
        let is_named = !origins.headers(Some(host), &headers).is_empty();
        assert!(is_named, "{origin}: the response varies");
        origins.check(Some(host), &headers).is_ok()
    };
    assert!(check("gateway.example.com", "https://app.example.com"));
    assert!(check("gateway.example.com", "https://APP.example.com"));
    for page in [
        "http://localhost:6274",
        "http://127.0.0.1",
        "http://[::1]:80",
    ] {
        assert!(check("localhost:8080", page), "{page}");
        assert!(!check("gateway.example.com", page), "{page}");
    }
    for page in [
        "null",
        "https://evil.example.com",
        "http://app.example.com",
        "https://app.example.com.evil.com",
        "http://localhost.evil.com",
    ] {
        assert!(!check("localhost:8080", page), "{page}");
    }
    assert!(origins.check(Some("anything"), &HeaderMap::new()).is_ok());
    let mut doubled = headers(&[("origin", "https://app.example.com")]);
    doubled.append(
        "origin",
        HeaderValue::from_static("https://app.example.com"),
    );
    assert!(origins.check(Some("localhost"), &doubled).is_err());
}

#[test]
fn a_host_is_the_public_one_or_this_machine() {
    let origins = Origins {
        allowed: Vec::new(),
        public: Some("https://gateway.example.com".to_owned()),
    };
    let check = |host: &str| origins.check(Some(host), &HeaderMap::new()).is_ok();
    for host in [
        "gateway.example.com",
        "GATEWAY.example.com:443",
        "localhost:8080",
        "127.0.0.1",
        "[::1]:8080",
    ] {
        assert!(check(host), "{host}");
    }
    for host in [
        "evil.example.com",
        "gateway.example.com:80",
        "gateway.example.com.evil.com",
        "127.0.0.1.evil.com",
    ] {
        assert!(!check(host), "{host}");
    }
    let own = headers(&[("origin", "https://gateway.example.com")]);
    assert!(origins.check(Some("gateway.example.com"), &own).is_ok());
}

fn tool(name: &str) -> (&'static McpTool, Value) {
    let described = TOOLS.iter().map(|tool| {
        let description: Value = serde_json::from_str(tool.description).unwrap();
        (tool, description)
    });
    let mut named = described.filter(|(_, description)| description["name"] == name);
    named.next().unwrap()
}

fn request(name: &str, arguments: Value) -> RouteRequest {
    (tool(name).0.request)(arguments.as_object().unwrap())
}

#[test]
fn every_tool_says_what_it_takes_and_gives() {
    for tool in &TOOLS {
        let description: Value = serde_json::from_str(tool.description).unwrap();
        let name = description["name"].as_str().unwrap();
        for member in ["title", "description"] {
            assert!(!description[member].as_str().unwrap().is_empty(), "{name}");
        }
        assert_eq!(
            description["inputSchema"]["additionalProperties"], false,
            "{name}"
        );
        assert_eq!(description["outputSchema"]["type"], "object", "{name}");
        let hints = [
            "readOnlyHint",
            "destructiveHint",
            "idempotentHint",
            "openWorldHint",
        ];
        for hint in hints {
            assert!(
                description["annotations"][hint].is_boolean(),
                "{name}: {hint}"
            );
        }
    }
}

#[test]
fn arguments_become_requests_of_the_routes() {
    let query = |name, arguments| request(name, arguments).query;
    let all =
        json!({"include_deactivated": true, "exclude_deprecated": true, "limit": 3, "family": "f"});
    assert_eq!(
        query("list-models", all),
        "include_deactivated=true&exclude_deprecated=true"
    );
    assert_eq!(
        query("list-models", json!({"include_deactivated": false})),
        ""
    );
    let times = json!({"from": "2026-11-01T00:00:00+01:00", "granularity": "hour"});
    assert_eq!(
        query("get-usage", times),
        "from=2026-11-01T00%3A00%3A00%2B01%3A00&granularity=hour"
    );
    let page = json!({"offset": 20, "limit": 5, "sort_by": "tokens", "group_by": "api_key"});
    assert_eq!(
        query("get-usage-breakdown", page),
        "group_by=api_key&sort_by=tokens&limit=5&offset=20"
    );
    let keys = json!({"user_id": "ada", "flag_keys": ["a b", "c&d"], "sdk_key": "k"});
    let decide = request("decide", keys);
    assert_eq!(
        (&*decide.query, decide.sdk_key.as_deref()),
        ("keys=a+b&keys=c%26d", Some("k"))
    );
    assert_eq!(
        decide.body,
        Some(json!({"userId": "ada", "decideOptions": []}))
    );
    let image = request("generate-image", json!({"prompt": "p", "n": 2}));
    assert_eq!(
        image.body,
        Some(json!({"prompt": "p", "n": 2, "size": "1024x1024"}))
    );
    let banana = request(
        "generate-nano-banana",
        json!({"prompt": "p", "filename": "f", "aspect_ratio": "5:4"}),
    );
    let expected = json!({"prompt": "p", "aspect_ratio": "5:4", "model": "gemini-2.5-flash-image"});
    assert_eq!(banana.body, Some(expected));
}

fn result(name: &str, arguments: Value, media_type: &str, body: &[u8]) -> Value {
    let response = RouteResponse { media_type, body };
    let result = (tool(name).0.result)(arguments.as_object().unwrap(), &response).unwrap();
    Value::Object(result.into_members())
}

#[test]
fn images_and_audio_are_content() {
    let body = json!({"created": 5, "data": [{"b64_json": "iVBORw0K"}, {"b64_json": "/9j/4AAQ"}]})
        .to_string();
    let drawn = result(
        "generate-nano-banana",
        json!({"filename": "f"}),
        "application/json",
        body.as_bytes(),
    );
    let expected = json!({
        "content": [{"type": "image", "data": "iVBORw0K", "mimeType": "image/png"},
                    {"type": "image", "data": "/9j/4AAQ", "mimeType": "image/jpeg"}],
        "isError": false,
        "structuredContent": {"images": [{"mime_type": "image/png"}, {"mime_type": "image/jpeg"}], "created": 5, "filename": "f"},
    });
    assert_eq!(drawn, expected);
    let spoken = result("speech", json!({}), "audio/mpeg", &[0xff, 0xfb]);
    let expected = json!({
        "content": [{"type": "audio", "data": "//s=", "mimeType": "audio/mpeg"}],
        "isError": false,
        "structuredContent": {"mime_type": "audio/mpeg", "bytes": 2},
    });
    assert_eq!(spoken, expected);
}

#[test]
fn a_response_of_another_shape_is_no_result() {
    for (name, body) in [
        ("chat", "{}"),
        ("chat", "x"),
        ("generate-image", "{}"),
        ("embeddings", "[]"),
        ("search", "{}"),
        ("get-usage", "x"),
        ("list-models", "{}"),
    ] {
        let response = RouteResponse {
            media_type: "application/json",
            body: body.as_bytes(),
        };
        assert!(
            (tool(name).0.result)(&message::Members::new(), &response).is_none(),
            "{name}: {body}"
        );
    }
}

#[test]
fn a_uri_is_one_resource_or_one_of_a_template() {
    for (uri, expected) in [
        ("weirgate://models", Some("/v1/models")),
        ("weirgate://models/a/b", Some("/v1/models/a/b")),
        ("weirgate://models/a%2Fb", Some("/v1/models/a%2Fb")),
        ("weirgate://prompts/hi@2", Some("/v1/prompts/hi@2")),
        ("weirgate://flags", Some("/v1/config")),
        ("weirgate://models/", None),
        ("weirgate://model", None),
        ("weirgate://flags/sandbox", None),
        ("weirgate://modelsx", None),
        ("WEIRGATE://models", None),
        ("https://models", None),
        ("", None),
    ] {
        let path = resources::find(uri).map(|(_, path)| path);
        assert_eq!(path.as_deref(), expected, "{uri}");
    }
}

#[test]
fn a_prompt_of_chats_is_one_of_the_protocol() {
    let messages = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}},
            {"type": "image_url", "image_url": {"url": "https://a.test/b.png"}},
            {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}},
        ]},
        {"role": "assistant", "content": null},
        {"role": "assistant", "content": "A weir."},
    ]);
    let body =
        json!({"name": "hi", "version": 2, "model": null, "parameters": {}, "messages": messages});
    let members = prompts::rendered(body.to_string().as_bytes()).unwrap();
    let expected = json!([
        {"role": "user", "content": {"type": "text", "text": "Be brief."}},
        {"role": "user", "content": {"type": "text", "text": "What is this?"}},
        {"role": "user", "content": {"type": "image", "data": "iVBO", "mimeType": "image/png"}},
        {"role": "user", "content": {"type": "resource_link", "uri": "https://a.test/b.png", "name": "image"}},
        {"role": "user", "content": {"type": "audio", "data": "UklG", "mimeType": "audio/wav"}},
        {"role": "assistant", "content": {"type": "text", "text": "A weir."}},
    ]);
    assert_eq!(members["messages"], expected);
    for message in [
        json!({"role": "tool", "tool_call_id": "1", "content": "x"}),
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": "1"}]}),
        json!({"role": "user", "content": [{"type": "file", "file": {}}]}),
    ] {
        let body = json!({"messages": [message]}).to_string();
        let refused = prompts::rendered(body.as_bytes()).unwrap_err();
        assert!(refused.contains("no form here"), "{refused}");
    }
}

#[test]
fn arguments_of_a_prompt_are_texts() {
    assert_eq!(prompts::path("a/b c+d"), "/v1/prompts/a%2Fb%20c%2Bd");
    let body = prompts::body(Some(json!({"a": "1"}))).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body, json!({"variables": {"a": "1"}}));
    assert!(prompts::body(None).is_ok());
    for (arguments, said) in [
        (json!([]), "`arguments` is no object"),
        (json!({"a": 1}), "`arguments.a` is no text"),
    ] {
        let refused = prompts::body(Some(arguments)).unwrap_err();
        assert!(refused.starts_with(said), "{refused}");
    }
}
