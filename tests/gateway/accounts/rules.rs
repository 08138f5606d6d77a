//! The rules of keys and plans, as the caller sees them.

use filters::accounts::{Plan, TermsFile};
use filters::audit::PROGRAM;
use serde_json::json;
use weirgate::store::{KeyChange, NewKey};

use crate::models::fronts::chat_completions::reply;
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};
use crate::support::upstream::Upstream;

fn terms(json: &str) -> TermsFile {
    serde_json::from_str(json).unwrap()
}

impl Gateway {
    /// A key of the organization with these terms, which the running server knows.
    pub fn key_with(&self, json: &str) -> String {
        let terms = terms(json);
        self.change(async |store| {
            let new = NewKey {
                organization: "acme",
                terms: &terms,
                ..NewKey::default()
            };
            let (text, _) = store.by(&PROGRAM).create_key(&new, 0).await.unwrap();
            text.reveal().to_owned()
        })
    }

    /// Calls the model with this key and these additional members.
    pub fn asked(&self, key: &str, model: &str, more: serde_json::Value) -> Answer {
        let mut body = json!({"model": model, "messages": [{"role": "user", "content": "Hi"}]});
        let members = body.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        let request = Ask::post("/v1/chat/completions", body.to_string()).key(key);
        ask(self.address(), &request)
    }
}

fn assert_forbidden(answer: &Answer, what: &str) {
    assert_eq!(answer.status(), 403, "{}", answer.text());
    let error = answer.json()["error"].clone();
    assert_eq!(error["code"], "permission_denied");
    assert!(error["message"].as_str().unwrap().contains(what), "{error}");
    assert_eq!(answer.header("x-should-retry"), Some("false"));
}

/// Contract: model-gateway 7 403
#[test]
fn a_forbidden_model_is_a_403_and_no_provider_hears_of_it() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let key = gateway.key_with(r#"{"deny_models":["chat"]}"#);
    for name in ["chat", "nick", "first/chat"] {
        assert_forbidden(&gateway.asked(&key, name, json!({})), "the model");
    }
    assert!(first.requests().is_empty());
    assert_eq!(gateway.asked(&key, "only-first", json!({})).status(), 200);
}

#[test]
fn a_forbidden_provider_is_filtered_where_the_model_is_not_pinned_to_it() {
    let (first, second) = (Upstream::always(reply()), Upstream::always(reply()));
    let gateway = Gateway::between(&first.url(), &second.url());
    let key = gateway.key_with(r#"{"deny_providers":["first"]}"#);
    let answer = gateway.asked(&key, "chat", json!({}));
    assert_eq!(answer.json()["metadata"]["used_provider"], "second");
    assert_forbidden(
        &gateway.asked(&key, "first/chat", json!({})),
        "the provider",
    );
    assert!(first.requests().is_empty());
}

#[test]
fn a_highest_price_filters_the_dearer_provider() {
    let (first, second) = (Upstream::always(reply()), Upstream::always(reply()));
    let gateway = Gateway::between(&first.url(), &second.url());
    let key = gateway.key_with(r#"{"max_input_price":"2.5","max_output_price":"10"}"#);
    let answer = gateway.asked(&key, "chat", json!({}));
    assert_eq!(answer.json()["metadata"]["used_provider"], "first");
    assert_forbidden(&gateway.asked(&key, "second/chat", json!({})), "the price");
    let free = gateway.key_with(r#"{"max_input_price":"0"}"#);
    assert_forbidden(&gateway.asked(&free, "chat", json!({})), "the price");
}

#[test]
fn a_key_is_used_from_allowed_addresses_alone() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let near = gateway.key_with(r#"{"allow_ips":["127.0.0.0/8"]}"#);
    let far = gateway.key_with(r#"{"allow_ips":["192.0.2.0/24"]}"#);
    let denied = gateway.key_with(r#"{"deny_ips":["127.0.0.1"]}"#);
    assert_eq!(gateway.asked(&near, "chat", json!({})).status(), 200);
    for key in [&far, &denied] {
        assert_forbidden(&gateway.asked(key, "chat", json!({})), "the address");
        let list = ask(gateway.address(), &Ask::get("/v1/models").key(key));
        assert_forbidden(&list, "the address");
    }
}

#[test]
fn a_changed_rule_counts_within_a_second() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    assert_eq!(gateway.asked(&gateway.key, "chat", json!({})).status(), 200);
    gateway.change(async |store| {
        let id = store.keys("acme").await.unwrap().remove(0).id;
        let wanted = KeyChange {
            terms: Some(terms(r#"{"allow_models":["only-first"]}"#)),
            ..KeyChange::default()
        };
        store.by(&PROGRAM).update_key(&id, &wanted).await.unwrap();
    });
    assert_forbidden(&gateway.asked(&gateway.key, "chat", json!({})), "the model");
    assert_eq!(
        gateway
            .asked(&gateway.key, "only-first", json!({}))
            .status(),
        200
    );
}

/// Contract: model-gateway 2.1 routing 3
/// Contract: model-gateway 2.1 service_tier 3
/// Contract: model-gateway 8 7
#[test]
fn a_plan_takes_auto_and_price_and_no_priority() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    gateway.change(async |store| {
        store
            .by(&PROGRAM)
            .set_plan("acme", Plan::Pro, 1)
            .await
            .unwrap()
    });
    for (more, status, param) in [
        (json!({"routing": "price"}), 200, None),
        (
            json!({"routing": "auto", "service_tier": "default"}),
            200,
            None,
        ),
        (json!({"routing": "latency"}), 400, Some("routing")),
        (json!({"routing": "throughput"}), 400, Some("routing")),
        (
            json!({"service_tier": "priority"}),
            400,
            Some("service_tier"),
        ),
    ] {
        let answer = gateway.asked(&gateway.key, "chat", more.clone());
        assert_eq!(answer.status(), status, "{more}: {}", answer.text());
        assert_eq!(answer.json()["error"]["param"].as_str(), param);
    }
}

#[test]
fn an_unknown_model_is_unknown_before_it_is_forbidden() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let key = gateway.key_with(r#"{"allow_models":["only-first"]}"#);
    assert_eq!(
        gateway.asked(&key, "no-such-model", json!({})).status(),
        404
    );
}

/// Contract: model-gateway 7 401
/// Contract: model-gateway 7 410
#[test]
fn an_expired_key_is_a_401_and_a_closed_organization_or_project_a_410() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    gateway.change(async |store| {
        let id = store.keys("acme").await.unwrap().remove(0).id;
        let wanted = KeyChange {
            expires_at_ms: Some(Some(1)),
            ..KeyChange::default()
        };
        store.by(&PROGRAM).update_key(&id, &wanted).await.unwrap();
    });
    let answer = gateway.asked(&gateway.key, "chat", json!({}));
    assert_eq!(
        (answer.status(), &answer.json()["error"]["code"]),
        (401, &json!("invalid_api_key"))
    );
    let key = gateway.key_with("{}");
    gateway.change(async |store| {
        store
            .by(&PROGRAM)
            .archive_project("acme", "default")
            .await
            .unwrap()
    });
    let answer = gateway.asked(&key, "chat", json!({}));
    assert_eq!(
        (answer.status(), &answer.json()["error"]["code"]),
        (410, &json!("project_archived"))
    );
    gateway.change(async |store| {
        store
            .by(&PROGRAM)
            .disable_organization("acme")
            .await
            .unwrap()
    });
    let answer = gateway.asked(&key, "chat", json!({}));
    assert_eq!(answer.json()["error"]["code"], "organization_disabled");
    assert!(first.requests().is_empty());
}
