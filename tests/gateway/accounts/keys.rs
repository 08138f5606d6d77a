//! Access by API keys, and the time after which a change of keys counts.

use std::time::{Duration, Instant};

use filters::audit::PROGRAM;
use weirgate::store::Store;

use crate::models::fronts::chat_completions::{PLAIN, reply};
use crate::support::ask::Ask;
use crate::support::boot::{Gateway, create_key};
use crate::support::client::{Client, ask};
use crate::support::every;
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

/// Source: docs/hostile-input.md 38; docs/model-gateway.md 5.3.
#[test]
fn an_address_that_guesses_keys_gets_401_and_waits_for_it_and_good_keys_pass() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let wrong = Ask::post("/v1/chat/completions", PLAIN).key("wg_wrong");
    let timed = || {
        let asked = Instant::now();
        assert_eq!(ask(gateway.address(), &wrong).status(), 401);
        asked.elapsed()
    };
    // A minute may end in between, so there are enough for two.
    let mut guesses = (0..122).map(|_| timed());
    let slow = guesses.position(|waited| waited >= Duration::from_secs(1));
    assert!(slow.is_some_and(|at| at >= 60), "{slow:?}");
    assert!(timed() < Duration::from_secs(10));
    assert_eq!(gateway.chat(PLAIN).status(), 200);
}

/// Source: docs/hostile-input.md 38.
#[test]
fn requests_without_a_key_guess_nothing_and_do_not_count() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let bare = Ask::post("/v1/chat/completions", PLAIN);
    let other_scheme = bare.clone().header("Authorization", "Basic YTpi");
    for _ in 0..70 {
        assert_eq!(ask(gateway.address(), &bare).status(), 401);
        assert_eq!(ask(gateway.address(), &other_scheme).status(), 401);
    }
    let wrong = bare.key("wg_wrong");
    let asked = Instant::now();
    assert_eq!(ask(gateway.address(), &wrong).status(), 401);
    assert!(asked.elapsed() < Duration::from_secs(1));
}

/// Source: docs/hostile-input.md 38.
#[test]
fn of_very_many_guesses_some_wait_and_the_others_lose_their_connections() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let wrong = Ask::get("/v1/models").key("wg_wrong");
    for _ in 0..120 {
        let asked = Instant::now();
        ask(gateway.address(), &wrong);
        if asked.elapsed() >= Duration::from_secs(1) {
            break;
        }
    }
    let mut clients: Vec<Client> = (0..400)
        .map(|_| Client::connect(gateway.address()))
        .collect();
    clients.iter_mut().for_each(|client| client.send(&wrong));
    let answers: Vec<_> = clients.iter_mut().map(Client::answer).collect();
    assert!(answers.iter().all(|answer| answer.status() == 401));
    let closed = answers
        .iter()
        .filter(|answer| answer.header("connection") == Some("close"));
    assert!((100..400).contains(&closed.count()));
    assert_eq!(gateway.chat(PLAIN).status(), 200);
}

/// Contract: model-gateway 5 1
/// Contract: model-gateway 5 2
/// Contract: model-gateway 5 3
/// Contract: model-gateway 7 401
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

/// Contract: model-gateway 5 1
#[test]
fn a_key_made_or_revoked_beside_the_server_counts_within_a_second() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let key = gateway.beside(async |store| create_key(&store).await);
    let request = Ask::post("/v1/chat/completions", PLAIN).key(&key);
    let becomes = |wanted: u16| {
        // More than 60 refused keys a minute would be 429.
        let mut looks = every(Duration::from_millis(25), Duration::from_secs(1));
        looks.any(|_| ask(gateway.address(), &request).status() == wanted)
    };
    assert!(becomes(200));
    gateway.beside(async |store| {
        let keys = store.keys("acme").await.unwrap();
        store
            .by(&PROGRAM)
            .revoke_key(&keys.last().unwrap().id, 1)
            .await
            .unwrap();
    });
    assert!(becomes(401));
}

#[test]
fn a_key_that_is_disabled_renamed_or_deleted_beside_the_server_is_so_within_a_second() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let key = gateway.beside(async |store| create_key(&store).await);
    let id = gateway.change(async |store| store.keys("acme").await.unwrap().pop().unwrap().id);
    let request = Ask::post("/v1/chat/completions", PLAIN).key(&key);
    let status = || ask(gateway.address(), &request).status();
    assert_eq!(status(), 200);
    gateway.change(async |store| store.by(&PROGRAM).disable_key(&id, Some(1)).await.unwrap());
    let refused = ask(gateway.address(), &request);
    assert_eq!(refused.status(), 401, "{}", refused.text());
    assert!(refused.text().contains("disabled"), "{}", refused.text());
    gateway.change(async |store| store.by(&PROGRAM).disable_key(&id, None).await.unwrap());
    assert_eq!(status(), 200);
    let accounts = &gateway.running.app.proxy.accounts;
    let organization = || {
        let current = accounts.current();
        let key = filters::accounts::ApiKey::parse(key.as_bytes()).unwrap();
        let row = gateway.beside(async |store| store.pepper().hash(key));
        current
            .find(&row)
            .map(|row| row.caller.organization.to_string())
    };
    gateway.change(async |store| {
        let renamed = store.by(&PROGRAM).rename_organization("acme", "globex");
        renamed.await.unwrap();
    });
    assert_eq!(organization().as_deref(), Some("globex"));
    assert_eq!(status(), 200);
    gateway.change(async |store| {
        store.by(&PROGRAM).disable_key(&id, Some(1)).await.unwrap();
        store.by(&PROGRAM).delete_key(&id, true, 1).await.unwrap();
    });
    assert_eq!(organization(), None, "it is still in memory");
    assert_eq!(status(), 401);
    assert_eq!(first.requests().len(), 3);
}

#[test]
fn an_organization_that_is_held_for_review_is_refused_until_it_is_released() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    assert_eq!(gateway.chat(PLAIN).status(), 200);
    let hold = async |store: &Store, since_ms| {
        store.by(&PROGRAM).hold_organization("acme", since_ms).await
    };
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
