//! The tool about the limits of the graph service.

use super::{Authorization, McpTool, RouteRequest, Scope, ToolResult, query_of};

/// What a tenant has left.
pub(super) const GRAPH_LIMITS: McpTool = McpTool {
    route: "graph_limits",
    scope: Scope::LimitsRead,
    description: include_str!("graph-limits.json"),
    request: |arguments| {
        let given = arguments.get("authorization").and_then(|it| it.as_str());
        RouteRequest {
            query: query_of(arguments, &["operation"]),
            authorization: Authorization::Graph(given.map(str::to_owned)),
            ..RouteRequest::default()
        }
    },
    result: |_, response| Some(ToolResult::both(response.json()?)),
};
