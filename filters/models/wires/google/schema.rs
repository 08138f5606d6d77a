//! A JSON schema down to the words this wire knows: any other word refuses the whole request.
//!
//! Source: docs/facts/wire-formats.md 4.2.

use serde_json::{Map, Value, json};

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

/// Cleans a schema.
pub(super) fn clean(schema: &Value) -> Value {
    Cleaner { root: schema }.schema(schema, 0)
}

struct Cleaner<'a> {
    root: &'a Value,
}

impl Cleaner<'_> {
    fn schema(&self, schema: &Value, depth: u32) -> Value {
        let Value::Object(given) = schema else {
            return json!({});
        };
        if depth > DEPTH {
            return json!({ "type": "object" });
        }
        if let Some(target) = given.get("$ref").and_then(Value::as_str) {
            let Some(found) = target
                .strip_prefix('#')
                .and_then(|path| self.root.pointer(path))
            else {
                return json!({ "type": "object" });
            };
            // A cycle ends at the depth; siblings of the reference win.
            let mut merged = found.as_object().cloned().unwrap_or_default();
            merged.extend(
                given
                    .iter()
                    .filter(|(key, _)| *key != "$ref")
                    .map(|(k, v)| (k.clone(), v.clone())),
            );
            return self.schema(&Value::Object(merged), depth + 1);
        }
        let mut out = Map::new();
        for (key, value) in given {
            self.translate_word(key, value, depth, &mut out);
        }
        tidy(&mut out);
        Value::Object(out)
    }

    fn translate_word(&self, key: &str, value: &Value, depth: u32, out: &mut Map<String, Value>) {
        match (key, value) {
            ("type", Value::Array(types)) => types_of(types, out),
            ("const", value) => {
                out.insert("enum".into(), json!([text_of(value)]));
                out.entry("type").or_insert_with(|| "string".into());
            }
            ("enum", Value::Array(values)) => {
                let texts: Vec<Value> = values
                    .iter()
                    .filter(|v| !v.is_null())
                    .map(|v| text_of(v).into())
                    .collect();
                out.insert("enum".into(), texts.into());
                out.insert("type".into(), "string".into());
            }
            ("format", Value::String(format)) if is_known_format(format) => {
                out.insert(key.into(), value.clone());
            }
            ("properties", Value::Object(named)) => {
                let cleaned = named
                    .iter()
                    .map(|(name, schema)| (name.clone(), self.schema(schema, depth + 1)));
                out.insert(key.into(), Value::Object(cleaned.collect()));
            }
            ("items", Value::Array(list)) | ("prefixItems", Value::Array(list)) => {
                let first = list.first().map(|first| self.schema(first, depth + 1));
                out.insert(
                    "items".into(),
                    first.unwrap_or_else(|| json!({ "type": "string" })),
                );
            }
            ("items", Value::Object(_)) => {
                out.insert(key.into(), self.schema(value, depth + 1));
            }
            ("anyOf" | "oneOf", Value::Array(list)) => self.any_of(list, depth, out),
            ("allOf", Value::Array(list)) => self.all_of(list, depth, out),
            ("required", Value::Array(_)) => {
                out.insert(key.into(), value.clone());
            }
            (key, value) if PASSED_WORDS.contains(&key) => {
                out.entry(key).or_insert_with(|| value.clone());
            }
            _ => {}
        }
    }

    fn any_of(&self, list: &[Value], depth: u32, out: &mut Map<String, Value>) {
        let is_null = |schema: &&Value| schema.get("type").is_some_and(|kind| kind == "null");
        if list.iter().any(|schema| is_null(&schema)) {
            out.insert("nullable".into(), true.into());
        }
        let rest: Vec<Value> = list
            .iter()
            .filter(|schema| !is_null(schema))
            .map(|schema| self.schema(schema, depth + 1))
            .collect();
        match <[Value; 1]>::try_from(rest) {
            Ok([Value::Object(only)]) => out.extend(only),
            Ok(_) => {}
            Err(several) => {
                out.insert("anyOf".into(), several.into());
            }
        }
    }

    fn all_of(&self, list: &[Value], depth: u32, out: &mut Map<String, Value>) {
        for schema in list {
            let Value::Object(part) = self.schema(schema, depth + 1) else {
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
    let properties: Option<Vec<String>> = out
        .get("properties")
        .and_then(Value::as_object)
        .map(|named| named.keys().cloned().collect());
    if let Some(Value::Array(required)) = out.get_mut("required") {
        let names = properties.unwrap_or_default();
        required.retain(|name| {
            name.as_str()
                .is_some_and(|name| names.iter().any(|known| known == name))
        });
        required.dedup();
    }
    if out
        .get("required")
        .is_some_and(|required| required.as_array().is_none_or(Vec::is_empty))
    {
        out.remove("required");
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
