//! Writes JSON as the original agent does: keys sorted, numbers as 64-bit floats in their shortest form.
//!
//! Source: docs/facts/decision-engine.md D.

use serde_json::{Map, Value};

use super::borrowed_object::{BorrowedObject, BorrowedValue};
use crate::json::write_escaped;

/// Returns a value as JSON.
pub fn value(value: &Value) -> String {
    let mut out = Vec::new();
    write(value, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

/// Returns a string as JSON.
pub fn text(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    write_text(text, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

/// Returns a finite number as JSON.
pub fn number(number: f64) -> String {
    let mut out = Vec::new();
    write_number(number, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

/// Appends a finite number. Cost: most numbers are whole, and these need no search for their shortest form.
fn write_number(number: f64, out: &mut Vec<u8>) {
    const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_992.0;
    let size = number.abs();
    if size == 0.0 && number.is_sign_negative() {
        out.extend_from_slice(b"-0");
    } else if size < MAX_SAFE_INTEGER && number.trunc() == number {
        out.extend_from_slice(itoa::Buffer::new().format(number as i64).as_bytes());
    } else if !(1e-6..1e21).contains(&size) {
        let text = format!("{number:e}").replace('e', if size < 1.0 { "e" } else { "e+" });
        out.extend_from_slice(text.as_bytes());
    } else {
        out.extend_from_slice(format!("{number}").as_bytes());
    }
}

/// Appends an object.
pub fn write_object(object: &Map<String, Value>, out: &mut Vec<u8>) {
    let members = object.iter().map(|(key, member)| (key.as_str(), member));
    write_sorted(members, write, out);
}

/// Appends members that a caller sent, as an object.
pub fn write_members(members: &BorrowedObject<'_>, out: &mut Vec<u8>) {
    write_sorted(members.iter(), write_value, out);
}

/// Appends a value that a caller sent.
pub(super) fn write_value(given: &BorrowedValue<'_>, out: &mut Vec<u8>) {
    match given {
        BorrowedValue::Null => out.extend_from_slice(b"null"),
        BorrowedValue::Bool(truth) => write_bool(*truth, out),
        BorrowedValue::Number(number) => write_number(number.as_f64().unwrap_or_default(), out),
        BorrowedValue::Text(text) => write_text(text, out),
        BorrowedValue::List(items) => write_list(items, out),
        BorrowedValue::Object(members) => write_members(members, out),
    }
}

fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(truth) => write_bool(*truth, out),
        Value::Number(number) => write_number(number.as_f64().unwrap_or_default(), out),
        Value::String(text) => write_text(text, out),
        Value::Array(items) => write_list(items, out),
        Value::Object(members) => write_object(members, out),
    }
}

/// Appends an object with its members sorted by name.
pub(super) fn write_sorted<'m, T: 'm>(
    members: impl Iterator<Item = (&'m str, &'m T)> + Clone,
    write: impl Fn(&T, &mut Vec<u8>),
    out: &mut Vec<u8>,
) {
    if members.clone().is_sorted_by_key(|(key, _)| key) {
        return write_in_order(members, write, out);
    }
    let mut sorted: Vec<(&str, &T)> = members.collect();
    sorted.sort_unstable_by_key(|(key, _)| *key);
    write_in_order(sorted.into_iter(), write, out);
}

fn write_in_order<'m, T: 'm>(
    members: impl Iterator<Item = (&'m str, &'m T)>,
    write: impl Fn(&T, &mut Vec<u8>),
    out: &mut Vec<u8>,
) {
    out.push(b'{');
    for (at, (key, member)) in members.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_text(key, out);
        out.push(b':');
        write(member, out);
    }
    out.push(b'}');
}

fn write_list(items: &[Value], out: &mut Vec<u8>) {
    out.push(b'[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(b']');
}

fn write_bool(value: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

/// Appends a string.
pub fn write_text(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    write_escaped(text, out);
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
            (-0.0, "-0"),
            (-9_007_199_254_740_993.0, "-9007199254740992"),
            (12_345_678_901_234_567_890.0, "12345678901234567000"),
        ] {
            assert_eq!(number(given), expected);
        }
    }
}
