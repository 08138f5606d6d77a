//! Responses that are made in the background: how far they are, what they cost, and how they are cancelled.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    KEEPS, call, found, gateway, get, last_text, path, reads, refused, response, send, tools,
};
use crate::ledger::used;
use crate::support::boot::Gateway;
use crate::support::script::{Gate, Reply};
use crate::support::scripted::{MODELS, Said, Turn, gateway_with, saying};
use crate::support::stays;
use crate::support::upstream::Upstream;

/// Waits until a response has this status, and returns it.
pub fn wait_for(gateway: &Gateway, response: &Value, status: &str) -> Value {
    found(status, || {
        let now = get(gateway, &path(response)).json();
        (now["status"] == status).then_some(now)
    })
}

pub fn queue(gateway: &Gateway, more: &Value) -> Value {
    let mut asked = json!({"model": "chat", "input": "one", "background": true});
    asked
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let queued = response(&send(gateway, &asked));
    assert_eq!(
        (
            &queued["status"],
            &queued["background"],
            &queued["store"],
            &queued["output"]
        ),
        (&json!("queued"), &json!(true), &json!(true), &json!([]))
    );
    queued
}

/// A provider that says nothing until the gate is open.
pub fn waiting(gate: &Gate) -> Upstream {
    let gate = gate.clone();
    Upstream::answering(move |_| {
        let body = json!({"id": "c", "object": "chat.completion", "created": 5, "model": "m",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "late"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 1000, "total_tokens": 2000}});
        Reply::empty()
            .wait(&gate)
            .then(Reply::json(200, body.to_string()))
    })
}

#[test]
fn a_background_response_is_polled_until_it_is_there_over_every_wire() {
    let provider = saying(reads);
    let gateway = gateway(&provider);
    for model in MODELS {
        let more = json!({"model": model, "input": "Read a", "tools": tools(), "reasoning": {"effort": "low", "summary": "auto"}});
        let queued = queue(&gateway, &more);
        let done = wait_for(&gateway, &queued, "completed");
        for key in ["id", "created_at", "model", "background", "store"] {
            assert_eq!(done[key], queued[key], "{model}: {key}");
        }
        let call_item = done["output"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(call_item["type"], "function_call", "{done}");
        assert!(
            done["usage"]["output_tokens"].is_u64() && done["weirgate"]["metadata"].is_object()
        );
        // The conversation goes on in the background, and in front of it.
        let result = json!([{"type": "function_call_output", "call_id": call_item["call_id"], "output": "A cat."}]);
        let more = json!({"model": "chat", "input": result, "tools": tools(), "previous_response_id": done["id"]});
        let next = queue(&gateway, &more);
        assert_eq!(next["previous_response_id"], done["id"]);
        let next = wait_for(&gateway, &next, "completed");
        assert_eq!(last_text(&next), "It says: A cat.");
        let asked = json!({"model": model, "input": "three", "previous_response_id": next["id"]});
        assert_eq!(
            last_text(&response(&send(&gateway, &asked))),
            "You said: three"
        );
    }
}

#[test]
fn a_background_response_costs_what_it_says_once() {
    let gate = Gate::default();
    let provider = waiting(&gate);
    let gateway = gateway(&provider);
    let queued = queue(&gateway, &json!({"max_output_tokens": 2000}));
    let running = wait_for(&gateway, &queued, "in_progress");
    assert_eq!(running["output"], json!([]));
    let credit = gateway.beside(async |store| store.credit("acme").await.unwrap());
    assert!(credit.reserved > filters::money::Usd::ZERO && credit.used.is_zero());
    let asked = json!({"model": "chat", "input": "two", "previous_response_id": queued["id"]});
    refused(
        &send(&gateway, &asked),
        400,
        "previous_response_not_completed",
        Some("previous_response_id"),
    );
    refused(
        &call(&gateway, "DELETE", &path(&queued)),
        400,
        "response_not_finished",
        None,
    );
    gate.open();
    let done = wait_for(&gateway, &queued, "completed");
    assert_eq!(last_text(&done), "late");
    // A thousand tokens at 1, and a thousand at 2 USD a million.
    assert_eq!(done["weirgate"]["usage"]["cost"], 0.003);
    used(&gateway, "0.003");
    let second = Duration::from_secs(1);
    stays("charged once", second, || provider.requests().len() == 1);
    used(&gateway, "0.003");
    let counted = "weirgate_background_responses_total{status=\"completed\"} 1";
    assert!(gateway.metrics().contains(counted));
    let credit = gateway.beside(async |store| store.credit("acme").await.unwrap());
    assert!(credit.reserved.is_zero() || credit.used.to_string() == "0.003");
    assert_eq!(call(&gateway, "DELETE", &path(&queued)).status(), 200);
}

#[test]
fn a_response_whose_providers_fail_has_failed_and_costs_nothing() {
    let provider = saying(|_| Said::Reply(Reply::json(500, r#"{"error":{"message":"no"}}"#)));
    let gateway = gateway(&provider);
    let failed = wait_for(&gateway, &queue(&gateway, &json!({})), "failed");
    assert!(failed["error"]["message"].is_string(), "{failed}");
    assert_eq!(failed["output"], json!([]));
    let credit = gateway.beside(async |store| store.credit("acme").await.unwrap());
    assert!(credit.used.is_zero(), "{credit:?}");
}

#[test]
fn a_frozen_provider_ends_in_a_failure() {
    let provider = Upstream::always(Reply::hang());
    let more = format!("{KEEPS}[routing]\ntotal_timeout_s = 1\n");
    let gateway = gateway_with(&provider, &more, "", "1000");
    let failed = wait_for(&gateway, &queue(&gateway, &json!({})), "failed");
    assert_eq!(failed["error"]["code"], "upstream_timeout", "{failed}");
}

#[test]
fn what_a_background_response_cannot_be_is_named() {
    let provider = saying(|_| Turn::text("x").into());
    let gateway = gateway(&provider);
    for more in [json!({"stream": true}), json!({"store": false})] {
        let mut asked = json!({"model": "chat", "input": "one", "background": true});
        asked
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        refused(
            &send(&gateway, &asked),
            400,
            "unsupported_value",
            Some("background"),
        );
    }
    let unknown = json!({"model": "nobody", "input": "one", "background": true});
    refused(
        &send(&gateway, &unknown),
        404,
        "model_not_found",
        Some("model"),
    );
    assert!(provider.requests().is_empty());
}

#[test]
fn without_credit_nothing_is_queued() {
    let provider = saying(|_| Turn::text("x").into());
    let gateway = gateway_with(&provider, KEEPS, "", "0");
    let asked = json!({"model": "chat", "input": "one", "background": true});
    refused(&send(&gateway, &asked), 429, "insufficient_quota", None);
    assert!(provider.requests().is_empty());
}
