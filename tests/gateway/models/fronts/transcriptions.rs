//! `POST /v1/audio/transcriptions`: what goes up, what comes down and when, who is tried, what it costs. Source:
//! docs/model-gateway.md 2.16.

use filters::audit::PROGRAM;
use serde_json::{Value, json};

use crate::ledger::used;
use crate::models::fronts::operations::Operation;
use crate::proxy::uploads::{Form, WAV, form_ask, parts};
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, Client, ask};
use crate::support::script::{Cut, Gate, Reply};
use crate::support::upstream::Upstream;

/// A model at two providers, one that is billed by tokens, one that streams, and a chat.
pub const MODELS: &str = r#"
[[models]]
id = "ear"
type = "transcription"
operations = ["transcriptions", "translations"]
[[models.providers]]
provider = "first"
name = "ear-at-first"
input_second_price = "0.001"
capabilities = ["timestamps", "cancellation"]
[[models.providers]]
provider = "second"
name = "ear-at-second"
input_second_price = "0.002"
capabilities = ["cancellation"]
[[models]]
id = "tokens"
type = "transcription"
[[models.providers]]
provider = "first"
name = "tokens-at-first"
input_price = "2"
input_audio_price = "4"
output_price = "10"
max_output = 2000
capabilities = ["streaming", "diarization", "cancellation"]
[[models.providers]]
provider = "second"
name = "tokens-at-second"
input_price = "4"
input_audio_price = "8"
output_price = "20"
max_output = 2000
capabilities = ["streaming", "cancellation"]
[[models]]
id = "chat"
[[models.providers]]
provider = "first"
name = "chat-at-first"
"#;

/// One second of Ogg, as far as its length tells.
const BODY: &str = concat!(
    "--x\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\near\r\n",
    "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.ogg\"\r\n\r\nOggS\r\n--x--\r\n"
);

pub const TRANSCRIPTIONS: Operation = Operation {
    path: "/v1/audio/transcriptions",
    kinds: ["openai-compatible", "openai-compatible"],
    models: MODELS,
    body: BODY,
    replies: [heard, timed],
    costs: ["0.000004", "0.000006"],
    left: "0.000001",
};

/// Four milliseconds, as a provider reports them; the form tells one.
fn heard() -> Reply {
    let usage = json!({"type": "duration", "seconds": 0.004});
    let text = "What was said is here, and what was not is not.";
    Reply::json(200, json!({"text": text, "usage": usage}).to_string())
}

/// A reply that tells how long the audio was, and no usage.
fn timed() -> Reply {
    let segment = json!({"start": 0.0, "end": 1.5, "text": " Hi you"});
    let body = json!({"task": "transcribe", "language": "english", "duration": 0.003, "text": "Hi you",
        "segments": [segment]});
    Reply::json(200, body.to_string())
}

fn counted() -> Reply {
    let details = json!({"text_tokens": 4, "audio_tokens": 10});
    let usage = json!({"type": "tokens", "input_tokens": 14, "output_tokens": 5, "total_tokens": 19,
        "input_token_details": details});
    Reply::json(200, json!({"text": "Hi you", "usage": usage}).to_string())
}

pub fn gateway(first: &Upstream, second: &Upstream) -> Gateway {
    gateway_with([first, second], "1")
}

pub fn gateway_with(providers: [&Upstream; 2], credit: &str) -> Gateway {
    TRANSCRIPTIONS.gateway(providers, "", credit)
}

impl Gateway {
    /// A request with the WAV of a second.
    fn transcribe(&self, fields: &[(&str, &str)]) -> Answer {
        let form = Form::of(fields).file("a.wav", &WAV);
        ask(self.address(), &form_ask(self, TRANSCRIPTIONS.path, &form))
    }
}

/// Contract: model-gateway 2.16 language
/// Contract: model-gateway 2.16 chunking_strategy
#[test]
fn a_form_goes_out_with_the_providers_model_and_the_answer_is_the_conventions() {
    let first = Upstream::always(heard());
    let gateway = gateway(&first, &first);
    let answer = gateway.transcribe(&[("model", "ear"), ("language", "en"), ("unknown", "7")]);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let expected = json!({"text": "What was said is here, and what was not is not.",
        "usage": {"type": "duration", "seconds": 0.004}});
    assert_eq!(answer.json(), expected);
    let sent = first.request(0);
    assert_eq!(sent.path, "/v1/audio/transcriptions");
    let parts = parts(&sent);
    let texts: Vec<(&str, &[u8])> = parts[..3]
        .iter()
        .map(|(head, content)| (head.split('"').nth(1).unwrap(), &content[..]))
        .collect();
    let expected = [
        ("model", &b"ear-at-first"[..]),
        ("language", b"en"),
        ("unknown", b"7"),
    ];
    assert_eq!(texts, expected);
    let (head, content) = &parts[3];
    assert!(head.contains("name=\"file\"; filename=\"a.wav\""), "{head}");
    assert!(head.ends_with("content-type: audio/wav"), "{head}");
    assert_eq!(content, &WAV);
    assert_eq!(parts.len(), 4);
}

/// Contract: model-gateway 2.16 response_format
/// Contract: model-gateway 4 POST /v1/audio/transcriptions
#[test]
fn every_format_is_made_of_what_a_provider_tells() {
    let first = Upstream::always(timed());
    let gateway = gateway(&first, &first);
    for (format, media_type, expected) in [
        ("text", "text/plain; charset=utf-8", "Hi you\n"),
        (
            "srt",
            "text/plain; charset=utf-8",
            "1\n00:00:00,000 --> 00:00:01,500\nHi you\n\n",
        ),
        (
            "vtt",
            "text/vtt; charset=utf-8",
            "WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nHi you\n\n",
        ),
    ] {
        let answer = gateway.transcribe(&[("model", "ear"), ("response_format", format)]);
        assert_eq!(
            (answer.status(), answer.text()),
            (200, expected),
            "{format}"
        );
        assert_eq!(answer.header("content-type"), Some(media_type));
        let length = expected.len().to_string();
        assert_eq!(answer.header("content-length"), Some(&*length));
    }
    let verbose = gateway.transcribe(&[("model", "ear"), ("response_format", "verbose_json")]);
    assert_eq!(verbose.json()["segments"][0]["text"], " Hi you");
    assert_eq!(verbose.json()["usage"]["info"], "estimated");
    // Only the first tells times.
    let pinned = [("model", "second/ear"), ("response_format", "srt")];
    let refused = gateway.transcribe(&pinned);
    let error = &refused.json()["error"];
    assert_eq!(
        (refused.status(), &error["param"]),
        (400, &json!("response_format")),
        "{error}"
    );
    let streamed = gateway.transcribe(&[("model", "ear"), ("stream", "true")]);
    assert_eq!(
        (streamed.status(), &streamed.json()["error"]["param"]),
        (400, &json!("stream"))
    );
}

#[test]
fn tokens_and_what_is_not_reported_cost() {
    let first = Upstream::sequence([counted(), Reply::json(200, r#"{"text":"12345678"}"#)]);
    let gateway = gateway(&first, &first);
    let answer = gateway.transcribe(&[("model", "tokens")]);
    let expected = json!({"type": "tokens", "input_tokens": 14, "output_tokens": 5, "total_tokens": 19,
        "input_token_details": {"text_tokens": 4, "audio_tokens": 10}});
    assert_eq!(answer.json()["usage"], expected);
    // 4 of text, 10 of audio, 5 out.
    used(&gateway, "0.000098");
    let answer = gateway.transcribe(&[("model", "tokens")]);
    assert_eq!(
        answer.json()["usage"],
        json!({"type": "duration", "seconds": 1, "info": "estimated"})
    );
    // A second is ten tokens of audio; a text of eight bytes is two.
    used(&gateway, "0.000158");
}

fn delta(text: &str) -> String {
    json!({"type": "transcript.text.delta", "delta": text}).to_string()
}

fn done() -> String {
    let usage =
        json!({"type": "tokens", "input_tokens": 10, "output_tokens": 2, "total_tokens": 12});
    json!({"type": "transcript.text.done", "text": "Hi you", "usage": usage}).to_string()
}

const STREAM: [(&str, &str); 2] = [("model", "tokens"), ("stream", "true")];

/// Contract: model-gateway 2.16 stream
/// Contract: model-gateway 4 POST /v1/audio/transcriptions
#[test]
fn text_leaves_as_it_comes() {
    let gate = Gate::default();
    let events = Reply::stream().event(&delta("Hi")).wait(&gate);
    let first = Upstream::always(events.event(&delta(" you")).event(&done()).end());
    let gateway = gateway(&first, &first);
    let mut client = Client::connect(gateway.address());
    let form = Form::of(&STREAM).file("a.wav", &WAV);
    client.send(&form_ask(&gateway, TRANSCRIPTIONS.path, &form));
    let head = client.head();
    let media_type = head.header("content-type").unwrap();
    assert!(media_type.starts_with("text/event-stream"), "{media_type}");
    let chunk = client.chunk().unwrap();
    assert_eq!(
        chunk.bytes,
        format!("data: {}\n\n", delta("Hi")).into_bytes()
    );
    gate.open();
    let chunks = std::iter::from_fn(|| client.chunk());
    let rest: Vec<u8> = chunks.flat_map(|chunk| chunk.bytes).collect();
    let rest = String::from_utf8(rest).unwrap();
    let last = rest
        .lines()
        .rfind(|line| line.starts_with("data: "))
        .unwrap();
    let last: Value = serde_json::from_str(&last[6..]).unwrap();
    assert_eq!(
        (&last["type"], &last["text"]),
        (&json!("transcript.text.done"), &json!("Hi you"))
    );
    assert_eq!(last["usage"]["input_tokens"], 10);
    used(&gateway, "0.00004");
    let sent = parts(&first.request(0));
    assert!(
        sent.iter()
            .any(|(head, content)| head.contains("\"stream\"") && content == b"true")
    );
}

#[test]
fn a_stream_that_breaks_off_says_so_and_what_it_took() {
    let broken = Reply::stream().event(&delta("12345678")).and_reset();
    let (first, second) = (Upstream::always(broken), Upstream::always(heard()));
    let gateway = gateway(&first, &second);
    let answer = gateway.transcribe(&STREAM);
    assert!(
        answer.text().contains("stream_truncated"),
        "{}",
        answer.text()
    );
    assert!(!answer.text().contains("transcript.text.done"));
    assert!(second.requests().is_empty());
    // Ten tokens were heard, two came.
    used(&gateway, "0.00004");
}

#[test]
fn before_the_first_text_the_next_provider_answers() {
    let silent = Reply::stream().event(&delta("")).and_reset();
    let events = Reply::stream().event(&delta("Hi you")).event(&done()).end();
    let (first, second) = (Upstream::always(silent), Upstream::always(events));
    let gateway = gateway(&first, &second);
    let answer = gateway.transcribe(&STREAM);
    assert!(
        answer.text().contains("transcript.text.done"),
        "{}",
        answer.text()
    );
    assert_eq!(second.requests().len(), 1);
    used(&gateway, "0.00008");
}

#[test]
fn a_provider_that_does_not_stream_is_one_piece() {
    let first = Upstream::always(counted());
    let gateway = gateway(&first, &first);
    let answer = gateway.transcribe(&STREAM);
    assert!(
        answer
            .text()
            .starts_with(&format!("data: {}\n\n", delta("Hi you"))),
        "{}",
        answer.text()
    );
}

#[test]
fn an_equal_upload_is_no_equal_reply() {
    let first = Upstream::sequence([heard(), timed()]);
    let gateway = gateway(&first, &first);
    gateway.change(async |store| {
        let wanted = weirgate::store::ProjectChange {
            cache_ttl_s: Some(Some(60)),
            ..Default::default()
        };
        store
            .by(&PROGRAM)
            .update_project("acme", "default", &wanted)
            .await
            .unwrap();
    });
    let texts = [0, 1].map(|_| gateway.transcribe(&[("model", "ear")]).json()["text"].clone());
    assert_ne!(texts[0], texts[1]);
    assert_eq!(first.requests().len(), 2);
}

#[test]
fn a_failed_provider_is_followed_by_the_next() {
    TRANSCRIPTIONS.falls_back();
}

#[test]
fn what_is_priced_costs() {
    TRANSCRIPTIONS.costs();
}

#[test]
fn credit_and_limits_of_keys_hold() {
    TRANSCRIPTIONS.is_paid_for();
}

/// Source: model-gateway 8.1
#[test]
fn transcriptions_have_a_quota_of_their_own() {
    TRANSCRIPTIONS.has_a_quota("transcriptions");
}

#[test]
fn a_client_that_leaves_pays_and_a_failure_costs_nothing() {
    TRANSCRIPTIONS.is_left();
}

#[test]
fn a_provider_that_cuts_its_text_is_followed_by_the_next() {
    let (first, second) = (
        Upstream::always(heard().cut(120, Cut::Reset)),
        Upstream::always(heard()),
    );
    let gateway = gateway(&first, &second);
    assert_eq!(gateway.transcribe(&[("model", "ear")]).status(), 200);
    used(&gateway, "0.000008");
}

/// Contract: model-gateway 2.16 model
/// Contract: model-gateway 2.16 file
#[test]
fn a_bad_form_is_named_and_reaches_no_provider() {
    let first = Upstream::always(heard());
    let gateway = gateway(&first, &first);
    let ear = [("model", "ear")];
    let good = Form::of(&ear).file("a.wav", &WAV);
    let html = Form::of(&ear).file("a.wav", b"<html>hello</html>");
    for (body, boundary, param) in [
        (good.body(), "", None),
        (good.body(), "; boundary=y", None),
        (good.body()[..100].to_vec(), "; boundary=x", None),
        (
            Form::of(&[]).file("a.wav", &WAV).body(),
            "; boundary=x",
            Some("model"),
        ),
        (Form::of(&ear).body(), "; boundary=x", Some("file")),
        (
            Form::of(&ear).file("a.wav", b"").body(),
            "; boundary=x",
            Some("file"),
        ),
        (html.body(), "; boundary=x", Some("file")),
        (
            Form::of(&ear).file("a.mp3", &WAV).body(),
            "; boundary=x",
            Some("file"),
        ),
        (
            Form::of(&ear).file("../a.wav", &WAV).body(),
            "; boundary=x",
            Some("file"),
        ),
        (
            good.clone().file("b.wav", &WAV).body(),
            "; boundary=x",
            Some("file"),
        ),
        (
            Form::of(&[ear[0], ear[0]]).file("a.wav", &WAV).body(),
            "; boundary=x",
            Some("model"),
        ),
        (
            Form::of(&[("model", "auto")]).file("a.wav", &WAV).body(),
            "; boundary=x",
            Some("model"),
        ),
        (
            Form::of(&[("model", "chat")]).file("a.wav", &WAV).body(),
            "; boundary=x",
            Some("model"),
        ),
        (
            Form::of(&[ear[0], ("response_format", "xml")])
                .file("a.wav", &WAV)
                .body(),
            "; boundary=x",
            Some("response_format"),
        ),
    ] {
        let request = Ask::new("POST", TRANSCRIPTIONS.path)
            .key(&gateway.key)
            .body(body);
        let media_type = format!("multipart/form-data{boundary}");
        let answer = ask(
            gateway.address(),
            &request.header("content-type", &media_type),
        );
        let error = &answer.json()["error"];
        assert_eq!(
            (answer.status(), error["param"].as_str()),
            (400, param),
            "{error}"
        );
        assert_eq!(error["type"], "invalid_request_error");
    }
    let unknown = gateway.transcribe(&[("model", "nobody")]);
    assert_eq!(unknown.status(), 404, "{}", unknown.text());
    let json = Ask::post(TRANSCRIPTIONS.path, r#"{"model":"ear"}"#).key(&gateway.key);
    assert_eq!(ask(gateway.address(), &json).status(), 415);
    let coded = form_ask(&gateway, TRANSCRIPTIONS.path, &good).header("content-encoding", "gzip");
    assert_eq!(ask(gateway.address(), &coded).status(), 415);
    let get = Ask::get(TRANSCRIPTIONS.path).key(&gateway.key);
    assert_eq!(ask(gateway.address(), &get).status(), 405);
    let elsewhere = gateway.chat(r#"{"model":"ear","messages":[{"role":"user","content":"a"}]}"#);
    assert_eq!(elsewhere.status(), 400, "{}", elsewhere.text());
    assert!(
        elsewhere.text().contains("/v1/audio/transcriptions"),
        "{}",
        elsewhere.text()
    );
    assert!(first.requests().is_empty());
    used(&gateway, "0");
}
