#![allow(clippy::unwrap_used, reason = "tests")]

use serde_json::{Value, json};

use super::super::listed_model::{find, read_list};
use super::*;

fn mapping(name: &str, input_price: &str) -> WrittenMapping {
    serde_json::from_value(
        json!({"provider": "p", "name": name, "input_price": input_price, "output_price": "2"}),
    )
    .unwrap()
}

fn told(mappings: &[WrittenMapping], body: &Value) -> Vec<String> {
    let listed = read_list(body).unwrap();
    let mappings: Vec<&WrittenMapping> = mappings.iter().collect();
    let problems = differences(("providers.p", "cure"), &mappings, &listed);
    problems
        .into_iter()
        .map(|problem| problem.message)
        .collect()
}

#[test]
fn lists_of_every_kind_are_read() {
    for body in [
        json!({"object": "list", "data": [{"id": "a"}, {"id": "b"}]}),
        json!({"models": [{"name": "models/a"}, {"name": "models/b"}]}),
        json!([{"id": "a"}, {"id": "b"}, {"odd": 1}]),
    ] {
        let listed = read_list(&body).unwrap();
        assert_eq!(listed.keys().collect::<Vec<_>>(), ["a", "b"], "{body}");
    }
    assert!(read_list(&json!({"error": "no"})).is_none());
}

#[test]
fn a_model_that_is_not_listed_costs_otherwise_or_ends_is_told() {
    let mappings = [
        mapping("a", "1"),
        mapping("b", "1"),
        mapping("gone", "1"),
        mapping("old", "1"),
    ];
    let body = json!({"data": [
        {"id": "a", "pricing": {"prompt": "0.000001", "completion": "0.000002"}},
        {"id": "b", "pricing": {"prompt": "0.0000015", "completion": "0.000002"}},
        {"id": "old", "deprecation_date": "2027-01-01"},
        {"id": "unknown"}]});
    assert_eq!(
        told(&mappings, &body),
        [
            "does not list gone",
            "lists other prices of b (0.0000015 USD a token, 0.000001 in the catalogue)",
            "is about to retire old (2027-01-01)",
        ]
    );
    assert!(told(&mappings[..1], &body).is_empty());
}

#[test]
fn names_of_clouds_are_profiles_their_arns_models_and_models_without_a_version() {
    let arn = "arn:aws:bedrock:eu-west-1:1:inference-profile/eu.a";
    let profiles = json!({"inferenceProfileSummaries": [
        {"inferenceProfileName": "A", "inferenceProfileId": "eu.a", "inferenceProfileArn": arn}]});
    let listed = read_list(&profiles).unwrap();
    assert_eq!(listed.keys().collect::<Vec<_>>(), [arn, "eu.a"]);
    let models = json!({"modelSummaries": [
        {"modelId": "m.on-demand", "modelName": "M", "inferenceTypesSupported": ["ON_DEMAND", "PROVISIONED"]},
        {"modelId": "m.by-profile", "inferenceTypesSupported": ["INFERENCE_PROFILE"]},
        {"modelId": "m.old", "inferenceTypesSupported": ["ON_DEMAND"], "modelLifecycle": {"status": "LEGACY"}}]});
    let listed = read_list(&models).unwrap();
    assert_eq!(listed.keys().collect::<Vec<_>>(), ["m.old", "m.on-demand"]);
    assert!(listed["m.old"].ends_at.is_some() && listed["m.on-demand"].ends_at.is_none());
    let publishers = json!({"publisherModels": [{"name": "publishers/anthropic/models/claude", "versionId": "1"}]});
    let listed = read_list(&publishers).unwrap();
    assert!(find(&listed, "claude@20250929").is_some() && find(&listed, "claude").is_some());
    assert!(find(&listed, "claude-2@20250929").is_none());
}
