//! `POST /v1/responses/{id}/cancel`.

use serde_json::json;

use super::background::{queue, wait_for, waiting};
use super::{call, found, gateway, get, path, refused, send};
use crate::support::script::Gate;

#[test]
fn a_cancelled_response_says_so_at_once_and_its_call_ends() {
    let gate = Gate::default();
    let provider = waiting(&gate);
    let gateway = gateway(&provider);
    let queued = queue(&gateway, &json!({}));
    wait_for(&gateway, &queued, "in_progress");
    let cancel = format!("{}/cancel", path(&queued));
    let cancelled = call(&gateway, "POST", &cancel);
    assert_eq!(
        (cancelled.status(), &cancelled.json()["status"]),
        (200, &json!("cancelled"))
    );
    assert_eq!(get(&gateway, &path(&queued)).json()["status"], "cancelled");
    // Its provider was asked, so its prompt is charged, as for a client that leaves.
    found("the charge", || {
        let credit = gateway.beside(async |store| store.credit("acme").await.unwrap());
        (!credit.used.is_zero()).then_some(())
    });
    gate.open();
    assert_eq!(
        call(&gateway, "POST", &cancel).json()["status"],
        "cancelled"
    );
    let asked = json!({"model": "chat", "input": "two", "previous_response_id": queued["id"]});
    refused(
        &send(&gateway, &asked),
        400,
        "previous_response_not_completed",
        Some("previous_response_id"),
    );
    assert_eq!(call(&gateway, "DELETE", &path(&queued)).status(), 200);
    let done = queue(&gateway, &json!({}));
    wait_for(&gateway, &done, "completed");
    let answer = call(&gateway, "POST", &format!("{}/cancel", path(&done)));
    refused(&answer, 400, "response_not_cancellable", None);
}
