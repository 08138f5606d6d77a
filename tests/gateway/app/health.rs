//! `GET /`, and the operator's probes.

use crate::models::fronts::chat_completions::{PLAIN, reply};
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::ask;
use crate::support::upstream::Upstream;

/// Source: docs/model-gateway.md 2.9: `redis` and `database`, each `{connected (boolean, required), error (string)}`. Without a
/// Redis none is connected, which is healthy.
/// Contract: model-gateway 4 GET /
/// Contract: model-gateway 1 GET / reports
#[test]
fn health_needs_no_key_and_tells_the_clients_address() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    for path in ["/", "/?skip=redis,database"] {
        let answer = ask(gateway.address(), &Ask::get(path));
        let body = answer.json();
        assert_eq!(
            (answer.status(), &body["health"]["status"]),
            (200, &"healthy".into())
        );
        assert_eq!(
            (&body["clientIp"], &body["clientIpHeader"]),
            (&"127.0.0.1".into(), &"".into())
        );
        assert_eq!(
            (
                &body["health"]["redis"]["connected"],
                &body["health"]["database"]["connected"]
            ),
            (&false.into(), &true.into())
        );
        assert_eq!(body["health"]["redis"]["error"], "not configured");
        assert!(body["message"].is_string() && body["version"].is_string());
    }
}

#[test]
fn the_clients_address_is_believed_from_trusted_proxies_alone() {
    let first = Upstream::always(reply());
    for (trusted, listed, expected) in [
        ("127.0.0.0/8", "203.0.113.7", "203.0.113.7"),
        ("127.0.0.0/8", "203.0.113.7:4711", "203.0.113.7"),
        ("127.0.0.0/8", "unknown", "127.0.0.1"),
        ("10.0.0.0/8", "203.0.113.7", "127.0.0.1"),
    ] {
        let more = format!(
            "[listen]\nclient_ip_header = \"x-forwarded-for\"\ntrusted_proxies = [\"{trusted}\"]"
        );
        let gateway = Gateway::with(&first.url(), &first.url(), &more);
        let listed = format!("198.51.100.1, {listed}");
        let request = Ask::get("/").header("X-Forwarded-For", &listed);
        let body = ask(gateway.address(), &request).json();
        assert_eq!(
            (&body["clientIp"], &body["clientIpHeader"]),
            (&expected.into(), &"x-forwarded-for".into())
        );
    }
}

#[test]
fn probes_and_metrics_are_on_the_operators_listener() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let answer = gateway.chat(PLAIN);
    assert_eq!(answer.status(), 200);
    // What is counted is counted before the line is written.
    gateway.log_line(answer.header("x-request-id").unwrap());
    for path in ["/livez", "/readyz"] {
        assert_eq!(
            ask(gateway.running.admin, &Ask::get(path)).status(),
            200,
            "{path}"
        );
    }
    let metrics = gateway.metrics();
    for line in [
        "weirgate_requests_total{route=\"chat_completions\",status=\"2xx\"} 1",
        "weirgate_upstream_attempts_total{model=\"chat\",outcome=\"ok\",provider=\"first\"} 1",
        "weirgate_tokens_total{kind=\"prompt\",model=\"chat\",provider=\"first\"} 1000",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
}

#[test]
fn with_a_token_only_probes_are_open_to_all() {
    let toml = "[admin]\ntoken = { env = \"ADMIN\" }";
    let gateway = Gateway::start_with_env(toml, "", &[("ADMIN", "a-long-secret")]);
    let admin = gateway.running.admin;
    for path in ["/livez", "/readyz"] {
        assert_eq!(ask(admin, &Ask::get(path)).status(), 200, "{path}");
    }
    let with = |path: &str, credential: &str| {
        let request = Ask::get(path).header("Authorization", credential);
        ask(admin, &request).status()
    };
    for path in ["/metrics", "/status", "/api/keys", "/livez/x"] {
        let refused = ask(admin, &Ask::get(path));
        assert_eq!(refused.status(), 401, "{path}");
        assert!(
            refused
                .header("www-authenticate")
                .unwrap()
                .starts_with("Bearer")
        );
        assert!(!refused.text().contains("weirgate_"), "{path}");
        for wrong in [
            "Bearer a-long-secre",
            "Bearer a-long-secret2",
            "Bearer ",
            "Basic a-long-secret",
            "a-long-secret",
        ] {
            assert_eq!(with(path, wrong), 401, "{path}: {wrong}");
        }
    }
    assert_eq!(with("/metrics", "Bearer a-long-secret"), 200);
    assert_eq!(with("/metrics", "bearer  a-long-secret"), 200);
    assert_eq!(with("/nothing", "Bearer a-long-secret"), 404);
}

#[test]
fn promtool_accepts_the_metrics() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    gateway.chat(PLAIN);
    let mut promtool = std::process::Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("promtool is installed by `make test`");
    std::io::Write::write_all(
        &mut promtool.stdin.take().unwrap(),
        gateway.metrics().as_bytes(),
    )
    .unwrap();
    let checked = promtool.wait_with_output().unwrap();
    assert!(
        checked.status.success(),
        "{}",
        String::from_utf8_lossy(&checked.stderr)
    );
}

#[test]
fn a_task_that_has_ended_makes_the_process_unready() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let ready = || ask(gateway.running.admin, &Ask::get("/readyz"));
    assert_eq!(ready().status(), 200);
    let tasks = &gateway.running.app.proxy.tasks;
    for name in ["accounts", "heartbeat", "journal", "leases", "ledger"] {
        assert!(tasks.names().contains(&name), "{name}: {:?}", tasks.names());
    }
    tasks.watch("gone", || false);
    let answer = ready();
    assert_eq!(answer.status(), 503);
    assert!(
        answer.text().contains("the task `gone` has ended"),
        "{}",
        answer.text()
    );
}

/// Source: docs/hostile-input.md 91.
#[test]
fn without_a_token_a_name_that_was_pointed_here_reads_no_metrics() {
    let gateway = Gateway::start("", "");
    let admin = gateway.running.admin;
    let of = |path: &str, host: &str| {
        let request = Ask::get(path).without("Host").header("Host", host);
        ask(admin, &request)
    };
    for host in ["localhost", "LOCALHOST:8081", "127.0.0.1", "[::1]:8081"] {
        assert_eq!(of("/metrics", host).status(), 200, "{host}");
    }
    for host in ["rebound.example", "rebound.example:8081", "192.0.2.1"] {
        let refused = of("/metrics", host);
        assert_eq!(refused.status(), 403, "{host}");
        assert!(refused.text().contains("admin.token"), "{}", refused.text());
        // Probes of a cluster may name what they like.
        assert_eq!(of("/livez", host).status(), 200, "{host}");
    }
}
