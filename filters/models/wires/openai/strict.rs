//! Schemas for a provider that takes them only if they are strict and closed at every object.
//! Source: docs/facts/wire-formats.md 5.4, Cerebras.

use serde_json::Value;

use crate::models::wires::closed_schema::{close, read};

/// A word that such decoders refuse beside the others.
const FORMAT: [&str; 1] = ["format"];

/// Returns a `response_format` whose schema is strict and closed; `None`: it has no schema, or one of
/// too many values.
pub(super) fn response_format(value: &[u8]) -> Option<Vec<u8>> {
    let mut format: Value = read(value)?;
    let form = format.get_mut("json_schema")?.as_object_mut()?;
    close(form.get_mut("schema")?, &FORMAT);
    form.insert("strict".to_owned(), true.into());
    serde_json::to_vec(&format).ok()
}

/// Returns `tools` with the schemas of strict functions closed; `None`: no function is strict, or they have too
/// many values.
pub(super) fn tools(value: &[u8]) -> Option<Vec<u8>> {
    let mut tools: Value = read(value)?;
    let mut has_changed = false;
    let list = tools.as_array_mut()?;
    list.retain(|tool| tool.get("type").is_some_and(|kind| kind == "function"));
    for tool in list {
        // What else a tool has belongs to other providers.
        let members = tool.as_object_mut()?;
        members.retain(|key, _| matches!(key.as_str(), "type" | "function"));
        let function = tool.get_mut("function").and_then(Value::as_object_mut);
        let strict = function.filter(|function| function.get("strict") == Some(&Value::Bool(true)));
        if let Some(parameters) = strict.and_then(|function| function.get_mut("parameters")) {
            close(parameters, &FORMAT);
            has_changed = true;
        }
    }
    has_changed
        .then(|| serde_json::to_vec(&tools).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_are_strict_and_closed_at_every_object() {
        let inner = json!({"type": "object", "properties": {"format": {"type": "string", "format": "date", "minLength": 1}}});
        let schema =
            json!({"type": "object", "properties": {"list": {"type": "array", "items": inner}}});
        let closed = json!({"type": "object", "additionalProperties": false, "properties": {"list": {"type": "array", "items":
            {"type": "object", "additionalProperties": false, "properties": {"format": {"type": "string"}}}}}});
        let format = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema}});
        let sent = response_format(format.to_string().as_bytes()).unwrap();
        let sent: Value = serde_json::from_slice(&sent).unwrap();
        let expected = json!({"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": closed}});
        assert_eq!(sent, expected);
        assert_eq!(response_format(br#"{"type":"json_object"}"#), None);

        let tool = |strict: bool, schema: &Value| json!([{"type": "function", "function": {"name": "f", "strict": strict, "parameters": schema}}]);
        let sent = tools(tool(true, &schema).to_string().as_bytes()).unwrap();
        assert_eq!(
            serde_json::from_slice::<Value>(&sent).unwrap(),
            tool(true, &closed)
        );
        assert_eq!(tools(tool(false, &schema).to_string().as_bytes()), None);
    }
}
