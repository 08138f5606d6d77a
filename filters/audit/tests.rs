#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::*;

fn entry(number: i64) -> AuditEntry {
    AuditEntry {
        number,
        at_ms: 1_800_000_000_000 + number,
        actor: "ada".to_owned(),
        origin: "command line at host".to_owned(),
        action: "key.update".to_owned(),
        kind: "key".to_owned(),
        subject_id: format!("key_{number}"),
        name: "a \"name\"\u{202e}\n\u{1}é".to_owned(),
        organization_id: "org_1".to_owned(),
        organization: "acme".to_owned(),
        before: Some(r#"{"label":"a"}"#.to_owned()),
        after: None,
    }
}

/// A log of so many entries, with their hashes.
fn log(count: i64) -> Vec<(AuditEntry, String)> {
    let mut head = EntryHash::START;
    let entries = (1..=count).map(|number| {
        let entry = entry(number);
        head = entry.hash(&head);
        (entry, head.to_string())
    });
    entries.collect()
}

fn walk(
    log: &[(AuditEntry, String)],
    expected: Option<AuditHead>,
) -> Result<AuditHead, BrokenChain> {
    let mut walk = ChainWalk::new(expected);
    for (entry, hash) in log {
        walk.step(entry, hash)?;
    }
    walk.finish()
}

fn broken(number: i64, how: ChainBreak) -> Result<AuditHead, BrokenChain> {
    Err(BrokenChain { number, how })
}

#[test]
fn the_form_of_an_entry_is_the_documented_json() {
    let zeros = "0".repeat(64);
    let form = format!(
        "[\"weirgate audit 1\",\"{zeros}\",7,1800000000007,\"ada\",\"command line at host\",\"key.update\",\"key\",\
         \"key_7\",\"a \\\"name\\\"\u{202e}\\n\\u0001é\",\"org_1\",\"acme\",\"{{\\\"label\\\":\\\"a\\\"}}\",null]"
    );
    let digest = Sha256::digest(form.as_bytes());
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(entry(7).hash(&EntryHash::START).to_string(), digest);
}

#[test]
fn each_field_and_the_hash_before_change_the_hash() {
    let whole = entry(1);
    let hash = whole.hash(&EntryHash::START);
    let texts: [fn(&mut AuditEntry) -> &mut String; 8] = [
        |it| &mut it.actor,
        |it| &mut it.origin,
        |it| &mut it.action,
        |it| &mut it.kind,
        |it| &mut it.subject_id,
        |it| &mut it.name,
        |it| &mut it.organization_id,
        |it| &mut it.organization,
    ];
    let mut others = vec![whole.hash(&hash)];
    for text in texts {
        let mut other = whole.clone();
        text(&mut other).push('x');
        others.push(other.hash(&EntryHash::START));
    }
    // A text that moves from one field to the next is another entry.
    let mut moved = whole.clone();
    moved.actor.push_str(&moved.origin);
    moved.origin.clear();
    others.push(moved.hash(&EntryHash::START));
    for (before, after) in [
        (None, None),
        (None, whole.before.clone()),
        (whole.before.clone(), Some(String::new())),
    ] {
        let other = AuditEntry {
            before,
            after,
            ..whole.clone()
        };
        others.push(other.hash(&EntryHash::START));
    }
    for at_ms in [0, whole.at_ms + 1] {
        let other = AuditEntry {
            at_ms,
            ..whole.clone()
        };
        others.push(other.hash(&EntryHash::START));
    }
    assert!(!others.contains(&hash));
}

#[test]
fn a_whole_log_has_a_head_which_it_keeps_as_it_grows() {
    let log = log(5);
    let head = walk(&log, None).unwrap();
    assert_eq!((head.number, head.hash.to_string()), (5, log[4].1.clone()));
    let earlier = walk(&log[..3], None).unwrap();
    assert_eq!(walk(&log, Some(earlier)), Ok(head));
    assert_eq!(walk(&log, Some(head)), Ok(head));
    assert_eq!(walk(&[], Some(AuditHead::EMPTY)), Ok(AuditHead::EMPTY));
    assert_eq!(head.to_string().parse(), Ok(head));
}

#[test]
fn the_first_entry_that_is_not_as_written_is_named() {
    let whole = log(5);
    let mut changed = whole.clone();
    changed[2].0.actor = "eve".to_owned();
    assert_eq!(walk(&changed, None), broken(3, ChainBreak::Changed));
    // With its own hash made anew, the next one does not follow.
    changed[2].1 = changed[2].0.hash(&whole[1].1.parse().unwrap()).to_string();
    assert_eq!(walk(&changed, None), broken(4, ChainBreak::Changed));
    let mut missing = whole.clone();
    missing.remove(1);
    assert_eq!(walk(&missing, None), broken(2, ChainBreak::Missing(3)));
    assert_eq!(walk(&whole[1..], None), broken(1, ChainBreak::Missing(2)));
    let mut twice = whole.clone();
    twice.insert(1, whole[0].clone());
    assert_eq!(walk(&twice, None), broken(2, ChainBreak::Missing(1)));
    let mut swapped = whole.clone();
    swapped.swap(1, 2);
    assert_eq!(walk(&swapped, None), broken(2, ChainBreak::Missing(3)));
    let mut upper = whole;
    upper[0].1 = upper[0].1.to_uppercase();
    assert_eq!(walk(&upper, None), broken(1, ChainBreak::Changed));
}

#[test]
fn only_a_head_that_was_kept_shows_that_the_end_is_cut_or_all_is_written_anew() {
    let whole = log(5);
    let head = walk(&whole, None).unwrap();
    assert!(walk(&whole[..3], None).is_ok());
    assert_eq!(
        walk(&whole[..3], Some(head)),
        broken(4, ChainBreak::Cut { last: 3 })
    );
    assert_eq!(
        walk(&[], Some(head)),
        broken(1, ChainBreak::Cut { last: 0 })
    );
    let mut anew = whole;
    anew[0].0.actor = "eve".to_owned();
    let mut before = EntryHash::START;
    for (entry, hash) in &mut anew {
        before = entry.hash(&before);
        *hash = before.to_string();
    }
    assert!(walk(&anew, None).is_ok());
    let found = anew[4].1.parse().unwrap();
    assert_eq!(walk(&anew, Some(head)), broken(5, ChainBreak::Other(found)));
}

#[test]
fn a_head_is_a_number_and_the_digits_of_a_hash() {
    let digits = "ab".repeat(32);
    assert!(format!(" 12:{digits}\n").parse::<AuditHead>().is_ok());
    for wrong in [
        String::new(),
        "12".to_owned(),
        format!("-1:{digits}"),
        format!("x:{digits}"),
        format!("12:{}", &digits[1..]),
        format!("12:{digits}0"),
        format!("12:{}", digits.to_uppercase()),
        format!("12:{}é", &digits[2..]),
        format!("99999999999999999999:{digits}"),
    ] {
        let error = wrong.parse::<AuditHead>().unwrap_err();
        assert!(error.contains("64 digits"), "{wrong}");
    }
}

fn fields(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[test]
fn an_entry_has_the_listed_fields_that_differ() {
    let before = fields(json!({"label": "a", "debug": false, "hash": "x", "limit": "5"}));
    let after = fields(json!({"label": "b", "debug": false, "hash": "y", "member": "ada"}));
    let changed = EntryFields::compare(AuditKind::Key, Some(&before), Some(&after));
    let [was, is] = changed.to_texts();
    assert_eq!(was.unwrap(), r#"{"label":"a","limit":"5","member":null}"#);
    assert_eq!(is.unwrap(), r#"{"label":"b","limit":null,"member":"ada"}"#);
    let made = EntryFields::compare(AuditKind::Key, None, Some(&after));
    let [was, is] = made.to_texts();
    assert_eq!(
        (was, is.unwrap().as_str()),
        (None, r#"{"debug":false,"label":"b","member":"ada"}"#)
    );
    let secret = fields(json!({"label": "a", "debug": false, "hash": "z", "limit": "5"}));
    assert!(EntryFields::compare(AuditKind::Key, Some(&before), Some(&secret)).is_same());
    assert!(EntryFields::compare(AuditKind::Key, None, None).is_same());
    assert!(!EntryFields::compare(AuditKind::Key, Some(&Map::new()), None).is_same());
    let labels = fields(json!({"labels.production": 1, "content": "hidden"}));
    let [_, is] = EntryFields::compare(AuditKind::Prompt, None, Some(&labels)).to_texts();
    assert_eq!(is.unwrap(), r#"{"labels.production":1}"#);
}

#[test]
fn what_is_long_is_replaced_by_its_size() {
    let long = "x".repeat(9000);
    let one = fields(json!({"label": "ci", "allow_models": [long]}));
    let [_, is] = EntryFields::compare(AuditKind::Key, None, Some(&one)).to_texts();
    assert_eq!(
        is.unwrap(),
        r#"{"allow_models":{"omitted_bytes":9004},"label":"ci"}"#
    );
    let many = (0..10_000).map(|n| (format!("labels.{n}"), json!(n)));
    let many: Map<String, Value> = many.collect();
    let [_, is] = EntryFields::compare(AuditKind::Prompt, None, Some(&many)).to_texts();
    assert!(is.unwrap().starts_with(r#"{"omitted_bytes":"#));
}

#[test]
fn no_kind_has_a_field_that_holds_a_secret() {
    for kind in AuditKind::ALL {
        for field in kind.fields() {
            let texts = [
                "hash", "sealed", "text", "key", "content", "metadata", "terms",
            ];
            assert!(!texts.contains(field), "{kind} {field}");
        }
    }
}

#[test]
fn an_actor_is_one_short_line() {
    let hostile = format!(" ada\u{1b}[31m\n{}", "x".repeat(500));
    let actor = Actor::on_command_line(&hostile, "ho\u{0}st\n");
    assert!(actor.name().starts_with("ada [31m x") && actor.name().chars().count() == 128);
    assert_eq!(actor.origin(), "command line at ho st");
    let actor = Actor::on_console(" \t", "2001:db8::1");
    assert_eq!(
        (actor.name(), actor.origin()),
        ("unknown", "console from 2001:db8::1")
    );
}
