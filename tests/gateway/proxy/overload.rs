//! More model requests at once than `limits.in_flight`. Source: docs/model-gateway.md 7, docs/promises-tests.md.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::models::exchange::streams::drain;
use crate::models::fronts::chat_completions::{PLAIN, STREAM, chunk, reply};
use crate::support::ask::Ask;
use crate::support::boot::{Gateway, create_organization};
use crate::support::client::{Client, ask};
use crate::support::script::{Gate, Reply};
use crate::support::until;
use crate::support::upstream::Upstream;

fn begun() -> Reply {
    let event = chunk(json!({"role": "assistant", "content": "a"}), None);
    Reply::stream().event(&event)
}

fn narrow(first: &Upstream, in_flight: u32) -> Gateway {
    let more = format!(
        "[limits]\nin_flight = {in_flight}\n[decisions]\n[[decisions.projects]]\nsdk_key = \"sandbox\"\ndatafile = \"sandbox\"\n[graph]\nupstream = \"sandbox\""
    );
    Gateway::with(&first.url(), &first.url(), &more)
}

/// A stream that has started and stays open.
fn running(gateway: &Gateway) -> Client {
    let mut client = Client::connect(gateway.address());
    client.send(&gateway.chat_ask(STREAM));
    assert_eq!(client.head().status, 200);
    client.chunk().unwrap();
    client
}

/// Contract: model-gateway 7 529
#[test]
fn one_request_too_many_is_refused_within_10_ms() {
    let first = Upstream::always(begun().and_hang());
    let gateway = narrow(&first, 3);
    let streams = [(); 3].map(|()| running(&gateway));
    let mut client = Client::connect(gateway.address());
    let quickest = (0..10).map(|_| {
        let started = Instant::now();
        let refused = client.ask(&gateway.chat_ask(PLAIN));
        let took = started.elapsed();
        assert_eq!(refused.status(), 529);
        assert_eq!(refused.header("retry-after"), Some("1"));
        assert_eq!(refused.json()["error"]["type"], "overloaded");
        if refused.header("connection") == Some("close") {
            client = Client::connect(gateway.address());
        }
        took
    });
    // The machine that runs the tests may be busy elsewhere; not each time.
    let quickest = quickest.min().unwrap();
    assert!(quickest < Duration::from_millis(10), "{quickest:?}");
    assert_eq!(first.requests().len(), 3);
    drop(streams);
}

/// Contract: decision-agent 1 It listens on
#[test]
fn what_is_no_model_request_is_answered_all_the_same() {
    let first = Upstream::always(begun().and_hang());
    let gateway = narrow(&first, 1);
    let _stream = running(&gateway);
    assert_eq!(gateway.chat(PLAIN).status(), 529);
    let decide =
        Ask::post("/v1/decide", r#"{"userId":"u"}"#).header("X-Platform-SDK-Key", "sandbox");
    let query = Ask::post("/content/v2", r#"{"query":"{ hello }"}"#);
    for request in [Ask::get("/"), decide, query] {
        assert_eq!(
            ask(gateway.address(), &request).status(),
            200,
            "{request:?}"
        );
    }
}

#[test]
fn a_place_is_free_again_however_its_request_ends() {
    let gate = Gate::default();
    let done = chunk(serde_json::json!({"content": "b"}), Some("stop"));
    let to_its_end = begun().wait(&gate).event(&done).event("[DONE]").end();
    let first = Upstream::sequence([
        to_its_end,
        begun().and_hang(),
        begun().and_close(),
        Reply::hang(),
        Reply::json(400, "{}"),
        reply(),
    ]);
    let gateway = narrow(&first, 1);
    let is_free = || gateway.running.app.proxy.permits.free() == 1;
    let mut stream = running(&gateway);
    assert!(!is_free());
    gate.open();
    drain(&mut stream);
    until("free after an end", is_free);
    drop(running(&gateway));
    until("free after the client left", is_free);
    drain(&mut running(&gateway));
    until("free after the provider broke", is_free);
    let mut early = Client::connect(gateway.address());
    early.send(&gateway.chat_ask(STREAM));
    first.wait_requests(4);
    early.reset();
    until("free after the client reset", is_free);
    assert_eq!(gateway.chat(PLAIN).status(), 400);
    until("free after a refusal", is_free);
    assert_eq!(gateway.chat("{").status(), 400);
    until("free after a bad request", is_free);
    let mut silent = Client::connect(gateway.address());
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n",
        gateway.key
    );
    silent.send_bytes(head);
    // A body that is awaited takes no place.
    assert_eq!(gateway.chat(PLAIN).status(), 200);
    drop(silent);
    until("free after a body broke off", is_free);
    assert_eq!(gateway.chat(PLAIN).status(), 200);
}

#[test]
fn an_organization_that_waits_gets_the_place_that_another_leaves() {
    let first = Upstream::always(begun().and_hang());
    let gateway = narrow(&first, 2);
    let other = gateway.change(async |store| create_organization("other", store).await);
    let mut loud = vec![running(&gateway), running(&gateway)];
    let stream = Ask::post("/v1/chat/completions", STREAM).key(&other);
    let quiet = || {
        let mut client = Client::connect(gateway.address());
        client.send(&stream);
        client.head().status
    };
    assert_eq!(quiet(), 529);
    loud.pop();
    until("a place is free", || {
        gateway.running.app.proxy.permits.free() == 1
    });
    assert_eq!(gateway.chat(STREAM).status(), 529, "it has its share");
    let mut client = Client::connect(gateway.address());
    client.send(&stream);
    assert_eq!(client.head().status, 200);
}

#[test]
fn bodies_over_the_memory_for_them_are_refused() {
    let first = Upstream::always(reply());
    let more = "[limits]\nbuffered_bytes = 1048576\nbody_bytes = { chat = 1048576 }";
    let gateway = Gateway::with(&first.url(), &first.url(), more);
    let begin = |come: usize| {
        let mut client = Client::connect(gateway.address());
        client.send_bytes(format!(
            "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: 700000\r\n\r\n{}",
            gateway.key,
            "a".repeat(come),
        ));
        client
    };
    let half = begin(600_000);
    let budget = &gateway.running.app.proxy.body_budget;
    until("the first body has its memory", || {
        (600_000..=700_000).contains(&budget.reserved_bytes())
    });
    assert_eq!(begin(600_000).head().status, 529);
    assert_eq!(gateway.chat(PLAIN).status(), 200);
    drop(half);
    let whole = format!(
        r#"{{"model":"chat","messages":[{{"role":"user","content":"{}"}}]}}"#,
        "a".repeat(600_000)
    );
    until("the memory is given back", || budget.reserved_bytes() == 0);
    assert_eq!(gateway.chat(&whole).status(), 200);
}

/// Flag decisions, whose routes take no API key.
const FLAGS: &str = "[[decisions.projects]]\nsdk_key = \"sandbox\"\ndatafile = \"sandbox\"\n";

/// Source: docs/hostile-input.md 96.
#[test]
fn bodies_that_are_announced_and_do_not_come_take_nothing() {
    let first = Upstream::always(reply());
    let more = format!("{FLAGS}[limits]\nbuffered_bytes = 1048576\nspooled_bytes = 1048576\n");
    let gateway = Gateway::with(&first.url(), &first.url(), &more);
    let head = |path: &str, media_type: &str| {
        let mut client = Client::connect(gateway.address());
        client.send_bytes(format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nContent-Type: {media_type}\r\nContent-Length: 200000\r\n\r\n",
            gateway.key,
        ));
        client
    };
    let form = "multipart/form-data; boundary=x";
    let _held: Vec<Client> = (0..60)
        .flat_map(|_| {
            [
                head("/v1/decide", "application/json"),
                head("/v1/chat/completions", "application/json"),
                head("/v1/audio/transcriptions", form),
            ]
        })
        .collect();
    until("all heads have come", || {
        gateway
            .metrics()
            .contains("weirgate_requests_in_flight 180")
    });
    let proxy = &gateway.running.app.proxy;
    assert_eq!(
        (
            proxy.body_budget.reserved_bytes(),
            proxy.spool.reserved_bytes()
        ),
        (0, 0)
    );
    assert_eq!(gateway.chat(PLAIN).status(), 200);
}

/// Source: docs/hostile-input.md 96a.
#[test]
fn a_body_counts_as_the_tree_that_it_becomes() {
    let first = Upstream::always(reply());
    let more = format!("{FLAGS}[limits]\nbuffered_bytes = 1048576\n");
    let gateway = Gateway::with(&first.url(), &first.url(), &more);
    let decide = |attribute: &str| {
        let body = format!(r#"{{"userId":"u","userAttributes":{{"a":[{attribute}]}}}}"#);
        let asked = Ask::post("/v1/decide?keys=dark_mode", &body);
        let asked = asked.header("x-platform-sdk-key", "sandbox");
        ask(gateway.address(), &asked).status()
    };
    assert_eq!(decide(&format!("\"{}\"", "a".repeat(30_000))), 200);
    assert_eq!(decide(&format!("[]{}", ",[]".repeat(10_000))), 529);
    let budget = &gateway.running.app.proxy.body_budget;
    // The response goes out before its request ends.
    until("the memory is free", || budget.reserved_bytes() == 0);
}

/// Source: docs/hostile-input.md 96.
#[test]
fn what_is_off_reads_no_body() {
    let first = Upstream::always(reply());
    let off = "[prompts]\nenabled = false\n";
    let no_overrides = format!("{off}[decisions]\noverrides = false\n{FLAGS}");
    for (more, path) in [
        (off, "/v1/decide"),
        (off, "/v1/batch"),
        (off, "/oauth/token"),
        (off, "/v1/prompts/a/render"),
        (&no_overrides, "/v1/override"),
    ] {
        let gateway = Gateway::with(&first.url(), &first.url(), more);
        let mut client = Client::connect(gateway.address());
        client.send_bytes(format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nX-Platform-SDK-Key: sandbox\r\nContent-Length: 200000\r\n\r\n",
            gateway.key,
        ));
        let status = client.head().status;
        assert!(matches!(status, 403 | 404), "{path}: {status}");
    }
}

/// Source: docs/hostile-input.md 96.
#[test]
fn bodies_without_a_key_leave_memory_for_those_with_one() {
    let first = Upstream::always(reply());
    let more = format!("{FLAGS}[limits]\nbuffered_bytes = 1048576\n");
    let gateway = Gateway::with(&first.url(), &first.url(), &more);
    let come = || {
        let mut client = Client::connect(gateway.address());
        client.send_bytes(format!(
            "POST /v1/decide HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 200000\r\n\r\n{}",
            "a".repeat(190_000),
        ));
        client
    };
    let _held = [come(), come()];
    let budget = &gateway.running.app.proxy.body_budget;
    until("it has come", || budget.reserved_bytes() >= 380_000);
    assert_eq!(come().head().status, 529);
    let whole = format!(
        r#"{{"model":"chat","messages":[{{"role":"user","content":"{}"}}]}}"#,
        "a".repeat(300_000)
    );
    assert_eq!(gateway.chat(&whole).status(), 200);
}

#[test]
fn a_body_that_a_prompt_has_made_longer_takes_as_much_memory() {
    let first = Upstream::always(Reply::hang());
    let more = "[limits]\nbuffered_bytes = 1048576\nbody_bytes = { chat = 1048576 }";
    let gateway = Gateway::with(&first.url(), &first.url(), more);
    let file =
        json!({"model": "chat", "messages": [{"role": "user", "content": "{{v}}{{v}}{{v}}"}]});
    gateway.put("thrice", &[], &file);
    let prompt = json!({"id": "thrice", "variables": {"v": "a".repeat(250_000)}});
    let asked = gateway.chat_ask(json!({ "prompt": prompt }).to_string());
    let mut client = Client::connect(gateway.address());
    client.send(&asked);
    first.wait_requests(1);
    let budget = &gateway.running.app.proxy.body_budget;
    let reserved = budget.reserved_bytes();
    assert!((750_000..760_000).contains(&reserved), "{reserved}");
    // There is room for the body of the next request, but not for what it becomes.
    let refused = ask(gateway.address(), &asked);
    assert_eq!(refused.status(), 529, "{}", refused.text());
    drop(client);
    until("the memory is given back", || budget.reserved_bytes() == 0);
}

/// Contract: graph-limits 8.1 4
#[test]
fn more_requests_of_the_graph_than_its_limit_are_503() {
    let gate = Gate::default();
    let service = Upstream::always(
        Reply::chunked(200, &[])
            .chunk("{")
            .wait(&gate)
            .chunk("}")
            .end(),
    );
    let gateway = Gateway::start(
        &format!("[graph]\nupstream = \"{}\"\nin_flight = 1", service.url()),
        "",
    );
    let query = Ask::post("/content/v2", r#"{"query":"{ a }"}"#);
    let mut running = Client::connect(gateway.address());
    running.send(&query);
    service.wait_requests(1);
    let refused = ask(gateway.address(), &query);
    assert_eq!(
        (refused.status(), refused.header("retry-after")),
        (503, None)
    );
    assert_eq!(refused.header("retry-after-ms"), None);
    assert!(refused.header("x-ratelimit-limit").is_some());
    gate.open();
    assert_eq!(running.answer().status(), 200);
    until("the place is free again", || {
        ask(gateway.address(), &query).status() == 200
    });
}

/// Source: docs/hostile-input.md 97.
#[test]
fn bodies_that_trickle_do_not_hold_the_places_of_the_graph() {
    let service = Upstream::always(Reply::json(200, "{}"));
    let gateway = Gateway::start(
        &format!("[graph]\nupstream = \"{}\"\nin_flight = 8", service.url()),
        "",
    );
    let trickle = |framing: &str| {
        let mut client = Client::connect(gateway.address());
        client.send_bytes(format!(
            "POST /content/v2 HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n{framing}\r\n\r\n"
        ));
        client.send_bytes("1\r\n{\r\n");
        client
    };
    // Small ones are read before they get a place, large ones and those without a length have half of the places.
    let _small: Vec<Client> = (0..9).map(|_| trickle("Content-Length: 900")).collect();
    let _large: Vec<Client> = (0..9).map(|_| trickle("Content-Length: 900000")).collect();
    let _chunked: Vec<Client> = (0..9)
        .map(|_| trickle("Transfer-Encoding: chunked"))
        .collect();
    until("one of the large ones is passed on", || {
        service.connections() > 0
    });
    let query = Ask::post("/content/v2", r#"{"query":"{ a }"}"#);
    for _ in 0..20 {
        assert_eq!(ask(gateway.address(), &query).status(), 200);
    }
}

#[test]
fn who_may_not_call_takes_no_place_and_learns_nothing() {
    let first = Upstream::always(begun().and_hang());
    let gateway = narrow(&first, 1);
    let _stream = running(&gateway);
    let strange = Ask::post("/v1/chat/completions", PLAIN).key("wg_none");
    assert_eq!(ask(gateway.address(), &strange).status(), 401);
}
