//! The tool about the limits of the graph service.

use super::{Authorization, McpTool, RouteRequest, Scope, ToolResult, write_query};

/// The remaining requests of a tenant.
pub(super) const GRAPH_LIMITS: McpTool = McpTool {
    route: "graph_limits",
    scope: Scope::LimitsRead,
    description: include_str!("graph-limits.json"),
    request: |arguments| {
        let given = arguments.get("authorization").and_then(|it| it.as_str());
        RouteRequest {
            query: write_query(arguments, &["operation"]),
            authorization: Authorization::Graph(given.map(str::to_owned)),
            ..RouteRequest::default()
        }
    },
    result: |_, response| Some(ToolResult::both(response.json()?)),
};
