//! The order of candidates: trials, sessions, exploration, and who comes first of equals.

use serde_json::json;

use super::{WIDE, catalog, inputs, mapping, providers, request};
use crate::models::operation::Operation;
use crate::models::request::{ModelRequest, Strategy};
use crate::models::routing::catalog::Catalog;
use crate::models::routing::health::{Health, HealthStats};
use crate::models::routing::plan::{PlanInputs, plan};
use crate::models::routing::resolve::resolve;
use crate::models::routing::score::{Facts, score_candidates};

/// Providers `p0`, `p1`, … of these prices; their candidates have the numbers 0, 1, ….
pub(super) fn priced(prices: &[&str]) -> Catalog {
    let all = prices.iter().enumerate();
    let all = all.map(|(at, price)| mapping(&format!("p{at}"), price, json!({})));
    catalog(json!([{"id": "m", "providers": all.collect::<Vec<_>>()}]))
}

/// The numbers of the candidates, in the order in which they are tried.
fn order(catalog: &Catalog, request: &ModelRequest, inputs: &PlanInputs<'_>) -> Vec<usize> {
    let on = providers().set(super::NAMES);
    let resolved = resolve("m", Operation::Chat, catalog, &on, &[], 0).unwrap();
    let planned = plan(request, resolved, inputs, |_| Some(WIDE), |_| 1.0).unwrap();
    planned.attempts.iter().map(|it| it.index).collect()
}

/// The binding of a session to the mapping of this number.
pub(super) fn bound_to(catalog: &Catalog, number: usize) -> Option<u64> {
    Some(catalog.candidates()[number].mapping.id)
}

pub(super) fn fail(health: &Health, candidate: usize, now_ms: u64) {
    (0..3).for_each(|_| health.begin(candidate, true, now_ms).record_failure(now_ms));
}

pub(super) fn at(health: &Health, now_ms: u64) -> PlanInputs<'_> {
    PlanInputs {
        now_ms,
        ..inputs(health)
    }
}

#[test]
fn one_candidate_that_failed_goes_first_to_be_tried_and_the_others_last() {
    let (catalog, health) = (priced(&["1", "2", "3", "4"]), Health::new(4));
    fail(&health, 0, 0);
    fail(&health, 1, 100);
    let any = request(json!({}));
    assert_eq!(order(&catalog, &any, &at(&health, 4_000)), [2, 3, 0]);
    assert_eq!(order(&catalog, &any, &at(&health, 6_000)), [0, 2, 3]);
    let trial = health.begin(0, false, 6_000);
    assert_eq!(order(&catalog, &any, &at(&health, 6_000)), [1, 2, 3]);
    trial.record_answer(None, 6_500);
    assert_eq!(order(&catalog, &any, &at(&health, 6_500)), [0, 2, 3]);
}

#[test]
fn a_candidate_that_would_not_come_first_is_not_tried_out() {
    let (catalog, health) = (priced(&["1", "2", "3"]), Health::new(3));
    fail(&health, 1, 0);
    assert_eq!(
        order(&catalog, &request(json!({})), &at(&health, 9_000)),
        [0, 2, 1]
    );
}

#[test]
fn where_all_have_failed_the_next_due_goes_first() {
    let (catalog, health) = (priced(&["1", "2", "3"]), Health::new(3));
    (0..3).for_each(|it| fail(&health, it, 200 - 100 * it as u64));
    assert_eq!(
        order(&catalog, &request(json!({})), &at(&health, 1_000)),
        [2, 1, 0]
    );
}

#[test]
fn a_client_that_wants_no_fallback_tries_nothing_out() {
    let (catalog, health) = (priced(&["1", "2"]), Health::new(2));
    fail(&health, 0, 0);
    let alone = |preferred| PlanInputs {
        no_fallback: true,
        preferred,
        exploration: 1.0,
        random: (0.0, 0.0),
        ..at(&health, 6_000)
    };
    assert_eq!(order(&catalog, &request(json!({})), &alone(None)), [1]);
    assert_eq!(
        order(&catalog, &request(json!({})), &alone(bound_to(&catalog, 0))),
        [1]
    );
}

#[test]
fn a_session_tries_its_own_provider_out_and_no_other() {
    let (catalog, health) = (priced(&["1", "2", "3"]), Health::new(3));
    fail(&health, 0, 0);
    let session = |preferred, now_ms| PlanInputs {
        preferred: bound_to(&catalog, preferred),
        has_session: true,
        ..at(&health, now_ms)
    };
    let any = request(json!({}));
    assert_eq!(order(&catalog, &any, &session(0, 1_000)), [1, 2, 0]);
    assert_eq!(order(&catalog, &any, &session(0, 6_000)), [0, 1, 2]);
    assert_eq!(order(&catalog, &any, &session(2, 6_000)), [2, 1, 0]);
}

#[test]
fn a_session_leaves_a_provider_that_fails_too_often() {
    let (catalog, health) = (priced(&["1", "2", "3"]), Health::new(3));
    let session = |now_ms| PlanInputs {
        preferred: bound_to(&catalog, 1),
        has_session: true,
        ..at(&health, now_ms)
    };
    let any = request(json!({}));
    assert_eq!(order(&catalog, &any, &session(0)), [1, 0, 2]);
    for number in 0..30 {
        let attempt = health.begin(1, false, 0);
        if number % 4 == 0 {
            attempt.record_failure(0);
        } else {
            attempt.record_answer(None, 0);
        }
    }
    assert_eq!(order(&catalog, &any, &session(0)), [0, 2, 1]);
}

#[test]
fn a_session_moves_for_a_much_lower_price_unless_its_prompt_is_cached() {
    let mapping = |provider: &str, price: &str| {
        mapping(provider, price, json!({"cached_input_price": "0.1"}))
    };
    let catalog =
        catalog(json!([{"id": "m", "providers": [mapping("p0", "1"), mapping("p1", "5")]}]));
    let health = Health::new(2);
    let long = "x".repeat(400_000);
    let asked = |more| {
        let mut body = json!({"messages": [{"role": "user", "content": long}]});
        body.as_object_mut()
            .unwrap()
            .extend(serde_json::Map::from_iter(more));
        request(body)
    };
    let session = |cached_tokens| PlanInputs {
        preferred: bound_to(&catalog, 1),
        cached_tokens,
        has_session: true,
        ..inputs(&health)
    };
    let plain = asked(None);
    assert_eq!(order(&catalog, &plain, &session(0)), [0, 1]);
    assert_eq!(order(&catalog, &plain, &session(100_000)), [1, 0]);
    // Who asks for speed keeps its provider whatever it costs.
    let fast = asked(Some(("routing".to_owned(), json!("latency"))));
    assert_eq!(order(&catalog, &fast, &session(0)), [1, 0]);
}

#[test]
fn a_limit_puts_a_candidate_last_until_it_ends() {
    let (catalog, health) = (priced(&["1", "2"]), Health::new(2));
    health.rest(0, 30_000);
    assert_eq!(
        order(&catalog, &request(json!({})), &at(&health, 29_000)),
        [1, 0]
    );
    assert_eq!(
        order(&catalog, &request(json!({})), &at(&health, 30_000)),
        [0, 1]
    );
}

#[test]
fn exploration_costs_its_share_and_no_more() {
    let (catalog, health) = (priced(&["1", "2.5", "4"]), Health::new(3));
    let any = request(json!({}));
    let mut explored = [0_u32; 3];
    let calls = 10_000;
    for call in 0..calls {
        // Every call would explore, if only numbers counted.
        let random = (0.0, f64::from(call % 7) / 7.0);
        let inputs = PlanInputs {
            exploration: 0.05,
            random,
            ..at(&health, 1_000)
        };
        explored[order(&catalog, &any, &inputs)[0]] += 1;
    }
    assert_eq!(explored[2], 0, "four times the price is never explored");
    let share = 2.5 * f64::from(explored[1]) / f64::from(calls);
    assert!((0.045..=0.05).contains(&share), "{share}");
}

#[test]
fn exploration_keeps_to_its_share_of_requests_too() {
    let (catalog, health) = (priced(&["1", "0.99"]), Health::new(2));
    let any = request(json!({}));
    let explored = (0..10_000).filter(|call| {
        let random = (f64::from(call % 1000) / 1000.0, 0.5);
        let inputs = PlanInputs {
            exploration: 0.01,
            random,
            ..at(&health, 1_000)
        };
        order(&catalog, &any, &inputs)[0] == 0
    });
    let explored = explored.count();
    assert!((80..=100).contains(&explored), "{explored}");
}

#[test]
fn neither_sessions_nor_auto_nor_who_cools_down_is_explored() {
    let (catalog, health) = (priced(&["1", "1.5"]), Health::new(2));
    let any = request(json!({}));
    let always = PlanInputs {
        exploration: 1.0,
        random: (0.0, 0.99),
        ..at(&health, 1_000)
    };
    (0..3).for_each(|_| {
        order(
            &catalog,
            &any,
            &PlanInputs {
                random: (1.0, 0.0),
                ..always
            },
        );
    });
    let session = PlanInputs {
        has_session: true,
        ..always
    };
    assert_eq!(order(&catalog, &any, &session), [0, 1]);
    assert_eq!(order(&catalog, &any, &always), [1, 0]);
    fail(&health, 1, 900);
    assert_eq!(order(&catalog, &any, &always), [0, 1]);
}

#[test]
fn of_equals_in_speed_the_one_that_came_first_stays() {
    let (catalog, health) = (priced(&["1", "1"]), Health::new(2));
    let fast = request(json!({"stream": true, "routing": "latency"}));
    let mut now_ms = 0;
    let mut measure = |candidate: usize, latency_ms: u64| {
        for _ in 0..100 {
            now_ms += 10;
            let mut attempt = health.begin(candidate, true, now_ms);
            attempt.record_content(now_ms + latency_ms);
            attempt.record_answer(None, now_ms + latency_ms);
        }
        order(&catalog, &fast, &at(&health, now_ms + latency_ms))
    };
    measure(0, 500);
    assert_eq!(measure(1, 300), [1, 0]);
    assert_eq!(measure(0, 300), [1, 0]);
    assert_eq!(measure(0, 150), [0, 1]);
    assert_eq!(measure(1, 150), [0, 1]);
}

/// The candidates in the order of a session whose calls have shown these shares of cached tokens, in hundredths.
fn session_order(cached: [Option<u64>; 2]) -> Vec<usize> {
    let models = json!([{"id": "m", "providers": [
        mapping("p0", "2", json!({"output_price": "8"})),
        mapping("p1", "3", json!({"output_price": "8", "cached_input_price": "0.3"}))]}]);
    let (catalog, health) = (catalog(models), Health::new(2));
    for (candidate, cached) in cached.into_iter().enumerate() {
        for call in cached
            .iter()
            .flat_map(|cached| std::iter::repeat_n(*cached, 20))
        {
            let attempt = health.begin(candidate, true, 0);
            attempt.record_tokens([10_000, 100 * call, 0, 500], 0);
        }
    }
    let session = PlanInputs {
        has_session: true,
        ..at(&health, 1_000)
    };
    order(&catalog, &request(json!({})), &session)
}

#[test]
fn the_price_of_a_session_is_that_with_cached_tokens() {
    let (catalog, health) = (priced(&["1", "2"]), Health::new(2));
    assert_eq!(
        order(&catalog, &request(json!({})), &at(&health, 0)),
        [0, 1]
    );
    assert_eq!(
        session_order([None, None]),
        [1, 0],
        "half of the prompt is assumed to be cached"
    );
    assert_eq!(session_order([None, Some(10)]), [0, 1]);
    assert_eq!(session_order([None, Some(90)]), [1, 0]);
    assert_eq!(
        session_order([Some(10), None]),
        [0, 1],
        "calls of a model are alike"
    );
    assert_eq!(session_order([Some(0), Some(90)]), [1, 0]);
}

#[test]
fn a_long_prompt_has_the_prices_of_its_length() {
    let models = json!([{"id": "m", "providers": [
        mapping("p0", "2", json!({"long_context": [{"above_tokens": 20_000, "input_price": "9"}]})),
        mapping("p1", "3", json!({}))]}]);
    let (catalog, health) = (catalog(models), Health::new(2));
    let prompt =
        |bytes| request(json!({"messages": [{"role": "user", "content": "a".repeat(bytes)}]}));
    assert_eq!(order(&catalog, &prompt(70_000), &at(&health, 0)), [0, 1]);
    assert_eq!(order(&catalog, &prompt(90_000), &at(&health, 0)), [1, 0]);
}

/// Contract: model-gateway 2.1 routing 1
#[test]
fn a_strategy_has_nine_tenths_of_the_weight_and_uptime_the_rest() {
    let fact = |price, uptime, latency_ms, throughput| Facts {
        price: Some(price),
        metrics: Some(HealthStats {
            uptime,
            latency_ms,
            throughput,
        }),
        priority: 1.0,
    };
    let best = fact(1.0, 100.0, 100.0, 50.0);
    // Each is twice as bad in one factor.
    let dear = fact(2.0, 100.0, 100.0, 50.0);
    let late = fact(1.0, 100.0, 200.0, 50.0);
    let slow = fact(1.0, 100.0, 100.0, 25.0);
    let broken = fact(1.0, 50.0, 100.0, 50.0);
    let scored = |strategy, other: Facts| {
        let scores = score_candidates(&[best, other], super::WEIGHTS, Some(strategy), true);
        assert!(scores[0].abs() < 1e-9);
        scores[1]
    };
    for (strategy, worse, same) in [
        (Strategy::Price, dear, [late, slow]),
        (Strategy::Latency, late, [dear, slow]),
        (Strategy::Throughput, slow, [dear, late]),
    ] {
        assert!((scored(strategy, worse) - 0.9).abs() < 1e-9, "{strategy:?}");
        for other in same {
            assert!(scored(strategy, other).abs() < 1e-9, "{strategy:?}");
        }
        let penalty = (45.0_f64 / 95.0 * 5.0).powi(2);
        let uptime = scored(strategy, broken) - penalty;
        assert!((uptime - 0.1).abs() < 1e-9, "{strategy:?} {uptime}");
    }
}
