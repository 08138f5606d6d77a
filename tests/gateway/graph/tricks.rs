//! No request bypasses a limit: every request that the service gets was counted on its operation.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::support::client::Client;

/// A window that outlasts every test, with a limit of two queries.
const TWO: &str = "limits = { \"POST /content/v2\" = 2 }";
const LONG: &str = "window_s = 3600";

/// Sends each of the targets as raw bytes and returns the statuses.
fn send_all(gateway: &Gateway, method: &str, targets: &[&str], headers: &str) -> Vec<u16> {
    let send = |target: &&str| {
        let mut client = Client::connect(gateway.address());
        client.send_bytes(format!(
            "{method} {target} HTTP/1.1\r\nhost: x\r\nauthorization: epi-single k1\r\n\
             content-length: {}\r\n{headers}\r\n{QUERY}",
            QUERY.len(),
        ));
        client.answer().status()
    };
    targets.iter().map(send).collect()
}

#[test]
fn spellings_of_a_path_count_on_its_row() {
    let service = service();
    let gateway = before(&service, LONG, TWO);
    let targets = [
        "//content/v2",
        "/content//v2",
        "/./content/v2",
        "/x/../content/v2",
        "/content/v2/",
        "/CONTENT/V2",
        "/content/v2;a=b",
        "/%63ontent/v2",
        "/content/v2#x",
        "/content\\v2",
        "/content/v2/tenant_id=x",
        "/content/v2?a=1",
        "http://elsewhere/content/v2",
        "HTTP://x//content/./v2",
    ];
    let statuses = send_all(&gateway, "POST", &targets, "");
    let mut told = BTreeMap::new();
    for status in &statuses {
        *told.entry(*status).or_insert(0) += 1;
    }
    assert_eq!(told.get(&200), Some(&2), "{statuses:?}");
    assert!(
        told.keys().all(|status| [200, 400, 429].contains(status)),
        "{statuses:?}"
    );
    assert_eq!(service.requests().len(), 2);
}

#[test]
fn paths_that_can_be_read_in_two_ways_go_nowhere() {
    let service = service();
    let gateway = before(&service, LONG, TWO);
    let targets = [
        "/content%2fv2",
        "/content%5cv2",
        "/%2563ontent/v2",
        "/content/v2%00",
        "/content/v2%",
        "/content/v2%c3%a9",
        // Some services read these as `/content/v2/`, some as `/content`.
        "/content/v2//..",
        "/content/v2/x/;/../..",
        "/content/v2/x/..;/..",
        "/content/v2/%5c..",
        "/content/v2/\\..",
    ];
    let statuses = send_all(&gateway, "POST", &targets, "");
    assert_eq!(statuses, [400; 11]);
    let answer = gateway.graph(&Ask::post("/content%2fv2", QUERY));
    assert_eq!(limit(&answer), ("1000", "3600"));
    assert_eq!(service.requests().len(), 0);
}

#[test]
fn a_path_keeps_the_bytes_it_came_with() {
    let service = service();
    let gateway = before(&service, "", "");
    let targets = [
        "//content/v2",
        "/x/../content/v2",
        "/content/v2;a=b?q=%7E&r=~",
        "/%63ontent/v2/",
    ];
    assert_eq!(send_all(&gateway, "POST", &targets, ""), [200; 4]);
    let received: Vec<_> = service
        .requests()
        .into_iter()
        .map(|request| request.path)
        .collect();
    assert_eq!(received, targets);
}

#[test]
fn an_absolute_target_is_sent_as_its_path_with_the_services_host() {
    let service = service();
    let gateway = before(&service, "", "");
    assert_eq!(
        send_all(&gateway, "POST", &["http://x/content/v2?a=b"], ""),
        [200]
    );
    let received = service.request(0);
    assert_eq!(received.path, "/content/v2?a=b");
    assert_eq!(
        received.header("host"),
        Some(&*service.address().to_string())
    );
}

#[test]
fn another_method_in_a_header_is_dropped() {
    let service = service();
    let gateway = before(&service, LONG, TWO);
    let headers =
        "X-HTTP-Method-Override: DELETE\r\nx-http-method: PUT\r\nX-Method-Override: PUT\r\n";
    let statuses = send_all(&gateway, "POST", &["/content/v2"; 3], headers);
    assert_eq!(statuses, [200, 200, 429]);
    let requests = service.requests();
    assert_eq!(requests.len(), 2);
    for received in requests {
        assert_eq!(received.method, "POST");
        for (name, _) in &received.headers {
            assert!(!name.to_ascii_lowercase().contains("method"), "{name}");
        }
    }
}

#[test]
fn a_method_in_another_case_goes_nowhere() {
    let service = service();
    let gateway = before(&service, LONG, TWO);
    assert_eq!(send_all(&gateway, "post", &["/content/v2"], ""), [400]);
    assert_eq!(send_all(&gateway, "PosT", &["/content/v2"], ""), [400]);
    assert_eq!(service.requests().len(), 0);
}

#[test]
fn head_and_get_with_a_body_share_the_row_of_get() {
    let service = service();
    let gateway = before(&service, LONG, "limits = { \"GET /content/v2\" = 2 }");
    let head = gateway.graph(&Ask::new("HEAD", "/content/v2?auth=k1"));
    assert_eq!(head.status(), 200);
    let get = Ask::get("/content/v2?auth=k1").body(QUERY);
    assert_eq!(gateway.graph(&get).status(), 200);
    assert_eq!(gateway.graph(&get).status(), 429);
    assert_eq!(service.requests().len(), 2);
}

#[test]
fn an_upgrade_does_not_open_a_tunnel() {
    let service = service();
    let gateway = before(&service, "", "");
    let headers = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n";
    assert_eq!(send_all(&gateway, "GET", &["/content/v2"], headers), [200]);
    assert_eq!(service.request(0).header("upgrade"), None);
}

#[test]
fn of_requests_in_one_piece_each_that_goes_on_is_counted() {
    let service = service();
    let gateway = before(&service, LONG, TWO);
    let one = format!(
        "POST /content/v2 HTTP/1.1\r\nhost: x\r\nauthorization: epi-single k1\r\ncontent-length: {}\r\n\r\n{QUERY}",
        QUERY.len()
    );
    let mut client = Client::connect(gateway.address());
    client.send_bytes(one.repeat(50));
    let statuses: Vec<u16> = (0..50).map(|_| client.answer().status()).collect();
    assert_eq!(statuses[..2], [200; 2]);
    assert_eq!(statuses[2..], [429; 48]);
    assert_eq!(service.requests().len(), 2);
}

#[test]
fn a_connection_header_cannot_take_the_host_away() {
    let service = service();
    let gateway = before(&service, "", "");
    let statuses = send_all(&gateway, "POST", &["/content/v2"], "connection: host\r\n");
    assert_eq!(statuses, [400]);
    assert_eq!(service.requests().len(), 0);
}

/// Contract: graph-limits 8.1 1
#[test]
fn many_connections_are_admitted_exactly_the_limit() {
    let service = service();
    let gateway = before(&service, LONG, "limits = { \"POST /content/v2\" = 50 }");
    let address = gateway.address();
    let admitted: usize = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(move || {
                    let mut client = Client::connect(address);
                    let statuses = (0..50).map(|_| client.ask(&query()).status());
                    statuses.filter(|status| *status == 200).count()
                })
            })
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .sum()
    });
    assert_eq!((admitted, service.requests().len()), (50, 50));
}

/// In real time: requests reach the service in bursts of exactly the limit, a window apart.
/// Contract: graph-limits 8.1 1
#[test]
fn each_window_admits_exactly_its_limit() {
    const LIMIT: usize = 20;
    const WINDOWS: usize = 4;
    let service = service();
    let gateway = before(
        &service,
        "window_s = 1",
        "limits = { \"POST /content/v2\" = 20 }",
    );
    let address = gateway.address();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = Client::connect(address);
                while service.requests().len() < LIMIT * WINDOWS {
                    client.ask(&query());
                }
            });
        }
    });
    let mut times: Vec<_> = service
        .requests()
        .iter()
        .map(|request| request.at)
        .collect();
    times.sort();
    let bursts: Vec<_> = times.chunks(LIMIT).take(WINDOWS).collect();
    for burst in &bursts {
        let took = burst[LIMIT - 1] - burst[0];
        assert!(
            took < Duration::from_millis(800),
            "too few in one window: {took:?}"
        );
    }
    for pair in bursts.windows(2) {
        let apart = pair[1][0] - pair[0][0];
        assert!(
            apart > Duration::from_millis(500),
            "too many in one window: {apart:?}"
        );
    }
}
