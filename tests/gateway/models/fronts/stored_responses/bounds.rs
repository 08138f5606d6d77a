//! How much an organization keeps, and what is told where that is reached or where the store fails.

use serde_json::json;
use sqlx::{Connection, Executor, SqliteConnection};

use super::{KEEPS, call, gateway, get, path, refused, response, send};
use crate::support::scripted::{Turn, gateway_with, provider, saying};

#[test]
fn an_organization_that_keeps_its_most_is_told_before_a_provider_is_asked() {
    let provider = provider();
    let gateway = gateway_with(&provider, &format!("{KEEPS}max_count = 2\n"), "", "1000");
    let asked = json!({"model": "chat", "input": "one", "store": true});
    let first = response(&send(&gateway, &asked));
    response(&send(&gateway, &asked));
    let sent = provider.requests().len();
    for asked in [
        &asked,
        &json!({"model": "chat", "input": "one", "background": true}),
    ] {
        let answer = send(&gateway, asked);
        refused(
            &answer,
            400,
            "stored_responses_limit_reached",
            Some("store"),
        );
        assert!(
            answer.text().contains("[responses] max_count"),
            "{}",
            answer.text()
        );
    }
    assert_eq!(provider.requests().len(), sent);
    // Without `store` the conversation goes on, and room that is made is used.
    let next = json!({"model": "chat", "input": "two", "previous_response_id": first["id"]});
    response(&send(&gateway, &next));
    assert_eq!(call(&gateway, "DELETE", &path(&first)).status(), 200);
    response(&send(&gateway, &asked));
}

#[test]
fn a_response_has_no_more_bytes_than_it_may_have() {
    let provider = saying(|asked| {
        let length = if asked.last_text() == "long" {
            9_000
        } else {
            10
        };
        Turn::text("x".repeat(length)).into()
    });
    let more = format!("{KEEPS}max_bytes_per_response = 8192\n");
    let gateway = gateway_with(&provider, &more, "", "1000");
    let asked = json!({"model": "chat", "input": "y".repeat(9_000), "store": true});
    let answer = send(&gateway, &asked);
    refused(&answer, 400, "response_too_large", Some("input"));
    assert!(
        answer.text().contains("max_bytes_per_response"),
        "{}",
        answer.text()
    );
    assert!(provider.requests().is_empty());
    // An answer that is too long is known once it is there: nobody is told that it is kept.
    let asked = json!({"model": "chat", "input": "long", "store": true});
    refused(&send(&gateway, &asked), 400, "response_too_large", None);
    let streamed = json!({"model": "chat", "input": "long", "store": true, "stream": true});
    let told = response(&send(&gateway, &streamed));
    assert_eq!(
        (&told["status"], &told["error"]["code"]),
        (&json!("failed"), &json!("response_too_large"))
    );
    refused(
        &get(&gateway, &path(&told)),
        404,
        "response_not_found",
        None,
    );
    // A long chain grows until it is named.
    let mut last = response(&send(
        &gateway,
        &json!({"model": "chat", "input": "a", "store": true}),
    ));
    let mut refusal = None;
    for _ in 0..100 {
        let asked = json!({"model": "chat", "input": "z".repeat(500), "store": true, "previous_response_id": last["id"]});
        let answer = send(&gateway, &asked);
        if answer.status() != 200 {
            refusal = Some(answer);
            break;
        }
        last = response(&answer);
    }
    let refusal = refusal.expect("the chain grows without an end");
    assert_eq!(refusal.json()["error"]["code"], "response_too_large");
}

#[test]
fn a_history_beyond_the_size_of_a_request_is_refused() {
    let provider = provider();
    let more = format!("{KEEPS}[limits.body_bytes]\nchat = 65536\n");
    let gateway = gateway_with(&provider, &more, "", "1000");
    let asked = json!({"model": "chat", "input": "y".repeat(40_000), "store": true});
    let first = response(&send(&gateway, &asked));
    let sent = provider.requests().len();
    let asked =
        json!({"model": "chat", "input": "y".repeat(40_000), "previous_response_id": first["id"]});
    refused(
        &send(&gateway, &asked),
        413,
        "request_too_large",
        Some("input"),
    );
    let reference = json!({"type": "item_reference", "id": first["output"][0]["id"]});
    let asked = json!({"model": "chat", "input": vec![reference; 300]});
    refused(
        &send(&gateway, &asked),
        413,
        "request_too_large",
        Some("input"),
    );
    assert_eq!(provider.requests().len(), sent);
}

#[test]
fn a_response_that_the_store_does_not_take_is_never_told_as_kept() {
    let provider = provider();
    let gateway = gateway(&provider);
    let url = format!(
        "sqlite:{}",
        gateway.folder.path().join("weirgate.db").display()
    );
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut database = SqliteConnection::connect(&url).await.unwrap();
        let trigger = "CREATE TRIGGER refuse BEFORE INSERT ON responses BEGIN SELECT RAISE(ABORT, 'full'); END";
        database.execute(trigger).await.unwrap();
    });
    let asked = json!({"model": "chat", "input": "one", "store": true});
    let answer = send(&gateway, &asked);
    assert_eq!(answer.status(), 503, "{}", answer.text());
    assert!(
        answer.text().contains("could not be kept"),
        "{}",
        answer.text()
    );
    let streamed = json!({"model": "chat", "input": "one", "store": true, "stream": true});
    let told = response(&send(&gateway, &streamed));
    assert_eq!(
        (&told["status"], &told["store"]),
        (&json!("failed"), &json!(false))
    );
    refused(
        &get(&gateway, &path(&told)),
        404,
        "response_not_found",
        None,
    );
    let background = json!({"model": "chat", "input": "one", "background": true});
    assert_eq!(send(&gateway, &background).status(), 503);
    let sent = provider.requests().len();
    assert_eq!(sent, 2, "what is not queued is asked of nobody");
    response(&send(&gateway, &json!({"model": "chat", "input": "one"})));
}
