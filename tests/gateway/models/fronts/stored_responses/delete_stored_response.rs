//! `DELETE /v1/responses/{id}`.

use serde_json::json;

use super::{call, gateway, get, id, path, reads, refused, response, send};
use crate::support::scripted::saying;

#[test]
fn a_deleted_response_is_gone_and_those_behind_it_stay() {
    let provider = saying(reads);
    let gateway = gateway(&provider);
    let first = response(&send(
        &gateway,
        &json!({"model": "chat", "input": "one", "store": true}),
    ));
    let asked =
        json!({"model": "chat", "input": "two", "store": true, "previous_response_id": id(&first)});
    let second = response(&send(&gateway, &asked));
    let deleted = call(&gateway, "DELETE", &path(&first));
    assert_eq!(
        deleted.json(),
        json!({"id": first["id"], "object": "response", "deleted": true})
    );
    refused(
        &get(&gateway, &path(&first)),
        404,
        "response_not_found",
        None,
    );
    refused(
        &get(&gateway, &format!("{}/input_items", path(&first))),
        404,
        "response_not_found",
        None,
    );
    refused(
        &call(&gateway, "DELETE", &path(&first)),
        404,
        "response_not_found",
        None,
    );
    let sent = provider.requests().len();
    refused(
        &send(&gateway, &asked),
        400,
        "previous_response_not_found",
        Some("previous_response_id"),
    );
    assert_eq!(provider.requests().len(), sent, "no provider is asked");
    let asked = json!({"model": "chat", "input": "three", "previous_response_id": id(&second)});
    response(&send(&gateway, &asked));
    let sent = provider.requests().pop().unwrap().json().to_string();
    assert!(
        sent.contains("one") && sent.contains("You said: two"),
        "{sent}"
    );
}
