//! Overrides: variables named `WEIRGATE_SECTION__KEY`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::document::{Node, SourceSpan, Table, Value, parse_value};
use super::suggest;
use super::walk::{Finding, join_key, schema_format, schema_type};

const PREFIX: &str = "WEIRGATE_";
/// The variable from which printed commands take the API key, so that it is no setting.
pub const API_KEY_VARIABLE: &str = "WEIRGATE_API_KEY";
/// The variable in which whoever runs a command says who they are. It is no setting either.
pub const ACTOR_VARIABLE: &str = "WEIRGATE_ACTOR";

/// Returns whether a variable is an override.
pub(super) fn is_override(name: &str) -> bool {
    name.strip_prefix(PREFIX)
        .is_some_and(|rest| rest.contains("__"))
}

/// Applies all overrides of `env` to `root`. Returns a finding for each variable that names no key.
///
/// Variables are applied in the order of their names, so one for a table precedes those of its members.
pub(super) fn apply_overrides(
    root: &mut Node,
    env: &BTreeMap<String, String>,
    schema: &Json,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (variable, text) in env.iter().filter(|(name, _)| is_override(name)) {
        let rest = variable.strip_prefix(PREFIX).unwrap_or_default();
        let path: Vec<String> = rest.split("__").map(str::to_ascii_lowercase).collect();
        if let Err((message, cure)) = set_value(root, &path, schema, variable, text) {
            let at = SourceSpan::Variable(variable.clone());
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

/// Returns a warning for each variable that looks like a setting but has no two underscores, so that it has no effect.
/// Variables that the document `root` refers to, and those of the API key and of the actor, are not settings.
pub(super) fn find_ineffective(
    root: &Node,
    env: &BTreeMap<String, String>,
    schema: &Json,
) -> Vec<Finding> {
    let mut used = BTreeSet::from([API_KEY_VARIABLE, ACTOR_VARIABLE]);
    collect_references(root, &mut used);
    let names = env.keys().filter(|name| {
        name.starts_with(PREFIX) && !is_override(name) && !used.contains(name.as_str())
    });
    names
        .map(|name| Finding {
            key: String::new(),
            at: SourceSpan::Variable(name.clone()),
            message: format!(
                "{name} has no effect: two underscores stand between a section and its key"
            ),
            cure: match find_meant(name, schema) {
                Some(meant) => format!("did you mean {meant}?"),
                None => format!("write {PREFIX}SECTION__KEY, or unset it"),
            },
        })
        .collect()
}

/// Collects the names of all variables that hold secrets.
fn collect_references<'n>(node: &'n Node, used: &mut BTreeSet<&'n str>) {
    match &node.value {
        Value::List(items) => {
            for item in items {
                collect_references(item, used);
            }
        }
        Value::Table(table) => {
            for (key, (_, inner)) in table {
                match &inner.value {
                    Value::Text(name) if key == "env" => _ = used.insert(name),
                    _ => collect_references(inner, used),
                }
            }
        }
        _ => {}
    }
}

/// Returns the setting that a name with single underscores probably means.
fn find_meant(name: &str, schema: &Json) -> Option<String> {
    let rest = name.strip_prefix(PREFIX)?.to_ascii_lowercase();
    let sections = schema.get("properties")?.as_object()?;
    sections.iter().find_map(|(section, inner)| {
        let key = rest.strip_prefix(section.as_str())?.strip_prefix('_')?;
        inner.get("properties")?.get(key)?;
        Some(format!("{PREFIX}{section}__{key}").to_ascii_uppercase())
    })
}

fn set_value(
    root: &mut Node,
    path: &[String],
    schema: &Json,
    variable: &str,
    text: &str,
) -> Result<(), (String, String)> {
    let (names, inner) = resolve_path(root, path, schema)?;
    let at = SourceSpan::Variable(variable.to_owned());
    let mut node = root;
    for name in names {
        // The check of the document reports tables of the wrong type in the file.
        let Value::Table(table) = &mut node.value else {
            return Ok(());
        };
        let empty = Node {
            value: Value::Table(Table::new()),
            at: at.clone(),
        };
        node = &mut table.entry(name).or_insert((at.clone(), empty)).1;
    }
    *node = parse_override(text, inner, variable);
    Ok(())
}

/// Resolves the parts of a variable's name to keys, and to the schema of the last key.
fn resolve_path<'s>(
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
        let Some((name, inner)) = resolve_part(part, at, table) else {
            return Err(describe_unknown(path, depth, schema));
        };
        node = table
            .and_then(|table| table.get(&name))
            .map(|(_, node)| node);
        at = inner;
        names.push(name);
    }
    Ok((names, at))
}

/// Resolves one part of a variable's name to a key and its schema.
fn resolve_part<'s>(
    part: &str,
    schema: &'s Json,
    table: Option<&Table>,
) -> Option<(String, &'s Json)> {
    if let Some(inner) = schema.get("properties").and_then(|known| known.get(part)) {
        return Some((part.to_owned(), inner));
    }
    let inner = schema
        .get("additionalProperties")
        .filter(|inner| inner.is_object())?;
    // Variable names have neither dots nor dashes: `MY_VLLM` means the provider `my-vllm` if the file has it.
    let known = table.and_then(|table| table.keys().find(|name| fold_name(name) == part));
    (!part.is_empty()).then(|| (known.cloned().unwrap_or_else(|| part.to_owned()), inner))
}

fn fold_name(name: &str) -> String {
    let fold = |shown: char| {
        if shown.is_ascii_alphanumeric() {
            shown.to_ascii_lowercase()
        } else {
            '_'
        }
    };
    name.chars().map(fold).collect()
}

fn describe_unknown(path: &[String], depth: usize, schema: &Json) -> (String, String) {
    let key = path
        .iter()
        .take(depth + 1)
        .fold(String::new(), |key, part| join_key(&key, part));
    let message = format!("names the key {key}, which does not exist");
    let cure = match suggest::nearest_path(path, schema) {
        Some(suggestion) => {
            let variable = suggestion
                .replace('.', "__")
                .replace('-', "_")
                .to_ascii_uppercase();
            format!("did you mean {PREFIX}{variable}?")
        }
        None => "unset it; `weirgate config schema` lists all keys".to_owned(),
    };
    (message, cure)
}

/// Parses the value as TOML if that has the right type, else as plain text.
fn parse_override(text: &str, schema: &Json, variable: &str) -> Node {
    let at = SourceSpan::Variable(variable.to_owned());
    let plain = Node {
        value: Value::Text(text.to_owned()),
        at: at.clone(),
    };
    match parse_value(text.trim(), variable) {
        Some(node) if matches_type(&node.value, schema) => Node { at, ..node },
        _ => plain,
    }
}

fn matches_type(value: &Value, schema: &Json) -> bool {
    match schema_format(schema) {
        "secret" => return matches!(value, Value::Table(_)),
        "usd" | "id" => {
            return matches!(value, Value::Text(_) | Value::Integer(_) | Value::Float(_));
        }
        _ => {}
    }
    match schema_type(schema) {
        "object" => matches!(value, Value::Table(_)),
        "array" => matches!(value, Value::List(_)),
        "boolean" => matches!(value, Value::Bool(_)),
        "integer" | "number" => matches!(value, Value::Integer(_) | Value::Float(_)),
        _ => matches!(value, Value::Text(_)),
    }
}
