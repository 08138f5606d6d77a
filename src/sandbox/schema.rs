//! A small value that satisfies a JSON Schema of the kind tools and answers are described with.
//!
//! Known: `const`, `enum`, `type`, `properties` with `required`, `items` with `minItems`, `minLength`,
//! `minimum`, `exclusiveMinimum`, `maximum`, the formats below, `anyOf`, `oneOf`, `allOf`, and local `$ref`.
//! Not known: `pattern`, `multipleOf`, conditions: a value may miss those.
#![expect(
    clippy::indexing_slicing,
    reason = "a JSON value read by name or number gives null, and every value written to is our object"
)]

use serde_json::{Map, Value, json};

/// Schemas may refer to themselves: deeper than this everything is null.
const DEPTH: usize = 16;
/// `minItems` and `minLength` are followed up to here.
const LENGTH: u64 = 64;

/// A value of the schema: required properties only, the smallest numbers, fixed strings.
pub(super) fn example(schema: &Value) -> Value {
    value(schema, schema, DEPTH)
}

fn value(schema: &Value, root: &Value, depth: usize) -> Value {
    let Some(depth) = depth.checked_sub(1) else {
        return Value::Null;
    };
    let of = |schema: &Value| value(schema, root, depth);
    if let Some(constant) = schema.get("const").or_else(|| schema["enum"].get(0)) {
        return constant.clone();
    }
    if let Some(pointer) = schema["$ref"]
        .as_str()
        .and_then(|target| target.strip_prefix('#'))
    {
        return root.pointer(pointer).map_or(Value::Null, of);
    }
    if let Some(option) = schema["anyOf"].get(0).or_else(|| schema["oneOf"].get(0)) {
        return of(option);
    }
    if let Some(parts) = schema["allOf"].as_array() {
        return parts.iter().map(of).fold(json!({}), merged);
    }
    match kind(schema) {
        "array" => {
            let items = schema["minItems"].as_u64().unwrap_or(1).min(LENGTH);
            (0..items).map(|_| of(&schema["items"])).collect()
        }
        "string" => Value::String(string(schema)),
        "integer" | "number" => number(schema),
        "boolean" => Value::Bool(true),
        "null" => Value::Null,
        _ => {
            let required = schema["required"].as_array().into_iter().flatten();
            let member = |name: &str| (name.to_owned(), of(&schema["properties"][name]));
            Value::Object(
                required
                    .filter_map(Value::as_str)
                    .map(member)
                    .collect::<Map<_, _>>(),
            )
        }
    }
}

/// The type to make: the first one named that is not `null`; without one, what the other keywords suggest.
fn kind(schema: &Value) -> &str {
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

fn string(schema: &Value) -> String {
    let text = match schema["format"].as_str() {
        Some("date") => "2026-01-01",
        Some("date-time") => "2026-01-01T00:00:00Z",
        Some("time") => "00:00:00Z",
        Some("email") => "sandbox@example.com",
        Some("uri") => "https://example.com/",
        Some("uuid") => "00000000-0000-4000-8000-000000000000",
        _ => "sandbox",
    };
    let shortest = schema["minLength"].as_u64().unwrap_or(0).min(LENGTH) as usize;
    let longest = schema["maxLength"]
        .as_u64()
        .map_or(usize::MAX, |longest| longest as usize);
    let padding = "x".repeat(shortest.saturating_sub(text.len()));
    (text.to_owned() + &padding).chars().take(longest).collect()
}

/// The lowest number allowed; 1 without a lower bound, or the upper bound when that is below 1.
fn number(schema: &Value) -> Value {
    if let Some(above) = schema["exclusiveMinimum"].as_i64() {
        return json!(above.saturating_add(1));
    }
    let lowest = schema.get("minimum").filter(|bound| bound.is_number());
    let highest = schema
        .get("maximum")
        .filter(|bound| bound.as_f64().is_some_and(|b| b < 1.0));
    lowest.or(highest).cloned().unwrap_or(json!(1))
}

fn merged(mut whole: Value, part: Value) -> Value {
    match (&mut whole, part) {
        (Value::Object(whole), Value::Object(part)) => whole.extend(part),
        (whole, part) => *whole = part,
    }
    whole
}
