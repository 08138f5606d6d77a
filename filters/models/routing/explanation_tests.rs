//! What a plan tells of itself.

use serde_json::{Value, json};

use super::order::{at, bound_to, fail, priced};
use super::{WEIGHTS, WIDE, catalog, mapping, providers, request};
use crate::fault::Fault;
use crate::models::operation::Operation;
use crate::models::request::ModelRequest;
use crate::models::routing::allowed::by_rules;
use crate::models::routing::catalog::Catalog;
use crate::models::routing::explanation::{Explanation, SessionNote, check_debug};
use crate::models::routing::health::Health;
use crate::models::routing::plan::{PlanInputs, RoutePlan, WhatExplains, plan};
use crate::models::routing::providers::ProviderSet;
use crate::models::routing::resolve::{Resolved, resolve};
use crate::models::routing::score::Weights;

fn resolved(catalog: &Catalog) -> Resolved {
    let on = providers().set(super::NAMES);
    resolve("m", Operation::Chat, catalog, &on, &[], 0).unwrap()
}

fn planned(catalog: &Catalog, request: &ModelRequest, inputs: &PlanInputs<'_>) -> RoutePlan {
    let resolved = resolved(catalog);
    plan(request, resolved, inputs, |_| Some(WIDE), |_| 1.0).unwrap()
}

fn written(plan: &RoutePlan, explanation: &Explanation) -> Value {
    let mut text = Vec::new();
    explanation.write(&plan.left_out, &mut text);
    serde_json::from_slice(&text).unwrap()
}

/// What the plan of a request says of itself.
fn explained(catalog: &Catalog, request: &ModelRequest, inputs: PlanInputs<'_>) -> Value {
    let explains = PlanInputs {
        explains: WhatExplains::PlanAndFaults,
        ..inputs
    };
    let told = planned(catalog, request, &explains);
    let explanation = told.explanation.as_ref().unwrap();
    written(&told, explanation)
}

fn route(fault: &Fault) -> Value {
    let body: Value = serde_json::from_slice(&fault.compatible_body()).unwrap();
    body["metadata"]["route"].clone()
}

#[test]
fn an_explanation_says_what_each_candidate_is_worth_and_why_others_are_left_out() {
    let models = json!([{"id": "m", "providers": [
        mapping("p0", "1", json!({})), mapping("p1", "2", json!({})), mapping("p2", "3", json!({})),
        mapping("p3", "1", json!({"max_output": 10})), mapping("p4", "1", json!({}))]}]);
    let (catalog, health) = (catalog(models), Health::new(5));
    fail(&health, 0, 0);
    let attempt = health.begin(1, true, 0);
    attempt.record_answer(Some(40.0), 1);
    let mut resolved = resolved(&catalog);
    by_rules(&mut resolved, |it| {
        (it.index == 4).then_some("the provider")
    })
    .unwrap();
    let inputs = PlanInputs {
        explains: WhatExplains::PlanAndFaults,
        attempts: 2,
        ..at(&health, 2_000)
    };
    let asked = request(json!({"max_tokens": 50}));
    let planned = plan(&asked, resolved, &inputs, |_| Some(WIDE), |_| 1.0).unwrap();
    let read = written(&planned, planned.explanation.as_ref().unwrap());
    let candidates = read["candidates"].as_array().unwrap();
    let places: Vec<_> = candidates
        .iter()
        .map(|it| json!([it["provider"], it["is_tried"], it["price"]]))
        .collect();
    let expected = json!([["p1", true, 2], ["p2", true, 3], ["p0", false, 1]]);
    assert_eq!(json!(places), expected);
    let rate = candidates[0]["throughput"].as_f64().unwrap();
    assert!((34.0..46.0).contains(&rate), "{rate}");
    assert_eq!(candidates[2]["readiness"], "later");
    assert_eq!(candidates[2]["ready_in_ms"], 3_000);
    let left_out = json!([
        {"provider": "p4", "model": "m", "param": "model", "reason": "is forbidden by the rules of this API key"},
        {"provider": "p3", "model": "m", "param": "max_tokens", "reason": "answers at most 10 tokens"}]);
    assert_eq!(read["left_out"], left_out);
    let head = json!([read["strategy"], read["max_attempts"], read["first_by"]]);
    assert_eq!(head, json!(["auto", 2, "score"]));
    assert!(read.get("session").is_none());
}

#[test]
fn the_parts_of_a_score_add_up_to_it() {
    let (catalog, health) = (priced(&["2", "1", "3"]), Health::new(3));
    for (candidate, latency_ms) in [(0, 200), (1, 900), (2, 400)] {
        let mut attempt = health.begin(candidate, true, 0);
        attempt.record_content(latency_ms);
        attempt.record_answer(Some(30.0), latency_ms);
    }
    for failed in [2, 2] {
        health.begin(failed, true, 0).record_failure(0);
    }
    let inputs = PlanInputs {
        weights: Weights {
            latency: 0.3,
            ..WEIGHTS
        },
        ..at(&health, 1_000)
    };
    for more in [
        json!({}),
        json!({"routing": "price"}),
        json!({"routing": "throughput", "stream": true}),
        json!({"routing": "latency", "stream": true}),
    ] {
        // The second time the first one was first before.
        for _ in 0..2 {
            let read = explained(&catalog, &request(more.clone()), inputs);
            for candidate in read["candidates"].as_array().unwrap() {
                let parts = candidate["score_parts"].as_object().unwrap();
                assert_eq!(parts.len(), 7, "{candidate}");
                let sum: f64 = parts.values().map(|part| part.as_f64().unwrap()).sum();
                let score = candidate["score"].as_f64().unwrap();
                assert!((sum - score).abs() < 0.005, "{sum} {candidate}");
            }
        }
        let read = explained(&catalog, &request(more.clone()), inputs);
        let first = &read["candidates"][0]["score_parts"];
        let is_about_speed = more.get("routing").is_none_or(|it| it != "price");
        let was_first = first["was_first"].as_f64().unwrap();
        assert_eq!(was_first < 0.0, is_about_speed, "{read}");
        let strategy = more
            .get("routing")
            .map_or("auto", |it| it.as_str().unwrap());
        assert_eq!(read["strategy"], strategy);
        let worst = read["candidates"].as_array().unwrap();
        let worst = worst.iter().find(|it| it["provider"] == "p2").unwrap();
        assert!(
            worst["score_parts"]["penalty"].as_f64() > Some(0.0),
            "{worst}"
        );
    }
}

#[test]
fn the_first_one_says_what_has_put_it_there() {
    let (catalog, health) = (priced(&["1", "2", "3"]), Health::new(3));
    let any = request(json!({}));
    let first = |inputs| {
        let read = explained(&catalog, &any, inputs);
        let first = &read["candidates"][0];
        json!([first["provider"], read["first_by"], first["has_own_key"]])
    };
    let usual = at(&health, 0);
    assert_eq!(first(usual), json!(["p0", "score", false]));
    let session = PlanInputs {
        has_session: true,
        preferred: bound_to(&catalog, 1),
        ..usual
    };
    assert_eq!(first(session), json!(["p1", "session", false]));
    let keyed: &ProviderSet = &providers().set(["p2"]);
    let own = PlanInputs { keyed, ..session };
    assert_eq!(first(own), json!(["p2", "score", true]));
    let explored = PlanInputs {
        exploration: 1.0,
        random: (0.0, 0.0),
        ..usual
    };
    // What is explored has to be saved first.
    let firsts: Vec<Value> = (0..4).map(|_| first(explored)).collect();
    let drawn = json!(["p1", "exploration", false]);
    assert!(firsts.contains(&drawn), "{firsts:?}");
    fail(&health, 0, 0);
    let due = at(&health, 6_000);
    assert_eq!(first(due), json!(["p0", "trial", false]));
    let alone = priced(&["1"]);
    let read = explained(&alone, &any, due);
    assert_eq!(read["candidates"].as_array().unwrap().len(), 1);
    assert_eq!(read["first_by"], "score");
}

#[test]
fn a_session_says_where_it_is_bound() {
    let (catalog, health) = (priced(&["1", "2"]), Health::new(2));
    let inputs = PlanInputs {
        explains: WhatExplains::PlanAndFaults,
        ..at(&health, 0)
    };
    let planned = planned(&catalog, &request(json!({})), &inputs);
    let told = |bound_to, cached_tokens| {
        let mut explanation = planned.explanation.clone().unwrap();
        explanation.session = Some(SessionNote {
            bound_to,
            cached_tokens,
        });
        written(&planned, &explanation)["session"].clone()
    };
    let bound_to = catalog.candidates().get(1).cloned();
    let bound = json!({"provider": "p1", "model": "m", "cached_tokens": 900});
    assert_eq!(told(bound_to, 900), bound);
    assert_eq!(told(None, 0), json!({"provider": null}));
}

#[test]
fn a_plan_is_the_same_whether_it_is_explained_or_not() {
    let catalog = priced(&["1", "1", "2"]);
    let bodies = [
        json!({}),
        json!({"stream": true, "routing": "latency"}),
        json!({"routing": "price"}),
    ];
    let tried = |explains: WhatExplains| {
        let health = Health::new(3);
        fail(&health, 2, 0);
        let mut all = Vec::new();
        for (at_ms, body) in (0..).step_by(2_000).zip(bodies.iter().cycle()).take(9) {
            let inputs = PlanInputs {
                explains,
                ..at(&health, at_ms)
            };
            let plan = planned(&catalog, &request(body.clone()), &inputs);
            assert_eq!(
                plan.explanation.is_some(),
                explains != WhatExplains::Nothing
            );
            all.extend(plan.attempts.iter().map(|it| it.index));
        }
        all
    };
    let expected = tried(WhatExplains::Nothing);
    assert_eq!(tried(WhatExplains::Plan), expected);
    assert_eq!(tried(WhatExplains::PlanAndFaults), expected);
}

#[test]
fn a_request_that_cannot_be_planned_is_told_what_was_left_out_if_it_asks() {
    let models = json!([{"id": "m", "providers": [
        mapping("p0", "1", json!({"parameters": {"refuse": ["stop"]}})), mapping("p1", "1", json!({}))]}]);
    let (catalog, health) = (catalog(models), Health::new(2));
    let refused = |more: Value, explains: WhatExplains| {
        let mut resolved = resolved(&catalog);
        by_rules(&mut resolved, |it| (it.index == 1).then_some("the model")).unwrap();
        let inputs = PlanInputs {
            explains,
            ..at(&health, 0)
        };
        plan(&request(more), resolved, &inputs, |_| Some(WIDE), |_| 1.0).unwrap_err()
    };
    let told = refused(json!({"stop": "a"}), WhatExplains::PlanAndFaults);
    let left_out = json!([
        {"provider": "p1", "model": "m", "param": "model", "reason": "is forbidden by the rules of this API key"},
        {"provider": "p0", "model": "m", "param": "stop", "reason": "takes no `stop`"}]);
    assert_eq!(
        route(&told),
        json!({"candidates": [], "left_out": left_out})
    );
    for explains in [WhatExplains::Nothing, WhatExplains::Plan] {
        let plain = refused(json!({"stop": "a"}), explains);
        assert!(route(&plain).is_null());
        assert_eq!(plain.message, told.message);
    }
}

#[test]
fn the_header_takes_one_value_and_others_are_named() {
    assert_eq!(check_debug(b"route"), Ok(()));
    let key = b"Bearer sk-abcdefghijklmnopqrstuvwxyz0123456789";
    let long = "r".repeat(500);
    for (value, quoted) in [
        (&b""[..], "``"),
        (b"Route", "`Route`"),
        (b"route, cost", "`route, cost`"),
        (b"true", "`true`"),
        (b"\xff", "`\u{fffd}`"),
        (key, "`[removed]`"),
        (long.as_bytes(), "…`"),
    ] {
        let fault = check_debug(value).unwrap_err();
        assert_eq!(
            (fault.status(), fault.param.as_deref()),
            (400, Some("x-weirgate-debug"))
        );
        assert!(fault.message.contains(quoted), "{}", fault.message);
        assert!(
            fault.message.contains("`route` is accepted"),
            "{}",
            fault.message
        );
        assert!(fault.message.len() < 400);
    }
}
