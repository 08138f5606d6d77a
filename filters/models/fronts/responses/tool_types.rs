//! The vendor's types of tools, and which of them other providers can do.

/// What a tool of a type is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ToolType {
    /// The client runs it; its arguments are JSON.
    Function,
    /// The client runs it; what it takes is a text.
    Custom,
    /// Tools that have a name in common.
    Namespace,
    /// A search of the web, run by the provider.
    WebSearch,
    /// A search among deferred tools.
    ToolSearch,
    /// Only hosts of the dialect know it.
    Native,
}

/// Returns what a tool of a type is. Some types are a name and a date.
pub(super) fn find(kind: &str) -> ToolType {
    match kind {
        "function" => ToolType::Function,
        "custom" => ToolType::Custom,
        "namespace" => ToolType::Namespace,
        "tool_search" => ToolType::ToolSearch,
        kind if kind.starts_with("web_search") => ToolType::WebSearch,
        _ => ToolType::Native,
    }
}
