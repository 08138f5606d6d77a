//! Cached responses: who gets them, when they are not used, and what counts.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::*;
use crate::support::WAIT_TIMEOUT;
use crate::support::client::Client;
use crate::support::script::Gate;

/// One query may pass in a window that outlasts every test; responses are cached for an hour.
const KEEPS: &str = "window_s = 3600\ncache = { ttl_s = 3600 }";
const ONE: &str = "limits = { \"POST /content/v2\" = 1 }";

fn is_hit(answer: &Answer) -> bool {
    assert_eq!(answer.status(), 200, "{}", answer.text());
    answer.header("x-weirgate-cache") == Some("HIT")
}

/// Contract: graph-limits 8.1 3
#[test]
fn a_cached_response_is_the_same_and_not_counted() {
    let headers = [
        ("content-type", "application/graphql-response+json"),
        ("x-own", "1"),
        ("link", "<a>"),
        ("link", "<b>"),
        ("x-ratelimit-limit", "7"),
        ("keep-alive", "timeout=5"),
    ];
    let service = Upstream::always(Reply::whole(200, &headers, DATA));
    let gateway = before(&service, KEEPS, ONE);
    let first = gateway.graph(&query());
    assert!(!is_hit(&first));
    for _ in 0..5 {
        let again = gateway.graph(&query());
        assert!(is_hit(&again));
        assert_eq!((again.text(), limit(&again)), (DATA, ("1", "3600")));
        assert_eq!(again.header("content-type"), Some(headers[0].1));
        assert_eq!(
            (again.header("x-own"), again.head.count("link")),
            (Some("1"), 2)
        );
        assert_eq!(
            (
                again.header("keep-alive"),
                again.head.count("x-ratelimit-limit")
            ),
            (None, 1)
        );
        assert!(again.header("age").is_some() && again.header("x-request-id").is_some());
        assert_ne!(again.header("x-request-id"), first.header("x-request-id"));
    }
    assert_eq!(service.requests().len(), 1);
    gateway.wait_metric(
        "weirgate_limiter_decisions_total{decision=\"hit\",operation=\"POST /content/v2\"} 5",
    );
    gateway.wait_metric("weirgate_cache_hits_total{route=\"graph\"} 5");
}

#[test]
fn a_hit_is_answered_though_the_window_is_used_up() {
    let service = service();
    let gateway = before(&service, KEEPS, ONE);
    assert!(!is_hit(&gateway.graph(&query())));
    let other = Ask::post("/content/v2?auth=k1", r#"{"query":"{ b }"}"#);
    assert_eq!(gateway.graph(&other).status(), 429);
    assert!(is_hit(&gateway.graph(&query())));
}

#[test]
fn concurrent_requests_share_one_fetch_and_one_unit() {
    let gate = Gate::default();
    let service = Upstream::always(Reply::empty().wait(&gate).bytes(format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{DATA}",
        DATA.len()
    )));
    let gateway = before(&service, KEEPS, ONE);
    let mut clients: Vec<Client> = (0..8).map(|_| Client::connect(gateway.address())).collect();
    for client in &mut clients {
        client.send(&query());
    }
    service.wait_requests(1);
    gateway.wait_metric("weirgate_requests_in_flight 8");
    gate.open();
    let hits = clients.iter_mut().filter_map(|client| {
        let answer = client.answer();
        assert_eq!(answer.text(), DATA);
        is_hit(&answer).then_some(())
    });
    assert_eq!(hits.count(), 7);
    assert_eq!(service.requests().len(), 1);
}

#[test]
fn a_follower_goes_on_when_the_leader_disconnects() {
    let gate = Gate::default();
    let whole = Reply::json(200, DATA);
    let (held, quick) = (Reply::empty().wait(&gate), whole.clone());
    let service = Upstream::sequence([held, quick]);
    let gateway = before(&service, KEEPS, "limits = { \"POST /content/v2\" = 2 }");
    let mut first = Client::connect(gateway.address());
    first.send(&query());
    service.wait_requests(1);
    let mut second = Client::connect(gateway.address());
    second.send(&query());
    gateway.wait_metric("weirgate_requests_in_flight 2");
    drop(first);
    let answer = second.answer();
    assert_eq!((answer.status(), answer.text()), (200, DATA));
    assert_eq!(service.requests().len(), 2);
}

#[test]
fn a_response_that_was_cut_off_is_not_cached() {
    let cut = Reply::claiming(200, &[], 100, "half").and_close();
    let service = Upstream::sequence([cut, Reply::json(200, DATA)]);
    let gateway = before(&service, KEEPS, "");
    gateway.graph(&query());
    let second = gateway.graph(&query());
    assert!(!is_hit(&second));
    assert_eq!(second.text(), DATA);
}

#[test]
fn a_client_that_wants_a_fresh_response_gets_one() {
    let service = service();
    let gateway = before(&service, KEEPS, "");
    gateway.graph(&query());
    for request in [
        Ask::post("/content/v2?auth=k1&cache=false", QUERY),
        query().header("cache-control", "no-store"),
        query().header("cookie", "a=b"),
    ] {
        assert!(!is_hit(&gateway.graph(&request)));
    }
    assert_eq!(service.requests().len(), 4);
}

#[test]
fn what_changes_a_response_keeps_responses_apart() {
    let service = service();
    let gateway = before(
        &service,
        KEEPS,
        "[[graph.tenants]]\nid = \"t2\"\nsingle_keys = [\"k2\"]",
    );
    gateway.graph(&query());
    let distinct = [
        Ask::post("/content/v2?auth=k2", QUERY),
        Ask::post("/content/v2?auth=k1&omit_empty=true", QUERY),
        Ask::post("/content/v2?auth=k1", r#"{"query":"{ b }"}"#),
        query().header("cg-roles", "Editors"),
        query().header("accept-encoding", "gzip"),
        Ask::get("/content/v2?auth=k1&query=%7Ba%7D"),
    ];
    for request in &distinct {
        assert!(!is_hit(&gateway.graph(request)));
        assert!(is_hit(&gateway.graph(request)));
    }
    assert_eq!(service.requests().len(), 1 + distinct.len());
}

#[test]
fn keys_of_one_tenant_share_responses() {
    let service = service();
    let gateway = before(
        &service,
        KEEPS,
        "[[graph.tenants]]\nid = \"t2\"\nsingle_keys = [\"a\", \"b\"]",
    );
    gateway.graph(&Ask::post("/content/v2?auth=a", QUERY));
    let other = Ask::post("/content/v2", QUERY).header("authorization", "epi-single b");
    assert!(is_hit(&gateway.graph(&other)));
}

#[test]
fn mutations_and_callers_without_a_public_key_are_always_sent_on() {
    let service = service();
    let gateway = before(&service, KEEPS, "app_keys = [{ key = \"app\" }]");
    let requests = [
        Ask::post("/content/v2?auth=k1", r#"{"query":"mutation { a }"}"#),
        Ask::post("/content/v2", QUERY).header("authorization", "Basic YXBwOng="),
        Ask::post("/content/v2?auth=unknown", QUERY),
        Ask::post("/content/v2", QUERY),
    ];
    for request in &requests {
        for _ in 0..2 {
            assert!(!is_hit(&gateway.graph(request)));
        }
    }
    assert_eq!(service.requests().len(), 2 * requests.len());
}

#[test]
fn a_large_body_is_sent_on_whole_while_it_is_keyed() {
    let service = service();
    let gateway = before(&service, KEEPS, "");
    let body = format!(
        r#"{{"query":"{{ a }}","variables":{{"x":"{}"}}}}"#,
        "x".repeat(200_000)
    );
    let request = Ask::post("/content/v2?auth=k1", &body).chunked(9000);
    assert!(!is_hit(&gateway.graph(&request)));
    assert_eq!(service.request(0).body, body.as_bytes());
    assert!(is_hit(&gateway.graph(&request)));
}

#[test]
fn an_unknown_key_is_counted_before_its_body_is_read() {
    let service = service();
    let tight = format!("{KEEPS}\ncategories = {{ query = {{ default = 1, maximum = 1 }} }}");
    let gateway = before(&service, &tight, "");
    let unknown = Ask::post("/content/v2?auth=nobody", QUERY);
    assert_eq!(gateway.graph(&unknown).status(), 200);
    let mut stream = TcpStream::connect(gateway.address()).unwrap();
    stream.set_read_timeout(Some(WAIT_TIMEOUT)).unwrap();
    let head = "POST /content/v2?auth=nobody HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
                Content-Length: 100000\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut start = [0; 12];
    stream.read_exact(&mut start).unwrap();
    assert_eq!(&start, b"HTTP/1.1 429");
}

#[test]
fn responses_that_forbid_it_are_not_cached() {
    for line in [
        ("set-cookie", "a=b"),
        ("cache-control", "private"),
        ("cache-control", "no-store"),
        ("cache-control", "max-age=0"),
        ("vary", "cookie"),
    ] {
        let service = Upstream::always(Reply::whole(200, &[line], DATA));
        let gateway = before(&service, KEEPS, "");
        gateway.graph(&query());
        assert!(!is_hit(&gateway.graph(&query())), "{line:?}");
    }
}

#[test]
fn errors_are_not_cached() {
    let service = Upstream::sequence([Reply::json(500, "{}"), Reply::json(200, DATA)]);
    let gateway = before(&service, KEEPS, "");
    assert_eq!(gateway.graph(&query()).status(), 500);
    assert!(!is_hit(&gateway.graph(&query())));
}

/// Contract: graph-limits 8.1 3
#[test]
fn a_hit_in_the_services_own_cache_gives_its_unit_back() {
    for line in [("cf-cache-status", "HIT"), ("x-cache", "HIT"), ("age", "3")] {
        let service = Upstream::always(Reply::whole(200, &[line], DATA));
        let gateway = before(&service, "window_s = 3600", ONE);
        for _ in 0..4 {
            let answer = gateway.graph(&query());
            assert_eq!((answer.status(), limit(&answer).0), (200, "1"), "{line:?}");
        }
        assert_eq!(service.requests().len(), 4);
    }
}

#[test]
fn without_a_time_to_live_nothing_is_cached() {
    let service = service();
    let gateway = before(&service, "cache = { ttl_s = 0 }", "");
    for _ in 0..2 {
        assert!(!is_hit(&gateway.graph(&query())));
    }
}
