//! `POST /mcp/oauth/authorize`: a person answers.

use std::time::{Duration, Instant};

use filters::audit::PROGRAM;

use crate::support::ask::Ask;
use crate::support::boot::{Gateway, MODELS, create_key};
use crate::support::client::{Answer, ask};
use crate::support::oauth::{
    ISSUER, Page, authorization, brought, client, encoded, exchange, form, page, resealed,
};

/// A gateway, and a page that it has shown.
fn shown() -> (Gateway, Page) {
    let gateway = Gateway::start("", MODELS);
    let client = client(gateway.address());
    let page = page(gateway.address(), &authorization(&client, "models", &[]));
    (gateway, page)
}

/// The names of what a redirect brings.
fn names(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.status(), 303, "{}", answer.text());
    brought(answer).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn allowing_brings_a_code_and_no_key() {
    let (gateway, page) = shown();
    let answer = ask(gateway.address(), &form(&page, &gateway.key, "allow"));
    assert_eq!(names(&answer), ["code", "state", "iss"]);
    let brought = brought(&answer);
    assert!(brought[0].1.starts_with("wgc_"));
    assert_eq!((&*brought[1].1, &*brought[2].1), ("the state", ISSUER));
    assert!(!format!("{:?}", answer.head).contains(&gateway.key));
    assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
}

#[test]
fn denying_needs_no_key_and_brings_no_code() {
    let (gateway, page) = shown();
    let answer = ask(gateway.address(), &form(&page, "", "deny"));
    assert_eq!(
        names(&answer),
        ["error", "error_description", "state", "iss"]
    );
    assert_eq!(brought(&answer)[0].1, "access_denied");
    let late = ask(gateway.address(), &form(&page, &gateway.key, "allow"));
    assert_eq!((late.status(), late.header("location")), (400, None));
}

#[test]
fn a_form_that_is_sent_twice_gives_one_code() {
    let gateway = Gateway::start("", MODELS);
    let client = client(gateway.address());
    let page = page(gateway.address(), &authorization(&client, "models", &[]));
    let request = form(&page, &gateway.key, "allow");
    let first = ask(gateway.address(), &request);
    assert_eq!(names(&first)[0], "code");
    // A double click: the browser leaves the first response alone.
    let second = ask(gateway.address(), &request);
    assert_eq!(brought(&second), brought(&first));
    let code = &brought(&first)[0].1;
    let exchanged = ask(gateway.address(), &exchange(&client, code, &[]));
    assert_eq!(exchanged.status(), 200, "{}", exchanged.text());
    for decision in ["allow", "deny"] {
        let again = ask(gateway.address(), &form(&page, &gateway.key, decision));
        assert_eq!((again.status(), again.header("location")), (400, None));
        assert!(again.text().contains("This page has ended"));
    }
}

#[test]
fn a_denial_that_is_sent_twice_is_one() {
    let (gateway, page) = shown();
    for _ in 0..2 {
        let answer = ask(gateway.address(), &form(&page, "", "deny"));
        assert_eq!(names(&answer)[0], "error");
    }
    let late = ask(gateway.address(), &form(&page, &gateway.key, "allow"));
    assert_eq!((late.status(), late.header("location")), (400, None));
}

#[test]
fn a_wrong_key_shows_the_page_again_and_a_right_one_then_counts() {
    let (gateway, page) = shown();
    let revoked = gateway.change(async |store| {
        let key = create_key(store).await;
        let keys = store.keys("acme").await.unwrap();
        let id = &keys.last().unwrap().id;
        store.by(&PROGRAM).revoke_key(id, 1).await.unwrap();
        key
    });
    let unknown = filters::accounts::KeyText::from_entropy(&[3; 32]);
    for (key, told) in [
        ("", "no API key"),
        ("wg_nonsense", "no API key"),
        (unknown.reveal(), "not known"),
        (&revoked, "revoked"),
    ] {
        let answer = ask(gateway.address(), &form(&page, key, "allow"));
        assert_eq!((answer.status(), answer.header("location")), (403, None));
        assert!(answer.text().contains(told), "{}", answer.text());
        assert!(answer.text().contains(&page.request), "the same page");
        assert!(key.is_empty() || !answer.text().contains(key));
    }
    let answer = ask(gateway.address(), &form(&page, &gateway.key, "allow"));
    assert_eq!(names(&answer)[0], "code");
}

#[test]
fn an_address_that_guesses_keys_waits_for_its_answer() {
    let (gateway, page) = shown();
    let request = form(&page, "wg_nonsense", "allow");
    let mut guesses = (0..122).map(|_| {
        let asked = Instant::now();
        assert_eq!(ask(gateway.address(), &request).status(), 403);
        asked.elapsed()
    });
    let slow = guesses.position(|waited| waited >= Duration::from_secs(1));
    assert!(slow.is_some_and(|at| at >= 60), "{slow:?}");
}

#[test]
fn only_the_page_in_the_browser_that_it_was_shown_to_can_be_answered() {
    let (gateway, page) = shown();
    let client = client(gateway.address());
    let other =
        crate::support::oauth::page(gateway.address(), &authorization(&client, "models", &[]));
    let good = form(&page, &gateway.key, "allow");
    let bare = good.clone().without("Cookie");
    let foreign = |origin: &str| good.clone().without("Origin").header("Origin", origin);
    let value = page.cookie.split('=').next().unwrap();
    for request in [
        bare.clone(),
        bare.clone().header("Cookie", &other.cookie),
        bare.clone().header("Cookie", &format!("{value}=x")),
        foreign("https://evil.example"),
        foreign("http://localhost.evil.example"),
        foreign("http://localhost:81"),
        foreign("null"),
        good.clone().header("Origin", "https://evil.example"),
    ] {
        let answer = ask(gateway.address(), &request);
        assert_eq!((answer.status(), answer.header("location")), (403, None));
    }
    let both = bare.header("Cookie", &format!("a=b; {}; {}", other.cookie, page.cookie));
    assert_eq!(ask(gateway.address(), &both).status(), 303);
}

#[test]
fn a_form_that_is_not_the_pages_is_refused() {
    let (gateway, page) = shown();
    let mut changed = page.clone();
    let last = changed.request.pop().unwrap();
    changed.request.push(if last == 'A' { 'B' } else { 'A' });
    let empty = Page {
        request: String::new(),
        ..page.clone()
    };
    for request in [
        form(&changed, &gateway.key, "allow"),
        form(&empty, &gateway.key, "allow"),
        form(&page, &gateway.key, "perhaps"),
        form(&page, &gateway.key, ""),
        form(&page, &gateway.key, "allow").body(encoded(&[("request", "a"), ("request", "b")])),
        form(&page, &gateway.key, "allow").without("Content-Type"),
    ] {
        let answer = ask(gateway.address(), &request);
        assert_eq!((answer.status(), answer.header("location")), (400, None));
        assert!(!answer.text().contains(&gateway.key));
    }
}

#[test]
fn a_page_that_is_ten_minutes_old_is_over() {
    let (gateway, page) = shown();
    let old = resealed(&gateway, &page, |opened| {
        let expires_ms = opened["expires_at_ms"].as_i64().unwrap();
        let now_ms = jiff::Timestamp::now().as_millisecond();
        let left_ms = expires_ms - now_ms;
        assert!((1..=600_000).contains(&left_ms), "{left_ms}");
        opened["expires_at_ms"] = now_ms.into();
    });
    let answer = ask(gateway.address(), &form(&old, &gateway.key, "allow"));
    assert_eq!((answer.status(), answer.header("location")), (400, None));
    assert!(answer.text().contains("This page has ended"));
}

#[test]
fn two_pages_of_one_browser_are_both_answered() {
    let (gateway, first) = shown();
    let client = client(gateway.address());
    let request = authorization(&client, "models", &[]);
    let second = page(gateway.address(), &request.header("Cookie", &first.cookie));
    assert_ne!(first.cookie, second.cookie);
    let cookies = format!("{}; {}", first.cookie, second.cookie);
    for page in [second, first] {
        let page = Page {
            cookie: cookies.clone(),
            ..page
        };
        assert_eq!(
            ask(gateway.address(), &form(&page, &gateway.key, "allow")).status(),
            303
        );
    }
}

#[test]
fn a_key_never_counts_in_the_url() {
    let (gateway, page) = shown();
    let path = format!("/mcp/oauth/authorize?{}", encoded(&[("key", &gateway.key)]));
    let fields = [("request", &*page.request), ("decision", "allow")];
    let request = Ask::new("POST", &path)
        .header("Content-Type", "application/x-www-form-urlencoded")
        .header("Cookie", &page.cookie)
        .body(encoded(&fields));
    assert_eq!(ask(gateway.address(), &request).status(), 403);
}
