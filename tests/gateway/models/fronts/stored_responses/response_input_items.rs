//! `GET /v1/responses/{id}/input_items`.

use serde_json::json;

use super::{gateway, get, last_text, path, reads, refused, response, send};
use crate::support::scripted::saying;

#[test]
fn items_that_a_response_answers_are_listed_and_referred_to() {
    let provider = saying(reads);
    let gateway = gateway(&provider);
    let first = response(&send(
        &gateway,
        &json!({"model": "chat", "input": "one", "store": true}),
    ));
    let said = first["output"][0].clone();
    let asked = json!({"model": "blocks", "store": true, "input": [
        {"role": "user", "content": "zero"}, {"type": "item_reference", "id": said["id"]}, {"role": "user", "content": "two"}]});
    let second = response(&send(&gateway, &asked));
    assert_eq!(last_text(&second), "You said: two");
    let sent = provider.requests().pop().unwrap().json().to_string();
    assert!(
        sent.contains("You said: one") && sent.contains("zero"),
        "{sent}"
    );
    let items = format!("{}/input_items", path(&second));
    let all = get(&gateway, &format!("{items}?order=asc")).json();
    let data = all["data"].as_array().unwrap();
    assert_eq!((data.len(), &data[1]), (3, &said));
    assert_eq!(
        (&data[0]["type"], &data[0]["content"]),
        (&json!("message"), &json!("zero"))
    );
    // The ids of what came without one work, too.
    let asked =
        json!({"model": "chat", "input": [{"type": "item_reference", "id": data[2]["id"]}]});
    assert_eq!(
        last_text(&response(&send(&gateway, &asked))),
        "You said: two"
    );
    let newest = get(&gateway, &format!("{items}?limit=1")).json();
    assert_eq!(
        (&newest["data"][0], &newest["has_more"]),
        (&data[2], &json!(true))
    );
    let next = format!(
        "{items}?limit=5&after={}",
        newest["last_id"].as_str().unwrap()
    );
    let rest = get(&gateway, &next).json();
    assert_eq!(
        (rest["data"].as_array().unwrap().len(), &rest["has_more"]),
        (2, &json!(false))
    );
    for (query, param) in [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("order=up", "order"),
        ("after=msg_9", "after"),
    ] {
        refused(
            &get(&gateway, &format!("{items}?{query}")),
            400,
            "invalid_parameters",
            Some(param),
        );
    }
    let asked = json!({"model": "chat", "input": [{"type": "item_reference", "id": "msg_9"}]});
    refused(
        &send(&gateway, &asked),
        400,
        "item_not_found",
        Some("input[0].id"),
    );
}
