//! The headers of trace context.

use filters::trace_context::{TRACEPARENT, TraceId, TraceParent, trace_state};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::choices::Choices;
use crate::damage;
use crate::run::run;

const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn headers(name: &HeaderName, values: Vec<Vec<u8>>) -> HeaderMap {
    let values = values.into_iter();
    let values = values.filter_map(|value| HeaderValue::from_bytes(&value).ok());
    values.map(|value| (name.clone(), value)).collect()
}

fn state(choices: &mut Choices<'_>) -> String {
    let members =
        (0..choices.below(40)).map(|at| format!("k{at}@v={}", "x".repeat(choices.below(40))));
    members.collect::<Vec<_>>().join(",")
}

#[test]
fn a_place_in_a_trace_is_refused_or_comes_back_as_it_was_read() {
    run("traces: parents", |choices| {
        let value = damage::bytes(choices, PARENT.as_bytes().to_vec());
        let Some(read) = TraceParent::parse(&value) else {
            return;
        };
        let written = read.to_string();
        assert_eq!(TraceParent::parse(written.as_bytes()), Some(read));
        assert_eq!(written.len(), PARENT.len());
        assert_ne!(read.trace.bytes(), &[0; 16]);
        let one = headers(&TRACEPARENT, vec![value.clone()]);
        assert_eq!(TraceParent::from_headers(&one), Some(read));
        let two = headers(&TRACEPARENT, vec![value.clone(), value]);
        assert_eq!(TraceParent::from_headers(&two), None);
    });
}

#[test]
fn a_state_is_empty_or_within_its_bounds_and_read_again() {
    run("traces: states", |choices| {
        let mut values = Vec::new();
        for _ in 0..choices.below(3) {
            let state = state(choices).into_bytes();
            values.push(damage::bytes(choices, state));
        }
        let kept = trace_state(&headers(&TRACESTATE, values));
        assert!(kept.len() <= 512 && kept.split(',').count() <= 32, "{kept}");
        let again = headers(&TRACESTATE, vec![kept.clone().into_bytes()]);
        assert_eq!(trace_state(&again), kept);
    });
}

#[test]
fn every_id_of_a_request_has_one_trace() {
    run("traces: ids of requests", |choices| {
        let id = choices.text();
        let trace = TraceId::from_request_id(&id);
        assert_eq!(trace, TraceId::from_request_id(&id));
        assert_ne!(trace.bytes(), &[0; 16]);
    });
}
