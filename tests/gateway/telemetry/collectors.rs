//! Collectors: how they are spoken to, and what happens where they do not answer. Source: docs/telemetry.md.

use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceResponse,
};
use prost::Message;

use super::exporting_to;
use crate::models::fronts::chat_completions::{PLAIN, reply};
use crate::support::boot::Gateway;
use crate::support::collector::{GrpcCollector, exports, spans, taken, wait_spans};
use crate::support::script::Reply;
use crate::support::until;
use crate::support::upstream::{ClosedPort, Upstream};

/// Waits until so many spans have had this outcome.
fn wait_count(gateway: &Gateway, outcome: &str, count: u64) {
    let line = format!("weirgate_spans_total{{outcome=\"{outcome}\"}} {count}\n");
    until(&line, || gateway.metrics().contains(&line));
}

fn call(gateway: &Gateway) {
    assert_eq!(gateway.chat(PLAIN).status(), 200);
}

#[test]
fn exports_over_http_have_the_path_the_headers_and_the_schema() {
    let (first, collector) = (Upstream::always(reply()), Upstream::always(taken()));
    for path in ["", "/api/public/otel", "/api/public/otel/v1/traces/"] {
        let toml = format!(
            "[telemetry]\notlp_endpoint = \"{}{path}\"\nservice_name = \"edge\"\n\
             otlp_headers = {{ authorization = {{ env = \"AUTH\" }}, x-scope = \"team\" }}\n\
             [providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n",
            collector.url(),
            first.url()
        );
        let models = crate::support::boot::CENT;
        let gateway = Gateway::start_with_env(&toml, models, &[("AUTH", "Basic secret-text")]);
        call(&gateway);
        wait_count(&gateway, "exported", 2);
        let request = collector.requests().pop().unwrap();
        let path = path.trim_end_matches('/').trim_end_matches("/v1/traces");
        assert_eq!(request.path, format!("{path}/v1/traces"));
        for (name, value) in [
            ("content-type", "application/x-protobuf"),
            ("authorization", "Basic secret-text"),
            ("x-scope", "team"),
        ] {
            assert_eq!(request.header(name), Some(value), "{name}");
        }
    }
    let export = exports(&collector).pop().unwrap();
    let scope = &export.scope_spans[0];
    assert_eq!(
        scope.schema_url,
        "https://opentelemetry.io/schemas/gen-ai/0.1.0"
    );
    assert_eq!(scope.scope.as_ref().unwrap().name, "weirgate");
    let resource = format!("{:?}", export.resource.unwrap());
    assert!(resource.contains("service.name") && resource.contains("edge"));
}

#[test]
fn exports_over_grpc_are_calls_of_the_service() {
    let (first, collector) = (Upstream::always(reply()), GrpcCollector::answering("0"));
    let toml = format!(
        "[telemetry]\notlp_endpoint = \"{}\"\notlp_protocol = \"grpc\"\n\
         otlp_headers = {{ x-scope = \"team\" }}\n",
        collector.url()
    );
    let gateway = Gateway::with(&first.url(), &first.url(), &toml);
    call(&gateway);
    wait_count(&gateway, "exported", 2);
    let calls = collector.calls();
    let (path, headers, message) = &calls[0];
    assert_eq!(
        path,
        "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
    );
    assert_eq!(headers["x-scope"], "team");
    assert_eq!(headers["content-type"], "application/grpc");
    assert_eq!(spans(&message.resource_spans).len(), 2);
}

#[test]
fn a_grpc_collector_that_refuses_is_not_asked_again() {
    // 16: UNAUTHENTICATED.
    let (first, collector) = (Upstream::always(reply()), GrpcCollector::answering("16"));
    let toml = format!(
        "[telemetry]\notlp_endpoint = \"{}\"\notlp_protocol = \"grpc\"\n",
        collector.url()
    );
    let gateway = Gateway::with(&first.url(), &first.url(), &toml);
    call(&gateway);
    wait_count(&gateway, "failed", 2);
    assert_eq!(collector.calls().len(), 1);
}

#[test]
fn an_export_is_repeated_where_that_may_help() {
    let first = Upstream::always(reply());
    let collector = Upstream::sequence([Reply::json(503, "{}"), taken()]);
    let gateway = Gateway::with(&first.url(), &first.url(), &exporting_to(&collector, ""));
    call(&gateway);
    wait_count(&gateway, "exported", 2);
    let bodies: Vec<_> = collector.requests().into_iter().map(|it| it.body).collect();
    assert_eq!(bodies.len(), 2);
    assert_eq!(bodies[0], bodies[1]);
}

#[test]
fn an_export_that_is_refused_fails_at_once() {
    let first = Upstream::always(reply());
    let collector = Upstream::always(Reply::json(401, "{}"));
    let gateway = Gateway::with(&first.url(), &first.url(), &exporting_to(&collector, ""));
    call(&gateway);
    wait_count(&gateway, "failed", 2);
    assert_eq!(collector.requests().len(), 1);
}

#[test]
fn spans_that_the_collector_does_not_take_are_counted() {
    let first = Upstream::always(reply());
    let partly = ExportTraceServiceResponse {
        partial_success: Some(ExportTracePartialSuccess {
            rejected_spans: 1,
            error_message: "too many".to_owned(),
        }),
    };
    let collector = Upstream::always(Reply::whole(200, &[], partly.encode_to_vec()));
    let gateway = Gateway::with(&first.url(), &first.url(), &exporting_to(&collector, ""));
    call(&gateway);
    wait_count(&gateway, "rejected", 1);
    wait_count(&gateway, "exported", 1);
}

/// A collector that takes connections and never answers.
fn frozen() -> Upstream {
    Upstream::always(Reply::hang())
}

#[test]
fn a_frozen_collector_costs_calls_nothing_and_what_waits_is_bounded() {
    let (first, collector) = (Upstream::always(reply()), frozen());
    let toml = exporting_to(&collector, "queue = 10\ntimeout_s = 300");
    let gateway = Gateway::with(&first.url(), &first.url(), &toml);
    call(&gateway);
    // Two spans are on their way, and ten may wait.
    collector.wait_requests(1);
    let slowest = (0..20).map(|_| {
        let began = Instant::now();
        call(&gateway);
        began.elapsed()
    });
    let slowest = slowest.max().unwrap();
    assert!(slowest < Duration::from_secs(5), "{slowest:?}");
    wait_count(&gateway, "dropped", 30);
    // Nor does it keep the process from its end.
    let began = Instant::now();
    drop(gateway);
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(collector.requests().len(), 1);
}

#[test]
fn a_dead_collector_is_counted_and_spans_go_on_when_it_is_back() {
    let (first, closed) = (Upstream::always(reply()), ClosedPort::take());
    let toml = format!("[telemetry]\notlp_endpoint = \"{}\"\n", closed.url());
    let gateway = Gateway::with(&first.url(), &first.url(), &toml);
    call(&gateway);
    wait_count(&gateway, "failed", 2);
    let collector = Upstream::always(taken());
    let toml = gateway.toml().replace(&closed.url(), &collector.url());
    gateway.reload(&toml).unwrap();
    call(&gateway);
    wait_spans(&collector, 2);
}
