//! Whose replies are whose, and which requests are equal.

use filters::accounts::Mode;
use filters::audit::PROGRAM;
use weirgate::store::{NewKey, NewProject};

use super::*;
use crate::support::boot::create_organization;

fn with_key(gateway: &Gateway, key: &str, body: &str) -> Answer {
    let request = Ask::post("/v1/chat/completions", body).key(key);
    ask(gateway.address(), &request)
}

#[test]
fn tenants_never_get_each_others_replies() {
    let first = Upstream::always(reply());
    let gateway = caching(&first);
    let (sibling, other) = gateway.change(async |store| {
        let project = NewProject {
            name: "app",
            mode: Mode::Platform,
            cache_ttl_s: Some(3600),
        };
        store
            .by(&PROGRAM)
            .create_project("acme", &project, 0)
            .await
            .unwrap();
        let new = NewKey {
            organization: "acme",
            project: "app",
            ..NewKey::default()
        };
        let (sibling, _) = store.by(&PROGRAM).create_key(&new, 0).await.unwrap();
        let other = create_organization("other", &store.clone()).await;
        let change = ProjectChange {
            cache_ttl_s: Some(Some(3600)),
            ..ProjectChange::default()
        };
        let updated = store
            .by(&PROGRAM)
            .update_project("other", "default", &change)
            .await;
        updated.unwrap();
        (sibling.reveal().to_owned(), other)
    });
    for (at, key) in [&gateway.key, &sibling, &other].into_iter().enumerate() {
        assert!(!is_hit(&with_key(&gateway, key, PLAIN)), "{at}");
        assert!(is_hit(&with_key(&gateway, key, PLAIN)), "{at}");
        assert_eq!(first.requests().len(), at + 1);
    }
    // Keys of one project share.
    let second = gateway.key_with("{}");
    assert!(is_hit(&with_key(&gateway, &second, PLAIN)));
}

#[test]
fn a_key_gets_no_reply_of_a_provider_that_it_may_not_use() {
    let (first, second) = (Upstream::always(reply()), Upstream::always(reply()));
    let gateway = Gateway::between(&first.url(), &second.url());
    gateway.cache_for(3600);
    assert!(!is_hit(&gateway.chat(PLAIN)));
    let key = gateway.key_with(r#"{"deny_providers":["first"]}"#);
    let answer = with_key(&gateway, &key, PLAIN);
    assert!(!is_hit(&answer));
    assert_eq!(answer.json()["metadata"]["used_provider"], "second");
    assert!(is_hit(&with_key(&gateway, &key, PLAIN)) && is_hit(&gateway.chat(PLAIN)));
    assert_eq!((first.requests().len(), second.requests().len()), (1, 1));
    let refused = gateway.key_with(r#"{"deny_models":["chat"]}"#);
    assert_eq!(with_key(&gateway, &refused, PLAIN).status(), 403);
}

#[test]
fn a_mode_of_its_own_has_replies_of_its_own() {
    let first = Upstream::always(reply());
    let gateway = caching(&first);
    assert!(!is_hit(&gateway.chat(PLAIN)));
    gateway.set_mode(Mode::Hybrid);
    assert!(!is_hit(&gateway.chat(PLAIN)) && is_hit(&gateway.chat(PLAIN)));
    gateway.set_mode(Mode::Platform);
    assert!(is_hit(&gateway.chat(PLAIN)));
}

/// Attempts to be answered with a reply to another request, or to leave a reply for one.
#[test]
fn requests_that_may_have_other_answers_are_not_equal() {
    let first = Upstream::always(reply());
    let gateway = caching(&first);
    let body = |more: &str, content: &str| {
        format!(r#"{{"model":"chat","messages":[{{"role":"user","content":"{content}"}}]{more}}}"#)
    };
    assert!(!is_hit(&gateway.chat(PLAIN)));
    for other in [
        body(r#","x_unknown":1"#, "Hi"),
        body(r#","x_unknown":1.0"#, "Hi"),
        body(r#","x_unknown":{"a":1,"a":2}"#, "Hi"),
        body(r#","x_unknown":{"a":2,"a":1}"#, "Hi"),
        body(r#","temperature":0"#, "Hi"),
        body("", "H\u{456}"),
        body("", "Hi\u{200b}"),
        body("", "hi"),
        body("", "Hi").replace("\"chat\"", "\"second/chat\""),
        body("", "Hi").replace("user", "system"),
    ] {
        assert!(!is_hit(&gateway.chat(&other)), "{other}");
        assert!(is_hit(&gateway.chat(&other)), "{other}");
    }
    let twice = r#"{"model":"chat","model":"nick","messages":[{"role":"user","content":"Hi"}]}"#;
    assert_eq!(gateway.chat(twice).status(), 400);
}

#[test]
fn spellings_of_one_request_are_equal() {
    let first = Upstream::always(reply());
    let gateway = caching(&first);
    assert!(!is_hit(&gateway.chat(PLAIN)));
    for same in [
        PLAIN.replace("\"chat\"", "\"nick\""),
        PLAIN.replace("Hi", "\\u0048i"),
        r#"{ "messages" : [ { "content":"Hi", "role":"user" } ], "model" : "chat" }"#.to_owned(),
        PLAIN.replace("\"model\"", "\"user\":\"ann\",\"model\""),
        PLAIN.replace("\"model\"", "\"routing\":\"price\",\"model\""),
        STREAM.to_owned(),
    ] {
        assert!(is_hit(&gateway.chat(&same)), "{same}");
    }
    // No header of a client reaches the provider, so none of them changes the answer.
    for (name, value) in [
        ("anthropic-beta", "x"),
        ("accept-language", "de"),
        ("x-session-id", "s"),
        ("cookie", "a=b"),
        (
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ),
    ] {
        let request = gateway.chat_ask(PLAIN).header(name, value);
        assert!(is_hit(&ask(gateway.address(), &request)), "{name}");
    }
    assert_eq!(first.requests().len(), 1);
}
