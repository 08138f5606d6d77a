#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::catalog::{Catalog, Mapping};
use super::health::{Health, HealthStats};
use super::plan::{PlanInputs, RoutePlan, WhatExplains, plan};
use super::providers::{ProviderNames, ProviderSet};
use super::resolve::{Resolved, resolve};
use super::score::{Facts, Weights, score_candidates};
use super::wire_limits::{MediaLimits, NO_AUDIO, WireLimits};
use super::{CatalogFile, Date};
use crate::fault::Fault;
use crate::models::front::Front;
use crate::models::fronts::chat_completions::ChatCompletions;
use crate::models::operation::Operation;
use crate::models::request::{ModelRequest, Strategy as Routing};

const WEIGHTS: Weights = Weights {
    price: 0.6,
    uptime: 0.5,
    throughput: 0.05,
    latency: 0.025,
};
const WIDE: WireLimits = WireLimits::WIDEST;

pub(super) fn mapping(provider: &str, price: &str, more: Value) -> Value {
    let mut mapping = json!({"provider": provider, "name": format!("{provider}-up"), "input_price": price, "output_price": price});
    mapping
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    mapping
}

pub(super) fn catalog(models: Value) -> Catalog {
    let written: CatalogFile = serde_json::from_value(json!({ "models": models })).unwrap();
    Catalog::check(written, providers()).unwrap()
}

/// All providers of these tests but `off`.
fn providers() -> ProviderNames {
    ["a", "b", "local"].into_iter().chain(NAMES).collect()
}

fn usual() -> Catalog {
    catalog(json!([
        {"id": "m", "aliases": ["nick"], "providers": [
            mapping("a", "2", json!({"regions": ["eu"], "capabilities": ["streaming", "tools"]})), mapping("b", "1", json!({})), mapping("off", "0.1", json!({}))]},
        {"id": "org/slashed", "providers": [mapping("a", "3", json!({"name": "slashed:8b"}))]},
        {"id": "old", "providers": [mapping("a", "3", json!({"name": "old-up", "deactivated_at": "2020-01-01"}))]},
        {"id": "vec", "type": "embedding", "providers": [mapping("a", "3", json!({"name": "vec-up"}))]},
        {"id": "away", "providers": [mapping("off", "3", json!({}))]},
        {"id": "free", "providers": [mapping("b", "0", json!({"name": "free-up"}))]},
    ]))
}

fn resolved(string: &str) -> Result<Resolved, Fault> {
    resolve(
        string,
        Operation::Chat,
        &usual(),
        &usual().providers().set(["a", "b", "local"]),
        &["m".into(), "free".into()],
        1_800_000_000,
    )
}

fn request(more: Value) -> ModelRequest {
    let mut request = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
    request
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    ChatCompletions.parse(request.to_string().into()).unwrap()
}

fn inputs(health: &Health) -> PlanInputs<'_> {
    PlanInputs {
        attempts: 3,
        weights: WEIGHTS,
        exploration: 0.0,
        random: (0.5, 0.5),
        spread: 0,
        health,
        now_ms: 1000,
        now_s: 0,
        preferred: None,
        cached_tokens: 0,
        has_session: false,
        no_fallback: false,
        is_billed: true,
        keyed: ProviderSet::EMPTY,
        explains: WhatExplains::Nothing,
    }
}

fn order(
    request: &ModelRequest,
    string: &str,
    inputs: &PlanInputs<'_>,
) -> Result<Vec<String>, Fault> {
    let plan = plan(request, resolved(string)?, inputs, |_| Some(WIDE), |_| 1.0)?;
    Ok(plan
        .attempts
        .iter()
        .map(|candidate| candidate.mapping.provider.to_string())
        .collect())
}

#[test]
fn model_strings_name_what_the_table_says() {
    for (string, provider, found) in [
        ("m", None, vec![("m", "a", None), ("m", "b", None)]),
        ("nick", None, vec![("m", "a", None), ("m", "b", None)]),
        ("b/m", Some("b"), vec![("m", "b", None)]),
        ("a/m:eu", Some("a"), vec![("m", "a", Some("eu"))]),
        ("a/a-up", Some("a"), vec![("m", "a", None)]),
        ("org/slashed", None, vec![("org/slashed", "a", None)]),
        ("a/org/slashed", Some("a"), vec![("org/slashed", "a", None)]),
        ("a/slashed:8b", Some("a"), vec![("org/slashed", "a", None)]),
        (
            "local/any:thing",
            Some("local"),
            vec![("any:thing", "local", None)],
        ),
    ] {
        let resolved = resolved(string).unwrap();
        let candidates: Vec<(&str, &str, Option<&str>)> = resolved
            .candidates
            .iter()
            .map(|c| (&*c.model.id, &*c.mapping.provider, c.region.as_deref()))
            .collect();
        assert_eq!(
            (resolved.provider.as_deref(), candidates),
            (provider, found),
            "{string}"
        );
    }
}

#[test]
fn model_strings_that_name_nothing_say_why() {
    for (string, status) in [
        ("x", 404),
        ("a/x", 404),
        ("b/m:eu", 404),
        ("x/m", 404),
        ("away", 404),
        ("old", 410),
        ("vec", 400),
        ("a-up", 400),
        ("a/", 404),
    ] {
        let fault = resolved(string).unwrap_err();
        assert_eq!(
            (fault.status(), fault.param.as_deref()),
            (status, Some("model")),
            "{string}"
        );
    }
}

#[test]
fn problems_of_the_catalogue_are_all_told() {
    let written: CatalogFile = serde_json::from_value(json!({"models": [
        {"id": "m", "providers": [mapping("a", "1e3", json!({}))]}, {"id": "m", "providers": [mapping("a", "0.0000000000001", json!({}))]}]})).unwrap();
    let problems = Catalog::check(written, providers()).unwrap_err();
    assert_eq!(problems.len(), 3, "{problems:?}");
}

#[test]
fn the_cheapest_goes_first_until_something_is_known() {
    let health = Health::new(8);
    assert_eq!(
        order(&request(json!({})), "m", &inputs(&health)).unwrap(),
        ["b", "a"]
    );
    for _ in 0..3 {
        // The candidate after that of `a` and its region.
        health.begin(2, false, 1000).record_failure(1000);
    }
    assert_eq!(
        order(&request(json!({})), "m", &inputs(&health)).unwrap(),
        ["a", "b"],
        "a cool-down moves to the end, never out"
    );
}

#[test]
fn a_pinned_provider_and_no_fallback_are_one_attempt() {
    let health = Health::new(8);
    assert_eq!(
        order(&request(json!({})), "b/m", &inputs(&health)).unwrap(),
        ["b"]
    );
    let alone = PlanInputs {
        no_fallback: true,
        ..inputs(&health)
    };
    assert_eq!(order(&request(json!({})), "m", &alone).unwrap().len(), 1);
    assert_eq!(
        order(
            &request(json!({"routing": "price"})),
            "b/m",
            &inputs(&health)
        )
        .unwrap_err()
        .param
        .as_deref(),
        Some("routing")
    );
}

#[test]
fn a_session_prefers_its_provider_and_is_never_explored() {
    let health = Health::new(8);
    let session = PlanInputs {
        preferred: Some(usual().candidates()[0].mapping.id),
        has_session: true,
        exploration: 1.0,
        random: (0.0, 0.0),
        ..inputs(&health)
    };
    assert_eq!(
        order(&request(json!({})), "m", &session).unwrap(),
        ["a", "b"]
    );
}

#[test]
fn who_lacks_what_the_request_needs_is_left_out() {
    let health = Health::new(8);
    assert_eq!(
        order(
            &request(json!({"response_format": {"type": "json_object"}})),
            "m",
            &inputs(&health)
        )
        .unwrap(),
        ["b"]
    );
    assert_eq!(
        order(&request(json!({"n": 2})), "m", &inputs(&health)).unwrap(),
        ["b"],
        "without capabilities it can do all"
    );
    let tier = order(
        &request(json!({"service_tier": "flex"})),
        "m",
        &inputs(&health),
    )
    .unwrap_err();
    assert_eq!(tier.code(), Some("unsupported_service_tier"));
}

#[test]
fn who_refuses_a_parameter_is_left_out_with_the_reason() {
    let catalog = catalog(json!([{"id": "m", "providers": [
        mapping("a", "1", json!({"parameters": {"refuse": ["temperature", "stop"]}})),
        mapping("b", "2", json!({"parameters": {"refuse": ["stop"]}}))]}]));
    let health = Health::new(8);
    let planned = |more: Value| {
        let on = providers().set(["a", "b"]);
        let resolved = resolve("m", Operation::Chat, &catalog, &on, &[], 0).unwrap();
        let (request, inputs) = (request(more), inputs(&health));
        plan(&request, resolved, &inputs, |_| Some(WIDE), |_| 1.0)
    };
    let warm = planned(json!({"temperature": 0.5})).unwrap();
    let tried: Vec<&str> = warm.attempts.iter().map(|c| &*c.mapping.provider).collect();
    assert_eq!(tried, ["b"]);
    let left_out = &warm.left_out[0];
    assert_eq!(
        (
            &*left_out.provider,
            &*left_out.lack.param,
            &*left_out.lack.reason
        ),
        ("a", "temperature", "takes no `temperature`")
    );
    assert!(
        planned(json!({"temperature": 1}))
            .unwrap()
            .left_out
            .is_empty()
    );
    let fault = planned(json!({"stop": "x"})).unwrap_err();
    assert_eq!(
        (fault.status(), fault.param.as_deref()),
        (400, Some("stop"))
    );
    let said = "a takes no `stop`; b takes no `stop`";
    assert!(fault.message.ends_with(said), "{fault}");
}

#[test]
fn who_cannot_say_the_messages_is_left_out_with_the_reason() {
    let part = |part: Value| json!({"messages": [{"role": "user", "content": [part]}]});
    let image = |url: &str| part(json!({"type": "image_url", "image_url": {"url": url}}));
    let narrow = WireLimits {
        media: MediaLimits {
            images: &["image/png"],
            remote_images: false,
            http_images: false,
            fetches: false,
            other_images: false,
            audio: NO_AUDIO,
            files: &["application/pdf"],
            file_ids: false,
        },
        assistant_first: false,
        blank_stops: false,
        ..WIDE
    };
    let health = Health::new(8);
    for (more, reason) in [
        (
            image("https://a.test/b.png"),
            "takes images as base64 data URLs only",
        ),
        (
            image("ftp://a.test/b.png"),
            "takes images as https addresses or base64 data URLs only",
        ),
        (
            image("data:image/tiff;base64,AAAA"),
            "takes images of image/png, not `image/tiff`",
        ),
        (
            part(json!({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}})),
            "takes no audio",
        ),
        (
            part(json!({"type": "file", "file": {"file_data": "data:text/csv;base64,AAAA"}})),
            "takes files of application/pdf, not `text/csv`",
        ),
        (
            json!({"messages": [{"role": "system", "content": "a"}, {"role": "assistant", "content": "b"}]}),
            "wants a user's message first",
        ),
        (json!({"stop": ["x", " "]}), "takes no blank sequences"),
    ] {
        let request = request(more.clone());
        let limits = |mapping: &Mapping| {
            Some(if mapping.provider_number == 0 {
                narrow
            } else {
                WIDE
            })
        };
        let catalog = catalog(
            json!([{"id": "m", "providers": [mapping("a", "1", json!({})), mapping("b", "2", json!({}))]}]),
        );
        let on = providers().set(["a", "b"]);
        let resolved = || resolve("m", Operation::Chat, &catalog, &on, &[], 0).unwrap();
        let planned = plan(&request, resolved(), &inputs(&health), limits, |_| 1.0).unwrap();
        assert_eq!(planned.attempts.len(), 1, "{more}");
        assert_eq!(planned.left_out[0].lack.reason, reason);
        let nobody = plan(
            &request,
            resolved(),
            &inputs(&health),
            |_| Some(narrow),
            |_| 1.0,
        );
        let fault = nobody.unwrap_err();
        assert!(
            fault.status() == 400 && fault.message.contains(reason),
            "{fault}"
        );
    }
}

/// Contract: model-gateway 2.1 tool_choice
#[test]
fn a_forced_call_goes_to_who_honours_it_and_is_lowered_where_nobody_does() {
    let health = Health::new(8);
    let forced = request(
        json!({"tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "required"}),
    );
    assert_eq!(order(&forced, "m", &inputs(&health)).unwrap(), ["b"]);
    let honoured = plan(
        &forced,
        resolved("m").unwrap(),
        &inputs(&health),
        |_| Some(WIDE),
        |_| 1.0,
    )
    .unwrap();
    let left_out = &honoured.left_out[0];
    assert_eq!(
        (&*left_out.provider, &*left_out.lack.param),
        ("a", "tool_choice")
    );
    let lowered = plan(
        &forced,
        resolved("a/m").unwrap(),
        &inputs(&health),
        |_| Some(WIDE),
        |_| 1.0,
    )
    .unwrap();
    assert!(lowered.lower_tool_choice);
}

/// Source: model-gateway 2.1, rules for `reasoning_effort` 3
#[test]
fn an_effort_goes_to_who_lists_it_and_where_nobody_does_the_provider_judges() {
    let thinks = |provider, price, efforts: Value| {
        let more = json!({"capabilities": ["reasoning"], "reasoning_efforts": efforts});
        mapping(provider, price, more)
    };
    let catalog = catalog(json!([{"id": "m", "providers":
        [thinks("a", "1", json!(["low", "high"])), thinks("b", "2", json!(["high", "xhigh"]))]}]));
    let health = Health::new(8);
    let on = catalog.providers().set(["a", "b"]);
    let planned = |model: &str, effort: &str| {
        let resolved = resolve(model, Operation::Chat, &catalog, &on, &[], 0).unwrap();
        let request = request(json!({"model": model, "reasoning_effort": effort}));
        plan(
            &request,
            resolved,
            &inputs(&health),
            |_| Some(WIDE),
            |_| 1.0,
        )
        .unwrap()
    };
    let names = |plan: &RoutePlan| -> Vec<String> {
        let attempts = plan.attempts.iter();
        attempts
            .map(|one| one.mapping.provider.to_string())
            .collect()
    };
    let only = planned("m", "xhigh");
    assert_eq!(names(&only), ["b"]);
    let left_out = &only.left_out[0];
    assert_eq!(&*left_out.lack.param, "reasoning_effort");
    assert_eq!(
        left_out.lack.reason,
        "takes the efforts low, high, not xhigh"
    );
    assert_eq!(names(&planned("m", "high")), ["a", "b"]);
    assert_eq!(names(&planned("m", "max")), ["a", "b"]);
    assert_eq!(names(&planned("a/m", "xhigh")), ["a"]);
}

/// Contract: model-gateway 2.1 free_models_only
#[test]
fn auto_takes_the_cheapest_that_can_and_honours_its_own_fields() {
    let health = Health::new(8);
    assert_eq!(
        order(&request(json!({})), "auto", &inputs(&health)).unwrap()[0],
        "b"
    );
    let free = plan(
        &request(json!({"free_models_only": true})),
        resolved("auto").unwrap(),
        &inputs(&health),
        |_| Some(WIDE),
        |_| 1.0,
    )
    .unwrap();
    assert!(
        free.attempts
            .iter()
            .all(|candidate| &*candidate.model.id == "free")
    );
}

#[test]
fn scores_follow_the_published_formula() {
    let metrics = |uptime| {
        Some(HealthStats {
            uptime,
            latency_ms: 1000.0,
            throughput: 50.0,
        })
    };
    let fact = |price, uptime| Facts {
        price: Some(price),
        metrics: metrics(uptime),
        priority: 1.0,
    };
    let scored = score_candidates(
        &[fact(1.0, 100.0), fact(2.0, 100.0), fact(1.0, 50.0)],
        WEIGHTS,
        None,
        false,
    );
    let sum = 0.6 + 0.5 + 0.05;
    assert!((scored[0] - 0.0).abs() < 1e-9);
    assert!((scored[1] - 0.6 / sum).abs() < 1e-9);
    assert!((scored[2] - (0.5 / sum + (45.0_f64 / 95.0 * 5.0).powi(2))).abs() < 1e-9);
    let latency = |ms| Facts {
        price: Some(1.0),
        metrics: Some(HealthStats {
            uptime: 100.0,
            latency_ms: ms,
            throughput: 50.0,
        }),
        priority: 1.0,
    };
    let facts = [latency(100.0), latency(300.0)];
    assert!(
        (score_candidates(&facts, WEIGHTS, Some(Routing::Latency), true)[1] - 0.9 * 2.0).abs()
            < 1e-9
    );
    assert!(
        score_candidates(&facts, WEIGHTS, Some(Routing::Latency), false)[1].abs() < 1e-9,
        "streams alone"
    );
}

#[test]
fn a_date_is_its_first_moment() {
    assert_eq!(Date("1970-01-02".into()).unix_s(), Some(86_400));
    assert_eq!(Date("2026-03-01".into()).unix_s(), Some(1_772_323_200));
    assert_eq!(Date("2026-13-01".into()).unix_s(), None);
}

#[test]
fn a_provider_that_is_off_for_whoever_asks_is_as_good_as_absent() {
    let (catalog, a) = (usual(), usual().providers().set(["a"]));
    let at_a = |string| resolve(string, Operation::Chat, &catalog, &a, &[], 0);
    let said = |string| at_a(string).unwrap_err().message.into_owned();
    assert_eq!(at_a("m").unwrap().candidates.len(), 1);
    assert_eq!(at_a("auto").unwrap().candidates.len(), 3);
    for string in ["free", "away"] {
        let nobody = "is known, but no provider that serves it is switched on";
        assert!(said(string).ends_with(nobody), "{string}");
    }
    for string in ["b-up", "b/m"] {
        assert!(said(string).contains("does not exist"), "{string}");
    }
}

#[test]
fn a_key_that_is_sent_as_a_model_is_not_echoed() {
    let catalog = usual();
    let providers = catalog.providers().set(["a"]);
    for key in [
        "sk-proj-0123456789abcdef",
        "a/sk-ant-0123456789abcdef",
        "a/m:gsk_0123456789abcdef",
        "wg_0000000000000000000000000000000000000000000",
        "Bearer sk-0123456789abcdef",
        "AIzaSyA0123456789abcdef",
    ] {
        let fault = resolve(key, Operation::Chat, &catalog, &providers, &[], 0).unwrap_err();
        assert_eq!(fault.status(), 404, "{key}");
        assert!(!fault.message.contains("0123456789"), "{}", fault.message);
        assert!(!fault.message.contains("00000000"), "{}", fault.message);
    }
    let fault = resolve("key-lime", Operation::Chat, &catalog, &providers, &[], 0).unwrap_err();
    assert!(fault.message.contains("`key-lime`"), "{}", fault.message);
}

/// The providers of the catalogues made at random.
const NAMES: [&str; 8] = ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"];

proptest! {
    #[test]
    fn a_plan_has_attempts_in_bounds_and_each_provider_once(prices in proptest::collection::vec(0..50_u32, 1..8), failures in proptest::collection::vec(0..8_usize, 0..40), attempts in 1..5_usize, exploration in prop_oneof![Just(0.0), Just(0.5)], random in (0.0..1.0, 0.0..1.0)) {
        let providers: Vec<Value> = prices.iter().enumerate().map(|(at, price)| mapping(&format!("p{at}"), &price.to_string(), json!({}))).collect();
        let catalog = catalog(json!([{"id": "m", "providers": providers}]));
        let health = Health::new(catalog.mappings());
        for failed in failures { health.begin(failed, false, 500).record_failure(500); }
        let inputs = PlanInputs { attempts, exploration, random, ..inputs(&health) };
        let resolved = resolve("m", Operation::Chat, &catalog, &catalog.providers().set(NAMES[..prices.len()].iter().copied()), &[], 0).unwrap();
        let one = plan(&request(json!({})), resolved.clone(), &inputs, |_| Some(WIDE), |_| 1.0).unwrap();
        let two = plan(&request(json!({})), resolved, &inputs, |_| Some(WIDE), |_| 1.0).unwrap();
        let names = |plan: &RoutePlan| plan.attempts.iter().map(|c| c.mapping.provider.clone()).collect::<Vec<_>>();
        // Exploration spends what it has saved.
        prop_assert!(exploration > 0.0 || names(&one) == names(&two));
        prop_assert_eq!(one.attempts.len(), attempts.min(prices.len()));
        let mut unique = names(&one);
        unique.sort();
        unique.dedup();
        prop_assert_eq!(unique.len(), one.attempts.len());
    }
}

#[path = "order_tests.rs"]
mod order;

#[path = "explanation_tests.rs"]
mod explanation;
#[path = "media_tests.rs"]
mod media;
#[path = "region_tests.rs"]
mod regions;
