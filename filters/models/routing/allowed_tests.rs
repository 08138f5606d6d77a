#![allow(clippy::unwrap_used, reason = "tests")]
use serde_json::{Value, json};

use super::CatalogFile;
use super::allowed::{by_own_keys, by_plan, by_rules, by_vendor};
use super::catalog::Catalog;
use super::health::Health;
use super::plan::{PlanInputs, WhatExplains, plan};
use super::providers::ProviderNames;
use super::resolve::{Resolved, resolve};
use super::score::Weights;
use super::wire_limits::WireLimits;
use crate::accounts::OwnCredentialKind;
use crate::models::front::Front;
use crate::models::fronts::chat_completions::ChatCompletions;
use crate::models::operation::Operation;
use crate::models::request::ModelRequest;

fn names() -> ProviderNames {
    ["a", "b", "c"].into_iter().collect()
}

fn resolved(string: &str) -> Resolved {
    let at = |provider: &str, price: &str| json!({"provider": provider, "name": "up", "input_price": price, "output_price": price});
    let models = json!([{"id": "m", "providers": [at("a", "1"), at("b", "2"), at("c", "3")]}]);
    let written: CatalogFile = serde_json::from_value(json!({ "models": models })).unwrap();
    let catalog = Catalog::check(written, names()).unwrap();
    let all = names().set(["a", "b", "c"]);
    resolve(string, Operation::Chat, &catalog, &all, &[], 0).unwrap()
}

fn providers(resolved: &Resolved) -> Vec<&str> {
    let candidates = resolved.candidates.iter();
    candidates.map(|c| &*c.mapping.provider).collect()
}

fn request(more: Value) -> ModelRequest {
    let mut request = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
    let members = request.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    ChatCompletions.parse(request.to_string().into()).unwrap()
}

#[test]
fn rules_filter_what_is_unpinned() {
    let mut left = resolved("m");
    by_rules(&mut left, |c| {
        (&*c.mapping.provider == "a").then_some("the provider")
    })
    .unwrap();
    assert_eq!(providers(&left), ["b", "c"]);
}

#[test]
fn rules_that_leave_nothing_are_a_403_with_their_kinds() {
    let mut left = resolved("a/m");
    let fault = by_rules(&mut left, |_| Some("the provider")).unwrap_err();
    assert_eq!(
        (fault.status(), fault.param.as_deref()),
        (403, Some("model"))
    );
    assert!(fault.message.contains("the provider"));
    let mut left = resolved("m");
    let forbids = |provider: &str| {
        if provider == "a" {
            "the price"
        } else {
            "the model"
        }
    };
    let fault = by_rules(&mut left, |c| Some(forbids(&c.mapping.provider))).unwrap_err();
    assert!(
        fault.message.ends_with("the model and the price"),
        "{}",
        fault.message
    );
}

#[test]
fn own_keys_alone_leave_their_providers_or_a_400() {
    let mut left = resolved("m");
    by_own_keys(&mut left, |mapping| &*mapping.provider == "c").unwrap();
    assert_eq!(providers(&left), ["c"]);
    let fault = by_own_keys(&mut left, |_| false).unwrap_err();
    assert_eq!(
        (fault.status(), fault.code()),
        (400, Some("no_provider_key"))
    );
    assert!(fault.message.ends_with("none for c"), "{}", fault.message);
}

/// Contract: model-gateway 2.1 routing 3
/// Contract: model-gateway 2.1 service_tier 3
#[test]
fn a_plan_takes_few_strategies_and_tiers() {
    let table = [
        (json!({}), None),
        (json!({"routing": "auto"}), None),
        (json!({"routing": "price"}), None),
        (json!({"routing": "throughput"}), Some("routing")),
        (json!({"routing": "latency"}), Some("routing")),
        (json!({"service_tier": "auto"}), None),
        (json!({"service_tier": "default"}), None),
        (json!({"service_tier": "flex"}), None),
        (json!({"service_tier": "priority"}), Some("service_tier")),
    ];
    for (more, param) in table {
        let fault = by_plan(&request(more.clone())).err();
        let found = fault.as_ref().and_then(|fault| fault.param.as_deref());
        assert_eq!(found, param, "{more}");
        assert!(fault.is_none_or(|fault| fault.status() == 400));
    }
}

#[test]
fn providers_with_own_keys_go_first_and_keep_their_order() {
    let health = Health::new(3);
    let inputs = PlanInputs {
        attempts: 2,
        weights: Weights {
            price: 1.0,
            uptime: 0.0,
            throughput: 0.0,
            latency: 0.0,
        },
        exploration: 0.0,
        random: (0.5, 0.5),
        spread: 0,
        health: &health,
        now_ms: 0,
        now_s: 0,
        preferred: None,
        cached_tokens: 0,
        has_session: false,
        no_fallback: false,
        is_billed: true,
        keyed: &names().set(["c", "b"]),
        explains: WhatExplains::Nothing,
    };
    let wide = WireLimits::WIDEST;
    let plan = plan(
        &request(json!({})),
        resolved("m"),
        &inputs,
        |_| Some(wide),
        |_| 1.0,
    )
    .unwrap();
    let order: Vec<&str> = plan.attempts.iter().map(|c| &*c.mapping.provider).collect();
    assert_eq!(order, ["b", "c"]);
}

#[test]
fn a_credential_of_the_caller_goes_to_its_vendor_alone() {
    let login = OwnCredentialKind::ClaudeLogin;
    let mut left = resolved("m");
    by_vendor(&mut left, login, |c| &*c.mapping.provider == "b").unwrap();
    assert_eq!(providers(&left), ["b"]);
    let barred: Vec<&str> = left.barred.iter().map(|it| &*it.provider).collect();
    assert_eq!(barred, ["a", "c"]);
    for (model, named) in [("m", "a, b, c"), ("c/m", "served by c here")] {
        let fault = by_vendor(&mut resolved(model), login, |_| false).unwrap_err();
        assert_eq!(
            (fault.status(), fault.code()),
            (400, Some("vendor_mismatch"))
        );
        assert_eq!(fault.param.as_deref(), Some("model"));
        assert!(fault.message.contains(named), "{}", fault.message);
        assert!(fault.message.contains("Anthropic"), "{}", fault.message);
    }
}
