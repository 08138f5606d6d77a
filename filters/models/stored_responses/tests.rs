#![allow(clippy::unwrap_used, reason = "tests")]

use bytes::Bytes;
use serde_json::{Value, json};

use super::items::{ItemIndex, ItemPage, StoredTurn, to_array, write_page};
use super::progress::{ResponseStatus, failed, with_status};
use super::*;

const ID: &str = "0102030405060708090a0b0c0d0e0f10";

#[test]
fn ids_tell_which_response_an_item_is_of() {
    assert_eq!(stored_id(&public_id(ID)), Some(ID));
    for bad in ["resp_1", "resp_wg_", "resp_wg_0102", ID, ""] {
        assert_eq!(stored_id(bad), None, "{bad}");
    }
    assert_eq!(
        stored_id("resp_wg_0102030405060708090A0b0c0d0e0f10"),
        None,
        "hex digits are small"
    );
    assert_eq!(response_of_item(&input_item_id(ID, 3)), Some(ID));
    assert_eq!(response_of_item(&own_id("msg", ID, 0)), Some(ID));
    for bad in ["msg_1", "msg_wg_0102_3", "msg_wg_", &public_id(ID)] {
        assert_eq!(response_of_item(bad), None, "{bad}");
    }
}

#[test]
fn a_text_is_a_message_and_items_stay_as_they_came() {
    let text = to_array(&Bytes::from_static(br#""two\nlines""#));
    let read: Value = serde_json::from_slice(&text).unwrap();
    let message = json!({"type": "message", "role": "user", "content": "two\nlines"});
    assert_eq!(read, json!([message]));
    let items = Bytes::from_static(br#"[ {"role":"user"} ]"#);
    assert_eq!(to_array(&items), items);
    assert_eq!(to_array(&Bytes::new()), "[]");
}

fn page(after: Option<&str>, limit: usize, is_ascending: bool) -> Option<Value> {
    let input = json!([{"role": "user", "content": "a"}, {"type": "reasoning", "id": "rs_1"}, {"type": "message", "role": "user", "content": "b"}]);
    let input = input.to_string();
    let turn = StoredTurn {
        id: ID,
        input: &input,
        response: "{}",
    };
    let page = ItemPage {
        after: after.map(Into::into),
        limit,
        is_ascending,
    };
    let written = write_page(&turn, &page).unwrap()?;
    Some(serde_json::from_slice(&written).unwrap())
}

#[test]
fn items_are_listed_page_by_page_from_either_end() {
    let ids = |page: &Value| -> Vec<String> {
        let data = page["data"].as_array().unwrap().iter();
        data.map(|item| item["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let (first, last) = (input_item_id(ID, 0), input_item_id(ID, 2));
    let all = page(None, 20, true).unwrap();
    assert_eq!(ids(&all), [&*first, "rs_1", &*last]);
    assert_eq!(all["data"][0]["type"], "message");
    assert_eq!(
        (&all["has_more"], &all["first_id"]),
        (&json!(false), &json!(first))
    );
    let newest = page(None, 2, false).unwrap();
    assert_eq!(ids(&newest), [&*last, "rs_1"]);
    assert_eq!(
        (&newest["has_more"], &newest["last_id"]),
        (&json!(true), &json!("rs_1"))
    );
    let rest = page(Some("rs_1"), 2, false).unwrap();
    assert_eq!(ids(&rest), [&*first]);
    let none = page(Some(&last), 2, true).unwrap();
    assert_eq!(
        (&none["data"], &none["first_id"]),
        (&json!([]), &Value::Null)
    );
    assert_eq!(page(Some("rs_9"), 2, true), None);
}

#[test]
fn items_are_found_by_their_ids_whoever_has_made_them() {
    let input = json!([{"role": "user", "content": "a"}]).to_string();
    let response = json!({"output": [{"id": "msg_1", "type": "message"}]}).to_string();
    let turn = StoredTurn {
        id: ID,
        input: &input,
        response: &response,
    };
    let own = input_item_id(ID, 0);
    let mut index = ItemIndex::new(["msg_1", "msg_2", &*own]);
    index.add(&turn).unwrap();
    assert!(index.has("msg_1") && index.has(&own) && !index.has("msg_2"));
    let found = index.find(&own, &[turn]).unwrap();
    let found: Value = serde_json::from_str(found).unwrap();
    assert_eq!(found, json!({"role": "user", "content": "a"}));
    assert_eq!(index.find("msg_1", &[]), None);
    let broken = StoredTurn {
        input: "[{",
        ..turn
    };
    assert!(index.add(&broken).is_err());
}

#[test]
fn the_status_of_a_response_changes_and_nothing_else() {
    let queued = r#"{"id":"resp_1","status":"queued","error":null,"output":[]}"#;
    let told: Value =
        serde_json::from_str(&with_status(queued, ResponseStatus::InProgress).unwrap()).unwrap();
    assert_eq!(
        told,
        json!({"id": "resp_1", "status": "in_progress", "error": null, "output": []})
    );
    let told: Value = serde_json::from_str(&failed(queued, r#"{"code":"x"}"#).unwrap()).unwrap();
    assert_eq!(
        (&told["status"], &told["error"]),
        (&json!("failed"), &json!({"code": "x"}))
    );
    for status in [
        "queued",
        "in_progress",
        "completed",
        "incomplete",
        "failed",
        "cancelled",
    ] {
        let read = ResponseStatus::from_word(status).unwrap();
        assert_eq!(read.as_str(), status);
        assert!(!(read.is_open() && read.has_output()));
    }
    assert_eq!(ResponseStatus::from_word("done"), None);
}
