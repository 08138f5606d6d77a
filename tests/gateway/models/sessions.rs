//! Sessions: what names them, where they stay and when they move. Source: docs/decisions.md 11, 36.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use crate::support::ask::Ask;
use crate::support::boot::{Gateway, create_organization};
use crate::support::client::{Client, ask};
use crate::support::script::{Gate, Reply};
use crate::support::upstream::Upstream;

use crate::models::fronts::chat_completions::{chunk, reply};

/// A provider that fails the requests whose text names it.
fn failing_on(word: &'static str) -> Upstream {
    Upstream::answering(move |request| {
        let body = String::from_utf8_lossy(&request.body);
        match body.contains(word) {
            true => Reply::json(500, "{}"),
            false => reply(),
        }
    })
}

/// A gateway whose cheaper provider has answered so often that one failure does not count.
fn gateway() -> (Gateway, [Upstream; 2]) {
    let (first, second) = (failing_on("without-first"), failing_on("without-second"));
    let gateway = Gateway::between(&first.url(), &second.url());
    let session = Session::headers(&[]);
    for _ in 0..30 {
        assert_eq!(session.provider(&gateway, "chat", "Hi"), "first");
    }
    (gateway, [first, second])
}

/// What a client says of its session.
struct Session {
    headers: Vec<(&'static str, String)>,
    members: String,
}

impl Session {
    fn headers(headers: &[(&'static str, &str)]) -> Self {
        let headers = headers.iter().map(|(name, id)| (*name, (*id).to_owned()));
        Self {
            headers: headers.collect(),
            members: String::new(),
        }
    }

    fn members(members: &str) -> Self {
        Self {
            headers: Vec::new(),
            members: format!(",{members}"),
        }
    }

    fn request(&self, key: &str, model: &str, content: &str) -> Ask {
        let members = &self.members;
        let body = format!(
            r#"{{"model":"{model}","messages":[{{"role":"user","content":"{content}"}}]{members}}}"#
        );
        let request = Ask::post("/v1/chat/completions", body).key(key);
        let headers = self.headers.iter();
        headers.fold(request, |request, (name, id)| request.header(name, id))
    }

    /// The provider that answers.
    fn provider(&self, gateway: &Gateway, model: &str, content: &str) -> String {
        let request = self.request(&gateway.key, model, content);
        let body = ask(gateway.address(), &request).json();
        let provider = body["metadata"]["used_provider"].as_str();
        provider.unwrap_or_else(|| panic!("{body}")).to_owned()
    }
}

/// Moves a session to the second provider.
fn moved(gateway: &Gateway, session: &Session) {
    assert_eq!(session.provider(gateway, "chat", "without-first"), "second");
}

/// Contract: model-gateway 2.1 prompt_cache_key
/// Contract: model-gateway 2.1 user
#[test]
fn every_way_of_naming_a_session_keeps_its_provider() {
    let ways = [
        Session::headers(&[("x-session-id", "a")]),
        Session::headers(&[("x-session-affinity", "b")]),
        Session::headers(&[("session_id", "c")]),
        Session::headers(&[("session-id", "d")]),
        Session::members(r#""prompt_cache_key":"e""#),
        Session::members(r#""user":"f""#),
    ];
    for session in &ways {
        let (gateway, _providers) = gateway();
        moved(&gateway, session);
        for _ in 0..2 {
            assert_eq!(session.provider(&gateway, "chat", "Hi"), "second");
        }
        // Others stay where they were.
        let other = Session::headers(&[("x-session-id", "other")]);
        assert_eq!(other.provider(&gateway, "chat", "Hi"), "first");
    }
}

#[test]
fn an_alias_is_the_same_session_and_a_pinned_provider_does_not_move_it() {
    let (gateway, _providers) = gateway();
    let session = Session::headers(&[("x-session-id", "s")]);
    assert_eq!(
        session.provider(&gateway, "nick", "without-first"),
        "second"
    );
    assert_eq!(session.provider(&gateway, "chat", "Hi"), "second");
    assert_eq!(session.provider(&gateway, "first/chat", "Hi"), "first");
    assert_eq!(session.provider(&gateway, "nick", "Hi"), "second");
}

/// Source: docs/decisions.md 11, 36.
#[test]
fn a_turn_that_is_sent_at_once_finds_its_session() {
    let (gateway, _providers) = gateway();
    let moved = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (gateway, moved) = (&gateway, &moved);
            scope.spawn(move || {
                // The next turn needs no connection of its own, so nothing gives the first call time to end.
                let mut clients = [(); 2].map(|()| Client::connect(gateway.address()));
                for at in 0..50 {
                    let id = format!("{thread} {at}");
                    let session = Session::headers(&[("x-session-id", &id)]);
                    let mut ask = |client: usize, content| {
                        let turn = session.request(&gateway.key, "chat", content);
                        let answer = clients[client].ask(&turn).json();
                        answer["metadata"]["used_provider"].clone()
                    };
                    assert_eq!(ask(0, "without-first"), "second");
                    let is_moved = ask(1, "Hi") != "second";
                    moved.fetch_add(usize::from(is_moved), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(moved.into_inner(), 0, "of 400 sessions");
}

/// Reads until this text has come.
fn read_until(client: &mut Client, end: &str) {
    let mut text = String::new();
    while !text.contains(end) {
        text += &String::from_utf8_lossy(&client.chunk().unwrap().bytes);
    }
}

/// A provider holds its reply open, where a client has all of it or all but the end.
///
/// Source: docs/decisions.md 11, 36.
#[test]
fn a_session_is_bound_before_the_client_has_the_whole_stream() {
    let gate = Gate::default();
    let opened = gate.clone();
    let second = Upstream::answering(move |request| {
        let body = String::from_utf8_lossy(&request.body);
        if !body.contains("without-first") {
            return reply();
        }
        let last = chunk(json!({"role": "assistant", "content": "a"}), Some("stop"));
        let reply = Reply::stream().event(&last);
        match body.contains("[DONE]") {
            true => reply.event("[DONE]").wait(&opened).end(),
            false => reply.wait(&opened).event("[DONE]").end(),
        }
    });
    let first = failing_on("without-first");
    let gateway = Gateway::between(&first.url(), &second.url());
    for _ in 0..30 {
        let warm = Session::headers(&[]);
        assert_eq!(warm.provider(&gateway, "chat", "Hi"), "first");
    }
    for (id, end) in (0..10).flat_map(|at| [(at, "[DONE]"), (10 + at, "\"stop\"")]) {
        let id = id.to_string();
        let session = Session::headers(&[("x-session-id", &id)]);
        let streaming = Session {
            members: ",\"stream\":true".to_owned(),
            headers: session.headers.clone(),
        };
        let content = format!("without-first {}", end.replace('"', ""));
        let mut client = Client::connect(gateway.address());
        client.send(&streaming.request(&gateway.key, "chat", &content));
        assert_eq!(client.head().status, 200);
        read_until(&mut client, end);
        let provider = session.provider(&gateway, "chat", "Hi");
        assert_eq!(provider, "second", "{id}, after {end}");
    }
    gate.open();
}

#[test]
fn a_session_moves_to_the_provider_that_answers_instead() {
    let (gateway, _providers) = gateway();
    let session = Session::headers(&[("x-session-id", "s")]);
    moved(&gateway, &session);
    assert_eq!(
        session.provider(&gateway, "chat", "without-second"),
        "first"
    );
    assert_eq!(session.provider(&gateway, "chat", "Hi"), "first");
}

#[test]
fn sessions_of_two_organizations_are_apart() {
    let (gateway, _providers) = gateway();
    let session = Session::headers(&[("x-session-id", "s")]);
    moved(&gateway, &session);
    let other = gateway.change(async |store| create_organization("other", &store.clone()).await);
    let answer = ask(gateway.address(), &session.request(&other, "chat", "Hi"));
    assert_eq!(answer.json()["metadata"]["used_provider"], "first");
    assert_eq!(session.provider(&gateway, "chat", "Hi"), "second");
}

#[test]
fn an_id_of_ten_thousand_characters_names_a_session_and_a_longer_head_is_refused() {
    let (gateway, _providers) = gateway();
    let id = "x".repeat(9_999);
    let [own, other] = ["a", "b"].map(|last| format!("{id}{last}"));
    let session = Session::headers(&[("x-session-id", &own)]);
    moved(&gateway, &session);
    assert_eq!(session.provider(&gateway, "chat", "Hi"), "second");
    let other = Session::headers(&[("x-session-id", &other)]);
    assert_eq!(other.provider(&gateway, "chat", "Hi"), "first");
    let in_body = Session::members(&format!(r#""user":"{own}""#));
    assert_eq!(in_body.provider(&gateway, "chat", "Hi"), "second");
    let huge = Session::headers(&[("x-session-id", &id.repeat(4))]);
    let answer = ask(gateway.address(), &huge.request(&gateway.key, "chat", "Hi"));
    assert_eq!(answer.status(), 431);
}
