//! Grows documents: something in them is repeated or nested until they have a wanted size.

use serde_json::Value;

use crate::choices::Choices;

/// What stands in a tree for the place that grows.
const PLACE: &str = "\u{1}here\u{1}";

/// Grows a document to about so many bytes. The same choices grow it in the same way to any size.
pub fn grow(choices: &mut Choices<'_>, seed: &[u8], bytes: usize) -> Vec<u8> {
    match serde_json::from_slice::<Value>(seed) {
        Ok(tree) if !choices.once_in(4) => grow_tree(choices, tree, bytes),
        _ => grow_bytes(choices, seed, bytes),
    }
}

/// Repeats a part of the bytes where it stands.
fn grow_bytes(choices: &mut Choices<'_>, seed: &[u8], bytes: usize) -> Vec<u8> {
    let (from, to) = match choices.below(4) {
        0 => (0, seed.len()),
        _ => {
            let from = choices.below(seed.len());
            (from, from + 1 + choices.below(seed.len() - from))
        }
    };
    let to = to.min(seed.len());
    let times = bytes.saturating_sub(seed.len()) / (to - from).max(1);
    [
        &seed[..from],
        &seed[from..to].repeat(times + 1),
        &seed[to..],
    ]
    .concat()
}

/// Puts something large in place of a value of the tree.
fn grow_tree(choices: &mut Choices<'_>, mut tree: Value, bytes: usize) -> Vec<u8> {
    let mut left = choices.below(count(&tree));
    let old = take(&mut tree, &mut left).unwrap().to_string();
    let written = tree.to_string();
    let place = Value::from(PLACE).to_string();
    let (before, behind) = written.split_once(&place).unwrap();
    let room = bytes.saturating_sub(before.len() + behind.len());
    [before, &large(choices.below(15), &old, room), behind]
        .concat()
        .into_bytes()
}

/// Makes JSON of about so many bytes out of a value.
fn large(way: usize, old: &str, room: usize) -> String {
    let inner = old.get(1..old.len() - 1).unwrap_or_default();
    let list = |item: &str| format!("[{}]", repeated(item, ",", room));
    let text = |item: &str| format!("\"{}\"", repeated(item, "", room));
    match way {
        0 => list(old),
        1 => list("0"),
        2 => list("[]"),
        3 => list("{}"),
        4 => list("\"\""),
        5 => named(old, room, |number| format!("k{number}")),
        6 => named(old, room, |_| "a".to_owned()),
        7 if old.starts_with('"') && inner.len() > 1 => text(inner),
        7 => text("a"),
        8 => text("\\u00e9"),
        9 => nested("[", old, "]", room),
        10 => nested("{\"a\":", old, "}", room),
        11 => "1".repeat(room.max(1)),
        12 => " ".repeat(room) + old,
        // The items or members of the value itself, or what is in a text.
        _ if inner.is_empty() => list(old),
        _ if old.starts_with('[') => list(inner),
        _ if old.starts_with('{') => format!("{{{}}}", repeated(inner, ",", room)),
        13 => text("\\n"),
        _ => text("{\\\""),
    }
}

fn repeated(item: &str, between: &str, room: usize) -> String {
    let times = room / (item.len() + between.len()).max(1);
    vec![item; times.max(1)].join(between)
}

fn named(value: &str, room: usize, name: impl Fn(usize) -> String) -> String {
    let mut members = String::from("{");
    for number in 0.. {
        if number > 0 {
            members.push(',');
        }
        members.push_str(&format!("\"{}\":{value}", name(number)));
        if members.len() >= room {
            break;
        }
    }
    members + "}"
}

fn nested(open: &str, inner: &str, close: &str, room: usize) -> String {
    let levels = room / (open.len() + close.len());
    [&open.repeat(levels), inner, &close.repeat(levels)].concat()
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

/// Takes a value out of a tree and leaves a mark.
fn take(value: &mut Value, left: &mut usize) -> Option<Value> {
    if *left == 0 {
        return Some(std::mem::replace(value, PLACE.into()));
    }
    *left -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| take(item, left)),
        Value::Object(members) => members.values_mut().find_map(|item| take(item, left)),
        _ => None,
    }
}
