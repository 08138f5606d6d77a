//! What models emit, and laws.

use std::time::Duration;

use proptest::prelude::*;
use rustix::time::{ClockId, clock_gettime};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::*;

/// A text, what it becomes, and by which strategy. One JSON array a line.
const VECTORS: &str = include_str!("vectors.jsonl");

fn heals(text: &str, wants_object: bool) -> Option<(String, &'static str)> {
    heal(text, wants_object).map(|healed| (healed.json, healed.strategy.as_str()))
}

#[test]
fn what_models_emit_is_repaired() {
    let vectors = VECTORS.lines().map(serde_json::from_str);
    let vectors: Vec<(String, String, String)> = vectors.collect::<Result<_, _>>().unwrap();
    assert!(vectors.len() > 100);
    let mut wrong = Vec::new();
    for (text, json, strategy) in &vectors {
        serde_json::from_str::<IgnoredAny>(json).unwrap();
        let healed = heals(text, true);
        let is_right = matches!(&healed, Some((out, by)) if out == json && by == strategy);
        if !is_right {
            wrong.push(format!("{text:?}: {healed:?}, not {json:?} by {strategy}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_list_is_an_answer_where_no_object_is_wanted() {
    let healed = heals("Result: [\"a\", \"b\"].", false);
    let list = (r#"["a", "b"]"#.to_owned(), "mixed_content_extraction");
    assert_eq!(healed, Some(list));
    assert_eq!(heals("Result: [\"a\", \"b\"].", true), None);
    let healed = heals("[1, 2, 3,] they are", false);
    assert_eq!(healed, Some(("[1,2,3]".to_owned(), "combined_strategies")));
}

#[test]
fn what_is_valid_or_says_nothing_stays_as_it_is() {
    let deep = "[".repeat(300) + &"]".repeat(300);
    let bottomless = "{\"a\":".repeat(300);
    for text in [
        "",
        " ",
        "5",
        "true",
        "\"{\\\"a\\\": 1}\"",
        "{}",
        "[]",
        " {\"a\":1}\n",
        "{\"a\": 1e999, \"a\": \"\\ud83d\"}",
        "{\"a\": \"```json {} ```\"}",
        &deep,
        &bottomless,
        "I cannot do that.",
        "See [1] and {this}.",
        "{",
        "[",
        "{]",
        "a { b",
        "{\"a\" 1}",
        "```",
        "```json",
        "```json\nno\n```",
        "{\u{0}",
    ] {
        assert_eq!(heals(text, true), None, "{text:?}");
    }
}

/// Source: docs/model-gateway.md 2.1: a repair adds no comma, and takes no part for the whole.
#[test]
fn values_without_a_comma_between_them_stay_as_they_are() {
    for text in [
        "[1 2 3]",
        "[1, 2 3,]",
        "{\"a\": 1 \"b\": 2}",
        "{\"a\": \"x\"\n\"b\": \"y\"}",
        "{\"a\": [\"x\"\n\"y\"]}",
        "{'a': [{'b': 1} {'b': 2}]}",
        "```json\n{\"a\": [1 2]}\n```",
    ] {
        for wants_object in [true, false] {
            assert_eq!(heals(text, wants_object), None, "{text:?}");
        }
    }
}

#[test]
fn what_is_read_again_is_valid() {
    for line in VECTORS.lines() {
        let (text, ..): (String, String, String) = serde_json::from_str(line).unwrap();
        let cuts = (0..text.len()).filter_map(|end| text.get(..end));
        for cut in cuts {
            for wants_object in [true, false] {
                let Some(healed) = heal(cut, wants_object) else {
                    continue;
                };
                let read: Value = serde_json::from_str(&healed.json).unwrap();
                assert!(read.is_object() || read.is_array(), "{cut:?}");
                assert_eq!(heal(&healed.json, wants_object), None, "{cut:?}");
            }
        }
    }
}

/// The CPU time of this thread, which other work beside the test does not change much.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

#[test]
fn a_hostile_text_takes_bounded_time() {
    const BYTES: usize = 1 << 20;
    let long = "a".repeat(BYTES);
    let texts = [
        "{".repeat(BYTES),
        "[{\"a\":".repeat(BYTES / 6),
        "```{".repeat(BYTES / 4),
        "{\"a\": ".repeat(60) + "\"" + &long,
        "{a:[".repeat(60) + &"1,".repeat(BYTES / 2) + "x:",
        "{\"a\": \"".to_owned() + &"\" ,".repeat(BYTES / 3),
        "{\"a\": \"".to_owned() + &"\" \n".repeat(BYTES / 3),
        "{a: ".to_owned() + &"/*".repeat(BYTES / 2),
        "{a: ".to_owned() + &"1//".repeat(BYTES / 3),
        "{a: '".to_owned() + &"\\".repeat(BYTES),
        "...".repeat(BYTES / 3) + "{",
        " ".repeat(BYTES) + "```",
    ];
    for text in texts {
        let started = cpu_time();
        let healed = heal(&text, true);
        let took = cpu_time() - started;
        let shown: String = text.chars().take(20).collect();
        assert!(took < Duration::from_secs(5), "{shown:?}: {took:?}");
        if let Some(healed) = healed {
            assert!(is_valid(&healed.json), "{shown:?}");
        }
    }
}

/// Values with what confuses readers of JSON: fences, brackets, quotation marks, line ends.
fn values() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "\\PC{0,12}",
        "[`{}\\[\\]\"',:/#\\\\\\n a1]{0,16}",
        Just("```json\n{\"a\": 1,}\n```".to_owned()),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((text.clone(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn valid_json_is_never_changed(value in values(), wants_object: bool, space in "[ \\n\\r\\t]{0,3}") {
        for written in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let written = format!("{space}{written}{space}");
            prop_assert!(is_valid(&written));
            prop_assert_eq!(heal(&written, wants_object), None);
        }
    }

    #[test]
    fn a_fenced_object_is_what_was_fenced(value in values(), before in "[a-z ]{0,9}") {
        let written = serde_json::to_string_pretty(&json!({ "a": value })).unwrap();
        let fenced = format!("{before}\n```json\n{written}\n```\n{before}");
        let healed = heal(&fenced, true).unwrap();
        prop_assert_eq!(healed.json, written);
        prop_assert_eq!(healed.strategy, HealingStrategy::MarkdownExtraction);
    }

    #[test]
    fn an_object_that_is_cut_keeps_its_first_members(value in values(), cut in 0usize..200) {
        let written = json!({ "first": 1, "more": value }).to_string();
        let end = (cut.max(11)..written.len()).find(|end| written.is_char_boundary(*end));
        if let Some(cut) = end.and_then(|end| written.get(..end)) {
            let healed = heal(cut, true).unwrap();
            let read: Value = serde_json::from_str(&healed.json).unwrap();
            prop_assert_eq!(&read["first"], &json!(1));
        }
    }

    #[test]
    fn any_text_becomes_valid_json_or_stays(text in "[`{}\\[\\]\"',:/#\\\\\\n a1tfn.\u{201c}\u{201d}-]{0,80}", wants_object: bool) {
        if let Some(healed) = heal(&text, wants_object) {
            prop_assert!(is_valid(&healed.json), "{:?}", healed);
            prop_assert_eq!(heal(&healed.json, wants_object), None);
        }
    }
}
