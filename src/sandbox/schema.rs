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

use super::budget::{Budget, TooLarge};

/// The maximum depth. Deeper values are null, because schemas may refer to themselves.
const MAX_DEPTH: usize = 16;
/// The largest `minItems` and `minLength` that is obeyed.
const MAX_LENGTH: u64 = 64;

/// Makes a value for the schema: required properties only, the smallest numbers, fixed strings.
///
/// Errors: the value exceeds the budget, for example because references repeat.
pub(super) fn make_example(schema: &Value, budget: &mut Budget) -> Result<Value, TooLarge> {
    let mut example = Example {
        root: schema,
        budget,
    };
    example.make(schema, MAX_DEPTH)
}

struct Example<'a> {
    root: &'a Value,
    budget: &'a mut Budget,
}

impl<'a> Example<'a> {
    fn make(&mut self, schema: &'a Value, depth: usize) -> Result<Value, TooLarge> {
        let Some(depth) = depth.checked_sub(1) else {
            return Ok(Value::Null);
        };
        self.budget.spend_values(1)?;
        if let Some(constant) = schema.get("const").or_else(|| schema["enum"].get(0)) {
            return self.budget.copy(constant);
        }
        if let Some(pointer) = schema["$ref"].as_str().and_then(|it| it.strip_prefix('#')) {
            self.budget.spend_text(pointer.len())?;
            let found = self.root.pointer(pointer);
            return found.map_or(Ok(Value::Null), |found| self.make(found, depth));
        }
        if let Some(option) = schema["anyOf"].get(0).or_else(|| schema["oneOf"].get(0)) {
            return self.make(option, depth);
        }
        if let Some(parts) = schema["allOf"].as_array() {
            return parts.iter().try_fold(json!({}), |whole, part| {
                Ok(merge(whole, self.make(part, depth)?))
            });
        }
        let kinds = schema["type"].as_array().map_or(0, Vec::len);
        self.budget.spend_values(kinds)?;
        self.make_typed(schema, depth)
    }

    fn make_typed(&mut self, schema: &'a Value, depth: usize) -> Result<Value, TooLarge> {
        Ok(match choose_type(schema) {
            "array" => {
                let items = schema["minItems"].as_u64().unwrap_or(1).min(MAX_LENGTH);
                let items = (0..items).map(|_| self.make(&schema["items"], depth));
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            "string" => {
                let text = make_string(schema);
                self.budget.spend_text(text.len())?;
                Value::String(text)
            }
            "integer" | "number" => make_number(schema),
            "boolean" => Value::Bool(true),
            "null" => Value::Null,
            _ => {
                let mut members = Map::new();
                for name in schema["required"].as_array().into_iter().flatten() {
                    self.budget.spend_values(1)?;
                    let Some(name) = name.as_str() else { continue };
                    self.budget.spend_text(name.len())?;
                    let member = self.make(&schema["properties"][name], depth)?;
                    members.insert(name.to_owned(), member);
                }
                Value::Object(members)
            }
        })
    }
}

/// Returns the type to make: the first one that is not `null`, or the one that other keywords imply.
fn choose_type(schema: &Value) -> &str {
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
