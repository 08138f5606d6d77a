//! `POST /v1/audio/translations`: a transcription into English, by models that list it. Source: docs/model-gateway.md 2.16.

use serde_json::json;

use super::ledger::used;
use super::transcriptions::gateway;
use super::uploads::{Form, WAV, form_ask, parts};
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

const PATH: &str = "/v1/audio/translations";

fn translate(gateway: &Gateway, fields: &[(&str, &str)]) -> Answer {
    let form = Form::of(fields).file("a.wav", &WAV);
    ask(gateway.address(), &form_ask(gateway, PATH, &form))
}

fn translated() -> Reply {
    let usage = json!({"type": "duration", "seconds": 1});
    Reply::json(200, json!({"text": "Hello", "usage": usage}).to_string())
}

#[test]
fn a_translation_asks_the_providers_own_endpoint_and_falls_back() {
    let (first, second) = (
        Upstream::always(Reply::json(503, "{}")),
        Upstream::always(translated()),
    );
    let gateway = gateway(&first, &second);
    let answer = translate(
        &gateway,
        &[
            ("model", "ear"),
            ("prompt", "names"),
            ("response_format", "text"),
        ],
    );
    assert_eq!((answer.status(), answer.text()), (200, "Hello\n"));
    let sent = second.request(0);
    assert_eq!(sent.path, PATH);
    assert_eq!(parts(&sent)[0].1, b"ear-at-second");
    used(&gateway, "0.002");
}

#[test]
fn what_translations_do_not_take_is_named() {
    let first = Upstream::always(translated());
    let gateway = gateway(&first, &first);
    for (fields, param) in [
        (&[("model", "ear"), ("stream", "true")][..], "stream"),
        (
            &[("model", "ear"), ("response_format", "diarized_json")],
            "response_format",
        ),
        (&[("model", "tokens")], "model"),
    ] {
        let answer = translate(&gateway, fields);
        let error = &answer.json()["error"];
        assert_eq!(
            (answer.status(), error["param"].as_str()),
            (400, Some(param)),
            "{error}"
        );
    }
    assert!(first.requests().is_empty());
    used(&gateway, "0");
}
