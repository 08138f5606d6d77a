//! Whatever stands in a datafile or a request: an answer or an error, never a panic, and always JSON.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::borrowed_object::BorrowedObject;
use super::event::{self, Moment};
use super::inputs::{ForcedDecision, Predicted};
use super::protocol::{Agent, Document, Protocol};
use super::response_body::{write_activation, write_decision};
use super::tests::datafile;
use super::{Inputs, Options, Profile, Project, activate, decide};

/// Any value that a request or a datafile may hold.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        "[0-9.+-]{0,12}".prop_map(Value::from),
        Just(json!(["and", ["or"], {"match": "gt"}])),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec(("[a-z$_]{0,8}", inner), 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// How many values stand in a value, itself included.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

/// Puts another in the place of the value at this position: one of its kind, so that most datafiles are accepted;
/// anything in the place of an object, such as a condition.
fn replace(value: &mut Value, at: &mut Option<usize>, other: &Value) {
    let Some(left) = *at else { return };
    if left == 0 {
        *at = None;
        *value = match &*value {
            Value::String(_) => other.to_string().into(),
            Value::Number(_) => other.as_i64().unwrap_or(-1).into(),
            Value::Bool(is) => (!is).into(),
            Value::Array(items) => items.iter().rev().chain(items).cloned().collect(),
            Value::Object(_) | Value::Null => other.clone(),
        };
        return;
    }
    *at = Some(left - 1);
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, at, other)),
        Value::Object(members) => members
            .values_mut()
            .for_each(|item| replace(item, at, other)),
        _ => {}
    }
}

fn is_json(bytes: &[u8]) {
    serde_json::from_slice::<Value>(bytes).unwrap();
}

/// Calls all of the engine with a project and attributes.
fn exercise(project: &Project, attributes: &Map<String, Value>) {
    let attributes = &BorrowedObject::from(attributes.clone());
    let forced = [ForcedDecision {
        flag_key: "flag".into(),
        rule_key: None,
        variation_key: "on".into(),
    }];
    let predictions: HashMap<_, _> = [("2".into(), Predicted::Failed)].into();
    let profile = Profile::new();
    let inputs = Inputs {
        user_id: "u",
        attributes,
        segments: &["vip".to_owned()],
        forced: &forced,
        overrides: &[("exp".into(), "off".into())],
        profile: Some(&profile),
        predictions: &predictions,
        options: Options::parse(["INCLUDE_REASONS"]).unwrap(),
    };
    let moment = Moment {
        user_id: "u",
        attributes,
        now_ms: 1,
        uuid: "id",
    };
    for key in project.flag_keys().chain(["none"]) {
        let decided = decide::decide(project, key, &inputs);
        let mut out = Vec::new();
        write_decision(&decided, "u", attributes, Document.result_shape(), &mut out);
        is_json(&out);
        for impression in &decided.impressions {
            is_json(&event::impression(project, impression, &moment));
        }
        let mut out = Vec::new();
        let item = activate::feature(project, key, &inputs);
        write_activation(&item, "u", Document.result_shape(), &mut out);
        is_json(&out);
    }
    for key in project.experiment_keys() {
        let mut out = Vec::new();
        let item = activate::experiment(project, key, &inputs);
        write_activation(&item, "u", Document.result_shape(), &mut out);
        is_json(&out);
    }
    is_json(&project.overview());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_datafile_with_anything_in_any_place_is_refused_or_decides(
        places in prop::collection::vec((any::<prop::sample::Index>(), any_value()), 1..4),
    ) {
        let mut whole = datafile();
        for (place, other) in &places {
            let mut at = Some(place.index(count(&whole)));
            replace(&mut whole, &mut at, other);
        }
        let text = whole.to_string();
        for rules in [Document.rules(), Agent.rules()] {
            if let Ok(project) = Project::parse(text.as_bytes(), rules) {
                exercise(&project, &Map::new());
            }
        }
    }

    #[test]
    fn a_user_with_anything_known_is_decided_for(values in prop::collection::vec(any_value(), 4)) {
        let names = ["country", "age", "version", "$opt_bucketing_id"];
        let attributes = names.iter().map(|name| (*name).to_owned()).zip(values).collect();
        for rules in [Document.rules(), Agent.rules()] {
            let project = Project::parse(datafile().to_string().as_bytes(), rules).unwrap();
            exercise(&project, &attributes);
        }
    }

    #[test]
    fn a_body_with_anything_in_any_member_is_refused_or_read(values in prop::collection::vec(any_value(), 6)) {
        let names = ["userId", "userAttributes", "decideOptions", "forcedDecisions", "fetchSegments", "identifiers"];
        let body: Map<String, Value> = names.iter().map(|name| (*name).to_owned()).zip(values).collect();
        let body = Value::Object(body).to_string();
        for protocol in [&Document as &dyn Protocol, &Agent] {
            let body = || protocol.read(body.as_bytes()).unwrap();
            for refusal in [body().into_decide().err(), body().into_override().err(), body().into_odp_event().err()].iter().flatten() {
                prop_assert!(refusal.status() == 400 || &*refusal.message == "ODP data is not valid");
            }
        }
    }

    #[test]
    fn bytes_that_are_no_datafile_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        prop_assert!(Project::parse(&bytes, Document.rules()).is_err());
    }

    #[test]
    fn a_datafile_cut_anywhere_is_refused(cut in any::<prop::sample::Index>()) {
        let text = datafile().to_string();
        let cut = cut.index(text.len());
        prop_assert!(Project::parse(&text.as_bytes()[..cut], Agent.rules()).is_err());
    }
}

#[test]
fn conditions_of_ten_thousand_levels_and_audiences_of_themselves_are_unknown() {
    let deep = format!("{}{}", "[\"not\",".repeat(10_000), "]".repeat(10_000));
    let mut whole = datafile();
    whole["typedAudiences"][0]["conditions"] = deep.into();
    whole["typedAudiences"][1]["conditions"] = json!(["or", "odd", "de"]);
    for rules in [Document.rules(), Agent.rules()] {
        let project = Project::parse(whole.to_string().as_bytes(), rules).unwrap();
        exercise(&project, &Map::new());
    }
}
