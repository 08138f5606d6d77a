//! Responses: their limits, refusals, and distinct failures.

use super::*;
use crate::support::script::Cut;
use crate::support::upstream::ClosedPort;

/// Contract: graph-limits 1 The service answers
/// Contract: graph-limits 4 POST /content/v2
#[test]
fn a_query_passes_as_it_came() {
    let service = service();
    let gateway = before(&service, "", "");
    let request = Ask::post("/content/v2?auth=k1&cg=%7B%7d&b=1", QUERY)
        .header("cg-roles", "Editors")
        .header("x-custom", "kept");
    let answer = gateway.graph(&request);
    assert_eq!((answer.status(), answer.text()), (200, DATA));
    let received = service.request(0);
    assert_eq!(received.path, "/content/v2?auth=k1&cg=%7B%7d&b=1");
    assert_eq!(received.body, QUERY.as_bytes());
    assert_eq!(received.header("cg-roles"), Some("Editors"));
    assert_eq!(received.header("x-custom"), Some("kept"));
    let host = service.address().to_string();
    assert_eq!(received.header("host"), Some(&*host));
}

/// Contract: graph-limits 1 Limits hold for
/// Contract: graph-limits 8.1 4
#[test]
fn every_response_names_the_limit_in_place_of_the_services_own() {
    let own = [
        ("x-ratelimit-limit", "7"),
        ("X-RateLimit-Remaining", "6"),
        ("RateLimit", "\"x\";r=1;t=2"),
        ("ratelimit-policy", "\"x\";q=7"),
        ("x-own", "kept"),
    ];
    let service = Upstream::always(Reply::whole(200, &own, DATA));
    let gateway = before(&service, "", "");
    let answer = gateway.graph(&query());
    assert_eq!(limit(&answer), ("1500", "10"));
    assert_eq!(answer.head.count("x-ratelimit-limit"), 1);
    for gone in ["x-ratelimit-remaining", "ratelimit", "ratelimit-policy"] {
        assert_eq!(answer.header(gone), None, "{gone}");
    }
    assert_eq!(answer.header("x-own"), Some("kept"));
    assert_eq!(answer.header("retry-after"), None);
    assert!(answer.header("x-request-id").is_some());
}

/// Contract: graph-limits 7 1
/// Contract: graph-limits 7 2
/// Contract: graph-limits 7 3
/// Contract: graph-limits 8.3 5
#[test]
fn a_refusal_is_the_documents_to_the_letter() {
    let service = service();
    let gateway = before(
        &service,
        "window_s = 60",
        "limits = { \"POST /content/v2\" = 1 }",
    );
    assert_eq!(gateway.graph(&query()).status(), 200);
    let refused = gateway.graph(&query());
    assert_eq!(refused.status(), 429);
    assert_eq!(limit(&refused), ("1", "60"));
    assert_eq!(refused.header("content-type"), Some("application/json"));
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    let body = refused.json();
    assert_eq!(body["code"], "RATE_LIMIT_EXCEEDED");
    assert_eq!(body["status"], 429);
    let message = body["message"].as_str().unwrap();
    assert!(
        message.contains("1 ") && message.contains("60 "),
        "{message}"
    );
    let details = serde_json::json!({"limit": 1, "window": 60, "tenantId": "t1"});
    assert_eq!(body["details"], details);
    assert_eq!(body.as_object().unwrap().len(), 4);
    assert_eq!(service.requests().len(), 1);
}

#[test]
fn a_connection_stays_open_after_a_refusal() {
    let service = service();
    let gateway = before(
        &service,
        "window_s = 60",
        "limits = { \"POST /content/v2\" = 1 }",
    );
    let mut client = crate::support::client::Client::connect(gateway.address());
    for status in [200, 429, 429] {
        assert_eq!(client.ask(&query()).status(), status);
    }
}

/// Contract: graph-limits 8.1 2
#[test]
fn methods_of_one_path_have_windows_of_their_own() {
    let service = service();
    let gateway = before(
        &service,
        "window_s = 60",
        "limits = { \"POST /content/v2\" = 1 }",
    );
    assert_eq!(gateway.graph(&query()).status(), 200);
    assert_eq!(gateway.graph(&query()).status(), 429);
    let read = gateway.graph(&Ask::get("/content/v2?auth=k1&query=%7Ba%7D"));
    assert_eq!((read.status(), limit(&read).0), (200, "1500"));
}

/// Contract: graph-limits 7 4
/// Contract: graph-limits 8.1 4
#[test]
fn a_503_of_the_service_passes_as_itself() {
    let busy = Reply::whole(503, &[("retry-after", "7"), ("x-own", "1")], "cpu");
    let service = Upstream::always(busy);
    let gateway = before(&service, "", "");
    let answer = gateway.graph(&query());
    assert_eq!((answer.status(), answer.text()), (503, "cpu"));
    assert_eq!(answer.header("retry-after"), Some("7"));
    assert_eq!(limit(&answer), ("1500", "10"));
    assert_eq!(service.requests().len(), 1);
    gateway.wait_metric("weirgate_graph_upstream_total{outcome=\"upstream_cpu_exhausted\"} 1");
}

#[test]
fn a_service_that_cannot_be_reached_is_a_502() {
    let closed = ClosedPort::take();
    let gateway = at(&closed.url(), "", "");
    let answer = gateway.graph(&query());
    assert_eq!(answer.status(), 502);
    let body = answer.json();
    assert_eq!(
        (&body["code"], &body["status"]),
        (&"CONNECT_FAILED".into(), &502.into())
    );
    assert!(!answer.text().contains(&closed.address().ip().to_string()));
    assert_eq!(limit(&answer), ("1500", "10"));
}

#[test]
fn a_service_that_closes_without_a_response_is_a_502() {
    let service = Upstream::always(Reply::empty().and_close());
    let gateway = before(&service, "", "");
    let answer = gateway.graph(&query());
    assert_eq!(answer.status(), 502);
    assert_eq!(limit(&answer), ("1500", "10"));
    assert_eq!(service.requests().len(), 1);
}

#[test]
fn a_silent_service_is_a_504() {
    let service = Upstream::always(Reply::hang());
    let url = service.url();
    let toml = format!("[routing]\ntotal_timeout_s = 1\n[graph]\nupstream = \"{url}\"\n");
    let gateway = Gateway::start(&toml, "");
    let answer = gateway.graph(&query());
    assert_eq!(answer.status(), 504);
    assert_eq!(answer.json()["code"], "UPSTREAM_TIMEOUT");
}

#[test]
fn a_response_that_breaks_off_stays_broken() {
    let whole = Reply::chunked(200, &[]).chunk("half").chunk("rest").end();
    let cut = whole.wire_len() - 10;
    let service = Upstream::always(whole.cut(cut, Cut::Close));
    let gateway = before(&service, "", "");
    let answer = gateway.graph(&query());
    assert_eq!(answer.status(), 200);
    assert_ne!(answer.end, crate::support::client::End::Complete);
}

#[test]
fn without_a_service_there_is_nothing() {
    let gateway = Gateway::start("", "");
    let answer = gateway.graph(&query());
    assert_eq!(answer.status(), 404);
    assert_eq!(limit(&answer), ("none", "none"));
}

#[test]
fn what_is_ours_is_never_sent_on() {
    let service = service();
    let gateway = before(&service, "", "");
    for path in [
        "/v1/nothing",
        "/oauth/x",
        "/mcp/x",
        "/MCP-x;a/y",
        "/.well-known/x",
        "/webhooks/x",
        "/OFREP/x",
    ] {
        let answer = gateway.graph(&Ask::get(path));
        assert_eq!(answer.status(), 404, "{path}");
        assert_eq!(limit(&answer), ("none", "none"), "{path}");
    }
    assert_eq!(gateway.graph(&Ask::get("/")).status(), 200);
    assert_eq!(service.requests().len(), 0);
}

#[test]
fn unknown_paths_count_on_a_row_of_their_method() {
    let service = service();
    let gateway = before(
        &service,
        "window_s = 60\ncategories = { other = { default = 2, maximum = 2 } }",
        "",
    );
    let status = |path: &str| gateway.graph(&Ask::get(path)).status();
    assert_eq!([status("/a"), status("/b"), status("/c")], [200, 200, 429]);
    assert_eq!(gateway.graph(&Ask::post("/a", "")).status(), 200);
}

#[test]
fn unknown_paths_can_be_refused() {
    let service = service();
    let gateway = before(&service, "unknown_paths = \"reject\"", "");
    let answer = gateway.graph(&Ask::get("/unknown"));
    assert_eq!(answer.status(), 404);
    assert_eq!(limit(&answer), ("1000", "10"));
    assert_eq!(answer.json()["code"], "NOT_FOUND");
    assert_eq!(gateway.graph(&query()).status(), 200);
    assert_eq!(service.requests().len(), 1);
}

#[test]
fn a_preflight_takes_nothing_of_the_window_of_its_request() {
    let service = service();
    let gateway = before(
        &service,
        "window_s = 60",
        "limits = { \"POST /content/v2\" = 1 }",
    );
    let preflight = Ask::new("OPTIONS", "/content/v2").header("origin", "https://x");
    for _ in 0..3 {
        let answer = gateway.graph(&preflight);
        assert_eq!((answer.status(), limit(&answer)), (200, ("1500", "60")));
    }
    assert_eq!(gateway.graph(&query()).status(), 200);
}

/// Source: docs/hostile-input.md 97.
#[test]
fn preflights_count_by_address() {
    let service = service();
    let gateway = before(
        &service,
        "window_s = 60\ncategories = { other = { default = 3, maximum = 3 } }",
        "",
    );
    let preflight = Ask::new("OPTIONS", "/content/v2").header("origin", "https://x");
    let statuses: Vec<u16> = (0..5).map(|_| gateway.graph(&preflight).status()).collect();
    assert_eq!(statuses, [200, 200, 200, 429, 429]);
    assert_eq!(gateway.graph(&query()).status(), 200);
}

#[test]
fn bodies_have_a_cap_with_a_length_and_without() {
    let service = service();
    let url = service.url();
    let toml = format!(
        "[limits]\nbody_bytes = {{ graph = 1024, graph_data = 4096 }}\n[graph]\nupstream = \"{url}\"\n"
    );
    let gateway = Gateway::start(&toml, "");
    let large = "x".repeat(2000);
    let answer = gateway.graph(&Ask::post("/content/v2", &large));
    assert_eq!((answer.status(), limit(&answer)), (413, ("1500", "10")));
    let chunked = gateway.graph(&Ask::post("/content/v2", &large).chunked(500));
    assert_eq!(chunked.status(), 413);
    let data = gateway.graph(&Ask::post("/api/content/v2/data?id=a", &large));
    assert_eq!((data.status(), limit(&data)), (200, ("500", "10")));
}

/// Contract: graph-limits 1 A limit follows
/// Contract: graph-limits 4 GET /api/content/v3/types
/// Contract: graph-limits 4 POST /api/content/v3/types
/// Contract: graph-limits 8.2 accounts: create, delete, swap
/// Contract: graph-limits 8.2 webhooks, pinned results, best bets, cache configuration, request logs
/// Contract: graph-limits 8.2 GraphQL queries and content reads with an elevated allocation
/// Contract: graph-limits 8.3 1
/// Contract: graph-limits 8.3 2
/// Contract: graph-limits 8.3 3
/// Contract: graph-limits 8.3 4
#[test]
fn each_worked_example_of_the_allocation_holds() {
    let service = service();
    let rows = [
        ("", [1500, 1500, 500, 1000, 10, 50]),
        ("150", [1500, 1500, 500, 1000, 10, 50]),
        ("200", [3000, 3000, 500, 1000, 10, 50]),
        ("300", [3000, 3000, 500, 1000, 10, 50]),
        ("301", [3000, 3000, 500, 1000, 10, 50]),
        ("1000", [3000, 3000, 500, 1000, 10, 50]),
        ("151", [3000, 3000, 500, 1000, 10, 50]),
        ("150.1", [3000, 3000, 500, 1000, 10, 50]),
        ("100", [1000, 1000, 500, 1000, 10, 50]),
        ("51", [1000, 1000, 500, 1000, 10, 50]),
        ("50", [500, 500, 500, 500, 10, 50]),
        ("20", [500, 500, 500, 500, 10, 50]),
        ("1", [10, 10, 10, 10, 10, 10]),
    ];
    let tenants: String = rows
        .iter()
        .map(|(rate, _)| {
            let allocation = match *rate {
                "" => String::new(),
                rate => format!("allocation_qps = {rate}\n"),
            };
            format!("[[graph.tenants]]\nid = \"q{rate}\"\napp_keys = [{{ key = \"q{rate}\" }}]\n{allocation}")
        })
        .collect();
    let gateway = before(&service, "", &tenants);
    let operations = [
        ("POST", "/content/v2"),
        ("GET", "/api/content/v3/types"),
        ("POST", "/api/content/v2/data"),
        ("PUT", "/api/webhooks/7"),
        ("POST", "/api/content/v3/types"),
        ("DELETE", "/api/account/7"),
    ];
    for (rate, limits) in rows {
        let basic = base64(&format!("q{rate}:secret"));
        for ((method, path), expected) in operations.into_iter().zip(limits) {
            let request = Ask::new(method, path).header("authorization", &format!("Basic {basic}"));
            let answer = gateway.graph(&request);
            let named: u64 = limit(&answer).0.parse().unwrap();
            assert_eq!(named, expected, "{rate} {method} {path}");
        }
    }
}

fn base64(text: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(text)
}

/// Both ways of forwarding a body: streamed, and replayed after it was read.
#[test]
fn clients_of_http_2_are_served_alike() {
    let service = service();
    let graph = "cache = { ttl_s = 60 }";
    let gateway = before(&service, graph, "app_keys = [{ key = \"app\" }]");
    let url = format!("http://{}/content/v2", gateway.address());
    for more in [
        &["-u", "app:x"][..],
        &["-H", "authorization: epi-single k1"],
    ] {
        let output = std::process::Command::new("curl")
            .args([
                "-s",
                "--http2-prior-knowledge",
                "-d",
                QUERY,
                "-w",
                "\n%{http_version} %{http_code}",
            ])
            .args(["-H", "content-type: application/json"])
            .args(more)
            .arg(&url)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text, format!("{DATA}\n2 200"), "{more:?}");
    }
    for received in service.requests() {
        assert_eq!(received.body, QUERY.as_bytes());
        assert_eq!(received.path, "/content/v2");
        assert_eq!(
            received.header("host"),
            Some(&*service.address().to_string())
        );
    }
    assert_eq!(service.requests().len(), 2);
}

#[test]
fn a_sliding_window_refuses_what_is_over_too() {
    let service = service();
    let sliding = "algorithm = \"sliding\"\nwindow_s = 3600";
    let gateway = before(&service, sliding, "limits = { \"POST /content/v2\" = 2 }");
    let statuses = [0; 3].map(|_| gateway.graph(&query()).status());
    assert_eq!(statuses, [200, 200, 429]);
}

#[test]
fn an_operation_of_the_configuration_is_one_row_for_all_its_paths() {
    let service = service();
    let operation = "[[graph.operations]]\nmethods = [\"GET\"]\npath = \"/custom/{id}\"\ncategory = \"tight\"\n\
                     [graph.categories]\ntight = { default = 1, maximum = 1 }\n";
    let gateway = before(&service, "window_s = 3600", operation);
    assert_eq!(gateway.graph(&Ask::get("/custom/a")).status(), 200);
    let refused = gateway.graph(&Ask::get("/custom/b"));
    assert_eq!((refused.status(), limit(&refused).0), (429, "1"));
    assert_eq!(gateway.graph(&Ask::get("/custom/a/b")).status(), 200);
}

/// Source: docs/graph-limits.md 8.1.4.
#[test]
fn a_head_that_may_not_pass_is_refused_with_the_limit_of_its_row() {
    let service = service();
    let gateway = before(&service, "", "");
    let long = "x".repeat(33_000);
    for (request, status) in [
        (query().header("Transfer-Encoding", "gzip, chunked"), 400),
        (query().without("Host"), 400),
        (query().header("X-Long", &long), 431),
    ] {
        let answer = gateway.graph(&request);
        assert_eq!(
            (answer.status(), limit(&answer)),
            (status, ("1500", "10")),
            "{}",
            answer.text()
        );
        let body = answer.json();
        assert!(body["error"]["type"].is_null(), "{body}");
    }
    assert_eq!(service.requests().len(), 0);
}
