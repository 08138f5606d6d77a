//! Makes a small value for a JSON Schema of the kind that tools and response formats use.
//!
//! Supported: `const`, `enum`, `type`, `properties` with `required`, `items` with `minItems`, `minLength`, `minimum`,
//! `exclusiveMinimum`, `maximum`, the formats below, `anyOf`, `oneOf`, `allOf`, and local `$ref`. Not supported:
//! `pattern`, `multipleOf` and conditions, which a value may violate.
#![expect(
    clippy::indexing_slicing,
    reason = "a JSON value read by name or number gives null, and every value written to is our object"
)]

use serde_json::{Map, Value, json};

/// Maximum depth; deeper values are null, because schemas may refer to themselves.
const MAX_DEPTH: usize = 16;
/// Maximum of `minItems` and `minLength` that is obeyed.
const MAX_LENGTH: u64 = 64;

/// Makes a value for the schema: required properties only, the smallest numbers, fixed strings.
pub(super) fn make_example(schema: &Value) -> Value {
    make_value(schema, schema, MAX_DEPTH)
}

fn make_value(schema: &Value, root: &Value, depth: usize) -> Value {
    let Some(depth) = depth.checked_sub(1) else {
        return Value::Null;
    };
    let make = |schema: &Value| make_value(schema, root, depth);
    if let Some(constant) = schema.get("const").or_else(|| schema["enum"].get(0)) {
        return constant.clone();
    }
    if let Some(pointer) = schema["$ref"]
        .as_str()
        .and_then(|target| target.strip_prefix('#'))
    {
        return root.pointer(pointer).map_or(Value::Null, make);
    }
    if let Some(option) = schema["anyOf"].get(0).or_else(|| schema["oneOf"].get(0)) {
        return make(option);
    }
    if let Some(parts) = schema["allOf"].as_array() {
        return parts.iter().map(make).fold(json!({}), merge);
    }
    match type_of(schema) {
        "array" => {
            let items = schema["minItems"].as_u64().unwrap_or(1).min(MAX_LENGTH);
            (0..items).map(|_| make(&schema["items"])).collect()
        }
        "string" => Value::String(make_string(schema)),
        "integer" | "number" => make_number(schema),
        "boolean" => Value::Bool(true),
        "null" => Value::Null,
        _ => {
            let required = schema["required"].as_array().into_iter().flatten();
            let member = |name: &str| (name.to_owned(), make(&schema["properties"][name]));
            Value::Object(
                required
                    .filter_map(Value::as_str)
                    .map(member)
                    .collect::<Map<_, _>>(),
            )
        }
    }
}

/// Returns the type to make: the first one that is not `null`, or the one that other keywords imply.
fn type_of(schema: &Value) -> &str {
    match &schema["type"] {
        Value::String(kind) => kind,
        Value::Array(kinds) => {
            let mut kinds = kinds.iter().filter_map(Value::as_str);
            kinds.find(|kind| *kind != "null").unwrap_or("null")
        }
        _ if schema.get("properties").is_some() => "object",
        _ if schema.get("items").is_some() => "array",
        _ => "string",
    }
}

fn make_string(schema: &Value) -> String {
    let text = match schema["format"].as_str() {
        Some("date") => "2026-01-01",
        Some("date-time") => "2026-01-01T00:00:00Z",
        Some("time") => "00:00:00Z",
        Some("email") => "sandbox@example.com",
        Some("uri") => "https://example.com/",
        Some("uuid") => "00000000-0000-4000-8000-000000000000",
        _ => "sandbox",
    };
    let min_length = schema["minLength"].as_u64().unwrap_or(0).min(MAX_LENGTH) as usize;
    let max_length = schema["maxLength"]
        .as_u64()
        .map_or(usize::MAX, |max_length| max_length as usize);
    let padding = "x".repeat(min_length.saturating_sub(text.len()));
    (text.to_owned() + &padding)
        .chars()
        .take(max_length)
        .collect()
}

/// Returns the lowest number allowed: 1 without a lower bound, or the upper bound if it is below 1.
fn make_number(schema: &Value) -> Value {
    if let Some(above) = schema["exclusiveMinimum"].as_i64() {
        return json!(above.saturating_add(1));
    }
    let lowest = schema.get("minimum").filter(|bound| bound.is_number());
    let highest = schema
        .get("maximum")
        .filter(|bound| bound.as_f64().is_some_and(|b| b < 1.0));
    lowest.or(highest).cloned().unwrap_or(json!(1))
}

fn merge(mut whole: Value, part: Value) -> Value {
    match (&mut whole, part) {
        (Value::Object(whole), Value::Object(part)) => whole.extend(part),
        (whole, part) => *whole = part,
    }
    whole
}
