//! `GET /v1/datafile`, and files that change while they are served.

use std::time::Duration;

use serde_json::json;

use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};
use crate::support::flags;
use crate::support::script::{Gate, Reply};
use crate::support::upstream::Upstream;
use crate::support::{stays, until};

fn get(gateway: &Gateway, key: &str) -> Answer {
    ask(
        gateway.address(),
        &Ask::get("/v1/datafile").header("X-Platform-SDK-Key", key),
    )
}

/// Contract: decision-agent 4 GET /v1/datafile
/// Contract: decision-agent 7 401
#[test]
fn the_datafile_comes_as_it_is() {
    let gateway = flags::gateway("");
    let answer = get(&gateway, "sandbox");
    assert_eq!(
        (answer.status(), &answer.json()["version"]),
        (200, &"4".into())
    );
    let unknown = get(&gateway, "other");
    assert_eq!(
        flags::refused(&unknown),
        (401, "the SDK key is not known here".to_owned())
    );
}

/// Contract: decision-agent 4 GET /v1/datafile
#[test]
fn another_gateway_decides_alike_from_the_datafile() {
    let first = flags::gateway("");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flags.json");
    std::fs::write(&path, get(&first, "sandbox").body).unwrap();
    let toml = format!(
        "[[decisions.projects]]\nsdk_key = \"sandbox\"\ndatafile = {:?}\n",
        path.display().to_string()
    );
    let second = Gateway::start(&toml, "");
    assert_eq!(
        get(&second, "sandbox").json(),
        get(&first, "sandbox").json()
    );
    let mut chosen = std::collections::BTreeSet::new();
    for user in 0..20 {
        let user = json!({"userId": user.to_string(), "userAttributes": {"country": "DE"}});
        let [one, other] =
            [&first, &second].map(|gateway| flags::post(gateway, "/v1/decide", &user).json());
        assert_eq!(one, other);
        chosen.insert(one[0]["variationKey"].as_str().unwrap().to_owned());
    }
    assert_eq!(chosen.len(), 2, "{chosen:?}");
}

#[test]
fn a_file_is_read_again_and_a_bad_one_leaves_the_last_in_force() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flags.json");
    let datafile = |revision: &str| json!({"version": "4", "revision": revision}).to_string();
    let toml = format!(
        "[[decisions.projects]]\nsdk_key = \"file\"\ndatafile = {:?}\n",
        path.display().to_string()
    );
    let gateway = Gateway::start(&toml, "");
    let missing = get(&gateway, "file");
    assert_eq!(
        (missing.status(), missing.header("retry-after")),
        (503, Some("5"))
    );
    let comes = |expected: &str| {
        until(expected, || {
            get(&gateway, "file").json()["revision"] == expected
        })
    };
    std::fs::write(&path, datafile("1")).unwrap();
    comes("1");
    std::fs::write(&path, "{\"version\": \"5\"}").unwrap();
    let refused = "weirgate_datafiles_total{outcome=\"refused\"} 2";
    until(refused, || gateway.metrics().contains(refused));
    assert_eq!(get(&gateway, "file").json()["revision"], "1");
    std::fs::write(&path, datafile("longer")).unwrap();
    comes("longer");
}

/// A gateway that fetches datafiles from there and has its state in this folder.
fn fetching(url: &str, folder: &std::path::Path) -> Gateway {
    let toml = format!("[decisions]\ndatafile_url = \"{url}/%s.json\"\npoll_interval_s = 1\n");
    let state = folder.display().to_string();
    Gateway::start_with_env(&toml, "", &[("WEIRGATE_STORE__STATE_DIR", &state)])
}

fn source(revision: &str) -> Reply {
    let body = json!({"version": "4", "revision": revision}).to_string();
    let headers = [
        ("Content-Type", "application/json"),
        ("Last-Modified", "Sat, 21 Nov 2026 05:00:00 GMT"),
    ];
    Reply::whole(200, &headers, body)
}

#[test]
fn a_datafile_is_fetched_once_and_then_asked_for_changes() {
    let upstream = Upstream::answering(|request| match request.header("if-modified-since") {
        Some(_) => Reply::whole(304, &[], ""),
        None => source("1"),
    });
    let folder = tempfile::tempdir().unwrap();
    let gateway = fetching(&upstream.url(), folder.path());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(get(&gateway, "k:secret").status(), 200));
        }
    });
    let first = upstream.request(0);
    assert_eq!(
        (first.path.as_str(), first.header("authorization")),
        ("/k.json", Some("Bearer secret"))
    );
    let polled = upstream.wait_requests(2);
    assert!(
        polled[1].header("if-modified-since").is_some(),
        "asked twice without need"
    );
    assert_eq!(get(&gateway, "k:secret").json()["revision"], "1");
}

#[test]
fn a_key_that_the_source_refuses_is_remembered() {
    let upstream = Upstream::always(Reply::whole(404, &[], ""));
    let folder = tempfile::tempdir().unwrap();
    let gateway = fetching(&upstream.url(), folder.path());
    for _ in 0..5 {
        assert_eq!(get(&gateway, "nobody").status(), 401);
    }
    assert_eq!(upstream.requests().len(), 1);
}

#[test]
fn who_waits_for_a_fetch_that_fails_and_who_comes_soon_after_is_answered_at_once() {
    let gate = Gate::default();
    let failing = Reply::empty().wait(&gate);
    let failing = failing.bytes("HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n");
    let upstream = Upstream::always(failing);
    let folder = tempfile::tempdir().unwrap();
    let gateway = fetching(&upstream.url(), folder.path());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(get(&gateway, "k").status(), 503));
        }
        upstream.wait_requests(1);
        gate.open();
    });
    assert_eq!(get(&gateway, "k").status(), 503);
    assert_eq!(upstream.requests().len(), 1);
}

#[test]
fn access_tokens_of_a_key_are_cached_for_a_few_callers_only() {
    let upstream = Upstream::always(source("1"));
    let folder = tempfile::tempdir().unwrap();
    let gateway = fetching(&upstream.url(), folder.path());
    for token in 0..9 {
        assert_eq!(get(&gateway, &format!("k:{token}")).status(), 200);
    }
    let on_disk = || {
        std::fs::read_dir(folder.path().join("datafiles"))
            .unwrap()
            .count()
    };
    until("one is dropped", || on_disk() <= 8);
    let dropped = "weirgate_datafiles_total{outcome=\"dropped\"} 1";
    assert!(gateway.metrics().contains(dropped), "{}", gateway.metrics());
}

#[test]
fn the_last_good_copy_answers_after_a_restart_without_the_source() {
    let folder = tempfile::tempdir().unwrap();
    let upstream = Upstream::always(source("7"));
    let first = fetching(&upstream.url(), folder.path());
    assert_eq!(get(&first, "k").json()["revision"], "7");
    drop(first);
    let url = upstream.url();
    drop(upstream);
    let second = fetching(&url, folder.path());
    assert_eq!(get(&second, "k").json()["revision"], "7");
    let unknown = get(&second, "other");
    assert_eq!(
        (unknown.status(), unknown.header("retry-after")),
        (503, Some("5"))
    );
}

#[test]
fn a_datafile_that_is_malformed_leaves_the_one_before_in_force() {
    let bad = Reply::json(200, "{\"version\": 4}");
    let upstream = Upstream::sequence([source("1"), bad.clone(), bad, source("2")]);
    let folder = tempfile::tempdir().unwrap();
    let gateway = fetching(&upstream.url(), folder.path());
    assert_eq!(get(&gateway, "k").json()["revision"], "1");
    upstream.wait_requests(3);
    assert_eq!(get(&gateway, "k").json()["revision"], "1");
    until("the new datafile comes", || {
        get(&gateway, "k").json()["revision"] == "2"
    });
}

#[test]
fn datafiles_are_polled_side_by_side_and_at_most_sixteen_at_once() {
    const KEYS: usize = 20;
    let gate = Gate::default();
    let held = gate.clone();
    let text = json!({"version": "4", "revision": "1"}).to_string();
    let first = std::sync::atomic::AtomicUsize::new(0);
    let source = Upstream::answering(move |_| {
        let asked = first.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let reply = Reply::json(200, &text);
        if asked < KEYS {
            reply
        } else {
            Reply::empty().wait(&held).then(reply)
        }
    });
    let url = source.url();
    let toml = format!("[decisions]\ndatafile_url = \"{url}/%s.json\"\npoll_interval_s = 1\n");
    let gateway = Gateway::start(&toml, "");
    for n in 0..KEYS {
        assert_eq!(get(&gateway, &format!("key{n}")).status(), 200);
    }
    source.wait_requests(KEYS + 16);
    let are_few = || source.requests().len() == KEYS + 16;
    stays("few are polled", Duration::from_millis(200), are_few);
    gate.open();
    source.wait_requests(2 * KEYS);
}
