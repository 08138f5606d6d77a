//! Access by API keys, and the time after which a change of keys counts.

use std::time::{Duration, Instant};

use super::chat_completions::{PLAIN, reply};
use crate::support::ask::Ask;
use crate::support::boot::{Gateway, create_key};
use crate::support::client::ask;
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
