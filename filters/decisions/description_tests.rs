#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use serde_json::{Value, json};

use super::super::protocol::{Document, Protocol};
use super::super::tests::datafile;
use super::*;

fn project(datafile: &Value) -> Project {
    Project::parse(datafile.to_string().as_bytes(), Document.rules()).unwrap()
}

fn condition(test: &Value) -> String {
    let mut written = datafile();
    written["typedAudiences"] = json!([{"id": "one", "name": "One", "conditions": test}]);
    written["rollouts"][1]["experiments"][0]["audienceIds"] = json!(["one"]);
    let project = project(&written);
    let flag = project.describe_flag("odd").unwrap();
    flag.audiences[0].conditions.clone()
}

#[test]
fn a_flag_is_described_with_its_rules_in_order() {
    let project = project(&datafile());
    let flag = project.describe_flag("flag").unwrap();
    assert_eq!((flag.key, flag.id), ("flag", "f1"));
    let rules: Vec<_> = flag
        .rules
        .iter()
        .map(|rule| (rule.kind, rule.key, rule.audience.as_deref()))
        .collect();
    assert_eq!(
        rules,
        [
            ("experiment", "exp", Some("\"Germans\"")),
            ("rollout", "half", Some("\"Germans\"")),
            ("rollout", "default-6", None)
        ]
    );
    let exp = &flag.rules[0];
    assert_eq!((exp.whitelisted_users, exp.is_running), (1, true));
    let whole = TrafficShare {
        variation: Some("on"),
        from: 0,
        until: 10_000,
    };
    assert_eq!(exp.traffic, [whole]);
    assert!(flag.rules[1].traffic.is_empty());
    assert_eq!(exp.variations[0].variables, [("size", "5"), ("bad", "{}")]);
    assert_eq!(exp.variations[1].variables[0], ("size", "1"), "it is off");
    let names: Vec<_> = flag.audiences.iter().map(|one| one.name).collect();
    assert_eq!(names, ["Germans"]);
    assert_eq!(flag.audiences[0].conditions, "country is \"DE\"");
    assert!(project.describe_flag("nothing").is_none());
    let smart = project.describe_flag("smart").unwrap();
    assert_eq!(smart.rules[0].predicted_until, Some(10_000));
    assert!(!project.describe_flag("old").unwrap().rules[0].is_running);
}

#[test]
fn conditions_are_words() {
    let leaf = |test: &str, value: Value| json!({"type": "custom_attribute", "name": "a", "match": test, "value": value});
    for (test, words) in [
        (leaf("exists", Value::Null), "a is set"),
        (leaf("exact", json!(true)), "a is true"),
        (leaf("exact", json!(2.5)), "a is 2.5"),
        (leaf("substring", json!("x")), "a contains \"x\""),
        (leaf("ge", json!(3)), "a ≥ 3"),
        (
            leaf("semver_lt", json!("2.0-beta.1")),
            "a < version 2.0-beta.1",
        ),
        (leaf("semver_eq", json!("1.2.3+7")), "a = version 1.2.3+7"),
        (
            leaf("qualified", json!("s")),
            "the user is in the segment \"s\"",
        ),
        (leaf("odd", json!(1)), "a has the unknown match \"odd\""),
        (
            leaf("gt", json!("1")),
            "a has a value that cannot be compared",
        ),
        (
            json!({"type": "x", "name": "a"}),
            "a has the unknown type \"x\"",
        ),
        (json!(["and"]), "everyone"),
        (json!(["or"]), "nobody"),
        (json!("no JSON"), "a condition that cannot be read"),
        (
            json!([
                "and",
                leaf("lt", json!(1)),
                ["not", ["or", leaf("gt", json!(2)), leaf("le", json!(0))]]
            ]),
            "a < 1 AND NOT (a > 2 OR a ≤ 0)",
        ),
    ] {
        let list = match &test {
            Value::Object(_) => json!(["or", test]),
            other => other.clone(),
        };
        assert_eq!(condition(&list), words, "{test}");
    }
}

#[test]
fn words_have_a_bound_and_end_with_an_ellipsis() {
    let leaf = json!({"type": "custom_attribute", "name": "ä".repeat(99), "match": "exists"});
    let mut all = vec![json!("or")];
    all.extend(vec![leaf; 1_000]);
    let words = condition(&Value::Array(all));
    assert!(words.ends_with('…'));
    assert!((4_000..4_100).contains(&words.len()), "{}", words.len());
    let mut deep = json!({"type": "custom_attribute", "name": "a", "match": "exists"});
    for _ in 0..99 {
        deep = json!(["not", deep]);
    }
    assert!(condition(&deep).starts_with("NOT NOT "));
}

#[test]
fn flags_are_found_by_a_part_of_their_key() {
    let project = project(&datafile());
    let keys = |text| -> Vec<&str> { project.find_flags(text).iter().map(|one| one.key).collect() };
    assert_eq!(keys(""), ["flag", "smart", "old", "odd"]);
    assert_eq!(keys("O"), ["old", "odd"]);
    assert!(keys("nothing").is_empty());
    let old = project.find_flags("old")[0];
    assert_eq!((old.experiments, old.running_experiments), (1, 0));
    let parts = project.parts();
    assert_eq!((parts.flags, parts.experiments, parts.audiences), (4, 3, 3));
}

#[test]
fn what_a_missing_audience_does_is_said() {
    let mut written = datafile();
    written["rollouts"][1]["experiments"][0]["audienceConditions"] =
        json!(["and", "odd", ["not", "404"]]);
    let project = project(&written);
    let flag = project.describe_flag("odd").unwrap();
    assert_eq!(
        flag.rules[0].audience.as_deref(),
        Some("\"Odd\" AND NOT the missing audience \"404\"")
    );
}
