//! Access by API keys, and the time after which a change of keys counts.

use std::time::{Duration, Instant};

use weirgate::store::Store;

use super::chat_completions::{PLAIN, reply};
use crate::support::ask::Ask;
use crate::support::boot::{Gateway, create_key};
use crate::support::client::ask;
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

/// Source: docs/security.md 38.
#[test]
fn an_address_that_guesses_keys_is_told_to_wait_and_good_keys_pass() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let wrong = Ask::post("/v1/chat/completions", PLAIN).key("wg_wrong");
    let mut statuses: Vec<u16> = Vec::new();
    let mut last = None;
    // A minute may end in between, so there are enough for two.
    for _ in 0..121 {
        let answer = ask(gateway.address(), &wrong);
        statuses.push(answer.status());
        if answer.status() == 429 {
            last = Some(answer);
            break;
        }
    }
    assert!(
        statuses[..60].iter().all(|status| *status == 401),
        "{statuses:?}"
    );
    let refused = last.unwrap();
    let wait_s: u32 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait_s), "{wait_s}");
    assert_eq!(gateway.chat(PLAIN).status(), 200);
}

#[test]
fn a_missing_wrong_or_doubled_key_is_refused_without_being_echoed() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let bare = Ask::post("/v1/chat/completions", PLAIN);
    let other_end = if gateway.key.ends_with('x') { "y" } else { "x" };
    let wrong = format!("{}{other_end}", &gateway.key[..gateway.key.len() - 1]);
    for (request, status) in [
        (bare.clone(), 401),
        (bare.clone().header("Authorization", "Bearer "), 401),
        (bare.clone().key(&wrong), 401),
        (bare.clone().key("sk-other"), 401),
        (bare.clone().key(&gateway.key).key(&gateway.key), 400),
        (
            bare.clone().key(&gateway.key).header("x-api-key", &wrong),
            400,
        ),
        (bare.clone().header("x-api-key", &gateway.key), 200),
        (
            bare.clone()
                .header("Authorization", &format!("bearer {}", gateway.key)),
            200,
        ),
        (
            bare.clone()
                .key(&gateway.key)
                .header("x-api-key", &gateway.key),
            200,
        ),
    ] {
        let answer = ask(gateway.address(), &request);
        assert_eq!(answer.status(), status, "{}", answer.text());
        assert!(!answer.text().contains(&wrong) && !answer.text().contains("sk-other"));
        if status != 200 {
            assert_eq!(answer.header("x-should-retry"), Some("false"));
        }
    }
}

#[test]
fn a_key_made_or_revoked_beside_the_server_counts_within_a_second() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let key = gateway.beside(async |store| create_key(&store).await);
    let request = Ask::post("/v1/chat/completions", PLAIN).key(&key);
    let status_within_a_second = |wanted: u16| {
        let until = Instant::now() + Duration::from_secs(1);
        loop {
            let status = ask(gateway.address(), &request).status();
            if status == wanted || Instant::now() > until {
                return status;
            }
            // More than 60 refused keys a minute would be 429.
            std::thread::sleep(Duration::from_millis(25));
        }
    };
    assert_eq!(status_within_a_second(200), 200);
    gateway.beside(async |store| {
        let keys = store.keys("acme").await.unwrap();
        store.revoke_key(&keys.last().unwrap().id, 1).await.unwrap();
    });
    assert_eq!(status_within_a_second(401), 401);
}

#[test]
fn an_organization_that_is_held_for_review_is_refused_until_it_is_released() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    assert_eq!(gateway.chat(PLAIN).status(), 200);
    let hold = async |store: &Store, since_ms| store.hold_organization("acme", since_ms).await;
    gateway.change(async |store| hold(store, Some(1)).await.unwrap());
    let refused = gateway.chat(PLAIN);
    assert_eq!(refused.status(), 403, "{}", refused.text());
    assert_eq!(refused.json()["error"]["code"], "organization_held");
    assert_eq!(first.requests().len(), 1);
    gateway.change(async |store| hold(store, None).await.unwrap());
    assert_eq!(gateway.chat(PLAIN).status(), 200);
}

/// Source: docs/model-gateway.md 7.
#[test]
fn a_client_of_the_messages_api_reads_errors_in_its_own_style() {
    let broken = Upstream::always(Reply::json(500, "{}"));
    let gateway = Gateway::between(&broken.url(), &broken.url());
    let styled = |request: Ask| request.header("anthropic-version", "2023-06-01");
    let key = gateway.key.as_str();
    let unknown = r#"{"model": "nothing", "messages": [{"role": "user", "content": "Hi"}]}"#;
    let post = |body: &str| Ask::post("/v1/chat/completions", body);
    for (request, status, error_type) in [
        (post(PLAIN), 401, "authentication_error"),
        (post("{").key(key), 400, "invalid_request_error"),
        (post(unknown).key(key), 404, "not_found_error"),
        (Ask::get("/v1/key").key("x"), 401, "authentication_error"),
        (post(PLAIN).key(key), 502, "api_error"),
    ] {
        let answer = ask(gateway.address(), &styled(request.clone()));
        assert_eq!(answer.status(), status, "{}", answer.text());
        let body = answer.json();
        assert_eq!(body["type"], "error");
        assert_eq!(body["error"]["type"], error_type);
        let message = body["error"]["message"].clone();
        let compatible = ask(gateway.address(), &request).json();
        assert_eq!(compatible["error"]["message"], message);
        assert!(compatible.get("type").is_none(), "{compatible}");
    }
}
