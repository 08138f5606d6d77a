//! The spans of requests. Source: docs/telemetry.md.

use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind::{Client, Server};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use serde_json::json;

use super::exporting_to;
use crate::models::fronts::chat_completions::{PLAIN, STREAM, chunk, reply, stream};
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};
use crate::support::collector::{hex, only, taken, value, wait_spans};
use crate::support::flags;
use crate::support::script::{Gate, Reply};
use crate::support::upstream::{ClosedPort, Upstream};

pub(super) const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
pub(super) const PARENT: &str = "00f067aa0ba902b7";

/// A gateway between two providers that exports traces.
fn between(first: &str, second: &str, more: &str) -> (Gateway, Upstream) {
    let collector = Upstream::always(taken());
    let toml = exporting_to(&collector, "") + more;
    (Gateway::with(first, second, &toml), collector)
}

fn chat(gateway: &Gateway, body: &str, headers: &[(&str, &str)]) -> Answer {
    let request = headers
        .iter()
        .fold(gateway.chat_ask(body), |request, (name, value)| {
            request.header(name, value)
        });
    ask(gateway.address(), &request)
}

fn values(span: &Span, expected: &[(&str, &str)]) {
    for (key, expected) in expected {
        assert_eq!(value(span, key), *expected, "{key}: {span:#?}");
    }
}

fn is_failed(span: &Span) -> bool {
    let status = span.status.as_ref();
    status.is_some_and(|status| status.code() == StatusCode::Error)
}

#[test]
fn a_call_is_a_span_of_the_clients_trace_and_its_attempt_one_below() {
    let first = Upstream::always(reply());
    let (gateway, collector) = between(&first.url(), &first.url(), "");
    let parent = format!("00-{TRACE}-{PARENT}-01");
    let headers = [
        ("traceparent", &*parent),
        ("tracestate", "vendor=1"),
        ("x-request-id", "req-1"),
        ("x-session-id", "session-1"),
    ];
    assert_eq!(chat(&gateway, PLAIN, &headers).status(), 200);
    let spans = wait_spans(&collector, 2);
    let (root, attempt) = (only(&spans, Server), only(&spans, Client));
    for span in [root, attempt] {
        assert_eq!(hex(&span.trace_id), TRACE);
        assert_eq!((&*span.trace_state, span.flags & 1), ("vendor=1", 1));
        assert!(span.start_time_unix_nano < span.end_time_unix_nano);
        assert!(!is_failed(span));
    }
    assert_eq!(hex(&root.parent_span_id), PARENT);
    assert_eq!(attempt.parent_span_id, root.span_id);
    assert!(root.start_time_unix_nano <= attempt.start_time_unix_nano);
    assert!(attempt.end_time_unix_nano <= root.end_time_unix_nano);
    // The provider continues the trace below the attempt.
    let sent = first.request(0);
    let expected = format!("00-{TRACE}-{}-01", hex(&attempt.span_id));
    assert_eq!(sent.header("traceparent"), Some(&*expected));
    assert_eq!(sent.header("tracestate"), None);
    assert_eq!(root.name, "POST /v1/chat/completions");
    values(
        root,
        &[
            ("http.request.method", "POST"),
            ("http.route", "/v1/chat/completions"),
            ("http.response.status_code", "200"),
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.request.model", "chat"),
            ("gen_ai.conversation.id", "session-1"),
            ("weirgate.request_id", "req-1"),
            ("weirgate.organization", "acme"),
            ("weirgate.project", "default"),
            ("weirgate.used_model", "first/chat"),
            ("weirgate.attempts", "1"),
            ("weirgate.outcome", "ok"),
            // 600 tokens at 2.50, 400 at 1.25 and 100 at 10 USD per million.
            ("weirgate.cost_usd", "0.003"),
            // Tokens stand in the attempt alone.
            ("gen_ai.usage.input_tokens", ""),
        ],
    );
    assert_eq!(attempt.name, "chat chat-at-first");
    values(
        attempt,
        &[
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.provider.name", "first"),
            ("gen_ai.request.model", "chat-at-first"),
            ("gen_ai.response.finish_reasons", "stop"),
            ("gen_ai.usage.input_tokens", "1000"),
            ("gen_ai.usage.output_tokens", "100"),
            ("gen_ai.usage.cache_read.input_tokens", "400"),
            ("http.response.status_code", "200"),
            ("server.address", &first.address().ip().to_string()),
            ("server.port", &first.address().port().to_string()),
            ("weirgate.provider", "first"),
            ("weirgate.credential_source", "platform"),
        ],
    );
}

#[test]
fn a_span_has_no_content_and_no_secret() {
    let first = Upstream::always(reply());
    let (gateway, collector) = between(&first.url(), &first.url(), "");
    let body = json!({"model": "chat", "messages": [{"role": "user", "content": "palimpsest"}]});
    assert_eq!(chat(&gateway, &body.to_string(), &[]).status(), 200);
    wait_spans(&collector, 2);
    for request in collector.requests() {
        let body = String::from_utf8_lossy(&request.body);
        for hidden in ["palimpsest", "hello", &*gateway.key] {
            assert!(!body.contains(hidden), "{hidden}");
        }
    }
}

#[test]
fn a_fallback_is_a_second_span_and_the_failed_attempt_says_why() {
    let first = Upstream::always(Reply::json(500, "{}"));
    let second = Upstream::always(reply());
    let (gateway, collector) = between(&first.url(), &second.url(), "");
    assert_eq!(chat(&gateway, PLAIN, &[]).status(), 200);
    let spans = wait_spans(&collector, 3);
    let root = only(&spans, Server);
    let of = |provider: &str| {
        let mut found = spans.iter();
        let is_of = |span: &&Span| value(span, "weirgate.provider") == provider;
        found.find(is_of).unwrap()
    };
    let (failed, answered) = (of("first"), of("second"));
    assert!(is_failed(failed) && !is_failed(answered) && !is_failed(root));
    values(
        failed,
        &[
            ("http.response.status_code", "500"),
            ("gen_ai.usage.input_tokens", ""),
        ],
    );
    assert!(!value(failed, "error.type").is_empty());
    values(answered, &[("gen_ai.usage.input_tokens", "1000")]);
    values(root, &[("weirgate.attempts", "2")]);
    for attempt in [failed, answered] {
        assert_eq!(attempt.parent_span_id, root.span_id);
    }
    let sent = |upstream: &Upstream| {
        upstream
            .request(0)
            .header("traceparent")
            .unwrap()
            .to_owned()
    };
    assert_ne!(sent(&first), sent(&second));
}

#[test]
fn a_call_without_an_answer_has_failed() {
    let closed = ClosedPort::take();
    let (gateway, collector) = between(&closed.url(), &closed.url(), "");
    let status = chat(&gateway, PLAIN, &[]).status();
    assert!(status >= 500, "{status}");
    let spans = wait_spans(&collector, 3);
    assert!(spans.iter().all(is_failed));
    let root = only(&spans, Server);
    values(
        root,
        &[
            ("http.response.status_code", &status.to_string()),
            ("weirgate.outcome", "failed"),
            ("weirgate.cost_usd", ""),
        ],
    );
    assert!(!value(root, "error.type").is_empty());
}

#[test]
fn a_refused_request_is_no_failure_of_ours() {
    let first = Upstream::always(reply());
    let (gateway, collector) = between(&first.url(), &first.url(), "");
    assert_eq!(chat(&gateway, "{}", &[]).status(), 400);
    let spans = wait_spans(&collector, 1);
    assert!(!is_failed(&spans[0]));
    values(
        &spans[0],
        &[
            ("http.response.status_code", "400"),
            ("weirgate.outcome", "refused"),
            ("gen_ai.operation.name", ""),
        ],
    );
}

#[test]
fn a_stream_ends_its_spans_where_it_ends() {
    let first = Upstream::always(stream());
    let (gateway, collector) = between(&first.url(), &first.url(), "");
    assert_eq!(chat(&gateway, STREAM, &[]).status(), 200);
    let spans = wait_spans(&collector, 2);
    let attempt = only(&spans, Client);
    values(
        attempt,
        &[
            ("gen_ai.request.stream", "true"),
            ("gen_ai.response.finish_reasons", "stop"),
            ("gen_ai.usage.output_tokens", "2"),
        ],
    );
    let first_chunk = value(attempt, "gen_ai.response.time_to_first_chunk");
    assert!(first_chunk.parse::<f64>().unwrap() > 0.0);
}

#[test]
fn a_stream_that_breaks_off_is_a_failed_attempt() {
    let events = [chunk(json!({"role": "assistant", "content": "hel"}), None)];
    let broken = events
        .iter()
        .fold(Reply::stream(), |reply, event| reply.event(event));
    let first = Upstream::always(broken.and_close());
    let (gateway, collector) = between(&first.url(), &first.url(), "");
    chat(&gateway, STREAM, &[]);
    let spans = wait_spans(&collector, 2);
    assert!(is_failed(only(&spans, Client)) && is_failed(only(&spans, Server)));
    values(only(&spans, Server), &[("weirgate.outcome", "broken")]);
}

#[test]
fn a_hedge_is_a_span_beside_that_of_the_attempt_that_lost() {
    let gate = Gate::default();
    let first = Upstream::always(Reply::stream().wait(&gate).and_close());
    let second = Upstream::always(stream());
    let hedging = "[routing]\nhedge_after_ms = 100\n";
    let (gateway, collector) = between(&first.url(), &second.url(), hedging);
    assert_eq!(chat(&gateway, STREAM, &[]).status(), 200);
    gate.open();
    let spans = wait_spans(&collector, 3);
    let of = |provider: &str| {
        let is_of = |span: &&Span| value(span, "weirgate.provider") == provider;
        let mut found = spans.iter();
        found.find(is_of).unwrap()
    };
    let (lost, won) = (of("first"), of("second"));
    assert_eq!(value(lost, "weirgate.outcome"), "cancelled");
    assert!(!spans.iter().any(is_failed));
    // Both ran at once, under one parent.
    assert!(won.start_time_unix_nano < lost.end_time_unix_nano);
    assert_eq!(lost.parent_span_id, won.parent_span_id);
}

#[test]
fn a_request_names_its_user_and_its_conversation() {
    let first = Upstream::always(reply());
    let (gateway, collector) = between(&first.url(), &first.url(), "");
    let messages = json!([{"role": "user", "content": "Hi"}]);
    let body =
        json!({"model": "chat", "user": "u-1", "prompt_cache_key": "c-1", "messages": messages});
    assert_eq!(chat(&gateway, &body.to_string(), &[]).status(), 200);
    let spans = wait_spans(&collector, 2);
    let expected = [("user.id", "u-1"), ("gen_ai.conversation.id", "c-1")];
    values(only(&spans, Server), &expected);
    let body = json!({"model": "chat", "max_tokens": 9, "metadata": {"user_id": "u-2"}, "messages": messages});
    let request = Ask::post("/v1/messages", body.to_string()).key(&gateway.key);
    let answer = ask(gateway.address(), &request.header("x-session-id", "c-2"));
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let spans = wait_spans(&collector, 4);
    let expected = [("user.id", "u-2"), ("gen_ai.conversation.id", "c-2")];
    let mut roots = spans.iter().rev().filter(|span| span.kind() == Server);
    values(roots.next().unwrap(), &expected);
}

#[test]
fn a_cached_reply_asks_nobody_and_counts_no_token() {
    let first = Upstream::always(reply());
    let (gateway, collector) = between(&first.url(), &first.url(), "");
    gateway.cache_for(3600);
    assert_eq!(chat(&gateway, PLAIN, &[]).status(), 200);
    wait_spans(&collector, 2);
    assert_eq!(chat(&gateway, PLAIN, &[]).status(), 200);
    let spans = wait_spans(&collector, 3);
    let cached = spans.last().unwrap();
    values(
        cached,
        &[
            ("weirgate.cached", "true"),
            ("weirgate.used_model", "first/chat"),
            ("weirgate.attempts", "0"),
            ("weirgate.cost_usd", "0"),
        ],
    );
}

#[test]
fn a_decision_is_one_span() {
    let collector = Upstream::always(taken());
    let toml = format!(
        "{}[[decisions.projects]]\nsdk_key = \"sandbox\"\ndatafile = \"sandbox\"\n",
        exporting_to(&collector, "")
    );
    let gateway = Gateway::start(&toml, "");
    let body = json!({"userId": "u"});
    let decided = flags::post(&gateway, "/v1/decide?keys=checkout", &body);
    let spans = wait_spans(&collector, 1);
    values(
        &spans[0],
        &[
            ("weirgate.route", "decide"),
            ("http.response.status_code", &decided.status().to_string()),
            ("gen_ai.operation.name", ""),
        ],
    );
    assert_eq!(spans[0].kind(), Server);
}

#[test]
fn a_request_to_the_graph_service_is_one_span_with_its_decision() {
    let (collector, service) = (
        Upstream::always(taken()),
        Upstream::always(Reply::json(200, "{}")),
    );
    let toml = format!(
        "{}[graph]\nupstream = \"{}\"\n[[graph.tenants]]\nid = \"t1\"\nsingle_keys = [\"k1\"]\n",
        exporting_to(&collector, ""),
        service.url()
    );
    let gateway = Gateway::start(&toml, "");
    let query = Ask::post("/content/v2?auth=k1", r#"{"query":"{ a }"}"#);
    assert_eq!(ask(gateway.address(), &query).status(), 200);
    let spans = wait_spans(&collector, 1);
    values(
        &spans[0],
        &[("weirgate.tenant", "t1"), ("weirgate.decision", "admitted")],
    );
}

#[test]
fn hostile_names_are_text_and_bounded() {
    let first = Upstream::always(reply());
    let (gateway, collector) = between(&first.url(), &first.url(), "");
    let model = format!("\u{1b}[31m\u{0}{}", "é".repeat(2_000));
    let body = json!({"model": model, "messages": [{"role": "user", "content": "Hi"}]});
    let session = "s".repeat(4_000);
    let refused = chat(&gateway, &body.to_string(), &[("x-session-id", &session)]);
    assert!(refused.status() >= 400, "{}", refused.text());
    let key = json!({"model": "chat", "user": gateway.key, "messages": [{"role": "user", "content": "Hi"}]});
    assert_eq!(
        chat(&gateway, &key.to_string(), &[("x-session-id", &session)]).status(),
        200
    );
    assert_eq!(chat(&gateway, &key.to_string(), &[]).status(), 200);
    let spans = wait_spans(&collector, 5);
    for span in &spans {
        assert!(span.name.len() <= 260, "{}", span.name);
        for attribute in &span.attributes {
            assert!(value(span, &attribute.key).len() <= 260, "{attribute:?}");
        }
    }
    let conversations: Vec<String> = spans
        .iter()
        .filter(|span| span.kind() == Server)
        .map(|span| value(span, "gen_ai.conversation.id"))
        .collect();
    assert!(
        conversations.contains(&format!("{}…", "s".repeat(256))),
        "{conversations:?}"
    );
    assert!(
        conversations.contains(&"[removed]".to_owned()),
        "{conversations:?}"
    );
}
