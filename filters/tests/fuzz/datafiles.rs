//! Datafiles: what is accepted decides for anybody, conditions by three-valued logic, versions by their parts.

use std::collections::HashMap;

use filters::decisions::borrowed_object::BorrowedObject;
use filters::decisions::decide::decide;
use filters::decisions::event::{self, Moment};
use filters::decisions::inputs::{ForcedDecision, Inputs, Predicted};
use filters::decisions::protocol::{Agent, Document, Protocol};
use filters::decisions::response_body::{write_activation, write_decision};
use filters::decisions::{Options, Profile, Project, activate};
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use crate::choices::Choices;
use crate::run::run;
use crate::{damage, grammar};

const MATCHES: [&str; 14] = [
    "exact",
    "exists",
    "substring",
    "gt",
    "ge",
    "lt",
    "le",
    "semver_eq",
    "semver_gt",
    "semver_ge",
    "semver_lt",
    "semver_le",
    "qualified",
    "odd",
];

fn leaf(choices: &mut Choices<'_>) -> Value {
    let value = json!({"$one": ["DE", 1, 2.5, true, "1.2", "2.0.0-beta", "$any"]});
    json!({"type": *choices.pick(&["custom_attribute", "third_party_dimension", "other"]), "name": *choices.pick(&["country", "age", "version", "none"]),
        "match": *choices.pick(&MATCHES), "value": grammar::compose(choices, &value)})
}

fn condition(choices: &mut Choices<'_>, levels: usize) -> Value {
    match choices.below(if levels == 0 { 1 } else { 4 }) {
        0 => leaf(choices),
        1 => json!(["not", condition(choices, levels - 1)]),
        operator => {
            let count = 1 + choices.below(3);
            let mut items = vec![json!(if operator == 2 { "and" } else { "or" })];
            items.extend((0..count).map(|_| condition(choices, levels - 1)));
            Value::Array(items)
        }
    }
}

fn rule(choices: &mut Choices<'_>, id: &str) -> Value {
    let grammar = json!({
        "id": id, "key": format!("rule-{id}"), "layerId": "l", "status": {"$one": ["Running", "Running", "Paused", "$text"]}, "audienceIds": {"$one": [[], ["1"], ["2", "404"]]},
        "audienceConditions?": {"$one": [["or", "1"], ["and", "1", ["not", "2"]], "1", []]}, "forcedVariations": {"friend": "off"},
        "trafficAllocation": [{"entityId": {"$one": ["v1", "v2", "", "404"]}, "endOfRange": {"$one": [5000, 10000, "$int"]}}, {"entityId": "v2", "endOfRange": 10000}],
        "variations": [{"id": "v1", "key": "on", "featureEnabled": true, "variables?": [{"id": "x", "value": "$text"}]}, {"id": "v2", "key": "off"}],
        "cmab?": {"attributeIds": ["11"], "trafficAllocation": 10000}, "type?": {"$one": ["ab", "td"]},
    });
    grammar::compose(choices, &grammar)
}

pub fn datafile(choices: &mut Choices<'_>) -> Value {
    let mut whole = json!({
        "version": "4", "accountId": "a", "projectId": "p", "revision": "7", "sdkKey": "k", "environmentKey": "e", "attributes": [{"id": "11", "key": "country"}],
        "events": [{"id": "21", "key": "bought", "experimentIds": ["e1"]}],
        "typedAudiences": [{"id": "1", "name": "one", "conditions": condition(choices, 3)}, {"id": "2", "name": "two", "conditions": condition(choices, 2).to_string()}],
        "experiments": [rule(choices, "e1"), rule(choices, "e2")],
        "featureFlags": [
            {"id": "f1", "key": "flag", "rolloutId": "r1", "experimentIds": ["e1", "404"], "variables": [
                {"id": "x", "key": "x", "type": *choices.pick(&["integer", "boolean", "double", "string", "json"]), "defaultValue": choices.text()}]},
            {"id": "f2", "key": "other", "rolloutId": "", "experimentIds": ["e2", "e1"], "variables": []},
        ],
        "rollouts": [{"id": "r1", "experiments": [rule(choices, "e3"), rule(choices, "e4")]}],
        "groups": [{"id": "g", "policy": *choices.pick(&["random", "overlapping"]), "trafficAllocation": [{"entityId": "e5", "endOfRange": 5000}], "experiments": [rule(choices, "e5")]}],
    });
    if choices.once_in(3) {
        whole["holdouts"] = json!([rule(choices, "h1")]);
        whole["integrations"] =
            json!([{"key": "odp", "host": "https://odp.example", "publicKey": "k"}]);
    }
    whole
}

fn is_json(bytes: &[u8]) {
    assert!(
        serde_json::from_slice::<IgnoredAny>(bytes).is_ok(),
        "{}",
        String::from_utf8_lossy(bytes)
    );
}

/// Decides everything that a datafile has.
fn exercise(
    project: &Project,
    user_id: &str,
    attributes: Map<String, Value>,
    protocol: &dyn Protocol,
) {
    let attributes = BorrowedObject::from(attributes);
    let forced = [ForcedDecision {
        flag_key: "other".into(),
        rule_key: None,
        variation_key: "on".into(),
    }];
    let predictions: HashMap<_, _> = [("e2".into(), Predicted::Failed)].into();
    let profile = Profile::new();
    let inputs = Inputs {
        user_id,
        attributes: &attributes,
        segments: &["vip".to_owned()],
        forced: &forced,
        overrides: &[("rule-e1".into(), "off".into())],
        profile: Some(&profile),
        predictions: &predictions,
        options: Options::parse(["INCLUDE_REASONS"]).unwrap(),
    };
    let moment = Moment {
        user_id,
        attributes: &attributes,
        now_ms: 1,
        uuid: "id",
    };
    for key in project.flag_keys().chain(["none"]) {
        let decided = decide(project, key, &inputs);
        let again = decide(project, key, &inputs);
        assert_eq!(
            (decided.variation_key, decided.rule_key),
            (again.variation_key, again.rule_key)
        );
        let mut out = Vec::new();
        write_decision(
            &decided,
            user_id,
            &attributes,
            protocol.result_shape(),
            &mut out,
        );
        is_json(&out);
        for impression in &decided.impressions {
            is_json(&event::impression(project, impression, &moment));
        }
    }
    for key in project.experiment_keys() {
        let mut out = Vec::new();
        write_activation(
            &activate::experiment(project, key, &inputs),
            user_id,
            protocol.result_shape(),
            &mut out,
        );
        is_json(&out);
    }
    is_json(&project.overview());
}

fn attributes(choices: &mut Choices<'_>) -> Map<String, Value> {
    let grammar = json!({"country?": {"$one": ["DE", "$any"]}, "age?": {"$one": [1, "$number", "$any"]}, "version?": {"$one": ["1.2.3", "2.0.0-beta+x", "$text"]}, "$opt_bucketing_id?": "$any"});
    match grammar::compose(choices, &grammar) {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

#[test]
fn an_accepted_datafile_decides_for_anybody() {
    run("datafiles: decisions", |choices| {
        let whole = datafile(choices);
        let damaged = damage::tree(choices, whole);
        let bytes = grammar::write(choices, &damaged);
        let bytes = if choices.once_in(2) {
            damage::bytes(choices, bytes)
        } else {
            bytes
        };
        let (user, attributes) = (choices.text(), attributes(choices));
        for protocol in [&Document as &dyn Protocol, &Agent] {
            if let Ok(project) = Project::parse(&bytes, protocol.rules()) {
                exercise(&project, &user, attributes.clone(), protocol);
            }
        }
    });
}

/// A project whose only flag is on where the condition holds.
fn gate(condition: &Value) -> Project {
    let datafile = json!({"version": "4", "typedAudiences": [{"id": "1", "name": "one", "conditions": condition}],
        "featureFlags": [{"id": "f", "key": "flag", "rolloutId": "r", "experimentIds": [], "variables": []}],
        "rollouts": [{"id": "r", "experiments": [{"id": "e", "key": "e", "layerId": "l", "status": "Running", "audienceIds": ["1"],
            "trafficAllocation": [{"entityId": "v", "endOfRange": 10000}], "variations": [{"id": "v", "key": "on", "featureEnabled": true}]}]}]});
    Project::parse(datafile.to_string().as_bytes(), Document.rules()).unwrap()
}

fn holds(condition: &Value, attributes: Map<String, Value>) -> bool {
    let attributes = BorrowedObject::from(attributes);
    let inputs = Inputs {
        user_id: "u",
        attributes: &attributes,
        segments: &[],
        forced: &[],
        overrides: &[],
        profile: None,
        predictions: &HashMap::new(),
        options: Options::default(),
    };
    decide(&gate(condition), "flag", &inputs).is_enabled
}

/// Three-valued logic over conditions whose leaves are known one by one.
fn reference(condition: &Value, attributes: &Map<String, Value>) -> Option<bool> {
    let Value::Array(items) = condition else {
        if holds(condition, attributes.clone()) {
            return Some(true);
        }
        return holds(&json!(["not", condition]), attributes.clone()).then_some(false);
    };
    let mut all = items[1..].iter().map(|item| reference(item, attributes));
    match items[0].as_str().unwrap() {
        "not" => all.next().unwrap().map(|holds| !holds),
        word => {
            let decisive = word == "or";
            let all: Vec<Option<bool>> = all.collect();
            match (all.contains(&Some(decisive)), all.contains(&None)) {
                (true, _) => Some(decisive),
                (false, true) => None,
                (false, false) => Some(!decisive),
            }
        }
    }
}

#[test]
fn conditions_are_three_valued_logic() {
    run("datafiles: conditions", |choices| {
        let condition = condition(choices, 3);
        let attributes = attributes(choices);
        let expected = reference(&condition, &attributes) == Some(true);
        assert_eq!(
            holds(&condition, attributes.clone()),
            expected,
            "{condition} {attributes:?}"
        );
    });
}

#[test]
fn versions_compare_by_their_parts() {
    run("datafiles: versions", |choices| {
        let version = |choices: &mut Choices<'_>| {
            let parts: Vec<u8> = (0..1 + choices.below(3))
                .map(|_| choices.byte() % 12)
                .collect();
            let suffix = *choices.pick(&["", "", "", "-beta", "+build", "-beta.2+x"]);
            (
                parts.clone(),
                parts
                    .iter()
                    .map(u8::to_string)
                    .collect::<Vec<_>>()
                    .join(".")
                    + suffix,
            )
        };
        let ((user, user_text), (wanted, wanted_text)) = (version(choices), version(choices));
        let damaged = damage::bytes(choices, user_text.clone().into_bytes());
        let shown = String::from_utf8_lossy(&damaged).into_owned();
        let asked = |word: &str| {
            let condition = json!({"type": "custom_attribute", "name": "v", "match": word, "value": wanted_text});
            holds(
                &condition,
                Map::from_iter([("v".to_owned(), Value::from(&*shown))]),
            )
        };
        let [lt, eq, gt, le, ge] = [
            "semver_lt",
            "semver_eq",
            "semver_gt",
            "semver_le",
            "semver_ge",
        ]
        .map(asked);
        assert!(
            u8::from(lt) + u8::from(eq) + u8::from(gt) <= 1,
            "{shown} {wanted_text}"
        );
        assert_eq!((le, ge), (lt || eq, gt || eq), "{shown} {wanted_text}");
        let is_plain = |text: &str| !text.contains(['-', '+']);
        if shown == user_text && is_plain(&shown) && is_plain(&wanted_text) {
            let order = user[..user.len().min(wanted.len())].cmp(&wanted);
            assert_eq!(
                (lt, eq, gt),
                (order.is_lt(), order.is_eq(), order.is_gt()),
                "{shown} {wanted_text}"
            );
        }
    });
}
