//! Equal endpoints of one provider: calls in turn, repeats at another, sessions, health checks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::models::fronts::chat_completions::{PLAIN, STREAM, reply, stream};
use crate::support::boot::Gateway;
use crate::support::client::ask;
use crate::support::script::Reply;
use crate::support::until;
use crate::support::upstream::{ClosedPort, Received, Upstream};

const MODELS: &str = r#"
[[models]]
id = "chat"
[[models.providers]]
provider = "pool"
name = "m"
input_price = "2.5"
output_price = "10"
capabilities = ["streaming", "cancellation"]
"#;

/// A gateway before equal endpoints, with more lines for their provider.
fn gateway(urls: &[String], more: &str) -> Gateway {
    let urls: Vec<String> = urls.iter().map(|url| format!("\"{url}/v1\"")).collect();
    let (first, others) = urls.split_first().unwrap();
    let toml = format!(
        "[providers.pool]\nkind = \"openai-compatible\"\nbase_url = {first}\nreplicas = [{}]\nkeys = [{{ env = \"POOL_KEY\" }}]\n{more}",
        others.join(", ")
    );
    Gateway::start_with_credit(&toml, MODELS, &[("POOL_KEY", "sk-pool")], "1000")
}

/// The requests of calls, without those of health checks.
fn calls(upstream: &Upstream) -> Vec<Received> {
    let mut requests = upstream.requests();
    requests.retain(|request| request.path == "/v1/chat/completions");
    requests
}

/// What an endpoint answers to a call, whole or streamed.
fn answer_to(request: &Received) -> Reply {
    match request.json()["stream"] == true {
        true => stream(),
        false => reply(),
    }
}

#[test]
fn calls_take_turns_and_each_endpoint_is_called_by_its_own_name() {
    let pool = [(); 3].map(|()| Upstream::answering(answer_to));
    let urls = pool.each_ref().map(Upstream::url);
    let gateway = gateway(&urls, "health_interval_s = 0\n");
    for call in 0..6 {
        let body = if call % 2 == 0 { PLAIN } else { STREAM };
        assert_eq!(gateway.chat(body).status(), 200);
    }
    for upstream in &pool {
        let calls = calls(upstream);
        assert_eq!(calls.len(), 2);
        for call in calls {
            let host = upstream.address().to_string();
            assert_eq!(call.header("host"), Some(&*host));
            assert_eq!(call.header("authorization"), Some("Bearer sk-pool"));
        }
    }
}

#[test]
fn a_session_stays_at_one_endpoint() {
    let pool = [(); 3].map(|()| Upstream::answering(answer_to));
    let urls = pool.each_ref().map(Upstream::url);
    let gateway = gateway(&urls, "");
    let request = gateway.chat_ask(PLAIN).header("x-session-id", "s");
    for _ in 0..5 {
        assert_eq!(ask(gateway.address(), &request).status(), 200);
    }
    let mut counts = pool.each_ref().map(|upstream| calls(upstream).len());
    counts.sort_unstable();
    assert_eq!(counts, [0, 0, 5]);
}

#[test]
fn a_call_that_fails_is_repeated_at_another_endpoint_and_both_are_listed() {
    let closed = ClosedPort::take();
    let failing = Upstream::always(Reply::json(503, "{}"));
    let good = Upstream::answering(answer_to);
    let urls = [closed.url(), failing.url(), good.url()];
    let gateway = gateway(&urls, "health_interval_s = 0\n");
    let answer = gateway.chat(PLAIN);
    let body = answer.json();
    assert_eq!(answer.status(), 200, "{body}");
    let listed = body["metadata"]["routing"].as_array().unwrap();
    let listed: Vec<(u64, bool)> = listed
        .iter()
        .map(|entry| {
            assert_eq!(entry["provider"], "pool");
            let status = entry["status_code"].as_u64().unwrap();
            (status, entry["succeeded"].as_bool().unwrap())
        })
        .collect();
    assert_eq!(listed, [(0, false), (503, false), (200, true)]);
    // The closed one rests, so the next calls find one that answers, at the latest the second time.
    for _ in 0..6 {
        let answer = gateway.chat(STREAM);
        let body = answer.text();
        assert!(body.contains("[DONE]"), "{body}");
        assert!(!body.contains(r#""status_code":0"#), "{body}");
    }
    assert_eq!(calls(&good).len(), 7);
}

#[test]
fn an_endpoint_that_its_health_check_finds_down_is_not_called_until_it_is_up() {
    let is_well = Arc::new(AtomicBool::new(false));
    let well = Arc::clone(&is_well);
    let sick = Upstream::answering(move |request| match &*request.path {
        "/health" if well.load(Ordering::SeqCst) => Reply::json(204, ""),
        "/health" => Reply::json(500, ""),
        _ => answer_to(request),
    });
    let good = Upstream::answering(|request| match &*request.path {
        "/health" => Reply::json(200, "{}"),
        _ => answer_to(request),
    });
    let more = "health_path = \"/health\"\nhealth_interval_s = 1\n";
    let gateway = gateway(&[sick.url(), good.url()], more);
    let asks = || {
        let before = calls(&sick).len();
        for _ in 0..4 {
            assert_eq!(gateway.chat(PLAIN).status(), 200);
        }
        calls(&sick).len() - before
    };
    until("the check to find it down", || asks() == 0);
    let check = sick.requests().into_iter().find(|it| it.path == "/health");
    let check = check.unwrap();
    assert_eq!(check.header("authorization"), None, "no key goes there");
    is_well.store(true, Ordering::SeqCst);
    until("the check to find it up", || asks() == 2);
}

#[test]
fn where_all_are_down_they_are_tried_all_the_same() {
    let closed = [(); 2].map(|()| ClosedPort::take());
    let urls = closed.each_ref().map(ClosedPort::url);
    let gateway = gateway(&urls, "");
    for _ in 0..3 {
        let answer = gateway.chat(PLAIN);
        assert_eq!(answer.status(), 502, "{}", answer.text());
        assert_eq!(answer.json()["error"]["code"], "connect_failed");
    }
}
