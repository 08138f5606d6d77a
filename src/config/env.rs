//! Overrides: variables of the form `WEIRGATE_SECTION__KEY`.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::document::{At, Node, Table, Value, parse_value};
use super::suggest;
use super::walk::{Finding, format_of, join, type_of};

const PREFIX: &str = "WEIRGATE_";

/// Whether a variable is meant as configuration.
pub(super) fn is_override(name: &str) -> bool {
    name.strip_prefix(PREFIX)
        .is_some_and(|rest| rest.contains("__"))
}

/// Lays all overrides of `env` over `root`; answers the variables that name no key.
///
/// A variable of a whole table comes before those of its members, because names are in order.
pub(super) fn lay_over(
    root: &mut Node,
    env: &BTreeMap<String, String>,
    schema: &Json,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (variable, text) in env.iter().filter(|(name, _)| is_override(name)) {
        let rest = variable.strip_prefix(PREFIX).unwrap_or_default();
        let path: Vec<String> = rest.split("__").map(str::to_ascii_lowercase).collect();
        if let Err((message, cure)) = set(root, &path, schema, variable, text) {
            let at = At::Variable(variable.clone());
            findings.push(Finding {
                key: String::new(),
                at,
                message,
                cure,
            });
        }
    }
    findings
}

fn set(
    root: &mut Node,
    path: &[String],
    schema: &Json,
    variable: &str,
    text: &str,
) -> Result<(), (String, String)> {
    let (names, inner) = resolve(root, path, schema)?;
    let at = At::Variable(variable.to_owned());
    let mut node = root;
    for name in names {
        // A table that the file has wrong is the file's problem, found by the walk.
        let Value::Table(table) = &mut node.value else {
            return Ok(());
        };
        let empty = Node {
            value: Value::Table(Table::new()),
            at: at.clone(),
        };
        node = &mut table.entry(name).or_insert((at.clone(), empty)).1;
    }
    *node = value(text, inner, variable);
    Ok(())
}

/// The keys that the parts of a variable's name mean, and the schema of the last.
fn resolve<'s>(
    root: &Node,
    path: &[String],
    schema: &'s Json,
) -> Result<(Vec<String>, &'s Json), (String, String)> {
    let (mut node, mut at, mut names) = (Some(root), schema, Vec::new());
    for (depth, part) in path.iter().enumerate() {
        let table = match node.map(|node| &node.value) {
            Some(Value::Table(table)) => Some(table),
            _ => None,
        };
        let Some((name, inner)) = member(part, at, table) else {
            return Err(unknown(path, depth, schema));
        };
        node = table
            .and_then(|table| table.get(&name))
            .map(|(_, node)| node);
        at = inner;
        names.push(name);
    }
    Ok((names, at))
}

/// The key that one part of a variable's name means, and its schema.
fn member<'s>(part: &str, schema: &'s Json, table: Option<&Table>) -> Option<(String, &'s Json)> {
    if let Some(inner) = schema.get("properties").and_then(|known| known.get(part)) {
        return Some((part.to_owned(), inner));
    }
    let inner = schema
        .get("additionalProperties")
        .filter(|inner| inner.is_object())?;
    // Variables know neither dots nor dashes: `MY_VLLM` means the provider `my-vllm` where the file has it.
    let known = table.and_then(|table| table.keys().find(|name| plain(name) == part));
    (!part.is_empty()).then(|| (known.cloned().unwrap_or_else(|| part.to_owned()), inner))
}

fn plain(name: &str) -> String {
    let fold = |shown: char| {
        if shown.is_ascii_alphanumeric() {
            shown.to_ascii_lowercase()
        } else {
            '_'
        }
    };
    name.chars().map(fold).collect()
}

fn unknown(path: &[String], depth: usize, schema: &Json) -> (String, String) {
    let key = path
        .iter()
        .take(depth + 1)
        .fold(String::new(), |key, part| join(&key, part));
    let message = format!("names the key {key}, which does not exist");
    let cure = match suggest::nearest_path(path, schema) {
        Some(meant) => {
            let variable = meant
                .replace('.', "__")
                .replace('-', "_")
                .to_ascii_uppercase();
            format!("did you mean {PREFIX}{variable}?")
        }
        None => "unset it; `weirgate config schema` lists all keys".to_owned(),
    };
    (message, cure)
}

/// The value as TOML if that is of the right type, else as plain text.
fn value(text: &str, schema: &Json, variable: &str) -> Node {
    let at = At::Variable(variable.to_owned());
    let plain = Node {
        value: Value::Text(text.to_owned()),
        at: at.clone(),
    };
    match parse_value(text.trim(), variable) {
        Some(node) if fits(&node.value, schema) => Node { at, ..node },
        _ => plain,
    }
}

fn fits(value: &Value, schema: &Json) -> bool {
    match format_of(schema) {
        "secret" => return matches!(value, Value::Table(_)),
        "usd" | "id" => {
            return matches!(value, Value::Text(_) | Value::Integer(_) | Value::Float(_));
        }
        _ => {}
    }
    match type_of(schema) {
        "object" => matches!(value, Value::Table(_)),
        "array" => matches!(value, Value::List(_)),
        "boolean" => matches!(value, Value::Bool(_)),
        "integer" | "number" => matches!(value, Value::Integer(_) | Value::Float(_)),
        _ => matches!(value, Value::Text(_)),
    }
}
