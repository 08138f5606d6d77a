//! The fields of tools.

use serde_json::{Value, json};

use crate::fields::{Field, base, function, plain, with};

/// A function tool with these members.
fn in_tool(name: &'static str, pointer: &'static str, members: Value) -> Field {
    Field {
        name,
        pointer,
        with: with(base(), &json!({"tools": [with(function(), &members)]})),
        without: with(base(), &json!({"tools": [function()]})),
    }
}

pub(crate) fn tools() -> Vec<Field> {
    let strict = json!({"function": {"name": "f", "strict": true, "parameters": {"type": "object", "properties": {}}}});
    let described = json!({"function": {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}});
    let search = json!({"type": "tool_search", "tool_search_type": "tool_search_tool_regex"});
    vec![
        in_tool(
            "tools[].function.description",
            "/tools/0/function/description",
            described,
        ),
        in_tool(
            "tools[].function.strict",
            "/tools/0/function/strict",
            strict,
        ),
        in_tool(
            "tools[].cache_control",
            "/tools/0/cache_control",
            json!({"cache_control": {"type": "ephemeral"}}),
        ),
        in_tool(
            "tools[].allowed_callers",
            "/tools/0/allowed_callers",
            json!({"allowed_callers": ["direct"]}),
        ),
        Field {
            name: "tools[].defer_loading",
            pointer: "/tools/1/defer_loading",
            with: with(
                base(),
                &json!({"tools": [search, with(function(), &json!({"defer_loading": true}))]}),
            ),
            without: with(base(), &json!({"tools": [search, function()]})),
        },
        Field {
            name: "tools[]: tool_search",
            pointer: "/tools/0",
            with: with(base(), &json!({"tools": [search, function()]})),
            without: with(base(), &json!({"tools": [function()]})),
        },
        plain(
            "tools[]: web_search",
            "/tools",
            json!({"tools": [{"type": "web_search"}]}),
        ),
        in_search(
            "tools[].user_location",
            json!({"user_location": {"country": "DE"}}),
        ),
        in_search(
            "tools[].search_context_size",
            json!({"search_context_size": "low"}),
        ),
        in_search("tools[].max_uses", json!({"max_uses": 2})),
        in_search(
            "tools[].allowed_domains",
            json!({"allowed_domains": ["a.example"]}),
        ),
        in_search(
            "tools[].blocked_domains",
            json!({"blocked_domains": ["a.example"]}),
        ),
    ]
}

/// A web search with an option.
fn in_search(name: &'static str, option: Value) -> Field {
    let search = json!({"type": "web_search"});
    Field {
        name,
        pointer: "/tools/0/none",
        with: with(base(), &json!({"tools": [with(search.clone(), &option)]})),
        without: with(base(), &json!({"tools": [search]})),
    }
}
