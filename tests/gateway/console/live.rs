//! The calls as they run and end: the page, and the events that it follows.

use serde_json::json;

use super::Browser;
use crate::models::fronts::chat_completions::{PLAIN, STREAM, chunk, reply};
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, Client, ask};
use crate::support::script::{Gate, Reply};
use crate::support::until;
use crate::support::upstream::Upstream;

/// Asks with an id and more headers.
pub(super) fn ask_as(gateway: &Gateway, id: &str, body: &str, more: &[(&str, &str)]) -> Answer {
    let mut request = gateway.chat_ask(body).header("x-request-id", id);
    for (name, value) in more {
        request = request.header(name, value);
    }
    ask(gateway.address(), &request)
}

/// Waits until so many calls have ended, and are kept.
pub(super) fn ended(gateway: &Gateway, count: u64) {
    let calls = &gateway.running.app.proxy.calls;
    until("the calls have ended", || calls.ended() == count);
}

/// A page that follows the calls.
pub(super) struct Follower(Client);

impl Follower {
    pub(super) fn new(gateway: &Gateway, query: &str, last: Option<&str>) -> Self {
        let mut client = Client::connect(gateway.running.admin);
        let mut request = Ask::get(&format!("/console/live/events{query}"));
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last);
        }
        client.send(&request);
        let head = client.head();
        assert_eq!(head.status, 200);
        assert_eq!(head.header("content-type"), Some("text/event-stream"));
        Self(client)
    }

    /// Reads events until one of them has this text.
    pub(super) fn read_until(&mut self, text: &str) -> String {
        let mut read = String::new();
        while !read.contains(text) {
            let chunk = self.0.chunk();
            let chunk = chunk.unwrap_or_else(|| panic!("{text} did not come: {read}"));
            read.push_str(&String::from_utf8_lossy(&chunk.bytes));
        }
        read
    }
}

/// The id of the last event of a text.
fn last_id(events: &str) -> String {
    let mut lines = events.lines().rev();
    let id = lines.find_map(|line| line.strip_prefix("id: "));
    id.unwrap().to_owned()
}

#[test]
fn a_stream_is_seen_while_it_runs_and_when_it_has_ended() {
    let gate = Gate::default();
    let begun = Reply::stream().event(&chunk(json!({"content": "hel"}), None));
    let end = chunk(json!({"content": "lo"}), Some("stop"));
    let first = Upstream::always(begun.wait(&gate).event(&end).event("[DONE]").end());
    let gateway = Gateway::between(&first.url(), &first.url());
    let mut follower = Follower::new(&gateway, "", None);
    follower.read_until("No call runs.");
    let mut client = Client::connect(gateway.address());
    client.send(&gateway.chat_ask(STREAM).header("x-request-id", "streams"));
    client.head();
    client.chunk().unwrap();
    let running = follower.read_until("answers");
    assert!(
        running.contains("event: note") && running.contains(">streams<"),
        "{running}"
    );
    let mut browser = Browser::new(&gateway);
    let page = browser.page("/console/live");
    assert!(
        page.contains(">streams<") && page.contains("answers"),
        "{page}"
    );
    assert!(
        browser
            .page("/console/calls/streams")
            .contains("This call runs")
    );
    gate.open();
    while client.chunk().is_some() {}
    let rest = follower.read_until("No call runs.");
    let rest = if rest.contains("event: row") {
        rest
    } else {
        follower.read_until("event: row")
    };
    assert!(
        rest.contains(">streams<") && rest.contains("200 ok"),
        "{rest}"
    );
    assert!(!rest.contains("hello"), "{rest}");
    assert!(browser.page("/console/calls/streams").contains("succeeded"));
}

#[test]
fn a_page_that_comes_back_gets_what_it_has_missed() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let mut follower = Follower::new(&gateway, "", None);
    ask_as(&gateway, "seen", PLAIN, &[]);
    let id = last_id(&follower.read_until("event: row"));
    drop(follower);
    ask_as(&gateway, "missed", PLAIN, &[]);
    ended(&gateway, 2);
    let rest = Follower::new(&gateway, "", Some(&id)).read_until(">missed<");
    assert!(!rest.contains(">seen<"), "{rest}");
    // After a pause a page says so itself, and a new page names what it shows.
    for query in ["last", "since"] {
        let rest = Follower::new(&gateway, &format!("?{query}={id}"), None).read_until(">missed<");
        assert!(!rest.contains(">seen<"), "{rest}");
    }
    // The last event of another process says nothing of this one.
    let all = Follower::new(&gateway, "", Some("1-1")).read_until(">missed<");
    assert!(all.contains(">seen<"), "{all}");
}

/// The process lives on, and so does what it keeps.
#[test]
fn calls_and_pages_that_follow_survive_a_reload() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let mut follower = Follower::new(&gateway, "", None);
    ask_as(&gateway, "before", PLAIN, &[]);
    follower.read_until(">before<");
    let reloaded = gateway.toml().replace(
        "[providers.second]",
        "[log]\nlevel = \"info\"\n[providers.second]",
    );
    gateway.reload(&reloaded).unwrap();
    ask_as(&gateway, "after", PLAIN, &[]);
    follower.read_until(">after<");
    let page = Browser::new(&gateway).page("/console/live");
    assert!(
        page.contains(">before<") && page.contains(">after<"),
        "{page}"
    );
}

#[test]
fn a_filter_holds_for_the_page_and_for_what_it_follows() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    ask_as(&gateway, "good", PLAIN, &[("x-session-id", "s1")]);
    ask_as(&gateway, "bad", "{", &[]);
    ended(&gateway, 2);
    let mut browser = Browser::new(&gateway);
    let mut shown = |query: &str| {
        let page = browser.page(&format!("/console/live?{query}"));
        [">good<", ">bad<"].map(|id| page.contains(id))
    };
    for (query, expected) in [
        ("", [true, true]),
        ("organization=acme", [true, true]),
        ("organization=other", [false, false]),
        ("model=CHA", [true, false]),
        ("provider=first", [true, false]),
        ("provider=second", [false, false]),
        ("status=4xx", [false, true]),
        ("status=ok&cost=0.001", [true, false]),
        ("cost=5", [false, false]),
        ("session=s1", [true, false]),
        ("request_id=bad", [false, true]),
        ("key=test", [true, true]),
    ] {
        assert_eq!(shown(query), expected, "{query}");
    }
    let refused = browser.send(&Ask::get("/console/live?status=nothing"));
    assert_eq!(refused.status(), 400);
    for part in ["status is", "a status such as 429", "value=\"nothing\""] {
        assert!(refused.text().contains(part), "{part}: {}", refused.text());
    }
    let mut follower = Follower::new(&gateway, "?status=4xx", None);
    ask_as(&gateway, "good", PLAIN, &[]);
    ask_as(&gateway, "bad-again", "{", &[]);
    let events = follower.read_until(">bad-again<");
    assert!(!events.contains(">good<"), "{events}");
}

#[test]
fn older_calls_are_on_further_pages() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    for number in 1..=52 {
        ask_as(&gateway, &format!("call-{number}"), "{", &[]);
        ended(&gateway, number);
    }
    let mut browser = Browser::new(&gateway);
    let page = browser.page("/console/live?status=4xx");
    assert_eq!(page.matches("<tr id=\"call-").count(), 50);
    let next = "/console/live?status=4xx&amp;before=3";
    assert!(page.contains(next), "{page}");
    let rest = browser.page(&next.replace("&amp;", "&"));
    assert!(rest.contains(">call-2<") && rest.contains(">call-1<") && !rest.contains(">call-3<"));
    assert!(!rest.contains("data-follow"), "it stands still");
}

/// With more calls than a page can be shown it says how many it has not.
#[test]
fn a_page_says_how_many_calls_it_was_not_shown() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    for number in 1..=40 {
        ask_as(&gateway, &format!("call-{number}"), "{", &[]);
    }
    ended(&gateway, 40);
    let epoch = gateway.running.app.proxy.calls.epoch();
    let mut follower = Follower::new(&gateway, &format!("?since={epoch}-0"), None);
    let events = follower.read_until("calls ended that are not shown here");
    assert_eq!(events.matches("event: row").count(), 10);
    assert!(events.contains("30 calls ended"), "{events}");
}

#[test]
fn the_page_after_the_last_place_is_told_so_and_gets_one_that_is_left() {
    let gateway = Gateway::start("", "");
    let mut followers: Vec<_> = (0..20)
        .map(|_| {
            let mut follower = Follower::new(&gateway, "", None);
            follower.read_until("No call runs.");
            follower
        })
        .collect();
    let late = ask(gateway.running.admin, &Ask::get("/console/live/events"));
    assert_eq!(
        (late.status(), late.header("retry-after")),
        (503, Some("30"))
    );
    assert!(
        late.text().starts_with("20 pages follow"),
        "{}",
        late.text()
    );
    assert!(gateway.running.app.proxy.calls.is_followed());
    followers.clear();
    let calls = &gateway.running.app.proxy.calls;
    until("their places are free", || !calls.is_followed());
    Follower::new(&gateway, "", None).read_until("No call runs.");
}
