//! Decisions beside those of a public SDK: 0 differences.
//!
//! The vectors checked in were made by `tests/oracle/generate.py`; `make oracle` makes and compares many more.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use filters::decisions::decide::{Decision, decide};
use filters::decisions::inputs::{ForcedDecision, Inputs};
use filters::decisions::protocol::{Document, Protocol};
use filters::decisions::{Options, Project};
use serde_json::{Map, Value, json};

fn folder() -> PathBuf {
    std::env::var_os("WEIRGATE_ORACLE").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/vectors"),
        PathBuf::from,
    )
}

fn project(folder: &Path, number: u64) -> Project {
    let text = std::fs::read(folder.join(format!("{number}.json"))).unwrap();
    Project::parse(&text, Document.rules()).unwrap()
}

fn forced(line: &Value) -> Vec<ForcedDecision> {
    let rows = line["forced"].as_array().unwrap().iter();
    rows.map(|row| ForcedDecision {
        flag_key: row[0].as_str().unwrap().into(),
        rule_key: row[1].as_str().map(Into::into),
        variation_key: row[2].as_str().unwrap().into(),
    })
    .collect()
}

/// `[variation, enabled, rule, variables]`, as the vectors have it.
fn shown(decided: &Decision<'_>) -> Value {
    let text_or_null = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let variables: Map<String, Value> = decided
        .variables
        .iter()
        .map(|(key, json)| ((*key).to_owned(), serde_json::from_str(json).unwrap()))
        .collect();
    json!([
        text_or_null(decided.variation_key),
        decided.is_enabled,
        text_or_null(decided.rule_key),
        variables
    ])
}

/// Numbers count by their value: 1 and 1.0 are the same.
fn by_value(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.iter().map(by_value).collect(),
        Value::Object(members) => {
            let members = members.iter();
            Value::Object(
                members
                    .map(|(key, value)| (key.clone(), by_value(value)))
                    .collect(),
            )
        }
        other => other.clone(),
    }
}

/// Contract: decision-agent 1 It answers over
/// Contract: decision-agent 2.2 forced decision
#[test]
fn decisions_are_those_of_the_public_sdk() {
    let folder = folder();
    let vectors = std::fs::read_to_string(folder.join("vectors.jsonl")).unwrap();
    let mut projects: HashMap<u64, Project> = HashMap::new();
    let (mut compared, mut different) = (0, Vec::new());
    for line in vectors.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let number = line["datafile"].as_u64().unwrap();
        let project = projects
            .entry(number)
            .or_insert_with(|| project(&folder, number));
        let forced = forced(&line);
        let predictions = HashMap::new();
        let attributes = line["attributes"].as_object().unwrap().clone().into();
        let inputs = Inputs {
            user_id: line["user"].as_str().unwrap(),
            attributes: &attributes,
            segments: &[],
            forced: &forced,
            overrides: &[],
            profile: None,
            predictions: &predictions,
            options: Options::default(),
        };
        for (flag, expected) in line["decisions"].as_object().unwrap() {
            compared += 1;
            let decided = by_value(&shown(&decide(project, flag, &inputs)));
            if decided != by_value(expected) {
                different.push(format!(
                    "{number} {} {flag}: {decided} for {expected}",
                    inputs.user_id
                ));
            }
        }
    }
    assert!(compared > 1000, "only {compared} decisions were compared");
    let shown = different
        .iter()
        .take(20)
        .cloned()
        .collect::<Vec<_>>()
        .join("\n");
    assert!(
        different.is_empty(),
        "{} of {compared} differ:\n{shown}",
        different.len()
    );
}
