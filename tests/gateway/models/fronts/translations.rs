//! `POST /v1/audio/translations`: a transcription into English, by models that list it. Source: docs/model-gateway.md 2.16.

use serde_json::json;

use crate::ledger::used;
use crate::models::fronts::transcriptions::{TRANSCRIPTIONS, gateway};
use crate::proxy::uploads::{Form, WAV, form_ask, parts};
use crate::support::ask::Ask;
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

/// Contract: model-gateway 4 POST /v1/audio/transcriptions
/// Contract: model-gateway 2.16 prompt
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
    let parts = parts(&sent);
    assert_eq!(parts[0].1, b"ear-at-second");
    let prompt = parts.iter().find(|(head, _)| head.contains("\"prompt\""));
    assert_eq!(prompt.unwrap().1, b"names");
    used(&gateway, "0.002");
}

/// Source: model-gateway 8.1
#[test]
fn speech_transcriptions_and_translations_count_apart() {
    let first = Upstream::always(translated());
    let more = "[limits]\nrequests_per_minute = { audio = 1, translations = 2 }";
    let gateway = TRANSCRIPTIONS.gateway([&first, &first], more, "1");
    let fields = [("model", "ear")];
    let spoken = Ask::post("/v1/audio/speech", "{").key(&gateway.key);
    let speech = || ask(gateway.address(), &spoken).status();
    assert_eq!([speech(), speech()], [400, 429]);
    let form = Form::of(&fields).file("a.wav", &WAV);
    let transcribed = form_ask(&gateway, TRANSCRIPTIONS.path, &form);
    let transcription = || ask(gateway.address(), &transcribed).status();
    assert_eq!([transcription(), transcription()], [200, 429]);
    let translations = [0, 1, 2].map(|_| translate(&gateway, &fields));
    let told = |answer: &Answer| {
        let limit = answer.header("ratelimit-limit").unwrap();
        (answer.status(), limit.to_owned())
    };
    let expected = [200, 200, 429].map(|status| (status, "2".to_owned()));
    assert_eq!(translations.each_ref().map(told), expected);
}

/// Contract: model-gateway 2.16 response_format
/// Contract: model-gateway 2.16 stream
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
