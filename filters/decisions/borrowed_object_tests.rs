#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

fn read(text: &str) -> BorrowedObject<'_> {
    serde_json::from_str(text).unwrap()
}

/// An object as text: its names come again, and there may be more of them than a few.
fn text() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        Just("null".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        Just("-0.5e3".to_owned()),
        "[a-z\\\\\"é]{0,4}".prop_map(|text| json!(text).to_string()),
        Just(r#"[1,{"a":[]}]"#.to_owned()),
        Just(r#"{"a":1,"b":{"a":true},"a":"2"}"#.to_owned()),
    ];
    let member = ("[a-f\\\\]{0,2}", value);
    prop::collection::vec(member, 0..60).prop_map(|members| {
        let member = |(name, value)| format!("{}: {value}", json!(name));
        let members: Vec<String> = members.into_iter().map(member).collect();
        format!("{{{}}}", members.join(", "))
    })
}

proptest! {
    #[test]
    fn members_are_those_of_a_map_in_its_order(text in text()) {
        let map: Map<String, Value> = serde_json::from_str(&text).unwrap();
        let members = read(&text);
        for (name, value) in &map {
            let found = members.get(name).cloned().map(Value::from);
            prop_assert_eq!(found.as_ref(), Some(value));
        }
        prop_assert!(members.get("none").is_none());
        prop_assert_eq!(&BorrowedObject::from(map.clone()), &members);
        let names: Vec<&str> = members.iter().map(|(name, _)| name).collect();
        prop_assert_eq!(names, map.keys().collect::<Vec<_>>());
        prop_assert_eq!(members.into_map(), map);
    }

    #[test]
    fn what_is_taken_out_leaves_the_others_in_order(text in text(), at in any::<prop::sample::Index>()) {
        let mut map: Map<String, Value> = serde_json::from_str(&text).unwrap();
        let mut members = read(&text);
        let name = match map.len() {
            0 => "none".to_owned(),
            length => map.keys().nth(at.index(length)).unwrap().clone(),
        };
        let taken = members.remove(&name).map(Value::from);
        prop_assert_eq!(taken, map.shift_remove(&name));
        prop_assert_eq!(members, BorrowedObject::from(map));
    }
}

#[test]
fn texts_without_escapes_are_borrowed_from_the_body() {
    let members = read(r#"{"plain": "text", "escaped": "a\nb"}"#);
    let is_borrowed = |name: &str| match members.get(name) {
        Some(BorrowedValue::Text(text)) => matches!(text, Cow::Borrowed(_)),
        other => panic!("{other:?}"),
    };
    assert!(is_borrowed("plain"));
    assert!(!is_borrowed("escaped"));
}

#[test]
fn what_no_map_accepts_is_refused_with_the_same_words() {
    let deep = |levels: usize| format!("{}{}", r#"{"a":"#.repeat(levels), "[".repeat(levels));
    for bad in [
        "",
        "[]",
        "\"text\"",
        "7",
        "{",
        "{\"a\"}",
        "{\"a\":1,}",
        "{1:2}",
        "{\"a\":1} x",
        "{\"a\":1e999}",
        "{\"a\":\"\\ud800\"}",
        "{\"a\":\"\t\"}",
        &deep(200),
        &deep(80),
    ] {
        let map = serde_json::from_str::<Option<Map<String, Value>>>(bad).unwrap_err();
        let members = serde_json::from_str::<Option<BorrowedObject<'_>>>(bad).unwrap_err();
        assert_eq!(members.to_string(), map.to_string(), "{bad}");
    }
    let bytes = b"{\"a\":\"\xff\"}";
    let map = serde_json::from_slice::<Map<String, Value>>(bytes).unwrap_err();
    let members = serde_json::from_slice::<BorrowedObject<'_>>(bytes).unwrap_err();
    assert_eq!(members.to_string(), map.to_string());
}
