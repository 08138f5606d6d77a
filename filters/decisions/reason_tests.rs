//! Reasons of audiences that cannot be judged, and of requests that are long.

#![allow(clippy::unwrap_used, reason = "tests")]

use serde_json::{Map, Value, json};

use crate::decisions::borrowed_object::BorrowedObject;
use crate::decisions::decide::decide;
use crate::decisions::inputs::{ForcedDecision, Inputs};
use crate::decisions::protocol::{Agent, Document, Protocol};
use crate::decisions::{Options, Project};

fn leaf(kind: &str, name: &str, word: &str) -> Value {
    json!({"type": kind, "name": name, "match": word, "value": "DE"})
}

/// An experiment or a rule without traffic for these audiences.
fn rule(key: &str, conditions: &Value) -> Value {
    json!({"id": key, "key": key, "layerId": "l", "status": "Running", "audienceIds": [],
           "audienceConditions": conditions, "forcedVariations": {}, "trafficAllocation": [], "variations": []})
}

/// A flag for these audiences: its experiment, and all rules of its rollout but the last one.
fn project(conditions: &Value, protocol: &dyn Protocol) -> Project {
    let country = leaf("custom_attribute", "country", "exact");
    let datafile = json!({
        "version": "4", "revision": "1",
        "typedAudiences": [
            {"id": "country", "name": "", "conditions": ["or", country]},
            {"id": "anyone", "name": "", "conditions": ["or", leaf("custom_attribute", "id", "exists")]},
            {"id": "type", "name": "", "conditions": ["and", leaf("cookie", "country", "exact"), country]},
            {"id": "match", "name": "", "conditions": ["or", leaf("custom_attribute", "country", "like")]},
        ],
        "experiments": [rule("exp", conditions)],
        "featureFlags": [{"id": "f", "key": "flag", "rolloutId": "r", "experimentIds": ["exp"], "variables": []}],
        "rollouts": [{"id": "r", "experiments": [rule("first", conditions), rule("last", &json!([]))]}],
    });
    Project::parse(datafile.to_string().as_bytes(), protocol.rules()).unwrap()
}

fn reasons(
    project: &Project,
    user_id: &str,
    attributes: &Value,
    forced: &[ForcedDecision],
) -> Vec<String> {
    let attributes: Map<String, Value> = attributes.as_object().unwrap().clone();
    let attributes: BorrowedObject<'_> = attributes.into();
    let inputs = Inputs {
        user_id,
        attributes: &attributes,
        segments: &[],
        forced,
        overrides: &[],
        profile: None,
        predictions: &std::collections::HashMap::new(),
        options: Options::parse(["INCLUDE_REASONS"]).unwrap(),
    };
    decide(project, "flag", &inputs).reasons
}

const LAST: [&str; 2] = [
    "Audiences for experiment last collectively evaluated to true.",
    "User \"u\" meets conditions for targeting rule \"Everyone Else\".",
];

/// The first lines of an experiment, those of the first rule behind them, and those of the last rule.
fn failed(doubts: &[&str]) -> Vec<String> {
    let experiment = [
        "Audiences for experiment exp collectively evaluated to false.",
        "User \"u\" does not meet conditions to be in experiment \"exp\".",
    ];
    let first = ["User \"u\" does not meet conditions for targeting rule 1."];
    let all = [doubts, &experiment, doubts, &first, &LAST].concat();
    all.into_iter().map(str::to_owned).collect()
}

const COUNTRY: &str = "an error occurred while evaluating nested tree for audience ID \"country\"";

#[test]
fn in_agent_mode_an_audience_that_cannot_be_judged_is_named_in_front_of_the_result() {
    for (conditions, doubts) in [
        (json!(["or", "country"]), vec![COUNTRY]),
        (json!(["not", "country"]), vec![COUNTRY]),
        // OR judges all of them, AND ends at the first that is unknown.
        (
            json!(["or", "country", "404"]),
            vec![
                COUNTRY,
                "unable to evaluate nested tree for audience ID \"404\"",
            ],
        ),
        (json!(["and", "country", "404"]), vec![COUNTRY]),
        (
            json!(["or", "type"]),
            vec![
                "unable to evaluate condition of type \"cookie\"",
                "an error occurred while evaluating nested tree for audience ID \"type\"",
            ],
        ),
        (
            json!(["or", "match"]),
            vec![
                "invalid Condition matcher \"like\"",
                "an error occurred while evaluating nested tree for audience ID \"match\"",
            ],
        ),
    ] {
        let told = reasons(&project(&conditions, &Agent), "u", &json!({}), &[]);
        assert_eq!(told, failed(&doubts), "{conditions}");
        let told = reasons(&project(&conditions, &Document), "u", &json!({}), &[]);
        assert_eq!(told, failed(&[]), "{conditions}");
    }
}

#[test]
fn an_audience_that_can_be_judged_causes_no_doubt() {
    let project = project(&json!(["or", "country"]), &Agent);
    let told = reasons(&project, "u", &json!({"country": "FR"}), &[]);
    assert_eq!(told, failed(&[]));
}

/// The agent judges the audiences of a rollout's rule twice: to apply the rule, and to bucket the user.
#[test]
fn doubts_of_a_rule_that_is_met_are_told_twice() {
    let project = project(&json!(["or", "country", "anyone"]), &Agent);
    let told = reasons(&project, "u", &json!({"id": 1}), &[]);
    let expected = [
        COUNTRY,
        "Audiences for experiment exp collectively evaluated to true.",
        COUNTRY,
        COUNTRY,
        "Audiences for experiment first collectively evaluated to true.",
    ];
    assert_eq!(told, [&expected[..], &LAST].concat());
}

#[test]
fn a_long_request_is_quoted_in_full_by_the_agent_alone() {
    let (long, cut) = ("ü".repeat(101), format!("{}…", "ü".repeat(100)));
    let forced = [ForcedDecision {
        flag_key: "flag".into(),
        rule_key: None,
        variation_key: long.as_str().into(),
    }];
    let told = |protocol: &dyn Protocol| {
        let project = project(&json!(["or", "country"]), protocol);
        let told = reasons(&project, &long, &json!({"country": "FR"}), &forced);
        [told[0].clone(), told[2].clone()]
    };
    let expected = |user: &str| {
        [
            format!(
                "Invalid variation is mapped to flag (flag) and user ({user}) in the forced decision map."
            ),
            format!("User \"{user}\" does not meet conditions to be in experiment \"exp\"."),
        ]
    };
    assert_eq!(told(&Agent), expected(&long));
    assert_eq!(told(&Document), expected(&cut));
}
