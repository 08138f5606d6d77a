//! Tools that decide flags. An SDK key, from an argument or a header of the client, names the project.

use form_urlencoded::byte_serialize;
use serde_json::{Value, json};

use super::{McpTool, RouteRequest, Scope, ToolResult};
use crate::mcp::message::Members;

/// The flags of a project's configuration.
pub(super) const LIST_FLAGS: McpTool = McpTool {
    route: "config",
    scope: Scope::Decisions,
    description: include_str!("list-flags.json"),
    request: |arguments| RouteRequest {
        sdk_key: sdk_key(arguments),
        ..RouteRequest::default()
    },
    result: |_, response| Some(ToolResult::both(json!({"configuration": response.json()?}))),
};

/// The decision for a user.
pub(super) const DECIDE: McpTool = McpTool {
    route: "decide",
    scope: Scope::Decisions,
    description: include_str!("decide.json"),
    request: |arguments| decision(arguments, &[]),
    result: |_, response| Some(decisions(response.json()?)),
};

/// The decision for a user with the reasons and each rule, without an event.
pub(super) const EXPLAIN_DECISION: McpTool = McpTool {
    route: "explain_decision",
    scope: Scope::Decisions,
    description: include_str!("explain-decision.json"),
    request: |arguments| decision(arguments, &[]),
    result: |_, response| Some(decisions(response.json()?)),
};

/// Sets the variation of a user in an experiment, whatever the configuration says.
pub(super) const SET_OVERRIDE: McpTool = McpTool {
    route: "overrides",
    scope: Scope::Decisions,
    description: include_str!("set-override.json"),
    request: |arguments| {
        let text = |name: &str| arguments.get(name).cloned().unwrap_or_else(|| "".into());
        RouteRequest {
            body: Some(json!({
                "userId": text("user_id"),
                "experimentKey": text("experiment_key"),
                "variationKey": text("variation_key"),
            })),
            sdk_key: sdk_key(arguments),
            ..RouteRequest::default()
        }
    },
    result: |_, response| {
        Some(ToolResult::both(
            json!({"overrides": listed(response.json()?)}),
        ))
    },
};

fn sdk_key(arguments: &Members) -> Option<String> {
    let key = arguments.get("sdk_key")?.as_str()?;
    Some(key.to_owned())
}

fn decision(arguments: &Members, options: &[&str]) -> RouteRequest {
    let keys = arguments.get("flag_keys").and_then(Value::as_array);
    let keys = keys.into_iter().flatten().filter_map(Value::as_str);
    let pairs = keys.map(|key| {
        let key: String = byte_serialize(key.as_bytes()).collect();
        format!("keys={key}")
    });
    let pairs: Vec<String> = pairs.collect();
    let mut body = Members::new();
    for (name, argument) in [("userId", "user_id"), ("userAttributes", "attributes")] {
        let value = arguments.get(argument).cloned();
        body.extend(value.map(|value| (name.to_owned(), value)));
    }
    body.insert("decideOptions".to_owned(), json!(options));
    RouteRequest {
        query: pairs.join("&"),
        body: Some(body.into()),
        sdk_key: sdk_key(arguments),
        ..RouteRequest::default()
    }
}

fn decisions(response: Value) -> ToolResult {
    ToolResult::both(json!({"decisions": listed(response)}))
}

/// Returns a list, also of one object.
fn listed(value: Value) -> Value {
    match value {
        Value::Array(_) => value,
        one => json!([one]),
    }
}
