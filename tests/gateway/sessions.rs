//! Sessions: what names them, where they stay and when they move. Source: docs/decisions.md 11, 36.

use crate::support::ask::Ask;
use crate::support::boot::{Gateway, create_organization};
use crate::support::client::ask;
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

use super::chat_completions::reply;

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
        let id = format!("call-{}", fastrand::u64(..));
        let request = self.request(&gateway.key, model, content);
        let answer = ask(gateway.address(), &request.header("x-request-id", &id));
        // A session is bound when its call has ended, behind the answer.
        gateway.log_line(&id);
        let body = answer.json();
        let provider = body["metadata"]["used_provider"].as_str();
        provider.unwrap_or_else(|| panic!("{body}")).to_owned()
    }
}

/// Moves a session to the second provider.
fn moved(gateway: &Gateway, session: &Session) {
    assert_eq!(session.provider(gateway, "chat", "without-first"), "second");
}

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
