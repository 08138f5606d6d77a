//! `GET /v1/usage`: what calls took and cost, by day and hour, and who may see it.

use filters::audit::PROGRAM;
use serde_json::{Value, json};
use weirgate::store::NewKey;

use crate::ledger::used;
use crate::models::fronts::chat_completions::reply;
use crate::support::ask::Ask;
use crate::support::boot::{Gateway, create_organization};
use crate::support::client::{Answer, ask};
use crate::support::upstream::Upstream;

impl Gateway {
    /// The answer to a question about usage, with a query.
    pub fn usage(&self, key: &str, path_and_query: &str) -> Answer {
        ask(self.address(), &Ask::get(path_and_query).key(key))
    }

    /// A key of the organization, with a label and perhaps a member.
    pub fn labelled(&self, label: &str, member: Option<&str>) -> String {
        self.change(async |store| {
            let new = NewKey {
                organization: "acme",
                label,
                member,
                ..NewKey::default()
            };
            store
                .by(&PROGRAM)
                .create_key(&new, 0)
                .await
                .unwrap()
                .0
                .reveal()
                .to_owned()
        })
    }

    /// A gateway with calls: two of the key, of `chat`, and one of a member's key, of `only-first`. Returns that key, too.
    pub fn with_calls(upstream: &Upstream, more: &str) -> (Gateway, String) {
        let gateway = Gateway::with(&upstream.url(), &upstream.url(), more);
        gateway.change(async |store| {
            store
                .by(&PROGRAM)
                .add_member("acme", "ada", 0)
                .await
                .unwrap();
        });
        let ada = gateway.labelled("laptop", Some("ada"));
        for (key, model) in [
            (&gateway.key, "chat"),
            (&gateway.key, "chat"),
            (&ada, "only-first"),
        ] {
            let answer = gateway.asked(key, model, json!({}));
            assert_eq!(answer.status(), 200, "{}", answer.text());
        }
        used(&gateway, "0.0071");
        (gateway, ada)
    }

    /// What is told of the time until now.
    fn total(&self, key: &str, query: &str) -> Value {
        let answer = self.usage(key, &format!("/v1/usage{query}"));
        assert_eq!(answer.status(), 200, "{}", answer.text());
        answer.json()
    }
}

/// Contract: model-gateway 2.18 to
/// Contract: model-gateway 4 GET /v1/usage
#[test]
fn the_sums_are_those_of_the_organization_by_day_and_hour() {
    let first = Upstream::always(reply());
    let (gateway, _) = Gateway::with_calls(&first, "");
    let total = json!({
        "requests": 3, "prompt_tokens": 3000, "cached_tokens": 1200, "completion_tokens": 300, "cost": "0.0071"
    });
    for (query, granularity) in [("", "day"), ("?granularity=hour", "hour")] {
        let mut told = gateway.total(&gateway.key, query);
        assert_eq!(told["granularity"], granularity);
        let mut data = told["data"].take();
        let first = data[0].as_object_mut().unwrap();
        let start = first.remove("start").unwrap();
        assert!(start.as_str().unwrap().ends_with(":00:00Z"), "{start}");
        // But for a test at the end of an hour, all calls are of one period.
        if data.as_array().unwrap().len() == 1 {
            assert_eq!(data[0], total);
        }
        assert_eq!(told["total"], total);
        for bound in ["from", "to"] {
            let bound = told[bound].as_str().unwrap();
            assert!(bound.ends_with(":00:00Z"), "{bound}");
        }
    }
    let before = gateway.usage(&gateway.key, "/v1/usage?from=2020-01-01&to=2020-12-31");
    let before = before.json();
    assert_eq!(
        (&before["from"], &before["to"], &before["data"]),
        (
            &json!("2020-01-01T00:00:00Z"),
            &json!("2021-01-01T00:00:00Z"),
            &json!([])
        )
    );
    assert_eq!(before["total"]["cost"], "0");
}

#[test]
fn a_members_key_sees_its_own_calls_and_no_key_those_of_others() {
    let first = Upstream::always(reply());
    let (gateway, ada) = Gateway::with_calls(&first, "");
    let own = gateway.total(&ada, "");
    assert_eq!(
        (&own["total"]["requests"], &own["total"]["cost"]),
        (&json!(1), &json!("0.0011"))
    );
    let stranger = gateway.change(async |store| create_organization("other", store).await);
    let none = gateway.usage(&stranger, "/v1/usage").json();
    assert_eq!(none["total"]["requests"], 0);
    assert_eq!(ask(gateway.address(), &Ask::get("/v1/usage")).status(), 401);
}

#[test]
fn a_key_at_its_limit_can_still_read_why() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let key = gateway.key_with(r#"{"limit":"0.003"}"#);
    assert_eq!(gateway.asked(&key, "chat", json!({})).status(), 200);
    assert_eq!(gateway.asked(&key, "chat", json!({})).status(), 402);
    used(&gateway, "0.003");
    assert_eq!(gateway.total(&key, "")["total"]["cost"], "0.003");
}

/// Contract: model-gateway 2.18 from
/// Contract: model-gateway 4 GET /v1/usage
#[test]
fn what_is_not_understood_is_refused() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    for (query, param) in [
        ("from=yesterday", "from"),
        ("from=2020-01-01", "from"),
        ("from=2026-01-02&to=2026-01-01T00:00:00Z", "from"),
        ("to=%00", "to"),
        ("to=2026-02-30", "to"),
        ("granularity=week", "granularity"),
        ("granularity=hour&from=2026-01-01&to=2026-02-02", "from"),
    ] {
        let answer = gateway.usage(&gateway.key, &format!("/v1/usage?{query}"));
        assert_eq!(answer.status(), 400, "{query}: {}", answer.text());
        assert_eq!(answer.json()["error"]["param"], param, "{query}");
    }
    let posted = Ask::post("/v1/usage", "{}").key(&gateway.key);
    assert_eq!(ask(gateway.address(), &posted).status(), 405);
}
