#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::borrowed_object::BorrowedObject;
use super::decide::decide;
use super::event::{self, EventHead, Moment};
use super::inputs::{ForcedDecision, Inputs, Predicted};
use super::protocol::{Agent, Document, Protocol};
use super::queued_event::QueuedVisitor;
use super::{EvaluationRules, Options, Profile, Project, activate};

fn rule(id: &str, key: &str, end: u32, more: Value) -> Value {
    let mut rule = json!({
        "id": id, "key": key, "layerId": format!("layer-{id}"), "status": "Running", "audienceIds": [],
        "forcedVariations": {}, "trafficAllocation": [{"entityId": format!("{id}1"), "endOfRange": end}],
        "variations": [
            {"id": format!("{id}1"), "key": "on", "featureEnabled": true, "variables": [{"id": "v1", "value": "5"}]},
            {"id": format!("{id}2"), "key": "off", "featureEnabled": false, "variables": []},
        ],
    });
    for (key, value) in more.as_object().unwrap() {
        rule[key] = value.clone();
    }
    rule
}

pub(super) fn datafile() -> Value {
    let country =
        json!({"type": "custom_attribute", "name": "country", "match": "exact", "value": "DE"});
    json!({
        "version": "4", "accountId": "a", "projectId": "p", "revision": "7", "sdkKey": "k", "environmentKey": "e",
        "anonymizeIP": true, "sendFlagDecisions": false,
        "attributes": [{"id": "11", "key": "country"}], "events": [{"id": "21", "key": "bought", "experimentIds": ["1"]}],
        "typedAudiences": [
            {"id": "de", "name": "Germans", "conditions": ["or", country]},
            {"id": "odd", "name": "Odd", "conditions": ["not", ["and", {"type": "custom_attribute", "name": "age", "match": "gt", "value": 1}, ["or", country]]]},
            {"id": "empty", "name": "Empty", "conditions": ""},
        ],
        "experiments": [
            rule("1", "exp", 10_000, json!({"audienceConditions": ["or", "de"], "forcedVariations": {"friend": "off"}})),
            rule("2", "bandit", 0, json!({"cmab": {"attributeIds": ["11"], "trafficAllocation": 10_000}})),
            rule("3", "paused", 10_000, json!({"status": "Paused"})),
        ],
        "featureFlags": [
            {"id": "f1", "key": "flag", "rolloutId": "r1", "experimentIds": ["1"],
             "variables": [{"id": "v1", "key": "size", "type": "integer", "defaultValue": "1"}, {"id": "v2", "key": "bad", "type": "json", "defaultValue": "[1]"}]},
            {"id": "f2", "key": "smart", "rolloutId": "", "experimentIds": ["2"], "variables": []},
            {"id": "f3", "key": "old", "rolloutId": "", "experimentIds": ["3", "404"], "variables": []},
            {"id": "f4", "key": "odd", "rolloutId": "r2", "experimentIds": [], "variables": []},
        ],
        "rollouts": [
            {"id": "r1", "experiments": [rule("5", "half", 0, json!({"audienceIds": ["de"]})), rule("6", "default-6", 10_000, json!({}))]},
            {"id": "r2", "experiments": [rule("7", "odd-rule", 10_000, json!({"audienceIds": ["odd"]}))]},
        ],
    })
}

fn project(rules: EvaluationRules) -> Project {
    Project::parse(datafile().to_string().as_bytes(), rules).unwrap()
}

/// The inputs of a decision, owned.
#[derive(Default)]
struct Given {
    attributes: BorrowedObject<'static>,
    forced: Vec<ForcedDecision>,
    overrides: Vec<(Box<str>, Box<str>)>,
    profile: Option<Profile>,
    predictions: HashMap<Box<str>, Predicted>,
    options: Options,
}

impl Given {
    fn of(attributes: Value) -> Self {
        Self {
            attributes: attributes.as_object().unwrap().clone().into(),
            options: Options::parse(["INCLUDE_REASONS"]).unwrap(),
            ..Self::default()
        }
    }

    fn inputs<'a>(&'a self, user_id: &'a str) -> Inputs<'a> {
        Inputs {
            user_id,
            attributes: &self.attributes,
            segments: &[],
            forced: &self.forced,
            overrides: &self.overrides,
            profile: self.profile.as_ref(),
            predictions: &self.predictions,
            options: self.options,
        }
    }
}

fn came_out(project: &Project, flag: &str, user: &str, given: &Given) -> (String, String, bool) {
    let decided = decide(project, flag, &given.inputs(user));
    (
        decided.rule_key.to_owned(),
        decided.variation_key.to_owned(),
        decided.is_enabled,
    )
}

fn out(rule: &str, variation: &str, is_enabled: bool) -> (String, String, bool) {
    (rule.to_owned(), variation.to_owned(), is_enabled)
}

#[test]
fn an_experiment_comes_before_the_rollout() {
    let project = project(Document.rules());
    let german = Given::of(json!({"country": "DE"}));
    assert_eq!(
        came_out(&project, "flag", "u", &german),
        out("exp", "on", true)
    );
    let other = Given::of(json!({"country": "FR"}));
    assert_eq!(
        came_out(&project, "flag", "u", &other),
        out("default-6", "on", true)
    );
}

#[test]
fn a_bad_variable_is_told_and_the_rest_is_answered() {
    let project = project(Document.rules());
    let mut given = Given::of(json!({"country": "DE"}));
    given.options = Options::default();
    let decided = decide(&project, "flag", &given.inputs("u"));
    assert_eq!(decided.variables, [("size", "5"), ("bad", "{}")]);
    assert_eq!(
        decided.reasons,
        ["Variable value for key \"bad\" is invalid or wrong type."]
    );
}

#[test]
fn reasons_are_told_in_the_agents_words_to_who_asks() {
    let project = project(Document.rules());
    let decided = decide(
        &project,
        "flag",
        &Given::of(json!({"country": "FR"})).inputs("u"),
    );
    assert_eq!(
        decided.reasons[1..],
        [
            "Audiences for experiment exp collectively evaluated to false.",
            "User \"u\" does not meet conditions to be in experiment \"exp\".",
            "User \"u\" does not meet conditions for targeting rule 1.",
            "Audiences for experiment default-6 collectively evaluated to true.",
            "User \"u\" meets conditions for targeting rule \"Everyone Else\".",
        ]
    );
    let unknown = decide(&project, "none", &Given::default().inputs("u"));
    assert_eq!(unknown.reasons, ["No flag was found for key \"none\"."]);
    assert!(!unknown.is_known && !unknown.is_enabled);
}

#[test]
fn what_is_chosen_by_hand_asks_no_audience() {
    let project = project(Document.rules());
    let mut given = Given::of(json!({}));
    assert_eq!(
        came_out(&project, "flag", "friend", &given),
        out("exp", "off", false)
    );
    given.overrides = vec![("exp".into(), "on".into())];
    assert_eq!(
        came_out(&project, "flag", "friend", &given),
        out("exp", "on", true)
    );
    given.forced = vec![ForcedDecision {
        flag_key: "flag".into(),
        rule_key: None,
        variation_key: "off".into(),
    }];
    assert_eq!(
        came_out(&project, "flag", "friend", &given),
        out("", "off", false)
    );
}

#[test]
fn a_profile_is_read_before_the_audience_and_written_after_the_bucket() {
    let project = project(Document.rules());
    let mut given = Given::of(json!({}));
    given.profile = Some([("1".into(), "12".into())].into());
    assert_eq!(
        came_out(&project, "flag", "u", &given),
        out("exp", "off", false)
    );
    given.options.ignore_user_profile = true;
    assert_eq!(
        came_out(&project, "flag", "u", &given),
        out("default-6", "on", true)
    );
    let fresh = Given::of(json!({"country": "DE"}));
    let decided = decide(&project, "flag", &fresh.inputs("u"));
    assert_eq!(decided.remembers, Some(("1", "11")));
}

#[test]
fn a_bandit_asks_for_its_prediction_and_says_when_it_failed() {
    let project = project(Document.rules());
    let mut given = Given::of(json!({}));
    let wants = decide(&project, "smart", &given.inputs("u")).wants.unwrap();
    assert_eq!(wants.experiment_id, "2");
    assert_eq!(wants.attributes, [("country".into(), "11".into())]);
    let predicted = Predicted::Variation {
        id: "22".into(),
        uuid: "c".into(),
    };
    given.predictions.insert("2".into(), predicted);
    assert_eq!(
        came_out(&project, "smart", "u", &given),
        out("bandit", "off", false)
    );
    given.predictions.insert("2".into(), Predicted::Failed);
    let decided = decide(&project, "smart", &given.inputs("u"));
    assert_eq!(
        decided.reasons[0],
        "Failed to fetch CMAB data for experiment bandit."
    );
    assert!(decided.impressions.is_empty() && decided.rule_key.is_empty());
}

#[test]
fn the_original_agent_runs_what_is_paused_and_gives_up_at_the_first_unknown() {
    let given = Given::of(json!({"country": "FR"}));
    let [document, agent] = [Document.rules(), Agent.rules()].map(project);
    assert_eq!(came_out(&document, "old", "u", &given), out("", "", false));
    assert_eq!(
        came_out(&agent, "old", "u", &given),
        out("paused", "on", true)
    );
    // not (unknown and false)
    assert_eq!(
        came_out(&document, "odd", "u", &given),
        out("odd-rule", "on", true)
    );
    assert_eq!(came_out(&agent, "odd", "u", &given), out("", "", false));
}

#[test]
fn activate_answers_for_keys_that_are_not_there_too() {
    let project = project(Document.rules());
    let given = Given::of(json!({"country": "DE"}));
    let item = activate::experiment(&project, "exp", &given.inputs("u"));
    assert_eq!(
        (item.variation_key, item.kind, item.is_enabled),
        ("on", "experiment", true)
    );
    assert_eq!(item.impression.unwrap().rule_type, "experiment");
    let item = activate::feature(&project, "flag", &given.inputs("u"));
    assert_eq!(
        (&*item.experiment_key, item.variation_key, item.kind),
        ("exp", "on", "feature")
    );
    assert_eq!(
        activate::experiment(&project, "no", &given.inputs("u")).error,
        "experimentKey not found"
    );
    assert_eq!(
        activate::feature(&project, "no", &given.inputs("u")).error,
        "featureKey not found"
    );
}

/// Contract: decision-agent 6 4
#[test]
fn events_have_the_shape_that_the_backend_takes() {
    let project = project(Document.rules());
    let given =
        Given::of(json!({"country": "DE", "unknown": 1, "$opt_user_agent": "x", "huge": 1e300}));
    let decided = decide(&project, "flag", &given.inputs("u"));
    let moment = Moment {
        user_id: "u",
        attributes: &given.attributes,
        now_ms: 9,
        uuid: "id",
    };
    let visitor = event::impression(&project, &decided.impressions[0], &moment);
    let tags = json!({"revenue": 12.7, "value": 3, "x": "y"});
    let bought = event::conversion(&project, "bought", tags.as_object().unwrap(), &moment).unwrap();
    assert!(event::conversion(&project, "no", &Map::new(), &moment).is_none());
    let queued = QueuedVisitor::read(&visitor).unwrap();
    assert_eq!((&*queued.user_id, queued.at_ms), ("u", 9));
    let seen = queued.impression.unwrap();
    let variation = (&*seen.flag_key, &*seen.rule_key, &*seen.variation_key);
    assert_eq!(variation, ("flag", "exp", "on"));
    assert_eq!((&*seen.rule_type, seen.is_enabled), ("feature-test", true));
    assert_eq!(queued.attributes[0], ("country".to_owned(), json!("DE")));
    let queued = QueuedVisitor::read(&bought).unwrap();
    assert_eq!((&*queued.event_key, queued.impression), ("bought", None));
    assert_eq!(QueuedVisitor::read(b"{}"), None);
    let batch: Value = serde_json::from_slice(
        &EventHead::new(&project, Document.event_client()).batch([&*visitor, &*bought]),
    )
    .unwrap();
    assert_eq!(
        (
            &batch["account_id"],
            &batch["project_id"],
            &batch["revision"],
            &batch["region"]
        ),
        (&json!("a"), &json!("p"), &json!("7"), &json!("US"))
    );
    assert_eq!(
        batch["visitors"][0]["snapshots"][0]["decisions"][0],
        json!({"variation_id": "11", "campaign_id": "layer-1", "experiment_id": "1", "metadata": {
            "flag_key": "flag", "rule_key": "exp", "rule_type": "feature-test", "variation_key": "on", "enabled": true}})
    );
    let keys: Vec<&Value> = batch["visitors"][0]["attributes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| &a["entity_id"])
        .collect();
    assert_eq!(keys, ["11", "$opt_user_agent", "$opt_bot_filtering"]);
    assert_eq!(
        batch["visitors"][1]["snapshots"][0]["events"][0],
        json!({"entity_id": "21", "key": "bought", "timestamp": 9, "uuid": "id", "tags": tags, "revenue": 12, "value": 3})
    );
}

#[test]
fn a_rollout_tells_nobody_unless_the_project_wants_it() {
    let mut written = datafile();
    let given = Given::of(json!({}));
    for (sends, expected) in [(false, 0), (true, 1)] {
        written["sendFlagDecisions"] = sends.into();
        let project = Project::parse(written.to_string().as_bytes(), Document.rules()).unwrap();
        let decided = decide(&project, "flag", &given.inputs("u"));
        assert_eq!(decided.impressions.len(), expected);
    }
}

#[test]
fn the_overview_names_audiences_in_words() {
    let view: Value = serde_json::from_slice(&project(Document.rules()).overview()).unwrap();
    assert_eq!(view["experimentsMap"]["exp"]["audiences"], "\"Germans\"");
    assert_eq!(
        view["experimentsMap"]["exp"]["variationsMap"]["on"]["variablesMap"]["size"]["value"],
        "5"
    );
    assert_eq!(
        view["featuresMap"]["flag"]["deliveryRules"][1]["key"],
        "default-6"
    );
    assert_eq!(
        view["events"][0],
        json!({"id": "21", "key": "bought", "experimentIds": ["1"]})
    );
}

#[test]
fn a_datafile_that_no_agent_could_read_is_refused() {
    for (bad, told) in [
        (json!({"version": "5"}), "version \"5\""),
        (json!({"version": 4}), "cannot be read"),
        (json!({"version": "4", "experiments": {}}), "cannot be read"),
        (
            json!({"version": "4", "integrations": [{"host": "h"}]}),
            "no `key`",
        ),
        (json!("4"), "cannot be read"),
    ] {
        let error = Project::parse(bad.to_string().as_bytes(), Document.rules()).unwrap_err();
        assert!(error.to_string().contains(told), "{error}");
    }
    assert!(
        Project::parse(
            br#"{"version":"4","experiments":null,"other":1}"#,
            Document.rules()
        )
        .is_ok()
    );
}

#[test]
fn conditions_of_any_depth_are_unknown_and_harm_nothing() {
    let mut written = datafile();
    let deep = format!("{}{}", "[\"not\",".repeat(10_000), "]".repeat(10_000));
    written["typedAudiences"][0]["conditions"] = deep.into();
    let project = Project::parse(written.to_string().as_bytes(), Document.rules()).unwrap();
    let given = Given::of(json!({"country": "DE"}));
    assert_eq!(
        came_out(&project, "flag", "u", &given),
        out("default-6", "on", true)
    );
    let nested = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    let text = datafile()
        .to_string()
        .replace("\"conditions\":\"\"", &format!("\"conditions\":{nested}"));
    assert!(Project::parse(text.as_bytes(), Document.rules()).is_err());
}

proptest! {
    #[test]
    fn every_user_gets_an_answer(user in ".{0,20}", country in ".{0,4}", number in any::<f64>()) {
        for rules in [Document.rules(), Agent.rules()] {
            let project = project(rules);
            let given = Given::of(json!({"country": country, "age": number, "$opt_bucketing_id": number}));
            for flag in ["flag", "smart", "old", "odd"] {
                let first = came_out(&project, flag, &user, &given);
                prop_assert_eq!(first, came_out(&project, flag, &user, &given));
            }
        }
    }
}
