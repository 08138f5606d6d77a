//! `POST /mcp`: messages, tools and what they cost. Source: docs/mcp.md.

mod end;
mod info;
mod limits;
mod listening;
mod models;
mod oauth;
mod preflight;
mod prompts;
mod protocol;
mod resources;
mod resuming;
mod running;
pub mod sessions;
mod usage;

use serde_json::{Value, json};

use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};

/// A request with the key of the gateway.
pub fn rpc(gateway: &Gateway, method: &str, params: Value) -> Ask {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    Ask::post("/mcp", body.to_string())
        .key(&gateway.key)
        .header("Accept", "application/json, text/event-stream")
        .header("MCP-Protocol-Version", "2025-11-25")
}

/// The call of a tool.
pub fn tool(gateway: &Gateway, name: &str, arguments: Value) -> Ask {
    rpc(
        gateway,
        "tools/call",
        json!({"name": name, "arguments": arguments}),
    )
}

/// The result of a request that succeeds.
pub fn result(gateway: &Gateway, request: &Ask) -> Value {
    let answer = ask(gateway.address(), request);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let mut body = answer.json();
    assert_eq!((&body["jsonrpc"], &body["id"]), (&json!("2.0"), &json!(7)));
    assert!(body["error"].is_null(), "{body}");
    body["result"].take()
}

/// What a tool gives to programs, which is what its schema says.
pub fn given(gateway: &Gateway, name: &str, arguments: Value) -> Value {
    let mut result = result(gateway, &tool(gateway, name, arguments));
    assert_eq!(result["isError"], false, "{result}");
    let given = result["structuredContent"].take();
    let listed = self::result(gateway, &rpc(gateway, "tools/list", json!({})));
    let mut entries = listed["tools"].as_array().unwrap().iter();
    let entry = entries.find(|entry| entry["name"] == name).unwrap();
    let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
    compiler
        .add_resource("urn:tool", entry["outputSchema"].clone())
        .unwrap();
    let index = compiler.compile("urn:tool", &mut schemas).unwrap();
    let checked = schemas.validate(&given, index);
    assert!(
        checked.is_ok(),
        "{name}: {given}: {:#}",
        checked.unwrap_err()
    );
    given
}

/// Why a tool failed: its message and its error.
pub fn failure(gateway: &Gateway, request: &Ask) -> (String, Value) {
    let result = result(gateway, request);
    assert_eq!(result["isError"], true, "{result}");
    assert!(result["structuredContent"].is_null(), "{result}");
    let text = |number: usize| result["content"][number]["text"].as_str().unwrap_or("{}");
    let error: Value = serde_json::from_str(text(1)).unwrap();
    (text(0).to_owned(), error["error"].clone())
}

/// The code of an error of the protocol, behind the status.
pub fn code(answer: &Answer) -> (u16, Value) {
    (answer.status(), answer.json()["error"]["code"].clone())
}
