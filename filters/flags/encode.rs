//! JSON as the older agents write it: keys sorted, numbers as 64-bit floats in their shortest form.
//!
//! Source: facts D. In agent mode `<`, `>`, `&` and the two line separators of Unicode are escaped too.

use serde_json::{Map, Value};

use super::Compat;
use crate::json::write_escaped;

/// A value as JSON.
pub fn value(value: &Value, compat: Compat) -> String {
    let mut out = Vec::new();
    write(value, compat, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

/// A string as JSON.
pub fn text(text: &str, compat: Compat) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    write_text(text, compat, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

/// A finite number as JSON.
pub fn number(number: f64) -> String {
    let size = number.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        return format!("{number:e}").replace('e', if size < 1.0 { "e" } else { "e+" });
    }
    format!("{number}")
}

/// Appends an object.
pub fn write_object(object: &Map<String, Value>, compat: Compat, out: &mut Vec<u8>) {
    let mut members: Vec<(&String, &Value)> = object.iter().collect();
    members.sort_unstable_by_key(|(key, _)| *key);
    out.push(b'{');
    for (at, (key, member)) in members.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_text(key, compat, out);
        out.push(b':');
        write(member, compat, out);
    }
    out.push(b'}');
}

fn write(value: &Value, compat: Compat, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(truth) => out.extend_from_slice(truth.to_string().as_bytes()),
        Value::Number(found) => {
            let found = found.as_f64().unwrap_or_default();
            out.extend_from_slice(number(found).as_bytes());
        }
        Value::String(found) => write_text(found, compat, out),
        Value::Array(items) => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write(item, compat, out);
            }
            out.push(b']');
        }
        Value::Object(members) => write_object(members, compat, out),
    }
}

/// Appends a string.
pub fn write_text(text: &str, compat: Compat, out: &mut Vec<u8>) {
    out.push(b'"');
    let is_special = |c: char| matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}');
    let mut rest = text;
    while compat == Compat::Agent
        && let Some(at) = rest.find(is_special)
    {
        let (clean, tail) = rest.split_at(at);
        write_escaped(clean, out);
        let mut tail = tail.chars();
        if let Some(special) = tail.next() {
            out.extend_from_slice(format!("\\u{:04x}", u32::from(special)).as_bytes());
        }
        rest = tail.as_str();
    }
    write_escaped(rest, out);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_shortest_form_of_the_agents() {
        for (given, expected) in [
            (3.0, "3"),
            (-0.5, "-0.5"),
            (1e-7, "1e-7"),
            (0.000_001, "0.000001"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.5e300, "1.5e+300"),
            (0.0, "0"),
            (12_345_678_901_234_567_890.0, "12345678901234567000"),
        ] {
            assert_eq!(number(given), expected);
        }
    }

    #[test]
    fn agents_escape_what_could_be_read_as_markup() {
        assert_eq!(text("a<b", Compat::Document), "\"a<b\"");
        assert_eq!(
            text("a<\u{2028}b\"", Compat::Agent),
            "\"a\\u003c\\u2028b\\\"\""
        );
    }
}
