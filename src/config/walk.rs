//! The walk of a document against the schema: finds every problem, and where each value came from.
//!
//! What is wrong is left out of the result, so that the rules behind can still look at the rest.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Map, Value as Json};

use super::document::{At, Node, Table, Value};
use super::{format, suggest};

/// A problem before its place is looked up in the text.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub key: String,
    pub at: At,
    pub message: String,
    pub cure: String,
}

/// What a walk found out.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// Keys that are set but not in force yet; a whole section counts once.
    pub not_in_force: Vec<(String, At)>,
    /// Where each key's value stands.
    pub places: BTreeMap<String, At>,
    /// Bytes of the file that may hold a secret and must never be shown.
    pub hidden: Vec<Range<usize>>,
}

impl Walk {
    /// Checks `root`; answers what of it is good.
    pub(super) fn document(&mut self, root: &Node, schema: &Json) -> Json {
        self.node(root, schema, "")
            .unwrap_or_else(|| Json::Object(Map::new()))
    }

    /// Notes a problem of the value at `key`.
    pub(super) fn refuse(&mut self, key: &str, at: &At, message: String, cure: String) {
        self.findings.push(Finding {
            key: key.to_owned(),
            at: at.clone(),
            message,
            cure,
        });
    }

    fn node(&mut self, node: &Node, schema: &Json, key: &str) -> Option<Json> {
        self.places.insert(key.to_owned(), node.at.clone());
        match format_of(schema) {
            "secret" => return self.secret(node, key),
            "usd" => return self.scalar(node, key, format::usd(&node.value)),
            "id" => return self.scalar(node, key, format::id(&node.value)),
            _ => {}
        }
        match (type_of(schema), &node.value) {
            ("object", Value::Table(table)) => self.table(node, table, schema, key),
            ("array", Value::List(items)) => self.list(node, items, schema, key),
            ("boolean", Value::Bool(flag)) => Some(Json::Bool(*flag)),
            ("integer" | "number", Value::Integer(_) | Value::Float(_)) => {
                self.scalar(node, key, format::number(&node.value, schema))
            }
            ("string", Value::Text(text)) => {
                // A URL may carry a password before its @.
                if format_of(schema).contains("url") && text.contains('@') {
                    self.hide(node);
                }
                self.scalar(node, key, format::text(text, schema))
            }
            (wanted, found) => {
                let wanted = named(wanted);
                if bears_secret(schema) {
                    self.hide(node);
                }
                let message = format!("must be {wanted}, but is {}", found.kind());
                self.refuse(key, &node.at, message, format::cure_of_type(schema));
                None
            }
        }
    }

    fn scalar(
        &mut self,
        node: &Node,
        key: &str,
        checked: Result<Json, (String, String)>,
    ) -> Option<Json> {
        checked
            .map_err(|(message, cure)| self.refuse(key, &node.at, message, cure))
            .ok()
    }

    fn list(&mut self, node: &Node, items: &[Node], schema: &Json, key: &str) -> Option<Json> {
        let least = schema.get("minItems").and_then(Json::as_u64).unwrap_or(0);
        if (items.len() as u64) < least {
            let message = "must not be empty".to_owned();
            self.refuse(key, &node.at, message, "list at least one".to_owned());
            return None;
        }
        let inner = schema.get("items").unwrap_or(&Json::Null);
        let unique = schema.get("uniqueItems") == Some(&Json::Bool(true));
        let mut good: Vec<Json> = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let place = format!("{key}[{index}]");
            let Some(value) = self.node(item, inner, &place) else {
                continue;
            };
            if unique && good.contains(&value) {
                let message = format!("{value} stands in the list twice");
                self.refuse(&place, &item.at, message, "take one of them out".to_owned());
            } else {
                good.push(value);
            }
        }
        Some(Json::Array(good))
    }

    fn table(&mut self, node: &Node, table: &Table, schema: &Json, key: &str) -> Option<Json> {
        let mut good = Map::new();
        for (name, (at, value)) in table {
            let place = join(key, name);
            let Some(inner) = self.member(name, at, value, schema, key) else {
                continue;
            };
            if inner.get("x-not-in-force") == Some(&Json::Bool(true)) {
                self.not_in_force.push((place.clone(), at.clone()));
            }
            if let Some(value) = self.node(value, inner, &place) {
                good.insert(name.clone(), value);
            }
        }
        let mut whole = true;
        for name in required(schema) {
            whole &= good.contains_key(name);
            if !table.contains_key(name) {
                let at = self.heading(key, node);
                let message = format!("the key {name} is missing");
                self.refuse(&join(key, name), &at, message, format!("add {name} = …"));
            }
        }
        whole.then_some(Json::Object(good))
    }

    /// A missing key is shown at the head of its table.
    fn heading(&self, key: &str, node: &Node) -> At {
        self.places
            .get(&format!("{key}="))
            .unwrap_or(&node.at)
            .clone()
    }

    /// The schema of one member of a table; an unknown name is a problem.
    fn member<'s>(
        &mut self,
        name: &str,
        at: &At,
        value: &Node,
        schema: &'s Json,
        key: &str,
    ) -> Option<&'s Json> {
        self.places
            .insert(format!("{}=", join(key, name)), at.clone());
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
            return match format::name(name, names) {
                Ok(()) => Some(inner),
                Err((message, cure)) => {
                    self.refuse(&join(key, name), at, message, cure);
                    None
                }
            };
        }
        self.hide_named(name, value);
        let (message, cure) = suggest::unknown(name, key, schema);
        self.refuse(&join(key, name), at, message, cure);
        None
    }

    fn secret(&mut self, node: &Node, key: &str) -> Option<Json> {
        self.hide(node);
        let cure = "write { env = \"NAME\" } or { file = \"PATH\" } instead".to_owned();
        match &node.value {
            // Whether a literal may stand here depends on the provider's kind: the rules know.
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
                    self.reveal(node);
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
                let message = format!("a secret must be a table, but is {}", found.kind());
                self.refuse(key, &node.at, message, cure);
            }
        }
        None
    }

    fn hide(&mut self, node: &Node) {
        match (&node.value, &node.at) {
            (Value::Text(_), At::Bytes(bytes)) => self.hidden.push(bytes.clone()),
            (Value::List(items), _) => items.iter().for_each(|item| self.hide(item)),
            (Value::Table(table), _) => table.values().for_each(|(_, value)| self.hide(value)),
            _ => {}
        }
    }

    /// Hides what an unknown key holds if its name, or a name in it, sounds like a secret.
    fn hide_named(&mut self, name: &str, node: &Node) {
        let name = name.to_ascii_lowercase();
        if SECRET_WORDS.iter().any(|word| name.contains(word)) {
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

    fn reveal(&mut self, node: &Node) {
        if let At::Bytes(shown) = &node.at {
            self.hidden
                .retain(|bytes| bytes.start < shown.start || bytes.end > shown.end);
        }
    }
}

/// A text that is no variable's name may be the secret itself, written in the wrong place.
fn is_reference(name: &str, text: &str) -> bool {
    let of_a_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    match name {
        "env" => !text.is_empty() && text.bytes().all(of_a_name),
        "file" => !text.is_empty(),
        _ => false,
    }
}

const SECRET_WORDS: [&str; 6] = ["key", "secret", "token", "pass", "auth", "credential"];

/// Whether a secret may stand in what this schema describes.
fn bears_secret(schema: &Json) -> bool {
    let inner = ["items", "additionalProperties"].map(|name| schema.get(name));
    let known = schema.get("properties").and_then(Json::as_object);
    let known = known.into_iter().flat_map(|known| known.values());
    format_of(schema) == "secret" || inner.into_iter().flatten().chain(known).any(bears_secret)
}

/// The dotted key of a member; a name that is no bare key is quoted.
pub(super) fn join(key: &str, name: &str) -> String {
    let bare = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    let name = if bare {
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

/// The schema's type, or an empty string.
pub(super) fn type_of(schema: &Json) -> &str {
    schema
        .get("type")
        .and_then(Json::as_str)
        .unwrap_or_default()
}

/// The schema's format, or an empty string.
pub(super) fn format_of(schema: &Json) -> &str {
    schema
        .get("format")
        .and_then(Json::as_str)
        .unwrap_or_default()
}

fn required(schema: &Json) -> impl Iterator<Item = &str> {
    schema
        .get("required")
        .and_then(Json::as_array)
        .into_iter()
        .flatten()
        .filter_map(Json::as_str)
}

fn named(wanted: &str) -> &str {
    match wanted {
        "object" => "a table",
        "array" => "a list",
        "boolean" => "true or false",
        "integer" => "an integer",
        "number" => "a number",
        _ => "a string",
    }
}
