#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::canonical::write_value;
use super::key::{KeyScope, ReplyKey, ReplyKeys};
use crate::accounts::Mode;
use crate::json::Walker;
use crate::models::front::Front;
use crate::models::fronts::chat_completions::ChatCompletions;
use crate::models::fronts::embeddings::EMBEDDINGS;
use crate::models::fronts::ocr::Ocr;
use crate::spooled_json::{KEPT_CHARS, SpooledJsonReader};

const SCOPE: KeyScope<'_> = KeyScope {
    organization_id: "o",
    project_id: "p",
    mode: Mode::Platform,
    candidates: [1; 32],
};

fn key_of(front: &dyn Front, scope: &KeyScope<'_>, body: &str) -> ReplyKey {
    let request = front.parse(body.to_owned().into());
    let request = request.unwrap_or_else(|fault| panic!("{body}: {}", fault.message));
    let keys = ReplyKeys::new(&[9; 32]).unwrap();
    keys.key(scope, &request).unwrap()
}

fn key(body: &str) -> ReplyKey {
    key_of(&ChatCompletions, &SCOPE, body)
}

/// A request with these members beside its model and its message.
fn with(members: &str) -> String {
    format!(r#"{{"model":"m","messages":[{{"role":"user","content":"Hi"}}],{members}}}"#)
}

fn saying(content: &str) -> String {
    format!(r#"{{"model":"m","messages":[{{"role":"user","content":{content}}}]}}"#)
}

#[test]
fn what_may_change_an_answer_keeps_requests_apart() {
    let plain = saying(r#""Hi""#);
    let long = "x".repeat(5000);
    let apart: [[String; 2]; 22] = [
        // Members that nobody knows, and members of members.
        [plain.clone(), with(r#""x_unknown":1"#)],
        [with(r#""x":1"#), with(r#""y":1"#)],
        [with(r#""x":{"a":1}"#), with(r#""x":{"a":1,"b":null}"#)],
        [with(r#""x":[{"a":1}]"#), with(r#""x":[{"a":[1]}]"#)],
        [with(r#""x":[[],[]]"#), with(r#""x":[[[]]]"#)],
        [with(r#""x":"ab","y":"c""#), with(r#""x":"a","y":"bc""#)],
        [with(r#""x":["ab","c"]"#), with(r#""x":["a","bc"]"#)],
        // A member twice: which counts is for the provider to say.
        [with(r#""x":{"a":1,"a":2}"#), with(r#""x":{"a":2}"#)],
        [with(r#""x":{"a":1,"a":2}"#), with(r#""x":{"a":2,"a":1}"#)],
        // Spellings of numbers, and other types of one text.
        [with(r#""seed":1"#), with(r#""seed":1.0"#)],
        [with(r#""seed":10"#), with(r#""seed":1e1"#)],
        [with(r#""x":1"#), with(r#""x":"1""#)],
        [with(r#""x":null"#), with(r#""x":"null""#)],
        [with(r#""x":{}"#), with(r#""x":[]"#)],
        // Look-alikes: Latin and Cyrillic, one character and two, with and without a joiner.
        [saying(r#""pay""#), saying("\"p\u{430}y\"")],
        [saying("\"\u{e9}\""), saying("\"e\u{301}\"")],
        [saying("\"a\u{200d}b\""), saying(r#""ab""#)],
        [saying(r#""Hi""#), saying(r#""Hi ""#)],
        // Long texts differ at their end, and by their length alone.
        [saying(&format!("\"{long}\"")), saying(&format!("\"{long}x\""))],
        [saying(&format!("\"{long}a\"")), saying(&format!("\"{long}b\""))],
        // The order of messages, and that of a list.
        [
            r#"{"model":"m","messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}"#
                .to_owned(),
            r#"{"model":"m","messages":[{"role":"user","content":"b"},{"role":"user","content":"a"}]}"#
                .to_owned(),
        ],
        [with(r#""stop":["a","b"]"#), with(r#""stop":["b","a"]"#)],
    ];
    for [one, other] in &apart {
        assert_ne!(key(one), key(other), "{one} and {other}");
        assert_ne!(key(one), key(&plain.replace("Hi", "another")));
    }
}

#[test]
fn parameters_of_the_contract_are_in_the_key() {
    let plain = key(&saying(r#""Hi""#));
    for member in [
        r#""temperature":0"#,
        r#""top_p":0.5"#,
        r#""max_tokens":5"#,
        r#""n":2"#,
        r#""frequency_penalty":1"#,
        r#""response_format":{"type":"json_object"}"#,
        r#""tools":[{"type":"function","function":{"name":"f"}}]"#,
        r#""reasoning_effort":"low""#,
        r#""prompt_cache_key":"k""#,
        r#""service_tier":"flex""#,
        r#""web_search":true"#,
        r#""free_models_only":true"#,
        r#""no_reasoning":true"#,
        r#""verbosity":"low""#,
    ] {
        assert_ne!(key(&with(member)), plain, "{member}");
    }
}

#[test]
fn what_cannot_change_an_answer_does_not_count() {
    let plain = key(&saying(r#""Hi""#));
    for same in [
        with(r#""stream":true"#),
        with(r#""stream":true,"stream_options":{"include_usage":true}"#),
        with(r#""user":"u1""#),
        with(r#""routing":"latency""#),
        with(r#""onboarding":true"#),
        saying(r#""\u0048i""#),
        r#"{ "messages": [ {"content" : "Hi", "role":"user"} ],
            "model":"alias" }"#
            .to_owned(),
    ] {
        assert_eq!(key(&same), plain, "{same}");
    }
    let sorted = r#""x":{"a":1,"b":[{"c":2,"d":3}]},"y":0"#;
    let mixed = r#""y":0,"x":{"b":[{"d":3,"c":2}],"a":1}"#;
    assert_eq!(key(&with(sorted)), key(&with(mixed)));
    assert_eq!(key(&saying(r#""\u00e9\/""#)), key(&saying("\"\u{e9}/\"")));
}

#[test]
fn fronts_do_not_share_replies() {
    let body = r#"{"model":"m","messages":[],"input":"Hi"}"#;
    let body = body.replace("[]", r#"[{"role":"user","content":"a"}]"#);
    let chat = key_of(&ChatCompletions, &SCOPE, &body);
    assert_ne!(chat, key_of(&EMBEDDINGS, &SCOPE, &body));
}

#[test]
fn data_that_is_not_in_memory_counts() {
    let url = |data: &str, end: &str| {
        format!(
            "data:text/plain;base64,{}{data}{end}",
            "A".repeat(KEPT_CHARS)
        )
    };
    let key = |url: String| {
        let body = json!({"model": "m", "document": {"document_url": url}}).to_string();
        let mut reader = SpooledJsonReader::new();
        reader.feed(body.as_bytes(), &mut Vec::new());
        let request = Ocr.read_spooled(reader.finish()).unwrap();
        ReplyKeys::new(&[9; 32])
            .unwrap()
            .key(&SCOPE, &request)
            .unwrap()
    };
    assert_eq!(key(url("QUJD", "")), key(url("QUJD", "")));
    let keys = [
        key(url("QUJD", "")),
        key(url("QUJE", "")),
        key(url("QUJDQUJD", "")),
        key(url("", "")),
        key(url("QUJD", "\u{c}")),
    ];
    for (at, one) in keys.iter().enumerate() {
        assert!(!keys[at + 1..].contains(one), "{at}");
    }
}

/// A few words, so that equal ones and such that only join alike are frequent.
fn word() -> impl Strategy<Value = String> {
    "[ab\u{0}s]{0,3}"
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3_i64).prop_map(Value::from),
        "[ab\"\\\\\u{e9}\n]{0,3}".prop_map(Value::from),
        (1000..1050_usize).prop_map(|length| Value::from("x".repeat(length))),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let member = ("[abc]{1,2}", inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            prop::collection::vec(member, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Writes a value with its members in an order, and with white space, that depend on `seed`.
fn spelled(value: &Value, seed: usize, out: &mut String) {
    out.push_str(["", " ", "\n\t"][seed % 3]);
    match value {
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                spelled(item, seed / 2 + at, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            let length = members.len().max(1);
            members.rotate_left(seed % length);
            if seed % 2 == 1 {
                members.reverse();
            }
            out.push('{');
            for (at, (key, member)) in members.into_iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                spelled(&Value::from(key.as_str()), seed / 3, out);
                out.push(':');
                spelled(member, seed / 2 + at, out);
            }
            out.push('}');
        }
        Value::String(text) if seed % 2 == 1 => {
            out.push('"');
            for unit in text.encode_utf16() {
                out.push_str(&format!("\\u{unit:04x}"));
            }
            out.push('"');
        }
        other => out.push_str(&other.to_string()),
    }
}

fn canonical(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    write_value(&mut Walker::over(text), &mut out).unwrap();
    out
}

proptest! {
    #[test]
    fn the_form_is_equal_where_the_value_is(one in value(), other in value(), seeds in any::<(usize, usize)>()) {
        let text = |value: &Value, seed| {
            let mut text = String::new();
            spelled(value, seed, &mut text);
            text
        };
        let form = canonical(&text(&one, seeds.0));
        prop_assert_eq!(&form, &canonical(&text(&one, seeds.1)));
        prop_assert_eq!(form == canonical(&text(&other, seeds.1)), one == other);
        prop_assert!(form.len() <= 1100);
    }

    /// Whatever bodies and names they choose, tenants get no reply of each other's.
    #[test]
    fn no_tenant_shares_a_key_with_another(
        one in (word(), word(), word()), other in (word(), word(), word()), is_byok in any::<(bool, bool)>(),
    ) {
        let key = |(organization, project, content): &(String, String, String), is_byok| {
            let scope = KeyScope {
                organization_id: organization,
                project_id: project,
                mode: if is_byok { Mode::Byok } else { Mode::Platform },
                ..SCOPE
            };
            let content = Value::from(content.as_str()).to_string();
            key_of(&ChatCompletions, &scope, &saying(&content))
        };
        let is_equal = key(&one, is_byok.0) == key(&other, is_byok.1);
        prop_assert_eq!(is_equal, one == other && is_byok.0 == is_byok.1);
    }
}

#[test]
fn candidates_and_the_secret_keep_keys_apart() {
    let body = saying(r#""Hi""#);
    let others = KeyScope {
        candidates: [2; 32],
        ..SCOPE
    };
    assert_ne!(key_of(&ChatCompletions, &others, &body), key(&body));
    let request = ChatCompletions.parse(body.clone().into()).unwrap();
    let keys = ReplyKeys::new(&[8; 32]).unwrap();
    assert_ne!(keys.key(&SCOPE, &request).unwrap(), key(&body));
}

/// Deep and unsorted members are not copied once per level.
#[test]
fn a_hostile_body_is_read_in_one_pass() {
    let mut text = format!("\"{}\"", "x".repeat(1 << 20));
    for _ in 0..120 {
        text = format!(r#"{{"b":{text},"a":0}}"#);
    }
    assert!(canonical(&text).len() < 1100);
    let many: Vec<String> = (0..20_000)
        .rev()
        .map(|n| format!("\"{n:06}\":{n}"))
        .collect();
    assert!(canonical(&format!("{{{}}}", many.join(","))).len() < 100);
}
