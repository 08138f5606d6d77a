//! `GET /v1/responses/{id}`.

use serde_json::json;

use super::{call, gateway, get, id, path, reads, refused, response, send, tools};
use crate::support::ask::Ask;
use crate::support::client::ask;
use crate::support::scripted::{self, MODELS, saying};

#[test]
fn a_kept_response_is_what_its_client_got_whole_or_streamed() {
    let provider = saying(reads);
    let gateway = gateway(&provider);
    for model in MODELS {
        for is_stream in [false, true] {
            let asked = json!({"model": model, "tools": tools(), "input": "Read a", "store": true, "stream": is_stream, "metadata": {"a": "b"}});
            let told = response(&send(&gateway, &asked));
            let kept = get(&gateway, &path(&told));
            assert_eq!(kept.json(), told, "{model}");
            // Items name the response that has them, unless a provider has named them.
            if model != "items" {
                let item = told["output"][0]["id"].as_str().unwrap();
                assert!(
                    item.contains(id(&told).trim_start_matches("resp_")),
                    "{item}"
                );
            }
        }
    }
}

#[test]
fn what_is_asked_of_a_kept_response_and_is_none_of_it_is_named() {
    let provider = scripted::provider();
    let gateway = gateway(&provider);
    let told = response(&send(
        &gateway,
        &json!({"model": "chat", "input": "one", "store": true}),
    ));
    for (query, param) in [
        ("stream=true", "stream"),
        ("starting_after=3", "starting_after"),
    ] {
        let answer = get(&gateway, &format!("{}?{query}", path(&told)));
        refused(&answer, 400, "unsupported_value", Some(param));
    }
    assert_eq!(
        get(&gateway, &format!("{}?stream=false", path(&told))).json(),
        told
    );
    let answer = call(&gateway, "POST", &format!("{}/cancel", path(&told)));
    refused(&answer, 400, "response_not_cancellable", None);
    for bad in ["resp_1", "resp_wg_00", "..%2f", "%00"] {
        let answer = get(&gateway, &format!("/v1/responses/{bad}"));
        assert!(
            matches!(answer.status(), 400 | 404),
            "{bad}: {}",
            answer.text()
        );
    }
    // An upgrade is still refused at once.
    let asked = Ask::get("/v1/responses")
        .key(&gateway.key)
        .header("upgrade", "websocket");
    assert_eq!(ask(gateway.address(), &asked).status(), 426);
}
