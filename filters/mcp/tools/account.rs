//! Tools about money.

use super::{McpTool, RouteRequest, ToolResult};

/// What the organization has left.
pub(super) const GET_ACCOUNT: McpTool = McpTool {
    route: "credits",
    description: include_str!("get-account.json"),
    request: |_| RouteRequest::default(),
    result: |_, response| Some(ToolResult::both(response.json()?)),
};

/// What the calling key has spent and may spend.
pub(super) const KEY_STATUS: McpTool = McpTool {
    route: "key",
    description: include_str!("key-status.json"),
    request: |_| RouteRequest::default(),
    result: |_, response| Some(ToolResult::both(response.json()?.get("data")?.clone())),
};
