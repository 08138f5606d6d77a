//! Limits of keys, budgets of members and allowances of plans: the 402s.

use filters::audit::PROGRAM;
use serde_json::{Value, json};
use weirgate::store::NewKey;

use crate::models::endpoints::key::with_plan;
use crate::models::fronts::chat_completions::reply;
use crate::support::boot::Gateway;
use crate::support::client::Answer;
use crate::support::upstream::Upstream;

fn assert_reached(answer: &Answer, code: &str) {
    assert_eq!(answer.status(), 402, "{}", answer.text());
    let error = answer.json()["error"].clone();
    assert_eq!(
        (&error["type"], &error["code"]),
        (&json!("billing_error"), &json!(code))
    );
    assert_eq!(answer.header("x-should-retry"), Some("false"));
}

/// Calls with this key until a call is refused; returns the number of served calls, and the refusal.
fn until_refused(gateway: &Gateway, key: &str, model: &str) -> (usize, Answer) {
    for served in 0.. {
        let answer = gateway.asked(key, model, json!({"max_tokens": 1}));
        if answer.status() != 200 {
            return (served, answer);
        }
        assert!(served < 20, "never refused");
    }
    unreachable!()
}

fn cheap() -> (Upstream, Gateway) {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    (first, gateway)
}

/// Contract: model-gateway 8 8
#[test]
fn a_key_is_served_until_its_limit_is_reached() {
    let (first, gateway) = cheap();
    // A call costs 0.003.
    for (terms, calls) in [
        (r#"{"limit":"0.006"}"#, 2),
        (r#"{"limit":"0.0061"}"#, 3),
        (r#"{"limit":"0"}"#, 0),
        (r#"{"limit_per":{"month":"0.006"}}"#, 2),
        (r#"{"limit_per":{"week":"0"}}"#, 0),
        (r#"{"limit":"1","limit_per":{"day":"0.003"}}"#, 1),
    ] {
        let key = gateway.key_with(terms);
        let before = first.requests().len();
        let (served, refusal) = until_refused(&gateway, &key, "chat");
        assert_eq!(served, calls, "{terms}");
        assert_reached(&refusal, "key_limit_reached");
        assert_eq!(first.requests().len(), before + calls);
    }
    assert_eq!(gateway.asked(&gateway.key, "chat", json!({})).status(), 200);
}

#[test]
fn the_keys_of_a_member_share_its_budget() {
    let (_first, gateway) = cheap();
    let keys = gateway.change(async |store| {
        store
            .by(&PROGRAM)
            .add_member("acme", "ada", 0)
            .await
            .unwrap();
        let budget = Some(filters::money::Usd::parse("0.006").unwrap());
        store
            .by(&PROGRAM)
            .set_budget("acme", "ada", budget)
            .await
            .unwrap();
        let new = NewKey {
            organization: "acme",
            member: Some("ada"),
            ..NewKey::default()
        };
        let one = store.by(&PROGRAM).create_key(&new, 0).await.unwrap().0;
        let two = store.by(&PROGRAM).create_key(&new, 0).await.unwrap().0;
        [one, two].map(|key| key.reveal().to_owned())
    });
    for key in &keys {
        let answer = gateway.asked(key, "chat", json!({}));
        assert_eq!(answer.status(), 200, "{}", answer.text());
    }
    for key in &keys {
        assert_reached(
            &gateway.asked(key, "chat", json!({})),
            "member_budget_reached",
        );
    }
    gateway.change(async |store| {
        store
            .by(&PROGRAM)
            .set_budget("acme", "ada", None)
            .await
            .unwrap()
    });
    assert_eq!(gateway.asked(&keys[0], "chat", json!({})).status(), 200);
}

/// Contract: model-gateway 7 402
/// Contract: model-gateway 8 7
#[test]
fn a_plan_pays_without_credit_until_its_cycle_is_used() {
    let first = Upstream::always(reply());
    let gateway = with_plan(
        &first,
        "cycle_usd = \"0.009\"\nweekly_premium_pct = 100\ndaily_pct = 100",
    );
    let (served, refusal) = until_refused(&gateway, &gateway.key, "first/chat");
    assert_eq!(served, 3);
    assert_reached(&refusal, "plan_credits_used");
    let data = gateway.key_data(&gateway.key);
    assert_eq!(data["devPlanCreditsRemaining"], "0");
    let credit = gateway.beside(async |store| store.credit("acme").await.unwrap());
    assert_eq!(credit.balance().to_string(), "0");
}

/// Contract: model-gateway 8 7
#[test]
fn a_plan_is_paced_by_the_day() {
    let first = Upstream::always(reply());
    let gateway = with_plan(
        &first,
        "cycle_usd = \"0.06\"\nweekly_premium_pct = 100\ndaily_pct = 10",
    );
    let (served, refusal) = until_refused(&gateway, &gateway.key, "first/chat");
    assert_eq!(served, 2);
    assert_reached(&refusal, "plan_daily_limit_reached");
}

#[test]
fn a_plan_s_share_for_premium_models_stops_those_alone() {
    let first = Upstream::always(reply());
    let gateway = with_plan(
        &first,
        "cycle_usd = \"1\"\nweekly_premium_pct = 1\ndaily_pct = 100",
    );
    // 0.007 a call of the premium provider, of 0.01.
    let (served, refusal) = until_refused(&gateway, &gateway.key, "second/chat");
    assert_eq!(served, 2);
    assert_reached(&refusal, "plan_premium_limit_reached");
    let answer = gateway.asked(&gateway.key, "chat", json!({}));
    assert_eq!(answer.json()["metadata"]["used_provider"], "first");
    let resets: &Value = &gateway.key_data(&gateway.key)["devPlanPremiumWeekResetsAt"];
    assert!(resets.is_string());
}
