//! A schema of the vendor's own subset as a JSON schema, which other dialects want: its types are in capitals, its numbers may be
//! texts, and it says `nullable`.

use crate::json::{Error, Str, Type, Walker};
use crate::models::dialects::contents::canonical;

/// Members whose numbers the vendor may write as texts.
const COUNTS: [&str; 6] = [
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minProperties",
    "maxProperties",
];

/// Returns a schema as a JSON schema.
///
/// Cost: one pass, no tree. Errors: it is not JSON.
pub(super) fn to_json_schema(schema: &str) -> Result<String, Error> {
    let mut out = String::with_capacity(schema.len());
    write(&mut Walker::over(schema), &mut out)?;
    Ok(out)
}

fn write(walk: &mut Walker<'_>, out: &mut String) -> Result<(), Error> {
    if walk.peek()? != Type::Object {
        out.push_str(walk.skip()?);
        return Ok(());
    }
    out.push('{');
    let (mut kind, mut is_nullable, mut is_first) = (None, false, true);
    walk.object(|walk, said| {
        let key = canonical(&said);
        let is = walk.peek()?;
        match (&*key, is) {
            ("type", Type::String) => kind = Some(walk.text()?.to_ascii_lowercase()),
            ("nullable", Type::Bool) => is_nullable = walk.boolean()?,
            ("propertyOrdering", _) => _ = walk.skip()?,
            ("items" | "additionalProperties" | "not", Type::Object) => {
                name(&key, &mut is_first, out);
                write(walk, out)?;
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Type::Array) => {
                name(&key, &mut is_first, out);
                write_list(walk, out)?;
            }
            ("properties" | "defs" | "$defs", Type::Object) => {
                let key = if key == "defs" { "$defs" } else { &*key };
                name(key, &mut is_first, out);
                write_named(walk, out)?;
            }
            (key, Type::String) if COUNTS.contains(&key) => {
                let text = walk.text()?;
                if let Ok(count) = text.parse::<u64>() {
                    name(key, &mut is_first, out);
                    out.push_str(&count.to_string());
                }
            }
            ("format", _) => {
                let value = walk.skip()?;
                // It says nothing beside `enum`.
                if value != "\"enum\"" {
                    name("format", &mut is_first, out);
                    out.push_str(value);
                }
            }
            (key, _) => {
                name(key, &mut is_first, out);
                out.push_str(walk.skip()?);
            }
        }
        Ok::<(), Error>(())
    })?;
    let kind = kind.filter(|kind| kind != "type_unspecified");
    if let Some(kind) = kind {
        name("type", &mut is_first, out);
        write_kind(&kind, is_nullable, out);
    }
    out.push('}');
    Ok(())
}

fn write_kind(kind: &str, is_nullable: bool, out: &mut String) {
    if !is_nullable {
        return quote(kind, out);
    }
    out.push('[');
    quote(kind, out);
    out.push_str(",\"null\"]");
}

fn write_list(walk: &mut Walker<'_>, out: &mut String) -> Result<(), Error> {
    out.push('[');
    walk.array(|walk, at| {
        out.push_str(if at > 0 { "," } else { "" });
        write(walk, out)
    })?;
    out.push(']');
    Ok(())
}

fn write_named(walk: &mut Walker<'_>, out: &mut String) -> Result<(), Error> {
    out.push('{');
    let mut is_first = true;
    walk.object(|walk, property| {
        name(&property, &mut is_first, out);
        write(walk, out)
    })?;
    out.push('}');
    Ok(())
}

fn name(key: &str, is_first: &mut bool, out: &mut String) {
    if !std::mem::take(is_first) {
        out.push(',');
    }
    quote(key, out);
    out.push(':');
}

fn quote(text: &str, out: &mut String) {
    out.push('"');
    out.push_str(&Str::Plain(text).contents());
    out.push('"');
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_subset_of_the_vendor_becomes_a_json_schema() {
        for (subset, schema) in [
            (json!({}), json!({})),
            (
                json!({"type": "OBJECT", "properties": {"type": {"type": "STRING", "nullable": true, "format": "enum", "enum": ["a"]},
                    "max_items": {"type": "ARRAY", "items": {"type": "INTEGER"}, "max_items": "3", "minItems": 1}},
                    "required": ["type"], "propertyOrdering": ["type"]}),
                json!({"properties": {"type": {"enum": ["a"], "type": ["string", "null"]},
                    "max_items": {"items": {"type": "integer"}, "maxItems": 3, "minItems": 1, "type": "array"}},
                    "required": ["type"], "type": "object"}),
            ),
            (
                json!({"anyOf": [{"type": "NUMBER"}, {"type": "TYPE_UNSPECIFIED", "format": "date-time"}], "description": "a\"b"}),
                json!({"anyOf": [{"type": "number"}, {"format": "date-time"}], "description": "a\"b"}),
            ),
            (json!({"items": true}), json!({"items": true})),
        ] {
            let told = to_json_schema(&subset.to_string()).unwrap();
            let told: Value = serde_json::from_str(&told).unwrap();
            assert_eq!(told, schema, "{subset}");
        }
    }
}
