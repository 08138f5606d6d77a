//! Tools about money.

use super::{McpTool, RouteRequest, Scope, ToolResult, write_query};

/// The organization's balance.
pub(super) const GET_ACCOUNT: McpTool = McpTool {
    route: "credits",
    scope: Scope::AccountRead,
    description: include_str!("get-account.json"),
    request: |_| RouteRequest::default(),
    result: |_, response| Some(ToolResult::both(response.json()?)),
};

/// The spending and the limits of the calling key.
pub(super) const KEY_STATUS: McpTool = McpTool {
    route: "key",
    scope: Scope::AccountRead,
    description: include_str!("key-status.json"),
    request: |_| RouteRequest::default(),
    result: |_, response| Some(ToolResult::both(response.json()?.get("data")?.clone())),
};

/// The usage and cost of calls, by time.
pub(super) const GET_USAGE: McpTool = McpTool {
    route: "usage",
    scope: Scope::AccountRead,
    description: include_str!("get-usage.json"),
    request: |arguments| RouteRequest {
        query: write_query(arguments, &["from", "to", "granularity"]),
        ..RouteRequest::default()
    },
    result: |_, response| Some(ToolResult::both(response.json()?)),
};

/// The usage and cost of calls, by model, provider or key.
pub(super) const GET_USAGE_BREAKDOWN: McpTool = McpTool {
    route: "usage_breakdown",
    scope: Scope::AccountRead,
    description: include_str!("get-usage-breakdown.json"),
    request: |arguments| {
        let names = ["group_by", "sort_by", "from", "to", "limit", "offset"];
        RouteRequest {
            query: write_query(arguments, &names),
            ..RouteRequest::default()
        }
    },
    result: |_, response| Some(ToolResult::both(response.json()?)),
};
