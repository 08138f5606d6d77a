//! `GET /v1/key`: the money that a key has spent and may spend, to the last digit.

use filters::accounts::Plan;
use filters::audit::PROGRAM;
use serde_json::{Value, json};
use weirgate::store::KeyChange;

use crate::models::fronts::chat_completions::{PLAIN, reply};
use crate::support::ask::Ask;
use crate::support::boot::{Gateway, MODELS};
use crate::support::client::{Answer, ask};
use crate::support::upstream::Upstream;

impl Gateway {
    /// The response of `GET /v1/key` to this key.
    pub fn key_status(&self, key: &str) -> Answer {
        ask(self.address(), &Ask::get("/v1/key").key(key))
    }

    /// `data` of it.
    pub fn key_data(&self, key: &str) -> Value {
        let answer = self.key_status(key);
        assert_eq!(answer.status(), 200, "{}", answer.text());
        answer.json()["data"].clone()
    }
}

/// Two providers of one upstream, and a plan `lite` of 0.009 USD: three calls of the cheap provider.
pub fn with_plan(upstream: &Upstream, more: &str) -> Gateway {
    let toml = format!(
        "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{0}/v1\"\nkeys = []\n\
         [providers.second]\nkind = \"openai-compatible\"\nbase_url = \"{0}/v1\"\nkeys = []\n\
         [plans.lite]\n{more}\n",
        upstream.url()
    );
    let gateway = Gateway::start_with_credit(&toml, MODELS, &[], "0");
    gateway.change(async |store| {
        store
            .by(&PROGRAM)
            .set_plan("acme", Plan::Lite, 1)
            .await
            .unwrap()
    });
    gateway
}

/// Contract: model-gateway 4 GET /v1/key
/// Contract: model-gateway 2.8 label
/// Contract: model-gateway 2.8 usage
/// Contract: model-gateway 2.8 limit
/// Contract: model-gateway 2.8 devPlan
#[test]
fn a_key_of_no_plan_shows_its_usage_and_its_limit() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let key = gateway.key_with(r#"{"limit":"25.50"}"#);
    assert_eq!(gateway.key_data(&key)["usage"], "0");
    for _ in 0..2 {
        assert_eq!(gateway.asked(&key, "chat", json!({})).status(), 200);
    }
    let expected = json!({
        "label": "", "usage": "0.006", "limit": "25.5", "devPlan": "none",
        "devPlanCreditsUsed": "0", "devPlanCreditsLimit": "0", "devPlanCreditsRemaining": "0",
        "devPlanPremiumWeeklyLimit": "0", "devPlanPremiumCreditsUsed": "0",
        "devPlanPremiumWeekResetsAt": null, "devPlanDailyLimit": "0",
        "devPlanDailyCreditsUsed": "0", "devPlanDayResetsAt": null,
    });
    assert_eq!(gateway.key_data(&key), expected);
    let other = gateway.key_data(&gateway.key);
    assert_eq!(
        (&other["usage"], &other["limit"], &other["label"]),
        (&json!("0"), &Value::Null, &json!("test"))
    );
}

/// Contract: model-gateway 2.8 usage
/// Contract: model-gateway 2.8 devPlan
/// Contract: model-gateway 2.8 devPlanCreditsUsed
/// Contract: model-gateway 2.8 devPlanPremiumWeeklyLimit
/// Contract: model-gateway 2.8 devPlanPremiumWeekResetsAt
/// Contract: model-gateway 2.8 devPlanDailyLimit
/// Contract: model-gateway 2.8 devPlanDayResetsAt
/// Contract: model-gateway 8 7
#[test]
fn a_plan_shows_what_it_allows_what_is_used_and_when_its_windows_end() {
    let first = Upstream::always(reply());
    let gateway = with_plan(
        &first,
        "cycle_usd = 10\nweekly_premium_pct = 20\ndaily_pct = 12.5",
    );
    let before = gateway.key_data(&gateway.key);
    assert_eq!(
        (&before["devPlan"], &before["devPlanCreditsRemaining"]),
        (&json!("lite"), &json!("10"))
    );
    assert!(
        before["devPlanDayResetsAt"].is_null() && before["devPlanPremiumWeekResetsAt"].is_null()
    );
    assert_eq!(gateway.asked(&gateway.key, "chat", json!({})).status(), 200);
    assert_eq!(
        gateway
            .asked(&gateway.key, "second/chat", json!({}))
            .status(),
        200
    );
    let data = gateway.key_data(&gateway.key);
    let shown = |name: &str| data[name].as_str().unwrap().to_owned();
    // 0.003 at the first; at the second 600 × 5, 400 × 5 and 100 × 20 USD per million.
    assert_eq!(shown("devPlanCreditsUsed"), "0.01");
    assert_eq!(shown("devPlanCreditsLimit"), "10");
    assert_eq!(shown("devPlanCreditsRemaining"), "9.99");
    assert_eq!(shown("devPlanPremiumWeeklyLimit"), "2");
    assert_eq!(shown("devPlanPremiumCreditsUsed"), "0.007");
    assert_eq!(shown("devPlanDailyLimit"), "1.25");
    assert_eq!(shown("devPlanDailyCreditsUsed"), "0.01");
    assert_eq!(shown("usage"), "0.01");
    let now = jiff::Timestamp::now();
    let hours_to = |name: &str| {
        let resets: jiff::Timestamp = shown(name).parse().unwrap();
        resets.duration_since(now).as_hours()
    };
    assert_eq!(
        (
            hours_to("devPlanDayResetsAt"),
            hours_to("devPlanPremiumWeekResetsAt")
        ),
        (23, 167)
    );
}

/// Contract: model-gateway 2.8 limit
#[test]
fn a_key_at_its_limit_can_still_read_why() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let key = gateway.key_with(r#"{"limit":"0"}"#);
    assert_eq!(gateway.asked(&key, "chat", json!({})).status(), 402);
    let data = gateway.key_data(&key);
    assert_eq!((&data["limit"], &data["usage"]), (&json!("0"), &json!("0")));
}

#[test]
fn the_response_names_no_key_and_no_money_of_others() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let answer = gateway.key_status(&gateway.key);
    let text = answer.text();
    assert!(!text.contains(&gateway.key) && !text.contains("key_") && !text.contains("org_"));
    assert!(
        !text.contains("1000000") && !text.contains("alance"),
        "{text}"
    );
}

/// Contract: model-gateway 5 3
#[test]
fn a_key_that_does_not_count_learns_nothing() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    assert_eq!(ask(gateway.address(), &Ask::get("/v1/key")).status(), 401);
    assert_eq!(gateway.key_status("wg_nonsense").status(), 401);
    let post = Ask::post("/v1/key", PLAIN).key(&gateway.key);
    assert_eq!(ask(gateway.address(), &post).status(), 405);
    gateway.change(async |store| {
        let id = store.keys("acme").await.unwrap().remove(0).id;
        let wanted = KeyChange {
            expires_at_ms: Some(Some(1)),
            ..KeyChange::default()
        };
        store.by(&PROGRAM).update_key(&id, &wanted).await.unwrap();
    });
    assert_eq!(gateway.key_status(&gateway.key).status(), 401);
    let key = gateway.key_with("{}");
    gateway.change(async |store| {
        store
            .by(&PROGRAM)
            .archive_project("acme", "default")
            .await
            .unwrap()
    });
    assert_eq!(gateway.key_status(&key).status(), 410);
}

/// Contract: model-gateway 2.8 usage
#[test]
fn what_was_spent_is_known_again_after_a_restart() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    assert_eq!(gateway.chat(PLAIN).status(), 200);
    let gateway = gateway.restart();
    assert_eq!(gateway.key_data(&gateway.key)["usage"], "0.003");
}
