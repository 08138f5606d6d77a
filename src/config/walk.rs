//! Checks a document against the schema: it finds every problem, and the position of each value.
//!
//! Invalid values are left out of the result, so that the rules can still check the rest.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Map, Value as Json};

use super::document::{Node, SourceSpan, Table, Value};
use super::{format, suggest};

/// A problem before its position is resolved in the text.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub key: String,
    pub at: SourceSpan,
    pub message: String,
    pub cure: String,
}

/// The results of a walk.
#[derive(Debug, Default)]
pub(super) struct Walk {
    pub findings: Vec<Finding>,
    /// The position of each key's value.
    pub places: BTreeMap<String, SourceSpan>,
    /// Bytes of the file that may hold a secret and must never be shown.
    pub hidden: Vec<Range<usize>>,
}

impl Walk {
    /// Checks `root` and returns its valid parts.
    pub(super) fn check_document(&mut self, root: &Node, schema: &Json) -> Json {
        self.check_node(root, schema, "")
            .unwrap_or_else(|| Json::Object(Map::new()))
    }

    /// Records a problem of the value at `key`.
    pub(super) fn refuse(&mut self, key: &str, at: &SourceSpan, message: String, cure: String) {
        self.findings.push(Finding {
            key: key.to_owned(),
            at: at.clone(),
            message,
            cure,
        });
    }

    /// Returns the position of `key`, or of the nearest table around it if `key` is absent.
    pub(super) fn find_span(&self, key: &str) -> SourceSpan {
        if let Some(at) = self.places.get(key) {
            return at.clone();
        }
        let mut outer = key;
        while let Some(end) = outer.rfind(['.', '[']) {
            outer = outer.get(..end).unwrap_or_default();
            if let Some(at) = self.places.get(&format!("{outer}=")) {
                return at.clone();
            }
        }
        SourceSpan::Nowhere
    }

    fn check_node(&mut self, node: &Node, schema: &Json, key: &str) -> Option<Json> {
        self.places.insert(key.to_owned(), node.at.clone());
        match schema_format(schema) {
            "secret" => return self.check_secret(node, key),
            "usd" => return self.take_scalar(node, key, format::check_usd(&node.value)),
            "id" => return self.take_scalar(node, key, format::check_id(&node.value)),
            _ => {}
        }
        match (schema_type(schema), &node.value) {
            ("object", Value::Table(table)) => self.check_table(node, table, schema, key),
            ("array", Value::List(items)) => self.check_list(node, items, schema, key),
            ("boolean", Value::Bool(flag)) => Some(Json::Bool(*flag)),
            ("integer" | "number", Value::Integer(_) | Value::Float(_)) => {
                self.take_scalar(node, key, format::check_number(&node.value, schema))
            }
            ("string", Value::Text(text)) => {
                // A URL may have a password before its `@`.
                if schema_format(schema).contains("url") && text.contains('@') {
                    self.hide(node);
                }
                self.take_scalar(node, key, format::check_text(text, schema))
            }
            ("string", Value::Date(text)) if matches!(schema_format(schema), "date" | "time") => {
                self.take_scalar(node, key, format::check_text(text, schema))
            }
            (wanted, found) => {
                let wanted = match schema_format(schema) {
                    "date" => "a date",
                    "time" => "a time",
                    _ => type_name(wanted),
                };
                if may_hold_secret(schema) {
                    self.hide(node);
                }
                let message = format!("must be {wanted}, but is {}", found.type_name());
                self.refuse(key, &node.at, message, format::describe_type(schema));
                None
            }
        }
    }

    fn take_scalar(
        &mut self,
        node: &Node,
        key: &str,
        checked: Result<Json, (String, String)>,
    ) -> Option<Json> {
        checked
            .map_err(|(message, cure)| self.refuse(key, &node.at, message, cure))
            .ok()
    }

    fn check_list(
        &mut self,
        node: &Node,
        items: &[Node],
        schema: &Json,
        key: &str,
    ) -> Option<Json> {
        let min = schema.get("minItems").and_then(Json::as_u64).unwrap_or(0);
        if (items.len() as u64) < min {
            let message = "must not be empty".to_owned();
            self.refuse(key, &node.at, message, "list at least one".to_owned());
            return None;
        }
        let inner = schema.get("items").unwrap_or(&Json::Null);
        let unique = schema.get("uniqueItems") == Some(&Json::Bool(true));
        let mut valid: Vec<Json> = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let place = format!("{key}[{index}]");
            let Some(value) = self.check_node(item, inner, &place) else {
                continue;
            };
            if unique && valid.contains(&value) {
                let message = format!("{value} stands in the list twice");
                self.refuse(&place, &item.at, message, "take one of them out".to_owned());
            } else {
                valid.push(value);
            }
        }
        Some(Json::Array(valid))
    }

    fn check_table(
        &mut self,
        node: &Node,
        table: &Table,
        schema: &Json,
        key: &str,
    ) -> Option<Json> {
        let mut valid = Map::new();
        for (name, (at, value)) in table {
            let place = join_key(key, name);
            let Some(inner) = self.find_member(name, at, value, schema, key) else {
                continue;
            };
            let Some(value) = self.check_node(value, inner, &place) else {
                continue;
            };
            valid.insert(name.clone(), value);
        }
        let mut is_complete = true;
        for name in required(schema) {
            is_complete &= valid.contains_key(name);
            if !table.contains_key(name) {
                let at = self.heading_span(key, node);
                let message = format!("the key {name} is missing");
                self.refuse(
                    &join_key(key, name),
                    &at,
                    message,
                    format!("add {name} = …"),
                );
            }
        }
        is_complete.then_some(Json::Object(valid))
    }

    /// Returns the position of a table's heading, at which missing keys are reported.
    fn heading_span(&self, key: &str, node: &Node) -> SourceSpan {
        self.places
            .get(&format!("{key}="))
            .unwrap_or(&node.at)
            .clone()
    }

    /// Returns the schema of a member of a table. An unknown name is a problem.
    fn find_member<'s>(
        &mut self,
        name: &str,
        at: &SourceSpan,
        value: &Node,
        schema: &'s Json,
        key: &str,
    ) -> Option<&'s Json> {
        self.places
            .insert(format!("{}=", join_key(key, name)), at.clone());
        if let Some(inner) = schema.get("properties").and_then(|known| known.get(name)) {
            return Some(inner);
        }
        if let Some(inner) = schema
            .get("additionalProperties")
            .filter(|inner| inner.is_object())
        {
            let names = schema
                .get("x-names")
                .and_then(Json::as_str)
                .unwrap_or("name");
            return match format::check_name(name, names) {
                Ok(()) => Some(inner),
                Err((message, cure)) => {
                    self.refuse(&join_key(key, name), at, message, cure);
                    None
                }
            };
        }
        self.hide_named(name, value);
        let (message, cure) = suggest::describe_unknown(name, key, schema);
        self.refuse(&join_key(key, name), at, message, cure);
        None
    }

    fn check_secret(&mut self, node: &Node, key: &str) -> Option<Json> {
        self.hide(node);
        let cure = "write { env = \"NAME\" } or { file = \"PATH\" } instead".to_owned();
        match &node.value {
            // Only some kinds of provider accept a literal, so the rules check it.
            Value::Text(text) => return Some(Json::String(text.clone())),
            Value::Table(table) => {
                let only = table.iter().next().filter(|_| table.len() == 1);
                if let Some((
                    name,
                    (
                        _,
                        Node {
                            value: Value::Text(text),
                            ..
                        },
                    ),
                )) = only
                    && is_reference(name, text)
                {
                    self.unhide(node);
                    return Some(Json::Object(Map::from_iter([(
                        name.clone(),
                        text.clone().into(),
                    )])));
                }
                let message =
                    "a secret has exactly one of env, a variable's name, and file, a path"
                        .to_owned();
                self.refuse(key, &node.at, message, cure);
            }
            found => {
                let message = format!("a secret must be a table, but is {}", found.type_name());
                self.refuse(key, &node.at, message, cure);
            }
        }
        None
    }

    /// In lines of broken syntax, hides the text after a name that sounds like a secret. Such lines have no known
    /// values.
    pub(super) fn hide_in_broken_lines(&mut self, text: &str, syntax: &[Finding]) {
        for finding in syntax {
            let SourceSpan::Bytes(bytes) = &finding.at else {
                continue;
            };
            let before = text.get(..bytes.start).unwrap_or_default();
            let start = before.rfind('\n').map_or(0, |newline| newline + 1);
            let rest = text.get(start..).unwrap_or_default();
            let line = rest.lines().next().unwrap_or_default();
            let lower = line.to_ascii_lowercase();
            let values = SECRET_WORDS.iter().filter_map(|word| {
                let name = lower.find(word)?;
                let equals = lower.get(name..)?.find('=')?;
                Some(name + equals + 1)
            });
            if let Some(value) = values.min() {
                self.hidden.push(start + value..start + line.len());
            }
        }
    }

    fn hide(&mut self, node: &Node) {
        match (&node.value, &node.at) {
            (Value::Text(_), SourceSpan::Bytes(bytes)) => self.hidden.push(bytes.clone()),
            (Value::List(items), _) => items.iter().for_each(|item| self.hide(item)),
            (Value::Table(table), _) => table.values().for_each(|(_, value)| self.hide(value)),
            _ => {}
        }
    }

    /// Hides the value of an unknown key if its name, or a name inside of it, sounds like a secret.
    fn hide_named(&mut self, name: &str, node: &Node) {
        let name = name.to_ascii_lowercase();
        if sounds_secret(&name) {
            return self.hide(node);
        }
        match &node.value {
            Value::List(items) => items.iter().for_each(|item| self.hide_named("", item)),
            Value::Table(table) => {
                table
                    .iter()
                    .for_each(|(name, (_, value))| self.hide_named(name, value));
            }
            _ => {}
        }
    }

    fn unhide(&mut self, node: &Node) {
        if let SourceSpan::Bytes(shown) = &node.at {
            self.hidden
                .retain(|bytes| bytes.start < shown.start || bytes.end > shown.end);
        }
    }
}

/// Returns whether a text is a reference. Another text may be the secret itself in the wrong place.
fn is_reference(name: &str, text: &str) -> bool {
    let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    match name {
        "env" => !text.is_empty() && text.bytes().all(is_name_byte),
        "file" => !text.is_empty(),
        _ => false,
    }
}

const SECRET_WORDS: [&str; 6] = ["key", "secret", "token", "pass", "auth", "credential"];

/// Returns whether a name in small letters sounds like that of a secret.
pub(super) fn sounds_secret(name: &str) -> bool {
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// Returns whether a value of this schema may hold a secret.
fn may_hold_secret(schema: &Json) -> bool {
    let inner = ["items", "additionalProperties"].map(|name| schema.get(name));
    let known = schema.get("properties").and_then(Json::as_object);
    let known = known.into_iter().flat_map(|known| known.values());
    schema_format(schema) == "secret"
        || inner
            .into_iter()
            .flatten()
            .chain(known)
            .any(may_hold_secret)
}

/// Returns the dotted key of a member. A name that is not a bare key is quoted.
pub(super) fn join_key(key: &str, name: &str) -> String {
    let is_bare = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    let name = if is_bare {
        name.to_owned()
    } else {
        format!("{name:?}")
    };
    if key.is_empty() {
        name
    } else {
        format!("{key}.{name}")
    }
}

/// Returns the schema's type, or an empty string.
pub(super) fn schema_type(schema: &Json) -> &str {
    schema
        .get("type")
        .and_then(Json::as_str)
        .unwrap_or_default()
}

/// Returns the schema's format, or an empty string.
pub(super) fn schema_format(schema: &Json) -> &str {
    schema
        .get("format")
        .and_then(Json::as_str)
        .unwrap_or_default()
}

/// Returns the schema of a member of a table, or null.
pub(super) fn member_schema<'s>(schema: &'s Json, name: &str) -> &'s Json {
    let known = schema.get("properties").and_then(|known| known.get(name));
    let inner = known.or_else(|| schema.get("additionalProperties"));
    inner.unwrap_or(&Json::Null)
}

fn required(schema: &Json) -> impl Iterator<Item = &str> {
    schema
        .get("required")
        .and_then(Json::as_array)
        .into_iter()
        .flatten()
        .filter_map(Json::as_str)
}

fn type_name(wanted: &str) -> &str {
    match wanted {
        "object" => "a table",
        "array" => "a list",
        "boolean" => "true or false",
        "integer" => "an integer",
        "number" => "a number",
        _ => "a string",
    }
}
