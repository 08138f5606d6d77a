//! `POST /v1/batch`.

use serde_json::{Value, json};

use crate::support::ask::Ask;
use crate::support::client::ask;
use crate::support::flags::{gateway, post, refused};
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

fn operation(id: &str, url: &str, more: Value) -> Value {
    let mut operation = json!({"method": "POST", "url": url, "operationID": id, "body": {"userId": "u"},
        "headers": {"X-Platform-SDK-Key": "sandbox", "Content-Type": "application/json"}});
    for (key, value) in more.as_object().unwrap() {
        operation[key] = value.clone();
    }
    operation
}

#[test]
fn operations_are_answered_in_order_each_with_its_own_headers() {
    let gateway = gateway("");
    let operations = json!({"operations": [
        operation("0", "/v1/decide", json!({"parameters": {"keys": "dark_mode"}})),
        operation("1", "/v1/decide?keys=dark_mode", json!({"headers": {}})),
        operation("2", "/v1/activate", json!({"params": {"type": "feature"}})),
        operation("3", "/v1/config", json!({"method": "GET", "body": null})),
        operation("4", "/v1/batch", json!({})),
        operation("5", "/v1/chat/completions", json!({})),
        operation("6", "/v1/decide", json!({"headers": {"X-Platform-SDK-Key": "sandbox\r\nX-Evil: 1"}})),
        operation("7", "/v1/decide", json!({"method": "PUT"})),
    ]});
    let answer = post(&gateway, "/v1/batch", &operations);
    let body = answer.json();
    assert_eq!(
        (answer.status(), &body["errorCount"]),
        (200, &5.into()),
        "{body}"
    );
    let items = body["response"].as_array().unwrap();
    let statuses: Vec<u64> = items
        .iter()
        .map(|item| item["status"].as_u64().unwrap())
        .collect();
    assert_eq!(statuses, [200, 400, 200, 200, 400, 400, 400, 400]);
    let ids: Vec<&Value> = items.iter().map(|item| &item["operationID"]).collect();
    assert_eq!(ids, ["0", "1", "2", "3", "4", "5", "6", "7"]);
    assert_eq!(items[0]["body"]["flagKey"], "dark_mode");
    assert_eq!(items[2]["body"].as_array().unwrap().len(), 2);
    assert!(items[0]["startedAt"].is_string() && items[0]["requestID"].is_string());
}

#[test]
fn a_batch_is_bounded_and_needs_credentials_of_its_own() {
    let gateway = gateway("batch_max_operations = 1");
    let one = operation("0", "/v1/decide", json!({}));
    let two = json!({"operations": [one, one]});
    assert_eq!(
        refused(&post(&gateway, "/v1/batch", &two)),
        (
            422,
            "too many operations, exceeding 1 operations".to_owned()
        )
    );
    assert_eq!(
        refused(&post(&gateway, "/v1/batch", &json!({"operations": 1}))).0,
        400
    );
    assert_eq!(refused(&post(&gateway, "/v1/batch", &json!([1]))).0, 400);
    let empty = post(&gateway, "/v1/batch", &json!({"operations": []})).json();
    assert_eq!(
        (&empty["errorCount"], &empty["response"]),
        (&0.into(), &json!([]))
    );
    let bare = Ask::post("/v1/batch", "{\"operations\":[]}");
    assert_eq!(ask(gateway.address(), &bare).status(), 401);
}

#[test]
fn what_is_not_done_in_time_has_failed_and_the_rest_is_answered() {
    // Whoever asks for its datafiles waits for five seconds.
    let silent = Upstream::always(Reply::hang());
    let more = format!(
        "batch_concurrency = 1\ndatafile_url = \"{}/%s.json\"",
        silent.url()
    );
    let gateway = gateway(&more);
    let with_key = |key: &str| json!({"headers": {"X-Platform-SDK-Key": key, "Content-Type": "application/json"}});
    let operations = json!({"operations": [
        operation("done", "/v1/decide?keys=dark_mode", json!({})),
        operation("failed", "/v1/decide", with_key("first")),
        operation("late", "/v1/decide", with_key("second")),
        operation("not begun", "/v1/decide?keys=dark_mode", json!({})),
    ]});
    let answer = post(&gateway, "/v1/batch", &operations);
    let body = answer.json();
    assert_eq!(
        (answer.status(), &body["errorCount"]),
        (200, &3.into()),
        "{body}"
    );
    let items = body["response"].as_array().unwrap();
    let of = |item: &Value| (item["operationID"].clone(), item["status"].clone());
    let statuses: Vec<_> = items.iter().map(of).collect();
    let expected = [
        ("done", 200),
        ("failed", 400),
        ("late", 400),
        ("not begun", 400),
    ];
    assert_eq!(
        statuses,
        expected.map(|(id, status)| (id.into(), status.into()))
    );
    let late = "the time of the batch was over before this operation was done";
    assert_eq!(
        [&items[2]["body"]["error"], &items[3]["body"]["error"]],
        [late, late]
    );
    assert_ne!(items[1]["body"]["error"], late);
}

/// Source: threats 60.
#[test]
fn what_has_no_room_has_failed_and_the_rest_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flags.json");
    let mut datafile = json!({"version": "4", "revision": "1"}).to_string();
    datafile.insert_str(1, &" ".repeat(1_000_000 - datafile.len()));
    std::fs::write(&path, datafile).unwrap();
    let more = format!(
        "batch_concurrency = 1\n[[decisions.projects]]\nsdk_key = \"big\"\ndatafile = {:?}",
        path.display().to_string()
    );
    let gateway = gateway(&more);
    let big = json!({"method": "GET", "body": null, "headers": {"X-Platform-SDK-Key": "big"}});
    let mut operations = vec![operation("big", "/v1/datafile", big); 17];
    operations.push(operation("small", "/v1/decide?keys=dark_mode", json!({})));
    let answer = post(&gateway, "/v1/batch", &json!({"operations": operations}));
    assert!(answer.body.len() < 17 << 20, "{}", answer.body.len());
    let body = answer.json();
    let items = body["response"].as_array().unwrap();
    let statuses: Vec<_> = items.iter().map(|item| item["status"].as_u64()).collect();
    let mut expected = [Some(200); 18];
    expected[16] = Some(400);
    assert_eq!(statuses, expected);
    assert_eq!(
        items[16]["body"]["error"],
        "the batch answers more than 16 MiB: ask for less at once"
    );
}
