//! Damages valid documents.

use serde_json::{Value, json};

use crate::choices::Choices;

/// Bytes that mean something to one parser or another.
const TOKENS: [&[u8]; 34] = [
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"\\ud800",
    b"\\u0000",
    b"null",
    b"1e400",
    b"-",
    b"0",
    b"\r",
    b"\n",
    b"\r\n",
    b"\n\n",
    b"data: ",
    b"event: ",
    b"data: [DONE]\n\n",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\x00",
    b"%",
    b"/",
    b"..",
    b";",
    b"=",
    b"&",
    b"chunked",
    b"Host: b\r\n",
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
];

/// Damages bytes in at most four places; in a quarter of all cases not at all.
pub fn bytes(choices: &mut Choices<'_>, mut bytes: Vec<u8>) -> Vec<u8> {
    if choices.below(4) == 0 {
        return bytes;
    }
    for _ in 0..1 + choices.below(4) {
        let at = choices.below(bytes.len() + 1);
        let to = (at + choices.below(64)).min(bytes.len());
        match choices.below(8) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(..at)),
            2 => drop(bytes.drain(at..to)),
            3 => bytes[at..to]
                .iter_mut()
                .take(1)
                .for_each(|byte| *byte ^= 1 << choices.below(8)),
            4 => {
                let copy = bytes[at..to].to_vec();
                let place = choices.below(bytes.len() + 1);
                bytes.splice(place..place, copy);
            }
            5 => {
                let byte = choices.byte();
                bytes.splice(at..at, [byte]);
            }
            6 => {
                let (token, times) = (*choices.pick(&TOKENS), 1 + choices.below(200));
                let times = if choices.once_in(16) { times } else { 1 };
                bytes.splice(at..at, token.repeat(times));
            }
            _ => {
                let token = *choices.pick(&TOKENS);
                bytes.splice(at..to, token.iter().copied());
            }
        }
    }
    bytes
}

/// Replaces, removes, doubles or nests values of a tree in at most three places; in a third of all cases none.
pub fn tree(choices: &mut Choices<'_>, mut value: Value) -> Value {
    for _ in 0..choices.below(3) {
        let mut at = Some(choices.below(count(&value)));
        change(choices, &mut value, &mut at);
    }
    value
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

fn change(choices: &mut Choices<'_>, value: &mut Value, at: &mut Option<usize>) {
    let Some(left) = *at else { return };
    if left > 0 {
        *at = Some(left - 1);
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| change(choices, item, at)),
            Value::Object(members) => members
                .values_mut()
                .for_each(|item| change(choices, item, at)),
            _ => {}
        }
        return;
    }
    *at = None;
    let old = value.take();
    *value = match (choices.below(4), old) {
        (0, Value::Array(items)) => items.iter().rev().chain(&items).cloned().collect(),
        (1, Value::Object(mut members)) => {
            let keys: Vec<String> = members.keys().cloned().collect();
            if !keys.is_empty() {
                members.remove(choices.pick(&keys));
            }
            Value::Object(members)
        }
        (2, Value::String(text)) => format!("{}{}", choices.text(), text).into(),
        (3, old) => json!([old]),
        _ => crate::grammar::any(choices, 3),
    };
}
