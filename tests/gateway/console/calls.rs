//! One call, and the sessions of calls.

use filters::audit::PROGRAM;
use weirgate::store::NewKey;

use super::Browser;
use super::live::{ask_as, ended};
use crate::models::fronts::chat_completions::{PLAIN, reply};
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

const SESSION: &str = "x-session-id";
const AGENT: &str = "x-claude-code-agent-id";
const PARENT: &str = "x-claude-code-parent-agent-id";

#[test]
fn the_page_of_a_call_shows_both_attempts_of_a_fallback_and_is_found_by_id() {
    let (first, second) = (
        Upstream::always(Reply::json(503, "{}")),
        Upstream::always(reply()),
    );
    let gateway = Gateway::between(&first.url(), &second.url());
    ask_as(&gateway, "fell-back", PLAIN, &[]);
    ended(&gateway, 1);
    let mut browser = Browser::new(&gateway);
    let page = browser.page("/console/calls/fell-back");
    for part in [
        "<title>Call fell-back · Weirgate</title>",
        "status 503",
        "chat-at-first",
        "chat-at-second",
        "badge good\">succeeded",
        "class=\"wait\"",
        "class=\"stream\"",
        "class=\"failed\"",
        "Completion",
        "$0.002",
        "weirgate org update acme --keep-bodies 4h",
        "was not noted",
        "&quot;request_id&quot;:&quot;fell-back&quot;",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(page.find("chat-at-first") < page.find("chat-at-second"));
    assert!(!page.contains("hello"), "no body: {page}");
    let found = browser.page("/console/calls?request_id=fell-back");
    assert!(found.contains("chat-at-second"), "{found}");
    assert!(
        browser
            .page("/console/calls")
            .contains("name=\"request_id\"")
    );
    let none = browser.send(&Ask::get("/console/calls/%3Cb%3Enone"));
    assert_eq!(none.status(), 404);
    assert!(none.text().contains("&lt;b&gt;none"), "{}", none.text());
}

#[test]
fn bodies_are_shown_of_an_organization_that_allows_it_as_long_as_it_does() {
    const CANARY: &str = "<b>canary-of-a-body";
    const SHOWN: &str = "&lt;b&gt;canary-of-a-body";
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let mut browser = Browser::new(&gateway);
    let body = PLAIN.replacen("Hi", CANARY, 1);
    assert!(body.contains(CANARY), "{body}");
    let call = |id: &str, number: u64| {
        ask_as(&gateway, id, &body, &[]);
        ended(&gateway, number);
    };
    let allow = |until_ms: Option<i64>| {
        gateway.change(async |store| {
            let editor = store.by(&PROGRAM);
            editor.keep_bodies("acme", until_ms).await.unwrap();
        });
    };
    let now_ms = jiff::Timestamp::now().as_millisecond();
    call("before", 1);
    allow(Some(now_ms + 3_600_000));
    call("while", 2);
    let page = browser.page("/console/calls/while");
    assert!(page.contains(SHOWN) && !page.contains(CANARY), "{page}");
    assert!(
        page.contains("What was answered") && page.contains("hello"),
        "{page}"
    );
    let line = page.split("The line").nth(1).unwrap();
    assert!(
        !line.contains("canary-of-a-body"),
        "the line has no body: {line}"
    );
    let before = browser.page("/console/calls/before");
    assert!(
        before.contains("had ended before it was allowed"),
        "{before}"
    );
    // What is over, or was switched off, is shown no more, nor kept of later calls.
    for until_ms in [Some(now_ms - 1), None] {
        allow(until_ms);
        let page = browser.page("/console/calls/while");
        assert!(
            page.contains("--keep-bodies 4h") && !page.contains(SHOWN),
            "{page}"
        );
    }
    call("after", 3);
    allow(Some(now_ms + 3_600_000));
    let after = browser.page("/console/calls/after");
    assert!(!after.contains(SHOWN), "{after}");
}

/// Clients may send one id again and again.
#[test]
fn calls_of_one_id_are_told_apart() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    for number in 1..=2 {
        ask_as(&gateway, "twice", PLAIN, &[]);
        ended(&gateway, number);
    }
    let mut browser = Browser::new(&gateway);
    let page = browser.page("/console/calls/twice");
    assert!(page.contains("2 calls have this id"), "{page}");
    assert!(page.contains("/console/calls/twice?n=1\""), "{page}");
    let older = browser.page("/console/calls/twice?n=1");
    assert!(older.contains("/console/calls/twice?n=2\""), "{older}");
}

#[test]
fn a_session_shows_its_agents_its_calls_in_order_and_its_cached_share() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let named = [
        ("call-1", vec![(SESSION, "s1")]),
        (
            "call-2",
            vec![(SESSION, "s1"), (AGENT, "agent-b"), (PARENT, "agent-a")],
        ),
        ("call-3", vec![(SESSION, "s1"), (AGENT, "agent-a")]),
        ("other", vec![]),
    ];
    for (number, (id, named)) in (1..).zip(&named) {
        ask_as(&gateway, id, PLAIN, named);
        ended(&gateway, number);
    }
    let mut browser = Browser::new(&gateway);
    let list = browser.page("/console/sessions");
    assert!(
        list.contains("/console/sessions/s1?organization=acme"),
        "{list}"
    );
    assert!(list.contains("40 %"), "{list}");
    let page = browser.page("/console/sessions/s1?organization=acme");
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}: {page}"));
    assert!(at("the first one") < at("agent-a") && at("agent-a") < at("agent-b"));
    assert!(page.contains("›› </span>agent-b"), "{page}");
    let calls = [">call-1<", ">call-2<", ">call-3<"].map(at);
    assert!(calls.is_sorted() && !page.contains(">other<"));
    // Without its organization, an id leads to the only session that has it.
    let lead = browser.send(&Ask::get("/console/sessions/s1"));
    assert_eq!(lead.status(), 303);
    assert_eq!(
        lead.header("location"),
        Some("/console/sessions/s1?organization=acme")
    );
    let none = browser.send(&Ask::get("/console/sessions/s2?organization=acme"));
    assert_eq!(none.status(), 404);
}

/// Clients, organizations and owners of keys write these.
#[test]
fn hostile_names_are_text_wherever_they_stand() {
    const HOSTILE: &str = "\"><script>alert(1)</script>";
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let key = gateway.change(async |store| {
        let new = NewKey {
            organization: "acme",
            label: HOSTILE,
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
    });
    let named = [
        (SESSION, HOSTILE),
        (AGENT, HOSTILE),
        ("user-agent", HOSTILE),
    ];
    let mut request = Ask::post("/v1/chat/completions", PLAIN)
        .key(&key)
        .header("x-request-id", "hostile");
    for (name, value) in named {
        request = request.header(name, value);
    }
    assert_eq!(
        crate::support::client::ask(gateway.address(), &request).status(),
        200
    );
    let model = serde_json::to_string(HOSTILE).unwrap();
    ask_as(
        &gateway,
        "unknown",
        &PLAIN.replace("\"chat\"", &model),
        &named,
    );
    ended(&gateway, 2);
    let mut browser = Browser::new(&gateway);
    let session = "%22%3E%3Cscript%3Ealert%281%29%3C%2Fscript%3E";
    for path in [
        "/console/live".to_owned(),
        format!("/console/live?model={session}&key={session}&organization={session}"),
        "/console/calls/hostile".to_owned(),
        "/console/calls/unknown".to_owned(),
        "/console/sessions".to_owned(),
        format!("/console/sessions/{session}?organization=acme"),
    ] {
        let page = browser.page(&path);
        assert!(page.contains("&lt;script&gt;alert(1)"), "{path}: {page}");
        assert!(!page.contains("<script>alert"), "{path}: {page}");
    }
    // The label of the key finds its call.
    let by_label = browser.page(&format!("/console/live?key={session}"));
    assert!(
        by_label.contains(">hostile<") && !by_label.contains(">unknown<"),
        "{by_label}"
    );
}

#[test]
fn pages_without_calls_say_why() {
    let gateway = Gateway::start("[console]\nkeep_calls = 0\n", "");
    let mut browser = Browser::new(&gateway);
    for path in ["/console/live", "/console/calls", "/console/sessions"] {
        assert!(browser.page(path).contains("keep_calls"), "{path}");
    }
    let empty = Gateway::start("", "");
    let mut browser = Browser::new(&empty);
    assert!(browser.page("/console/live").contains("No call runs."));
    assert!(
        browser
            .page("/console/sessions")
            .contains("No kept call names a session.")
    );
}
