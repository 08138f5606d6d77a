//! Bodies of requests for decisions, and replies of the services that decisions ask.

use filters::decisions::cmab::read_prediction;
use filters::decisions::odp::read_segments;
use filters::decisions::ofrep::{flag_key, read_context};
use filters::decisions::protocol::{Agent, Document, Protocol};
use filters::fault::Fault;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::choices::Choices;
use crate::run::run;
use crate::{damage, grammar};

fn document(choices: &mut Choices<'_>, grammar: &Value) -> (Vec<u8>, bool) {
    let composed = grammar::compose(choices, grammar);
    let changed = damage::tree(choices, composed.clone());
    let written = grammar::write(choices, &changed);
    let damaged = damage::bytes(choices, written.clone());
    let is_whole = changed == composed && damaged == written;
    (damaged, is_whole)
}

fn is_callers(fault: &Fault, protocol: &dyn Protocol) {
    assert!((400..500).contains(&fault.status()), "{fault:?}");
    let body = protocol.write_error(fault);
    assert!(
        body.is_text
            || body.bytes.is_empty()
            || serde_json::from_slice::<IgnoredAny>(&body.bytes).is_ok()
    );
}

#[test]
fn any_body_is_read_or_refused() {
    let grammar = json!({
        "userId": {"$one": ["u", "$text"]}, "USERID?": "u2", "userAttributes?": {"country?": "DE", "a?": "$any"},
        "decideOptions?": {"$many": {"$one": ["INCLUDE_REASONS", "DISABLE_DECISION_EVENT", "$text"]}}, "fetchSegments?": true,
        "fetchSegmentsOptions?": ["IGNORE_CACHE"], "forcedDecisions?": [{"flagKey": "f", "ruleKey?": "r", "variationKey": "v"}],
        "experimentKey?": "e", "variationKey?": {"$one": ["v", ""]}, "eventTags?": {"revenue": "$number"}, "type?": "$text", "action?": "a", "identifiers?": {"id": "$text"},
        "data?": {"x": "$any"}, "experimentBucketMap?": {"e1": {"variation_id": "v1"}},
    });
    run("decisions: bodies", |choices| {
        let (body, is_whole) = document(choices, &grammar);
        for protocol in [&Document as &dyn Protocol, &Agent] {
            let read = || protocol.read(&body);
            let Ok(mut first) = read() else {
                assert!(!is_whole, "{}", String::from_utf8_lossy(&body));
                continue;
            };
            let faults = [
                read().and_then(|body| body.into_decide()).err(),
                read().and_then(|body| body.into_override()).err(),
                first.event_tags().err(),
                first.profile().err(),
                first.user().err(),
            ];
            faults
                .iter()
                .flatten()
                .for_each(|fault| is_callers(fault, protocol));
            let _ = read().and_then(|body| body.into_odp_event());
        }
    });
}

#[test]
fn any_batch_is_read_or_refused() {
    let grammar = json!({"operations": {"$many": {"method": {"$one": ["GET", "POST", "$text"]}, "url": {"$one": ["/v1/decide?keys=f", "/v1/batch", "http://169.254.169.254/", "//v1//track", "$text"]},
        "operationID": "$text", "body?": {"userId": "u", "x?": "$any"}, "parameters?": {"keys": {"$one": ["f", ["a", "b"], "$any"]}}, "params?": {"a": "$text"},
        "headers?": {"X-Platform-SDK-Key": "k", "$text?": "$text", "Host?": "a\r\nX: 1"}}}});
    run("decisions: batches", |choices| {
        let (body, _) = document(choices, &grammar);
        for protocol in [&Document as &dyn Protocol, &Agent] {
            let operations = match protocol.read_batch(&body) {
                Ok(operations) => operations,
                Err(fault) => {
                    is_callers(&fault, protocol);
                    continue;
                }
            };
            for operation in &operations {
                let (path, query) = operation.split_url();
                assert!(path.len() + query.len() <= operation.url.len());
                if let Ok(headers) = operation.header_map() {
                    let is_split = |value: &http::HeaderValue| {
                        value.as_bytes().contains(&b'\n') || value.as_bytes().contains(&b'\r')
                    };
                    assert!(!headers.values().any(is_split), "{headers:?}");
                }
                if let Ok(query) = operation.query(query) {
                    assert!(!query.contains(['\r', '\n']) || operation.url.contains(['\r', '\n']));
                }
                let _ = protocol.check_operation(operation);
                let body = protocol.operation_body(operation);
                assert!(body.is_empty() || serde_json::from_slice::<IgnoredAny>(&body).is_ok());
            }
        }
    });
}

#[test]
fn any_context_of_ofrep_is_read_or_refused() {
    let grammar = json!({"context": {"$one": [{"targetingKey": {"$one": ["u", "$any"]}, "variableKey?": {"$one": ["x", "$any"]}, "country?": "$any"}, "$any"]}});
    run("decisions: OFREP", |choices| {
        let (body, _) = document(choices, &grammar);
        match read_context(&body) {
            Ok(context) => assert!(!context.ask.user.id.is_empty()),
            Err(error) => {
                assert_eq!(error.status(), 400);
                assert!(
                    serde_json::from_slice::<IgnoredAny>(&error.to_json(Some("k\"\n"))).is_ok()
                );
            }
        }
        let path = damage::bytes(choices, b"/ofrep/v1/evaluate/flags/a%20b+c".to_vec());
        let _ = flag_key(&String::from_utf8_lossy(&path));
    });
}

#[test]
fn any_reply_of_a_service_is_read_or_dropped() {
    let segments = json!({"data": {"customer": {"audiences": {"edges": {"$many": {"node": {"name": "$text", "state": {"$one": ["qualified", "$text"]}}}}}}}, "errors?": {"$one": [null, "$any"]}});
    let prediction =
        json!({"predictions": {"$many": {"variation_id": {"$one": ["v1", 7, "$any"]}}}});
    run("decisions: replies of services", |choices| {
        let (body, _) = document(choices, &segments);
        let read = read_segments(&body);
        assert!(read.is_none_or(|segments| segments.len() <= body.len()));
        let (body, _) = document(choices, &prediction);
        let _ = read_prediction(&body);
    });
}
