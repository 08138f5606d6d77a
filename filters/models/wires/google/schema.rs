//! A JSON schema down to the words this wire knows: any other word refuses the whole request.
//!
//! Source: docs/facts/wire-formats.md 4.2.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::fault::Fault;
use crate::json;

/// Words that pass unchanged.
const PASSED_WORDS: [&str; 16] = [
    "type",
    "title",
    "description",
    "nullable",
    "default",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "example",
    "propertyOrdering",
];
/// How deep references are followed.
const DEPTH: u32 = 32;
/// Values of all schemas of a request, after references are inlined. Our choice: each may become a hundred bytes.
const MAX_VALUES: usize = 32_768;
/// Bytes of their names and texts.
const MAX_BYTES: usize = 1 << 20;

/// What all schemas of a request may still become: few bytes with references name any number of values.
#[derive(Debug)]
pub(super) struct SchemaBudget {
    values: usize,
    bytes: usize,
}

/// The schemas of a request become larger than their budget.
#[derive(Clone, Copy, Debug)]
struct TooLarge;

impl SchemaBudget {
    /// Returns the budget of a request.
    pub(super) fn new() -> Self {
        Self {
            values: MAX_VALUES,
            bytes: MAX_BYTES,
        }
    }

    /// Reads and cleans a schema, which stands in the field `param`; `None`: it is not JSON.
    ///
    /// Errors: a 400, because the schemas are larger than the budget.
    pub(super) fn clean(
        &mut self,
        raw: &str,
        param: impl FnOnce() -> String,
    ) -> Result<Option<Value>, Fault> {
        self.clean_within(raw).map_err(|TooLarge| {
            let param = param();
            let said = format!(
                "`{param}` is too large for this provider, whose schemas have no references: with all references inlined \
                 accepted are at most {MAX_VALUES} values and {MAX_BYTES} bytes in all schemas"
            );
            Fault::invalid(param, said)
        })
    }

    fn clean_within(&mut self, raw: &str) -> Result<Option<Value>, TooLarge> {
        // A tree takes much more memory than its text.
        if raw.len() > self.bytes || json::count_values(raw.as_bytes()) > self.values {
            return Err(TooLarge);
        }
        let Ok(schema) = serde_json::from_str(raw) else {
            return Ok(None);
        };
        let mut cleaner = Cleaner {
            root: &schema,
            budget: self,
        };
        cleaner.schema(&schema, 0).map(Some)
    }

    fn spend(&mut self, values: usize, bytes: usize) -> Result<(), TooLarge> {
        self.values = self.values.checked_sub(values).ok_or(TooLarge)?;
        self.bytes = self.bytes.checked_sub(bytes).ok_or(TooLarge)?;
        Ok(())
    }

    /// Spends what a copy of a value takes.
    fn spend_copy(&mut self, value: &Value) -> Result<(), TooLarge> {
        match value {
            Value::String(text) => self.spend(1, text.len()),
            Value::Array(items) => {
                self.spend(1, 0)?;
                items.iter().try_for_each(|item| self.spend_copy(item))
            }
            Value::Object(members) => {
                self.spend(1, 0)?;
                members.iter().try_for_each(|(name, value)| {
                    self.spend(0, name.len())?;
                    self.spend_copy(value)
                })
            }
            _ => self.spend(1, 0),
        }
    }
}

type Members<'a> = Vec<(&'a str, &'a Value)>;

struct Cleaner<'a, 'b> {
    root: &'a Value,
    budget: &'b mut SchemaBudget,
}

impl<'a> Cleaner<'a, '_> {
    fn schema(&mut self, schema: &'a Value, depth: u32) -> Result<Value, TooLarge> {
        self.budget.spend(1, 0)?;
        let Value::Object(given) = schema else {
            return Ok(json!({}));
        };
        let given = given.iter().map(|(key, value)| (key.as_str(), value));
        let Some((members, depth)) = self.follow(given.collect(), depth)? else {
            return Ok(json!({ "type": "object" }));
        };
        let mut out = Map::new();
        for (key, value) in members {
            self.budget.spend(1, key.len())?;
            self.translate_word(key, value, depth, &mut out)?;
        }
        tidy(&mut out);
        Ok(Value::Object(out))
    }

    /// Follows the references of a schema, whose own members win; returns how deep it is then. `None`: they lead nowhere, or
    /// too deep, as those of a circle do.
    fn follow(
        &mut self,
        mut members: Members<'a>,
        mut depth: u32,
    ) -> Result<Option<(Members<'a>, u32)>, TooLarge> {
        loop {
            if depth > DEPTH {
                return Ok(None);
            }
            let reference = members.iter().find(|(key, _)| *key == "$ref");
            let Some(target) = reference.and_then(|(_, target)| target.as_str()) else {
                return Ok(Some((members, depth)));
            };
            self.budget.spend(members.len(), target.len())?;
            let path = target.strip_prefix('#');
            let Some(found) = path.and_then(|path| self.root.pointer(path)) else {
                return Ok(None);
            };
            let mut own: HashMap<&str, &Value> = members.iter().copied().collect();
            own.remove("$ref");
            let mut merged = Members::new();
            for (key, value) in found.as_object().into_iter().flatten() {
                self.budget.spend(1, 0)?;
                merged.push((key.as_str(), own.remove(key.as_str()).unwrap_or(value)));
            }
            members.retain(|(key, _)| own.contains_key(key));
            merged.append(&mut members);
            members = merged;
            depth += 1;
        }
    }

    fn translate_word(
        &mut self,
        key: &str,
        value: &'a Value,
        depth: u32,
        out: &mut Map<String, Value>,
    ) -> Result<(), TooLarge> {
        match (key, value) {
            ("type", Value::Array(types)) => {
                self.budget.spend(types.len(), 0)?;
                types_of(types, out);
            }
            ("const", value) => {
                self.budget.spend_copy(value)?;
                out.insert("enum".into(), json!([text_of(value)]));
                out.entry("type").or_insert_with(|| "string".into());
            }
            ("enum", Value::Array(values)) => {
                self.budget.spend_copy(value)?;
                let texts = values.iter().filter(|value| !value.is_null());
                let texts: Vec<Value> = texts.map(|value| text_of(value).into()).collect();
                out.insert("enum".into(), texts.into());
                out.insert("type".into(), "string".into());
            }
            ("format", Value::String(format)) if is_known_format(format) => {
                out.insert(key.into(), value.clone());
            }
            ("properties", Value::Object(named)) => {
                let mut cleaned = Map::new();
                for (name, schema) in named {
                    self.budget.spend(0, name.len())?;
                    cleaned.insert(name.clone(), self.schema(schema, depth + 1)?);
                }
                out.insert(key.into(), Value::Object(cleaned));
            }
            ("items" | "prefixItems", Value::Array(list)) => {
                let first = list.first();
                let first = first.map(|first| self.schema(first, depth + 1));
                let first = first.unwrap_or_else(|| Ok(json!({ "type": "string" })))?;
                out.insert("items".into(), first);
            }
            ("items", Value::Object(_)) => {
                out.insert(key.into(), self.schema(value, depth + 1)?);
            }
            ("anyOf" | "oneOf", Value::Array(list)) => self.any_of(list, depth, out)?,
            ("allOf", Value::Array(list)) => self.all_of(list, depth, out)?,
            ("required", Value::Array(_)) => {
                self.budget.spend_copy(value)?;
                out.insert(key.into(), value.clone());
            }
            (key, value) if PASSED_WORDS.contains(&key) && !out.contains_key(key) => {
                self.budget.spend_copy(value)?;
                out.insert(key.into(), value.clone());
            }
            _ => {}
        }
        Ok(())
    }

    fn any_of(
        &mut self,
        list: &'a [Value],
        depth: u32,
        out: &mut Map<String, Value>,
    ) -> Result<(), TooLarge> {
        let is_null = |schema: &&Value| schema.get("type").is_some_and(|kind| kind == "null");
        self.budget.spend(list.len(), 0)?;
        if list.iter().any(|schema| is_null(&schema)) {
            out.insert("nullable".into(), true.into());
        }
        let rest = list.iter().filter(|schema| !is_null(schema));
        let rest = rest.map(|schema| self.schema(schema, depth + 1));
        let rest = rest.collect::<Result<Vec<Value>, _>>()?;
        match <[Value; 1]>::try_from(rest) {
            Ok([Value::Object(only)]) => out.extend(only),
            Ok(_) => {}
            Err(several) => {
                out.insert("anyOf".into(), several.into());
            }
        }
        Ok(())
    }

    fn all_of(
        &mut self,
        list: &'a [Value],
        depth: u32,
        out: &mut Map<String, Value>,
    ) -> Result<(), TooLarge> {
        for schema in list {
            let Value::Object(part) = self.schema(schema, depth + 1)? else {
                continue;
            };
            for (key, value) in part {
                match (out.get_mut(&key), value) {
                    (Some(Value::Object(known)), Value::Object(more)) if key == "properties" => {
                        known.extend(more)
                    }
                    (Some(Value::Array(known)), Value::Array(more)) if key == "required" => {
                        known.extend(more)
                    }
                    (Some(_), _) => {}
                    (None, value) => {
                        out.insert(key, value);
                    }
                }
            }
        }
        Ok(())
    }
}

/// `["string", "null"]` is a nullable string; of several types the first counts.
fn types_of(types: &[Value], out: &mut Map<String, Value>) {
    let named: Vec<&str> = types.iter().filter_map(Value::as_str).collect();
    if named.contains(&"null") {
        out.insert("nullable".into(), true.into());
    }
    let first = named
        .into_iter()
        .find(|kind| *kind != "null")
        .unwrap_or("string");
    out.insert("type".into(), first.into());
}

/// Puts right what words demand of each other.
fn tidy(out: &mut Map<String, Value>) {
    if let Some(mut required) = out.get_mut("required").map(Value::take) {
        let properties = out.get("properties").and_then(Value::as_object);
        let is_known = |name: &str| properties.is_some_and(|named| named.contains_key(name));
        if let Value::Array(names) = &mut required {
            names.retain(|name| name.as_str().is_some_and(is_known));
            names.dedup();
        }
        match required.as_array().is_none_or(Vec::is_empty) {
            true => _ = out.remove("required"),
            false => _ = out.insert("required".into(), required),
        }
    }
    if out.get("type").is_some_and(|kind| kind == "array") && !out.contains_key("items") {
        out.insert("items".into(), json!({ "type": "string" }));
    }
}

fn is_known_format(format: &str) -> bool {
    matches!(
        format,
        "enum" | "date-time" | "int32" | "int64" | "float" | "double"
    )
}

fn text_of(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
