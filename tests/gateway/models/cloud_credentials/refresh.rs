//! Tokens end and are replaced while calls go on.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{answering, gateway, machine, readiness, token};
use crate::models::fronts::chat_completions::{PLAIN, reply};
use crate::support::client::Client;
use crate::support::script::Reply;
use crate::support::upstream::{Received, Upstream};
use crate::support::{POLL, every, until};

const ENTRA: &str = "credentials = \"entra\"";
/// How long a token lives, in seconds. It is refreshed a fifth before its end.
const LIVES_S: u64 = 5;
/// How many refreshes are watched.
const REFRESHES: usize = 5;
/// How many calls are made at least, unless `WEIRGATE_LOAD_CALLS` says so.
const CALLS: usize = 1_000;
/// How many connections of clients make them.
const CONNECTIONS: usize = 16;

/// A provider that refuses a token that has ended, by the time at which the token was first seen.
fn refusing_ended_tokens() -> Upstream {
    let begun = Mutex::new(Vec::<(String, Instant)>::new());
    Upstream::answering(move |request: &Received| {
        let bearer = request.header("authorization").unwrap_or_default();
        let mut begun = begun.lock().unwrap();
        let seen = begun.iter().find(|(token, _)| token == bearer);
        let at = seen.map(|(_, at)| *at).unwrap_or_else(|| {
            begun.push((bearer.to_owned(), request.at));
            request.at
        });
        let is_alive = request.at - at < Duration::from_secs(LIVES_S);
        match bearer.starts_with("Bearer t-") && is_alive {
            true => reply(),
            false => Reply::json(401, "{}"),
        }
    })
}

#[test]
fn under_load_five_ends_of_tokens_cost_one_fetch_each_and_no_call() {
    let wanted = std::env::var("WEIRGATE_LOAD_CALLS");
    let wanted = wanted.map_or(CALLS, |text| text.parse().unwrap());
    let server = Upstream::sequence((0..99).map(|number| token(&format!("t-{number}"), LIVES_S)));
    let (provider, second) = (refusing_ended_tokens(), answering());
    let gateway = gateway([&provider, &second], ENTRA, &machine(&server));
    let (calls, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let begun = Instant::now();
    thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            scope.spawn(|| {
                let mut client = Client::connect(gateway.address());
                while !is_over.load(Ordering::Relaxed) {
                    client.send(&gateway.chat_ask(PLAIN));
                    let answer = client.answer();
                    assert_eq!(answer.status(), 200, "{}", answer.text());
                    let body = answer.json();
                    let routing = &body["metadata"]["routing"];
                    assert_eq!(routing.as_array().unwrap().len(), 1, "{routing}");
                    assert_eq!(routing[0]["provider"], "first", "{routing}");
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for count in 1..=1 + REFRESHES {
            server.wait_requests(count);
        }
        for _ in every(POLL, Duration::from_secs(300)) {
            if calls.load(Ordering::Relaxed) >= wanted {
                break;
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let (made, fetches) = (calls.load(Ordering::Relaxed), server.requests());
    println!(
        "{made} calls in {:?}, {} fetches",
        begun.elapsed(),
        fetches.len()
    );
    assert!(made >= wanted, "{made}");
    for pair in fetches.windows(2) {
        let apart = pair[1].at - pair[0].at;
        assert!(apart > Duration::from_secs(LIVES_S - 2), "{apart:?}");
    }
    let metrics = gateway.metrics();
    let counted = "weirgate_credential_fetches_total{outcome=\"fetched\",provider=\"first\"}";
    let fetched = metrics.lines().find_map(|line| line.strip_prefix(counted));
    let fetched: usize = fetched.unwrap().trim().parse().unwrap();
    assert_eq!(fetched, server.requests().len(), "{metrics}");
    assert!(
        !metrics.contains("outcome=\"failed\",provider=\"first\""),
        "{metrics}"
    );
    assert!(readiness(&gateway).contains("credentials of provider first: usable\n"));
}

#[test]
fn a_token_that_is_refused_early_is_fetched_anew_once_a_minute() {
    let server = Upstream::sequence((0..9).map(|number| token(&format!("t-{number}"), 3600)));
    let refuses_all = std::sync::Arc::new(AtomicBool::new(false));
    let refuses = refuses_all.clone();
    let provider = Upstream::answering(move |request: &Received| {
        let is_first = request.header("authorization") == Some("Bearer t-0");
        match is_first || refuses.load(Ordering::Relaxed) {
            true => Reply::json(401, "{}"),
            false => reply(),
        }
    });
    let second = answering();
    let gateway = gateway([&provider, &second], ENTRA, &machine(&server));
    let answer = gateway.chat(PLAIN).json();
    let routing = answer["metadata"]["routing"].as_array().unwrap().clone();
    let attempts: Vec<_> = routing
        .iter()
        .map(|it| (&it["provider"], &it["status_code"]))
        .collect();
    assert_eq!(
        attempts,
        [
            (&"first".into(), &401.into()),
            (&"first".into(), &200.into())
        ]
    );
    assert_eq!(server.requests().len(), 2);
    refuses_all.store(true, Ordering::Relaxed);
    let answer = gateway.chat(PLAIN).json();
    assert_eq!(
        answer["metadata"]["routing"][1]["provider"], "second",
        "{answer}"
    );
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn what_is_valid_stays_in_use_while_its_source_fails() {
    let server = Upstream::answering({
        let count = AtomicUsize::new(0);
        move |_: &Received| match count.fetch_add(1, Ordering::Relaxed) {
            0 => token("t-0", 10),
            _ => Reply::json(500, "{}"),
        }
    });
    let (provider, second) = (answering(), answering());
    let gateway = gateway([&provider, &second], ENTRA, &machine(&server));
    server.wait_requests(2);
    let found = "weirgate_credential_fetches_total{outcome=\"failed\",provider=\"first\"} 1";
    until("the failed fetch is counted", || {
        gateway.metrics().contains(found)
    });
    let answer = gateway.chat(PLAIN).json();
    assert_eq!(
        answer["metadata"]["routing"][0]["provider"], "first",
        "{answer}"
    );
    let shown = readiness(&gateway);
    assert!(
        shown.contains("usable: AZURE_POD_IDENTITY_AUTHORITY_HOST: it answered 500; "),
        "{shown}"
    );
}
