//! The vendor's types of tools, and which of them other providers can do.

/// The type of a tool that the request describes itself.
pub(super) const CUSTOM: &str = "custom";

/// What a tool of a type is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ToolType {
    /// The request describes it.
    Custom,
    /// The client runs it, and every model of the vendor knows it.
    Client(&'static ClientTool),
    /// A search of the web, run by the provider.
    WebSearch,
    /// A search among deferred tools, run by the provider.
    ToolSearch,
    /// Only hosts of the dialect know it.
    Native,
}

/// A tool that the client runs and that the vendor's models know without a description; other models get this one.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct ClientTool {
    pub(super) description: &'static str,
    /// A JSON schema.
    pub(super) schema: &'static str,
}

static BASH: ClientTool = ClientTool {
    description: "Runs a command in a shell session that lives on between calls. With `restart` the session begins anew.",
    schema: r#"{"type":"object","properties":{"command":{"type":"string","description":"The command to run. Required unless the session is restarted."},"restart":{"type":"boolean","description":"True restarts the session."}}}"#,
};

static TEXT_EDITOR: ClientTool = ClientTool {
    description: "Views, creates and edits files of text. `view` shows a file or lists a folder; `create` writes a file; `str_replace` replaces a text that stands in the file exactly once; `insert` puts a text behind a line.",
    schema: r#"{"type":"object","properties":{"command":{"type":"string","enum":["view","create","str_replace","insert"]},"path":{"type":"string","description":"The path of the file or folder."},"view_range":{"type":"array","items":{"type":"integer"},"description":"Of `view`: the first and the last line; -1 is the end."},"file_text":{"type":"string","description":"Of `create`: the text of the file."},"old_str":{"type":"string","description":"Of `str_replace`: the text to replace."},"new_str":{"type":"string","description":"Of `str_replace`: the new text."},"insert_line":{"type":"integer","description":"Of `insert`: the line behind which the text goes; 0 is the beginning."},"insert_text":{"type":"string","description":"Of `insert`: the text."}},"required":["command","path"]}"#,
};

static MEMORY: ClientTool = ClientTool {
    description: "Keeps notes in files below `/memories` that stay between conversations. `view` lists a folder or shows a file; `create` writes a file; `str_replace` and `insert` edit one; `delete` removes and `rename` moves a file or folder.",
    schema: r#"{"type":"object","properties":{"command":{"type":"string","enum":["view","create","str_replace","insert","delete","rename"]},"path":{"type":"string"},"view_range":{"type":"array","items":{"type":"integer"}},"file_text":{"type":"string"},"old_str":{"type":"string"},"new_str":{"type":"string"},"insert_line":{"type":"integer"},"insert_text":{"type":"string"},"old_path":{"type":"string"},"new_path":{"type":"string"}},"required":["command"]}"#,
};

/// Returns what a tool of a type is. A type is a name and a date.
pub(super) fn find(kind: &str) -> ToolType {
    let dated = kind.rsplit_once('_');
    let is_date = |date: &str| !date.is_empty() && date.bytes().all(|byte| byte.is_ascii_digit());
    let name = match dated {
        Some((name, date)) if is_date(date) => name,
        _ => kind,
    };
    match name {
        CUSTOM => ToolType::Custom,
        "bash" => ToolType::Client(&BASH),
        "text_editor" => ToolType::Client(&TEXT_EDITOR),
        "memory" => ToolType::Client(&MEMORY),
        "web_search" => ToolType::WebSearch,
        name if name.starts_with("tool_search_tool") => ToolType::ToolSearch,
        _ => ToolType::Native,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_known_whatever_its_date() {
        for (kind, expected) in [
            ("custom", ToolType::Custom),
            ("bash_20250124", ToolType::Client(&BASH)),
            ("text_editor_20991231", ToolType::Client(&TEXT_EDITOR)),
            ("memory_20250818", ToolType::Client(&MEMORY)),
            ("web_search_20250305", ToolType::WebSearch),
            ("tool_search_tool_bm25_20251119", ToolType::ToolSearch),
            ("computer_20250124", ToolType::Native),
            ("code_execution_20250825", ToolType::Native),
            ("mcp_toolset", ToolType::Native),
            ("", ToolType::Native),
        ] {
            assert_eq!(find(kind), expected, "{kind}");
        }
    }

    #[test]
    fn schemas_are_json() {
        for tool in [&BASH, &TEXT_EDITOR, &MEMORY] {
            let schema: Result<serde_json::Value, _> = serde_json::from_str(tool.schema);
            assert!(schema.is_ok_and(|schema| schema["type"] == "object"));
        }
    }
}
