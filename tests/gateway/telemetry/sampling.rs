//! Which requests are traced, and what providers are told of it. Source: docs/telemetry.md.

use opentelemetry_proto::tonic::trace::v1::span::SpanKind::Server;

use super::exporting_to;
use super::traces::{PARENT, TRACE};
use crate::models::fronts::chat_completions::{PLAIN, reply};
use crate::support::boot::Gateway;
use crate::support::client::ask;
use crate::support::collector::{exports, hex, only, spans, taken, wait_spans};
use crate::support::upstream::Upstream;

/// Sends a call with these headers.
fn call(gateway: &Gateway, headers: &[(&str, &str)]) {
    let request = headers
        .iter()
        .fold(gateway.chat_ask(PLAIN), |request, (name, value)| {
            request.header(name, value)
        });
    assert_eq!(ask(gateway.address(), &request).status(), 200);
}

fn parent(flags: &str) -> String {
    format!("00-{TRACE}-{PARENT}-{flags}")
}

#[test]
fn a_ratio_of_zero_traces_what_clients_trace_and_nothing_else() {
    let (first, collector) = (Upstream::always(reply()), Upstream::always(taken()));
    let toml = exporting_to(&collector, "sample_ratio = 0");
    let gateway = Gateway::with(&first.url(), &first.url(), &toml);
    call(&gateway, &[]);
    call(&gateway, &[("traceparent", &parent("00"))]);
    call(&gateway, &[("traceparent", &parent("01"))]);
    let received = wait_spans(&collector, 2);
    assert_eq!(hex(&only(&received, Server).trace_id), TRACE);
    // What is not traced passes as it came.
    assert_eq!(first.request(0).header("traceparent"), None);
    let unsampled = first.request(1);
    assert_eq!(unsampled.header("traceparent"), Some(&*parent("00")));
}

#[test]
fn a_ratio_of_one_traces_all_but_what_clients_do_not_trace() {
    let (first, collector) = (Upstream::always(reply()), Upstream::always(taken()));
    let toml = exporting_to(&collector, "sample_ratio = 1.0");
    let gateway = Gateway::with(&first.url(), &first.url(), &toml);
    call(&gateway, &[("traceparent", &parent("00"))]);
    call(&gateway, &[]);
    let received = wait_spans(&collector, 2);
    assert_ne!(hex(&only(&received, Server).trace_id), TRACE);
}

#[test]
fn without_a_trace_the_id_of_the_request_names_it() {
    let (first, collector) = (Upstream::always(reply()), Upstream::always(taken()));
    let gateway = Gateway::with(&first.url(), &first.url(), &exporting_to(&collector, ""));
    let invalid = format!("00-{TRACE}-{PARENT}-01-x");
    let mut ids = Vec::new();
    for headers in [
        vec![("x-request-id", TRACE)],
        vec![("x-request-id", "job-7")],
        vec![("x-request-id", "job-7")],
        vec![("x-request-id", "job-8"), ("traceparent", &*invalid)],
        vec![
            ("x-request-id", "job-9"),
            ("traceparent", &*parent("01")),
            ("traceparent", &*parent("01")),
        ],
    ] {
        call(&gateway, &headers);
        let count = 2 * (ids.len() + 1);
        let received = wait_spans(&collector, count);
        let root = received.iter().rev().find(|span| span.kind() == Server);
        let root = root.unwrap();
        assert!(root.parent_span_id.is_empty());
        ids.push(hex(&root.trace_id));
    }
    assert_eq!(ids[0], TRACE);
    assert_eq!(ids[1], ids[2]);
    let others = [&ids[1], &ids[3], &ids[4]];
    assert!(others.iter().all(|id| **id != TRACE), "{ids:?}");
    assert!(ids[1] != ids[3] && ids[3] != ids[4], "{ids:?}");
}

#[test]
fn without_an_endpoint_the_clients_own_place_reaches_the_provider() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    call(&gateway, &[("traceparent", &parent("01"))]);
    let sent = first.request(0);
    assert_eq!(sent.header("traceparent"), Some(&*parent("01")));
}

#[test]
fn a_reload_changes_where_traces_go_and_the_old_ones_still_arrive() {
    let first = Upstream::always(reply());
    let (before, after) = (Upstream::always(taken()), Upstream::always(taken()));
    let gateway = Gateway::with(&first.url(), &first.url(), &exporting_to(&before, ""));
    call(&gateway, &[]);
    let toml = gateway.toml().replace(&before.url(), &after.url());
    gateway.reload(&toml).unwrap();
    call(&gateway, &[]);
    // Nothing waits for the second that a batch may take.
    wait_spans(&before, 2);
    wait_spans(&after, 2);
    let off = toml.replace(&format!("otlp_endpoint = \"{}\"", after.url()), "");
    gateway.reload(&off).unwrap();
    call(&gateway, &[]);
    let more = exporting_to(&after, "service_name = \"other\"");
    let (providers, _) = toml.split_once("[telemetry]").unwrap();
    gateway.reload(&format!("{providers}{more}")).unwrap();
    call(&gateway, &[]);
    wait_spans(&after, 4);
    let services = exports(&after).into_iter().map(|export| {
        let resource = export.resource.unwrap();
        format!("{:?}", resource.attributes[0].value)
    });
    let services: Vec<String> = services.collect();
    assert!(services[0].contains("weirgate") && services[1].contains("other"));
}

#[test]
fn spans_that_wait_at_the_end_of_the_process_are_exported() {
    let (first, collector) = (Upstream::always(reply()), Upstream::always(taken()));
    let gateway = Gateway::with(&first.url(), &first.url(), &exporting_to(&collector, ""));
    call(&gateway, &[]);
    drop(gateway);
    assert_eq!(spans(&exports(&collector)).len(), 2);
}
