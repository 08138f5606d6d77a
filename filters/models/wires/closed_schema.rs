//! Schemas for providers whose decoders want every object closed and refuse some words.

use serde_json::Value;

use crate::fault::Fault;
use crate::json::count_values;
use crate::models::chat::conversation::{AnswerSchema, Conversation};

/// The most values of a text that becomes a tree, which takes up to fifty times its bytes.
const MAX_VALUES: usize = 32_768;

/// Words of a schema that decoders of closed schemas refuse. Source: docs/facts/wire-formats.md 3.1, 5.4.
const REFUSED: [&str; 15] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "not",
    "$schema",
];

/// Reads what holds schemas; `None`: it is not JSON, or has more than 32,768 values.
pub(super) fn read(json: &[u8]) -> Option<Value> {
    let has_few = count_values(json) <= MAX_VALUES;
    has_few.then(|| serde_json::from_slice(json).ok())?
}

/// Returns the schema of an answer with every object closed.
///
/// Errors: 400 naming the schema, which cannot be read or is too long.
pub(super) fn schema_of_answer(
    chat: &Conversation<'_>,
    form: &AnswerSchema<'_>,
) -> Result<Value, Fault> {
    let said = "cannot be read, or has more than 32768 values";
    let schema = read(form.schema.get().as_bytes());
    let mut schema = schema.ok_or_else(|| chat.fault(form.at, None, said))?;
    close(&mut schema, &[]);
    Ok(schema)
}

/// Closes every object, and takes out what decoders refuse, `also` included. Names of properties are not words of a schema.
pub(super) fn close(schema: &mut Value, also: &[&str]) {
    let Value::Object(object) = schema else {
        return;
    };
    object.retain(|key, _| !REFUSED.contains(&key.as_str()) && !also.contains(&key.as_str()));
    let is_object = object.get("type").is_some_and(|kind| kind == "object")
        || object.contains_key("properties");
    if is_object {
        object.insert("additionalProperties".to_owned(), false.into());
    }
    for (key, value) in object.iter_mut() {
        match (key.as_str(), value) {
            ("properties" | "$defs" | "definitions", Value::Object(named)) => {
                named.values_mut().for_each(|inner| close(inner, also))
            }
            ("anyOf" | "allOf" | "oneOf" | "prefixItems", Value::Array(list)) => {
                list.iter_mut().for_each(|inner| close(inner, also))
            }
            ("items", value) => close(value, also),
            _ => {}
        }
    }
}
