//! Requests that need kept responses, and responses that are kept.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::models::stateful::StatefulRequest;
use crate::models::stored_responses::ResponsePromise;
use crate::models::stored_responses::expand::{History, expand};
use crate::models::stored_responses::items::{ItemIndex, StoredTurn};

const ID: &str = "0102030405060708090a0b0c0d0e0f10";

fn stateful(body: &Value) -> StatefulRequest {
    match Responses
        .read(&ClientHead::silent(), body.to_string().into())
        .unwrap()
    {
        Received::Stateful(request) => *request,
        other => panic!("{body} needs no kept responses: {other:?}"),
    }
}

/// The body of a request behind a response whose output is this.
fn expanded(body: &Value, output: &Value, max_bytes: usize) -> Result<Value, Fault> {
    let input = json!([{"role": "user", "content": "one"}]).to_string();
    let response = json!({"status": "completed", "output": output}).to_string();
    let turns = [StoredTurn {
        id: ID,
        input: &input,
        response: &response,
    }];
    let request = stateful(body);
    let mut index = ItemIndex::new(request.references.iter().map(|it| &*it.id));
    index.add(&turns[0]).unwrap();
    let history = History {
        turns: &turns,
        has_previous: request.previous.is_some(),
        index: &index,
    };
    let expanded = expand(&request, history, max_bytes)?;
    let read: Value = serde_json::from_slice(&expanded.body).unwrap();
    let input: Value = match &expanded.body[expanded.input] {
        b"" => Value::Null,
        input => serde_json::from_slice(input).unwrap(),
    };
    assert_eq!(read["input"], input);
    Ok(read)
}

#[test]
fn a_body_that_needs_no_responses_is_read_as_before() {
    for more in [
        json!({}),
        json!({"store": false}),
        json!({"store": null, "background": false, "previous_response_id": null}),
    ] {
        let mut body = json!({"model": "m", "input": "Hi"});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let read = Responses
            .read(&ClientHead::silent(), body.to_string().into())
            .unwrap();
        assert!(matches!(read, Received::Complete(request) if request.promise.is_none()));
    }
}

#[test]
fn where_nothing_is_kept_the_first_member_that_needs_it_is_named() {
    for (body, param) in [
        (json!({"store": true, "background": true}), "store"),
        (json!({"background": true}), "background"),
        (
            json!({"previous_response_id": "resp_1"}),
            "previous_response_id",
        ),
        (
            json!({"input": [{"role": "user", "content": "a"}, {"type": "item_reference", "id": "msg_1"}]}),
            "input[1].type",
        ),
    ] {
        let fault = stateful(&body).refusal;
        assert_eq!(fault.param.as_deref(), Some(param), "{body}");
        assert!(fault.message.contains("[responses] store"), "{fault:?}");
        let fault = Responses.parse(body.to_string().into()).unwrap_err();
        assert_eq!(fault.param.as_deref(), Some(param));
    }
    let conversation = json!({"model": "m", "input": "a", "conversation": "conv_1"});
    let fault = Responses
        .read(&ClientHead::silent(), conversation.to_string().into())
        .unwrap_err();
    assert_eq!(fault.param.as_deref(), Some("conversation"));
    let unnamed = json!({"model": "m", "input": [{"type": "item_reference"}]});
    let fault = Responses
        .read(&ClientHead::silent(), unnamed.to_string().into())
        .unwrap_err();
    assert_eq!(fault.param.as_deref(), Some("input[0].id"));
}

#[test]
fn a_background_response_is_kept_and_not_streamed() {
    for (body, is_taken) in [
        (json!({"background": true}), true),
        (json!({"background": true, "store": true}), true),
        (json!({"background": true, "store": false}), false),
        (json!({"background": true, "stream": true}), false),
        (json!({"store": true, "stream": true}), true),
    ] {
        let request = stateful(&body);
        let checked = request.check();
        assert_eq!(checked.is_ok(), is_taken, "{body}");
        match checked {
            Ok(()) => assert!(request.is_kept()),
            Err(fault) => assert_eq!(fault.param.as_deref(), Some("background")),
        }
    }
}

#[test]
fn a_request_goes_on_behind_the_items_of_the_response_before_it() {
    let output = json!([
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "state"},
        {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{\"a\":1}", "status": "completed"},
        {"type": "function_call", "id": "fc_2", "call_id": "d", "name": "f", "arguments": "{\"a\"", "status": "incomplete"},
    ]);
    let body = json!({"model": "m", "previous_response_id": "resp_1", "store": true, "background": false, "input": "two", "top_p": 1});
    let read = expanded(&body, &output, 10_000).unwrap();
    let expected = json!([
        {"role": "user", "content": "one"}, output[0], output[1],
        {"type": "message", "role": "user", "content": "two"}
    ]);
    assert_eq!(read, json!({"model": "m", "input": expected, "top_p": 1}));
    let Received::Complete(request) = Responses
        .read(&ClientHead::silent(), read.to_string().into())
        .unwrap()
    else {
        panic!("it says all by itself");
    };
    assert_eq!(request.needs.max_tokens, None);
    // A list goes behind them as it is, and so does nothing.
    let body = json!({"model": "m", "previous_response_id": "resp_1", "input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]});
    let read = expanded(&body, &output, 10_000).unwrap();
    assert_eq!(read["input"].as_array().unwrap().len(), 4);
    assert_eq!(read["input"][3], body["input"][0]);
    let body = json!({"model": "m", "previous_response_id": "resp_1"});
    assert_eq!(
        expanded(&body, &output, 10_000).unwrap()["input"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
}

#[test]
fn a_reference_becomes_the_item_that_it_names() {
    let output = json!([{"type": "message", "id": "msg_1", "role": "assistant", "content": []}]);
    let reference = |id: &str| json!({"type": "item_reference", "id": id});
    let own = crate::models::stored_responses::input_item_id(ID, 0);
    let body = json!({"model": "m", "input": [reference(&own), reference("msg_1"), {"role": "user", "content": "two"}, reference("msg_1")]});
    let read = expanded(&body, &output, 10_000).unwrap();
    let expected = json!([{"role": "user", "content": "one"}, output[0], {"role": "user", "content": "two"}, output[0]]);
    assert_eq!(read["input"], expected);
    let body =
        json!({"model": "m", "input": [{"role": "user", "content": "two"}, reference("msg_9")]});
    let fault = expanded(&body, &output, 10_000).unwrap_err();
    assert_eq!(
        (fault.status(), fault.param.as_deref(), fault.code()),
        (400, Some("input[1].id"), Some("item_not_found"))
    );
}

#[test]
fn a_reference_that_a_provider_said_is_left_out_and_names_no_item() {
    let said = json!({"type": "item_reference", "id": "msg_1"});
    let output = json!([said, {"type": "message", "role": "assistant", "content": "Hi"}]);
    let body = json!({"model": "m", "previous_response_id": "resp_1", "input": "two"});
    let read = expanded(&body, &output, 10_000).unwrap();
    let two = json!({"type": "message", "role": "user", "content": "two"});
    let expected = json!([{"role": "user", "content": "one"}, output[1], two]);
    assert_eq!(read["input"], expected);
    let body = json!({"model": "m", "input": [said]});
    let fault = expanded(&body, &output, 10_000).unwrap_err();
    assert_eq!(
        (fault.status(), fault.code()),
        (400, Some("item_not_found"))
    );
}

#[test]
fn a_body_without_history_keeps_its_items_byte_by_byte() {
    let body = r#"{ "store":true, "input" : [ {"role":"user","content":"a"} ] ,"model":"m"}"#;
    let Received::Stateful(request) = Responses.read(&ClientHead::silent(), body.into()).unwrap()
    else {
        panic!("it is to be kept");
    };
    let nothing = ItemIndex::default();
    let history = History {
        turns: &[],
        has_previous: false,
        index: &nothing,
    };
    let expanded = expand(&request, history, 1_000).unwrap();
    assert_eq!(
        String::from_utf8(expanded.body).unwrap(),
        r#"{"input":[ {"role":"user","content":"a"} ],"model":"m"}"#
    );
}

#[test]
fn many_references_to_one_long_item_do_not_grow_beyond_the_bound() {
    let output = json!([{"type": "message", "id": "msg_1", "role": "assistant", "content": "x".repeat(10_000)}]);
    let reference = json!({"type": "item_reference", "id": "msg_1"});
    let body = json!({"model": "m", "input": vec![reference; 10_000]});
    let fault = expanded(&body, &output, 1 << 20).unwrap_err();
    assert_eq!(
        (fault.status(), fault.param.as_deref()),
        (413, Some("input"))
    );
    assert!(
        fault.message.contains("limits.body_bytes.chat"),
        "{fault:?}"
    );
}

#[test]
fn a_summary_is_made_of_a_kept_history_and_is_not_kept() {
    let body = json!({"model": "m", "previous_response_id": "resp_1"});
    let read = Compact
        .read(&ClientHead::silent(), body.to_string().into())
        .unwrap();
    assert!(matches!(read, Received::Stateful(_)));
    for key in ["store", "background"] {
        let body = json!({"model": "m", "input": "a", key: true});
        let fault = Compact
            .read(&ClientHead::silent(), body.to_string().into())
            .unwrap_err();
        assert_eq!((fault.status(), fault.param.as_deref()), (400, Some(key)));
    }
    // What asked for one is answered once.
    let body = json!({"model": "m", "previous_response_id": "resp_1", "input": "two"});
    let output = json!([{"type": "compaction_trigger"}, {"type": "message", "role": "assistant", "content": "said"}]);
    let read = expanded(&body, &output, 10_000).unwrap();
    assert_eq!(read["input"].as_array().unwrap().len(), 3, "{read}");
}

#[test]
fn a_queued_response_says_what_it_promises() {
    let body = json!({"model": "m", "input": "Hi", "instructions": "Be kind."});
    let mut request = Responses.parse(body.to_string().into()).unwrap();
    request.promise = Some(Arc::new(ResponsePromise {
        id: Some(ID.into()),
        previous: Some("resp_wg_1".into()),
        is_background: true,
        input: Bytes::new(),
    }));
    let queued = Responses.queued(&request, 5).unwrap();
    let read: Value = serde_json::from_slice(&queued).unwrap();
    let expected = json!({"id": format!("resp_wg_{ID}"), "status": "queued", "created_at": 5, "store": true, "background": true,
        "previous_response_id": "resp_wg_1", "instructions": "Be kind.", "output": [], "usage": null, "error": null});
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&read[key], value, "{key}");
    }
    let fault = Fault::new(
        crate::fault::FaultKind::UpstreamTimeout,
        "no provider answered in time",
    );
    let failed = Responses
        .failed(std::str::from_utf8(&queued).unwrap(), &fault)
        .unwrap();
    let read: Value = serde_json::from_slice(&failed).unwrap();
    assert_eq!(
        (&read["status"], &read["error"]["code"]),
        (&json!("failed"), &json!("upstream_timeout"))
    );
}
