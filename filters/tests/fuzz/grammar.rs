//! Composes documents from grammars that are themselves JSON.
//!
//! | in a grammar | stands for |
//! |---|---|
//! | `{"$one": [a, b]}` | one of them |
//! | `{"$many": a}` | up to four of it |
//! | `{"key?": a}` | the member `key`, or none |
//! | `"$text"`, `"$int"`, `"$number"`, `"$any"` | a text, a whole number, a number, any value |
//! | anything else | itself |

use serde_json::{Map, Number, Value};

use crate::choices::Choices;

pub fn compose(choices: &mut Choices<'_>, grammar: &Value) -> Value {
    match grammar {
        Value::String(text) => match text.as_str() {
            "$text" => choices.text().into(),
            "$int" => number(choices, true),
            "$number" => number(choices, false),
            "$any" => any(choices, 3),
            _ => grammar.clone(),
        },
        Value::Array(items) => items.iter().map(|item| compose(choices, item)).collect(),
        Value::Object(members) => {
            if let Some(Value::Array(options)) = members.get("$one") {
                let option = choices.pick(options);
                return compose(choices, option);
            }
            if let Some(item) = members.get("$many") {
                let count = choices.below(5);
                return (0..count).map(|_| compose(choices, item)).collect();
            }
            let mut composed = Map::new();
            for (key, member) in members {
                let name = key.strip_suffix('?');
                if name.is_none() || choices.once_in(2) {
                    composed.insert(name.unwrap_or(key).to_owned(), compose(choices, member));
                }
            }
            Value::Object(composed)
        }
        _ => grammar.clone(),
    }
}

fn number(choices: &mut Choices<'_>, is_whole: bool) -> Value {
    const WHOLE: [i64; 12] = [
        1,
        0,
        2,
        7,
        128,
        1000,
        -1,
        255,
        65_536,
        i64::MAX,
        i64::MIN,
        1 << 53,
    ];
    const NUMBERS: [f64; 10] = [
        0.5,
        0.0,
        1.0,
        2.0,
        -0.0,
        1e-9,
        1e300,
        -1.5,
        9_007_199_254_740_993.0,
        0.1,
    ];
    match choices.below(3) {
        0 if is_whole => (choices.number() >> 32).into(),
        0 => Number::from_f64(f64::from_bits(choices.number())).map_or(1.into(), Value::Number),
        1 if !is_whole => (*choices.pick(&NUMBERS)).into(),
        _ => (*choices.pick(&WHOLE)).into(),
    }
}

/// Any value of at most so many levels.
pub fn any(choices: &mut Choices<'_>, levels: usize) -> Value {
    match choices.below(if levels == 0 { 5 } else { 7 }) {
        0 => Value::Null,
        1 => choices.once_in(2).into(),
        2 => number(choices, true),
        3 => number(choices, false),
        4 => choices.text().into(),
        5 => (0..choices.below(4))
            .map(|_| any(choices, levels - 1))
            .collect(),
        _ => {
            let members = (0..choices.below(4)).map(|_| (choices.text(), any(choices, levels - 1)));
            Value::Object(members.collect())
        }
    }
}

/// Writes a value as JSON text, with white space and escapes where JSON allows them.
pub fn write(choices: &mut Choices<'_>, value: &Value) -> Vec<u8> {
    if choices.below(2) == 0 {
        return value.to_string().into_bytes();
    }
    let mut out = Vec::new();
    write_value(choices, value, &mut out);
    out
}

fn space(choices: &mut Choices<'_>, out: &mut Vec<u8>) {
    const SPACES: [&[u8]; 8] = [b"", b"", b"", b"", b" ", b"\n", b"\t", b"\r\n  "];
    let space = *choices.pick(&SPACES);
    out.extend_from_slice(space);
}

fn write_value(choices: &mut Choices<'_>, value: &Value, out: &mut Vec<u8>) {
    space(choices, out);
    match value {
        Value::String(text) => write_text(choices, text, out),
        Value::Array(items) => {
            out.push(b'[');
            for (number, item) in items.iter().enumerate() {
                if number > 0 {
                    out.push(b',');
                }
                write_value(choices, item, out);
            }
            space(choices, out);
            out.push(b']');
        }
        Value::Object(members) => {
            out.push(b'{');
            for (number, (key, member)) in members.iter().enumerate() {
                if number > 0 {
                    out.push(b',');
                }
                space(choices, out);
                write_text(choices, key, out);
                space(choices, out);
                out.push(b':');
                write_value(choices, member, out);
            }
            space(choices, out);
            out.push(b'}');
        }
        plain => out.extend_from_slice(plain.to_string().as_bytes()),
    }
    space(choices, out);
}

fn write_text(choices: &mut Choices<'_>, text: &str, out: &mut Vec<u8>) {
    if !choices.once_in(4) {
        out.extend_from_slice(Value::from(text).to_string().as_bytes());
        return;
    }
    out.push(b'"');
    for unit in text.encode_utf16() {
        out.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
    }
    out.push(b'"');
}
