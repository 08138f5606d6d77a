//! `POST /v1/batch`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::ask::Ask;
use crate::support::client::ask;
use crate::support::flags::{agent, gateway, json_of, plain, post, refused, said};
use crate::support::script::{Gate, Reply};
use crate::support::stays;
use crate::support::upstream::Upstream;

/// An operation of a batch, with a valid SDK key.
pub fn operation(id: &str, url: &str, more: Value) -> Value {
    let mut operation = json!({"method": "POST", "url": url, "operationID": id, "body": {"userId": "u"},
        "headers": {"X-Platform-SDK-Key": "sandbox", "Content-Type": "application/json"}});
    for (key, value) in more.as_object().unwrap() {
        operation[key] = value.clone();
    }
    operation
}

/// Contract: decision-agent 1 It returns the
/// Contract: decision-agent 2.4 operation
/// Contract: decision-agent 2.4 item of the response
/// Contract: decision-agent 4 POST /v1/batch
/// Contract: decision-agent 4 5
#[test]
fn operations_are_answered_in_order_each_with_its_own_headers() {
    let gateway = gateway("");
    let operations = json!({"operations": [
        operation("0", "/v1/decide", json!({"parameters": {"keys": "dark_mode"}})),
        operation("1", "/v1/decide?keys=dark_mode", json!({"headers": {"X-Platform-SDK-Key": "no"}})),
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

/// Contract: decision-agent 2.4 operation
/// Contract: decision-agent 2.4 response
/// Contract: decision-agent 2.4 item of the response
#[test]
fn a_response_and_its_items_have_the_members_of_the_contract() {
    let gateway = gateway("");
    let url = "https://host/v1/decide";
    let operations = json!({"operations": [
        operation("mine", url, json!({"parameters": {"keys": "dark_mode"}})),
        operation("config", "/v1/config", json!({"method": "GET", "headers": {"X-Platform-SDK-Key": "no"}})),
    ]});
    let body = post(&gateway, "/v1/batch", &operations).json();
    let names = |object: &Value| -> Vec<String> {
        let mut names: Vec<String> = object.as_object().unwrap().keys().cloned().collect();
        names.sort();
        names
    };
    assert_eq!(
        names(&body),
        ["endedAt", "errorCount", "response", "startedAt"]
    );
    let items = body["response"].as_array().unwrap();
    for (item, (id, method, url, status)) in items.iter().zip([
        ("mine", "POST", url, 200),
        ("config", "GET", "/v1/config", 400),
    ]) {
        let expected = [
            "body",
            "endedAt",
            "method",
            "operationID",
            "requestID",
            "startedAt",
            "status",
            "url",
        ];
        assert_eq!(names(item), expected);
        let told = ["operationID", "method", "url"].map(|name| item[name].as_str().unwrap());
        assert_eq!((told, &item["status"]), ([id, method, url], &json!(status)));
        assert!(item["body"].is_object() && !item["requestID"].as_str().unwrap().is_empty());
    }
    let is_time = |time: &Value| time.as_str().unwrap().parse::<jiff::Timestamp>().is_ok();
    for timed in items.iter().chain([&body]) {
        assert!(is_time(&timed["startedAt"]) && is_time(&timed["endedAt"]));
    }
}

/// Contract: decision-agent 8 1
#[test]
fn a_batch_has_500_operations_at_most_unless_told() {
    let gateway = gateway("");
    let batch = |count: usize| {
        let operations = json!({"operations": vec![json!({}); count]});
        post(&gateway, "/v1/batch", &operations)
    };
    let most = batch(500);
    assert_eq!(
        (most.status(), &most.json()["errorCount"]),
        (200, &json!(500))
    );
    let (status, error) = refused(&batch(501));
    assert!(status == 422 && error.contains("500"), "{status} {error}");
}

/// Contract: decision-agent 2.4 request
/// Contract: decision-agent 7 422
/// Contract: decision-agent 8 1
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

/// Source: docs/decision-agent.md 2.4: `operations (array of batch operation, required)`.
/// Contract: decision-agent 2.4 request
/// Contract: decision-agent 7 400
#[test]
fn a_batch_without_operations_is_refused() {
    let gateway = gateway("");
    for body in [
        json!({}),
        json!({"operations": null}),
        json!({"operation": []}),
    ] {
        let (status, error) = refused(&post(&gateway, "/v1/batch", &body));
        assert_eq!(status, 400, "{body}: {error}");
        assert!(error.contains("cannot decode"), "{error}");
    }
    let (_, error) = refused(&post(&gateway, "/v1/batch", &json!({})));
    assert!(error.contains("missing field `operations`"), "{error}");
}

/// Source: docs/decision-agent.md 2.4: `url (string; base and endpoint path of the call)`.
/// Contract: decision-agent 2.4 operation
#[test]
fn the_base_of_the_url_of_an_operation_is_stripped_in_both_modes() {
    for gateway in [gateway(""), agent("")] {
        let urls = [
            "/v1/decide?keys=dark_mode",
            "http://old.example:8080/v1/decide?keys=dark_mode",
            "https://old.example/v1/decide?keys=dark_mode#top",
        ];
        let operations = urls.map(|url| operation("0", url, json!({})));
        let answer = post(&gateway, "/v1/batch", &json!({"operations": operations})).json();
        assert_eq!(answer["errorCount"], 0, "{answer}");
        for item in answer["response"].as_array().unwrap() {
            assert_eq!(item["body"]["flagKey"], "dark_mode", "{item}");
        }
    }
}

/// Source: docs/decision-agent.md 2.4: an operation's `body` is the `JSON body of the call`; 5.2: `A batch operation can carry its
/// own headers object`.
/// Contract: decision-agent 5 2
#[test]
fn an_operation_without_headers_has_the_credentials_of_its_batch() {
    let operations = json!({"operations": [
        {"method": "POST", "url": "/v1/decide?keys=dark_mode", "body": {"userId": "u"}},
        {"method": "GET", "url": "/v1/config"},
        {"method": "POST", "url": "/v1/decide", "body": {"userId": "u"}, "headers": {"X-Platform-SDK-Key": "no"}},
        {"method": "POST", "url": "/v1/decide", "body": {"userId": "u"}, "headers": {"Authorization": "Bearer x"}},
        {"method": "POST", "url": "/v1/decide", "body": {"userId": "u"}, "headers": {"Content-Type": "text/plain"}},
        {"method": "POST", "url": "/v1/decide?keys=dark_mode", "body": {"userId": "u"}, "headers": {"X-Other": "1"}},
    ]});
    let statuses = |gateway| {
        let answer = post(&gateway, "/v1/batch", &operations).json();
        let items = answer["response"].as_array().unwrap();
        let statuses = items.iter().map(|item| item["status"].as_u64().unwrap());
        statuses.collect::<Vec<u64>>()
    };
    assert_eq!(statuses(gateway("")), [200, 200, 400, 400, 400, 200]);
    // In the original agent an operation inherits nothing.
    assert_eq!(statuses(agent("")), [400, 400, 403, 400, 400, 400]);
}

/// Source: docs/decision-agent.md 5.3: `Invalid credentials yield 401`.
/// Contract: decision-agent 5 3
#[test]
fn a_batch_with_invalid_credentials_is_refused_as_a_whole() {
    let gateway = gateway("");
    let body = json!({"operations": [operation("0", "/v1/decide", json!({}))]}).to_string();
    for key in ["nobody", "a b"] {
        let call = Ask::post("/v1/batch", body.clone()).header("X-Platform-SDK-Key", key);
        let answer = ask(gateway.address(), &call);
        assert_eq!(answer.status(), 401, "{key}: {}", answer.text());
        assert!(answer.json()["response"].is_null());
    }
}

#[test]
fn what_is_not_done_in_time_has_failed_and_the_rest_is_answered() {
    // Each request for its datafiles waits for five seconds.
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

/// Source: docs/hostile-input.md 60.
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

#[test]
fn a_batch_that_is_none_or_too_long_is_refused_in_plain_text() {
    let old = agent("batch_max_operations = 1");
    let document = gateway("batch_max_operations = 1");
    for body in [
        json!([1]),
        json!({"operations": [{"body": []}]}),
        json!({"operations": [{"params": {"keys": 1}}]}),
    ] {
        assert_eq!(
            said(&post(&old, "/v1/batch", &body)),
            plain(400, "{\"error\": \"cannot decode the operation body\"}\n"),
            "{body}"
        );
    }
    let two = json!({"operations": [{}, {}]});
    assert_eq!(
        said(&post(&old, "/v1/batch", &two)),
        plain(
            422,
            "{\"error\": \"too many operations, exceeding 1 operations\"}\n"
        )
    );
    assert_eq!(
        said(&post(&document, "/v1/batch", &two)),
        json_of(
            422,
            r#"{"error":"too many operations, exceeding 1 operations"}"#
        )
    );
    assert_eq!(
        said(&post(&document, "/v1/batch", &json!({"operations": 1}))),
        json_of(
            400,
            r#"{"error":"cannot decode the operation body: invalid type: integer `1`, expected a sequence at line 1 column 15"}"#
        )
    );
}

fn asking(method: &str, url: &str, headers: Value) -> Value {
    json!({"method": method, "url": url, "operationID": "", "body": {"userId": "u"}, "headers": headers})
}

#[test]
fn operations_have_the_status_and_the_body_that_they_would_have_alone() {
    let old = agent("overrides = false");
    let key = || json!({"X-Optimizely-SDK-Key": "sandbox", "Content-Type": "application/json", "X-Request-Id": "mine"});
    let bare = || json!({"X-Optimizely-SDK-Key": "sandbox"});
    let missing = json!({"error": "missing required X-Optimizely-SDK-Key header"});
    let cases = [
        (asking("POST", "/v1/override", key()), 403, Value::Null),
        (asking("POST", "/v1/decide", bare()), 415, Value::Null),
        (asking("POST", "/v1/nothing", key()), 404, Value::Null),
        (
            asking("POST", "/v1/nothing", json!({})),
            400,
            missing.clone(),
        ),
        (asking("POST", "/v1/batch", key()), 404, Value::Null),
        (asking("POST", "/v1/models", key()), 404, Value::Null),
        (asking("GET", "/nothing", json!({})), 404, Value::Null),
        (
            asking("POST", "/ofrep/v1/evaluate/flags", key()),
            404,
            Value::Null,
        ),
        (
            asking("POST", "/ofrep/v1/evaluate/flags/dark_mode", key()),
            404,
            Value::Null,
        ),
        (asking("PUT", "/v1/decide", key()), 405, Value::Null),
        (asking("HEAD", "/v1/config", key()), 405, Value::Null),
        (asking("PUT", "/v1/decide", json!({})), 400, missing),
        (asking("G T", "/v1/decide", key()), 400, Value::Null),
        (asking("GET", "/v1/%zz", key()), 400, Value::Null),
    ];
    let operations: Vec<&Value> = cases.iter().map(|(one, ..)| one).collect();
    let answer = post(&old, "/v1/batch", &json!({ "operations": operations })).json();
    assert_eq!(answer["errorCount"], cases.len());
    let items = answer["response"].as_array().unwrap();
    assert_eq!(items.len(), cases.len());
    for (item, (one, status, body)) in items.iter().zip(&cases) {
        assert_eq!(
            (&item["status"], &item["body"]),
            (&json!(status), body),
            "{one}"
        );
        assert_eq!(item["requestID"] == "", body.is_null(), "{item}");
    }
    const NEVER: &str = "0001-01-01T00:00:00Z";
    assert_ne!(answer["response"][11]["endedAt"], NEVER);
    assert_eq!(answer["response"][12]["endedAt"], NEVER);
    assert_eq!(answer["response"][13]["endedAt"], NEVER);
    let empty = post(&old, "/v1/batch", &json!({})).json();
    assert_eq!(
        (&empty["response"], &empty["endedAt"]),
        (&json!([]), &NEVER.into())
    );
}

#[test]
fn an_operation_may_name_its_call_whole_and_gets_its_own_id() {
    let old = agent("");
    let headers = json!({"x-optimizely-sdk-key": "sandbox", "Content-Type": "text/plain", "X-Request-Id": "mine"});
    // The body of a GET is not read.
    let one = asking("GET", "http://old.example:8080/v1/config", headers);
    let answer = post(&old, "/v1/batch", &json!({ "Operations": [one] })).json();
    let item = &answer["response"][0];
    assert_eq!(
        (&item["status"], &item["requestID"]),
        (&200.into(), &"mine".into()),
        "{answer}"
    );
    assert!(item["body"]["revision"].is_string());
}

#[test]
fn of_names_in_any_case_the_last_counts_in_an_operation_as_alone() {
    let old = agent("");
    let user = r#"{"userId":"a","USERID":"b","userId":"c"}"#;
    let batch = format!(
        r#"{{"operations":[{{"method":"POST","url":"/v1/decide?keys=dark_mode","headers":{{}},"body":{{}},
            "HEADERS":{{"X-Optimizely-SDK-Key":"no","Content-Type":"text/plain"}},
            "headers":{{"X-Optimizely-SDK-Key":"sandbox","Content-Type":"application/json"}},"body":{user}}}]}}"#
    );
    let asked = |path: &str, body: &str| {
        let asked = Ask::post(path, body).header("X-Platform-SDK-Key", "sandbox");
        ask(old.address(), &asked).json()
    };
    let alone = asked("/v1/decide?keys=dark_mode", user);
    assert_eq!(alone["userContext"]["userId"], "c", "{alone}");
    let item = &asked("/v1/batch", &batch)["response"][0];
    assert_eq!(item["body"]["userContext"]["userId"], "c", "{item}");
    let kept = asked(
        "/v1/decide?keys=dark_mode",
        r#"{"userId":"a","userId":null}"#,
    );
    assert_eq!(kept["userContext"]["userId"], "a", "{kept}");
}

/// An SDK key that nobody has heard of costs a fetch, and a batch can invent hundreds.
#[test]
fn a_batch_of_invented_keys_fetches_few_at_once() {
    let gate = Gate::default();
    let source = Upstream::always(
        Reply::empty()
            .wait(&gate)
            .bytes("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"),
    );
    let more = format!(
        "datafile_url = \"{}/%s.json\"\nbatch_concurrency = 100",
        source.url()
    );
    let gateway = gateway(&more);
    let address = gateway.address();
    let operations: Vec<Value> = (0..40)
        .map(|number| {
            let headers = json!({"X-Platform-SDK-Key": format!("invented{number}")});
            operation("0", "/v1/decide", json!({"headers": headers}))
        })
        .collect();
    let body = json!({"operations": operations}).to_string();
    let batch = std::thread::spawn(move || {
        let call = Ask::post("/v1/batch", body).header("X-Platform-SDK-Key", "sandbox");
        ask(address, &call).json()
    });
    source.wait_requests(8);
    // The operations were all started together: what may be fetched is asked for soon.
    let are_few = || source.requests().len() == 8;
    stays("few are fetched", Duration::from_millis(200), are_few);
    gate.open();
    assert_eq!(batch.join().unwrap()["errorCount"], 40);
    assert_eq!(source.requests().len(), 40);
}

/// Nor do many batches at once ask for hundreds.
#[test]
fn batches_of_invented_keys_fetch_few_at_once_together() {
    let gate = Gate::default();
    let source = Upstream::always(
        Reply::empty()
            .wait(&gate)
            .bytes("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"),
    );
    let gateway = gateway(&format!("datafile_url = \"{}/%s.json\"", source.url()));
    let address = gateway.address();
    let batches: Vec<_> = (0..8)
        .map(|batch| {
            let operations: Vec<Value> = (0..10)
                .map(|number| {
                    let headers =
                        json!({"X-Platform-SDK-Key": format!("invented{batch}-{number}")});
                    operation("0", "/v1/decide", json!({"headers": headers}))
                })
                .collect();
            let body = json!({"operations": operations}).to_string();
            std::thread::spawn(move || {
                let call = Ask::post("/v1/batch", body).header("X-Platform-SDK-Key", "sandbox");
                ask(address, &call).json()
            })
        })
        .collect();
    source.wait_requests(32);
    // What may be fetched is asked for soon.
    let are_few = || source.requests().len() == 32;
    stays("few are fetched", Duration::from_millis(200), are_few);
    // A request of its own does not wait for batches.
    let alone = std::thread::spawn(move || {
        let call = Ask::get("/v1/config").header("X-Platform-SDK-Key", "invented");
        ask(address, &call).status()
    });
    source.wait_requests(33);
    gate.open();
    assert_eq!(alone.join().unwrap(), 401);
    for batch in batches {
        assert_eq!(batch.join().unwrap()["errorCount"], 10);
    }
}

#[test]
fn what_a_message_quotes_is_cut() {
    let gateway = gateway("");
    let long = "x".repeat(1000);
    let body = json!({"userId": "u", "decideOptions": [long]});
    let (status, error) = refused(&post(&gateway, "/v1/decide", &body));
    let expected = format!("invalid option: {}…", "x".repeat(100));
    assert_eq!((status, error), (400, expected));
}
