#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::time::{Duration, Instant};

use super::*;

fn line(id: &str, more: &str) -> Vec<u8> {
    let time = "2026-01-02T03:04:05.000006Z";
    format!(r#"{{"time":"{time}","request_id":"{id}","status":200,"outcome":"ok"{more}}}"#)
        .into_bytes()
}

fn calls(keep: usize, ended: u64) -> Arc<RecentCalls> {
    let calls = Arc::new(RecentCalls::new(keep));
    end(&calls, 1..=ended);
    calls
}

fn end(calls: &RecentCalls, numbers: impl Iterator<Item = u64>) {
    for number in numbers {
        calls.keep(&line(&number.to_string(), ""));
    }
}

fn ids(calls: &[KeptCall]) -> Vec<&str> {
    calls.iter().map(|call| &*call.request_id).collect()
}

fn all(calls: &RecentCalls) -> Vec<KeptCall> {
    calls.find(&CallFilter::default(), None, usize::MAX)
}

fn filter(pairs: &[(&str, &'static str)]) -> Result<CallFilter, InvalidFilter> {
    CallFilter::parse(|name| {
        pairs
            .iter()
            .find(|(field, _)| *field == name)
            .map(|(_, value)| *value)
    })
}

#[test]
fn the_last_calls_are_kept_newest_first() {
    let calls = calls(3, 5);
    assert_eq!(ids(&all(&calls)), ["5", "4", "3"]);
    assert_eq!((calls.capacity(), calls.ended()), (3, 5));
    let found = calls.find(&CallFilter::default(), None, 2);
    assert_eq!((ids(&found), found[1].number), (vec!["5", "4"], 4));
    let older = calls.find(&CallFilter::default(), Some(4), 2);
    assert_eq!(ids(&older), ["3"]);
}

#[test]
fn zero_keeps_nothing_and_lists_nothing() {
    let calls = calls(0, 5);
    assert!(!calls.is_on() && all(&calls).is_empty());
    let id = HeaderValue::from_static("a");
    assert!(calls.open(&id, "chat", None, 1).is_none());
    let mut viewer = calls.follow(calls.ended()).unwrap();
    let ended = viewer
        .ask(&CallFilter::default(), 9, Instant::now())
        .unwrap();
    assert!(ended.calls.is_empty() && ended.unread == 0);
}

#[test]
fn another_size_keeps_the_newest_calls_and_viewers_go_on() {
    let calls = calls(4, 6);
    let mut viewer = calls.follow(calls.ended()).unwrap();
    calls.set(2);
    assert_eq!(ids(&all(&calls)), ["6", "5"]);
    calls.set(5);
    end(&calls, 7..=7);
    assert_eq!(ids(&all(&calls)), ["7", "6", "5"]);
    let ended = viewer
        .ask(&CallFilter::default(), 9, Instant::now())
        .unwrap();
    assert_eq!(ids(&ended.calls), ["7"]);
    calls.set(0);
    assert!(all(&calls).is_empty());
    calls.set(1);
    end(&calls, 8..=9);
    assert_eq!(ids(&all(&calls)), ["9"]);
}

/// The bytes of the places are those of their lines, but for what a place of short lines keeps.
#[test]
fn lines_are_bounded_and_places_give_memory_back() {
    let calls = calls(2, 0);
    calls.keep(&vec![b'x'; MAX_LINE_BYTES + 1]);
    assert_eq!(calls.ended(), 0);
    for _ in 0..2 {
        calls.keep(&vec![b'x'; MAX_LINE_BYTES]);
    }
    let bytes = || calls.ring.load().as_ref().unwrap().bytes();
    assert_eq!(bytes(), 2 * MAX_LINE_BYTES);
    end(&calls, 1..=2);
    assert!(bytes() < 512, "{}", bytes());
}

#[test]
fn threads_that_end_calls_at_once_lose_none() {
    let calls = calls(4000, 0);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let calls = &calls;
            scope.spawn(move || {
                for number in 0..1000 {
                    calls.keep(&line(&format!("{thread}-{number}"), ""));
                }
            });
        }
    });
    let all = all(&calls);
    let mut ids = ids(&all);
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 4000);
}

#[test]
fn a_viewer_sees_what_has_ended_since_it_asked() {
    let calls = calls(10, 3);
    let mut viewer = calls.follow(calls.ended()).unwrap();
    let mut ask = |most| {
        viewer
            .ask(&CallFilter::default(), most, Instant::now())
            .unwrap()
    };
    assert!(ask(9).calls.is_empty());
    end(&calls, 4..=5);
    let ended = ask(9);
    assert_eq!(
        (ids(&ended.calls), ended.others, ended.unread),
        (vec!["5", "4"], 0, 0)
    );
    assert!(ask(9).calls.is_empty());
    end(&calls, 6..=9);
    let ended = ask(1);
    assert_eq!(
        (ids(&ended.calls), ended.others, ended.unread),
        (vec!["9"], 3, 0)
    );
}

/// It gets a sample, and is told of the rest.
#[test]
fn a_viewer_that_was_away_is_told_how_much_it_has_missed() {
    let calls = calls(10, 0);
    let mut viewer = calls.follow(calls.ended()).unwrap();
    end(&calls, 1..=100);
    let ended = viewer
        .ask(&CallFilter::default(), 4, Instant::now())
        .unwrap();
    assert_eq!((ids(&ended.calls)[0], ended.calls.len()), ("100", 4));
    assert_eq!((ended.others, ended.unread), (6, 90));
}

#[test]
fn a_viewer_with_a_filter_is_told_of_calls_that_match() {
    let calls = calls(10, 0);
    let mut viewer = calls.follow(calls.ended()).unwrap();
    for number in 1..=8 {
        let organization = if number % 2 == 0 { "even" } else { "odd" };
        calls.keep(&line(
            &number.to_string(),
            &format!(r#","organization":"{organization}""#),
        ));
    }
    let even = filter(&[("organization", "even")]).unwrap();
    let ended = viewer.ask(&even, 3, Instant::now()).unwrap();
    assert_eq!((ids(&ended.calls), ended.others), (vec!["8", "6", "4"], 1));
}

#[test]
fn a_call_whose_line_comes_late_is_seen_and_one_whose_line_never_comes_is_passed() {
    let calls = calls(10, 1);
    let mut viewer = calls.follow(calls.ended()).unwrap();
    let mut ask = || {
        viewer
            .ask(&CallFilter::default(), 9, Instant::now())
            .unwrap()
    };
    // The call has its number, and its line is still on the way.
    calls.last.store(2, Ordering::Release);
    end(&calls, 3..=3);
    assert!(ask().calls.is_empty());
    calls.ring.load().as_ref().unwrap().write(2, &line("2", ""));
    assert_eq!(ids(&ask().calls), ["3", "2"]);
    calls.last.store(4, Ordering::Release);
    end(&calls, 5..=5);
    assert!(ask().calls.is_empty());
    let ended = ask();
    assert_eq!((ids(&ended.calls), ended.unread), (vec!["5"], 1));
}

#[test]
fn frozen_viewers_cost_their_places_alone_which_others_get() {
    let calls = calls(10, 0);
    assert!(!calls.is_followed());
    let mut viewers: Vec<Viewer> = (0..MAX_VIEWERS)
        .map(|_| calls.follow(calls.ended()).unwrap())
        .collect();
    assert!(calls.is_followed());
    assert_eq!(calls.follow(calls.ended()).err(), Some(TooManyViewers));
    let later = Instant::now() + Duration::from_secs(31);
    for viewer in &mut viewers[1..] {
        viewer.ask(&CallFilter::default(), 1, later).unwrap();
    }
    let number = calls.viewers.enter(later).unwrap();
    assert!(calls.viewers.enter(later).is_err());
    assert!(viewers[0].ask(&CallFilter::default(), 1, later).is_none());
    assert!(viewers[1].ask(&CallFilter::default(), 1, later).is_some());
    drop(viewers);
    calls.viewers.leave(number);
    assert!(!calls.is_followed());
}

#[test]
fn a_call_that_runs_is_listed_until_its_place_is_dropped() {
    let calls = calls(10, 0);
    let id = |text| HeaderValue::from_static(text);
    let second = calls.open(&id("b"), "embeddings", None, 2).unwrap();
    let first = calls.open(&id("a"), "chat", None, 1).unwrap();
    first.attempt(&"model".into(), &"one".into());
    first.attempt(&"model".into(), &"two".into());
    first.content();
    let running = calls.running();
    assert_eq!(
        running.iter().map(|it| it.route).collect::<Vec<_>>(),
        ["chat", "embeddings"]
    );
    assert_eq!(running[0].provider.as_deref(), Some("two"));
    assert_eq!((running[0].attempts, running[0].has_content), (2, true));
    assert!(running[1].model.is_none());
    // It may end on another thread than the one that has begun it.
    std::thread::spawn(move || drop(first)).join().unwrap();
    assert_eq!(calls.running().len(), 1);
    drop(second);
    assert!(calls.running().is_empty());
}

#[test]
fn a_filter_takes_what_fits_all_that_it_says() {
    let full = line(
        "r",
        r#","organization":"acme","key_id":"key_1","key_label":"<b>é</b>","model":"Chat-1","used_model":"one/chat-1","provider":"one","session_id":"s/1","cost":"0.05","attempts":[{"provider":"zero"},{"provider":"one"}]"#,
    );
    let call = KeptCall::parse(1, &full).unwrap();
    let takes = |field, value| {
        let filter = filter(&[(field, value)]).unwrap();
        let matches = filter.matches(&call);
        assert!(filter.may_match(&full) || !matches, "{field} {value}");
        matches
    };
    for (field, good, bad) in [
        ("request_id", "r", "q"),
        ("organization", " acme ", "acm"),
        ("key", "key_1", "key"),
        ("key", "<b>é</b>", "b"),
        ("model", "CHAT", "chap"),
        ("provider", "zero", "two"),
        ("session", "s/1", "s"),
        ("status", "200", "201"),
        ("status", "2xx", "4xx"),
        ("status", "ok", "failed"),
        ("cost", "0.05", "0.051"),
    ] {
        assert!(takes(field, good), "{field} {good}");
        assert!(!takes(field, bad), "{field} {bad}");
    }
    assert!(filter(&[("model", " ")]).unwrap().is_empty());
    let both = filter(&[("organization", "acme"), ("status", "500")]).unwrap();
    assert!(!both.matches(&call));
}

#[test]
fn a_filter_says_what_it_does_not_take() {
    let long: &'static str = "x".repeat(300).leak();
    for (field, value, said) in [
        ("status", "6xx", "status is \"6xx\"; a status such as 429"),
        ("status", "<i>", "status is \"<i>\"; a status"),
        ("cost", "-1", "cost is \"-1\"; an amount in USD"),
        ("model", long, "a text of up to 256 bytes is accepted"),
    ] {
        let error = filter(&[(field, value)]).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
        assert!(error.len() < 250, "{error}");
    }
}

#[test]
fn a_line_is_read_with_its_parts() {
    let call = KeptCall::parse(1, &line(
        "r",
        r#","duration_ms":12.345,"first_event_ms":null,"cost":null,"stream":true,"prompt_tokens":100,"cached_tokens":25,
        "attempts":[{"provider":"p","status_code":503,"succeeded":false,"cause":"status 503","begun_ms":0.100,"ended_ms":2.5}],
        "error":{"type":"t","code":null,"param":"model","message":"m"},
        "usage":{"prompt_tokens_details":{"cached_tokens":25},"cost_details":{"total_cost":0.000000000000000001,"input_cost":0}},
        "quota":{"limit":10,"remaining":9,"reset_ms":1,"window_ms":60000},"plan":{"first_by":"score"}"#,
    ))
    .unwrap();
    assert_eq!(
        (call.duration_ms, call.first_event_ms, call.cost),
        (12.345, None, None)
    );
    assert_eq!(call.cached_share(), Some(0.25));
    let attempt = &call.attempts[0];
    assert_eq!(
        (attempt.begun_ms, attempt.answered_ms, attempt.ended_ms),
        (Some(0.1), None, Some(2.5))
    );
    let parts: Vec<_> = call.usage.unwrap().cost_details.into_iter().collect();
    assert_eq!(
        parts,
        [("total_cost".to_owned(), filters::money::Usd::from_units(1))]
    );
    assert_eq!(call.quota.unwrap().remaining, 9);
    assert_eq!(call.plan.unwrap().get(), r#"{"first_by":"score"}"#);
    assert!(KeptCall::parse(1, b"{").is_none() && KeptCall::parse(1, &[0xff]).is_none());
}

fn of_session(session: &str, [agent, parent]: [&str; 2], cost: &str) -> KeptCall {
    let more = format!(
        r#","organization":"acme","session_id":"{session}","agent_id":"{agent}","parent_agent_id":"{parent}","cost":"{cost}","prompt_tokens":10,"cached_tokens":5"#
    );
    KeptCall::parse(1, &line("r", &more)).unwrap()
}

#[test]
fn sessions_are_told_apart_by_organization_and_summed() {
    let mut other = of_session("s", ["", ""], "1");
    other.organization = "other".to_owned();
    other.time = "2027-01-01T00:00:00Z".to_owned();
    let none = of_session("", ["", ""], "1");
    let calls = [
        of_session("s", ["", ""], "0.1"),
        of_session("s", ["a", ""], "0.2"),
        other,
        none,
    ];
    let found = sessions(&calls);
    assert_eq!(found.len(), 2);
    assert_eq!(
        (&*found[0].organization, found[0].totals.calls),
        ("other", 1)
    );
    assert_eq!((found[1].agents, found[1].totals.calls), (1, 2));
    assert_eq!(found[1].totals.cost.to_string(), "0.3");
    assert_eq!(found[1].totals.cached_share(), Some(0.5));
}

/// Clients name agents, also in circles.
#[test]
fn agents_stand_below_those_that_have_asked_them() {
    let named = [
        ["", ""],
        ["b", ""],
        ["a", ""],
        ["c", "a"],
        ["lost", "nobody"],
        ["x", "y"],
        ["y", "x"],
        ["self", "self"],
    ];
    let calls: Vec<KeptCall> = named.map(|names| of_session("s", names, "0.1")).into();
    let found = agents(&calls);
    let tree: Vec<_> = found.iter().map(|it| (&*it.agent_id, it.depth)).collect();
    let expected = [
        ("", 0),
        ("a", 1),
        ("c", 2),
        ("b", 1),
        ("lost", 0),
        ("self", 0),
        ("x", 0),
        ("y", 1),
    ];
    assert_eq!(tree, expected);
}
