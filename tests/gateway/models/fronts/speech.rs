//! `POST /v1/audio/speech`: what goes up, what comes down and when, who is tried, what it costs. Source:
//! docs/model-gateway.md 2.10.

use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::ledger::used;
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, Client, End, ask};
use crate::support::script::{Cut, Gate, Reply};
use crate::support::sse;
use crate::support::stays;
use crate::support::upstream::Upstream;

/// A voice at two providers that speak OpenAI's convention, one at Gemini, one that says its tokens, and a chat.
const MODELS: &str = r#"
[[models]]
id = "voice"
type = "speech"
[[models.providers]]
provider = "first"
name = "voice-at-first"
input_price = "2"
output_price = "4"
capabilities = ["cancellation"]
[[models.providers]]
provider = "second"
name = "voice-at-second"
input_price = "4"
output_price = "8"
capabilities = ["cancellation"]
[[models]]
id = "telling"
type = "speech"
[[models.providers]]
provider = "first"
name = "telling-at-first"
input_price = "2"
output_price = "4"
capabilities = ["streaming", "cancellation"]
[[models]]
id = "gemini-voice"
type = "speech"
[[models.providers]]
provider = "gemini"
name = "voice-at-gemini"
input_price = "1"
output_price = "10"
[[models]]
id = "chat"
[[models.providers]]
provider = "first"
name = "chat-at-first"
"#;

/// Two tokens of prompt.
const HELLO: &str = r#"{"model":"voice","input":"hello you","response_format":"pcm"}"#;
/// A second of samples, which is 25 tokens.
static SECOND: [u8; 48_000] = [7; 48_000];

fn file(bytes: &[u8]) -> Reply {
    Reply::whole(200, &[("content-type", "audio/pcm")], bytes)
}

fn begun() -> Reply {
    Reply::chunked(200, &[("content-type", "audio/pcm")]).chunk(SECOND)
}

fn telling() -> Reply {
    let delta = json!({"type": "speech.audio.delta", "audio": STANDARD.encode(b"ID3abc")});
    let done = json!({"type": "speech.audio.done",
        "usage": {"input_tokens": 10, "output_tokens": 100, "total_tokens": 110}});
    Reply::sse([&*delta.to_string(), &*done.to_string()])
}

fn gateway_with(first: &Upstream, second: &Upstream, more: &str, credit: &str) -> Gateway {
    let (first, second) = (first.url(), second.url());
    let toml = format!(
        "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{first}/v1\"\nkeys = []\n\
         [providers.second]\nkind = \"openai-compatible\"\nbase_url = \"{second}/v1\"\nkeys = []\n\
         [providers.gemini]\nkind = \"google\"\nbase_url = \"{first}\"\nkeys = [{{ env = \"GEMINI_KEY\" }}]\n{more}\n"
    );
    Gateway::start_with_credit(&toml, MODELS, &[("GEMINI_KEY", "AIza-platform")], credit)
}

fn gateway(first: &Upstream, second: &Upstream) -> Gateway {
    gateway_with(first, second, "", "1")
}

impl Gateway {
    fn speech_ask(&self, body: impl AsRef<[u8]>) -> Ask {
        Ask::post("/v1/audio/speech", body).key(&self.key)
    }

    fn speak(&self, body: impl AsRef<[u8]>) -> Answer {
        ask(self.address(), &self.speech_ask(body))
    }
}

/// Contract: model-gateway 2.12 voice
/// Contract: model-gateway 4 POST /v1/audio/speech
#[test]
fn a_file_passes_with_its_type_and_costs_what_it_took() {
    let first = Upstream::always(file(&SECOND));
    let gateway = gateway(&first, &first);
    let answer = gateway.speak(HELLO);
    assert_eq!((answer.status(), &answer.body[..]), (200, &SECOND[..]));
    assert_eq!(answer.header("content-type"), Some("audio/pcm"));
    assert_eq!(answer.header("content-length"), Some("48000"));
    assert_eq!(answer.header("ratelimit-limit"), None);
    assert!(answer.header("x-request-id").is_some());
    let sent = first.request(0);
    assert_eq!(sent.path, "/v1/audio/speech");
    assert_eq!(sent.header("accept"), Some("*/*"));
    let expected = json!({"model": "voice-at-first", "input": "hello you",
        "response_format": "pcm", "voice": "alloy"});
    assert_eq!(sent.json(), expected);
    // Three tokens of text and 25 of audio.
    used(&gateway, "0.000106");
}

#[test]
fn the_bytes_leave_as_they_come() {
    let gate = Gate::default();
    let upstream = Upstream::always(begun().wait(&gate).chunk(b"end").end());
    let gateway = gateway_with(&upstream, &upstream, "[routing]\nkeepalive_s = 1", "1");
    let mut client = Client::connect(gateway.address());
    client.send(&gateway.speech_ask(HELLO));
    assert_eq!(client.head().status, 200);
    let mut body = Vec::new();
    while body.len() < SECOND.len() {
        body.extend(client.chunk().unwrap().bytes);
    }
    // No comment is written into a file, however long its provider is silent.
    let is_silent = || !upstream.is_closed(0);
    stays("it is waited for", Duration::from_millis(1200), is_silent);
    gate.open();
    while let Some(chunk) = client.chunk() {
        body.extend(chunk.bytes);
    }
    assert_eq!(client.end(), End::Complete);
    assert_eq!(body, [&SECOND[..], b"end"].concat());
}

/// Contract: model-gateway 2.12 response_format
/// Contract: model-gateway 2.12 stream_format
/// Contract: model-gateway 4 POST /v1/audio/speech
#[test]
fn a_provider_that_tells_its_tokens_is_billed_by_them() {
    let first = Upstream::always(telling());
    let gateway = gateway(&first, &first);
    let answer = gateway.speak(r#"{"model":"telling","input":"hello","voice":"sage"}"#);
    assert_eq!(answer.header("content-type"), Some("audio/mpeg"));
    assert_eq!(&answer.body[..], b"ID3abc");
    assert_eq!(first.request(0).json()["stream_format"], "sse");
    used(&gateway, "0.00042");
    let events = gateway.speak(r#"{"model":"telling","input":"hello","stream_format":"sse"}"#);
    let media_type = "text/event-stream; charset=utf-8";
    assert_eq!(events.header("content-type"), Some(media_type));
    let stream: Vec<Value> = sse::parse(&events.body).json();
    let expected = [
        json!({"type": "speech.audio.delta", "audio": STANDARD.encode(b"ID3abc")}),
        json!({"type": "speech.audio.done",
            "usage": {"input_tokens": 10, "output_tokens": 100, "total_tokens": 110}}),
    ];
    assert_eq!(stream, expected);
}

/// Contract: model-gateway 2.12 response_format
#[test]
fn gemini_gives_samples_and_the_client_gets_a_wav_file() {
    let part = json!({"inlineData": {"mimeType": "audio/L16;codec=pcm;rate=24000",
        "data": STANDARD.encode(b"samples!")}});
    let event = json!({"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 7, "totalTokenCount": 10}});
    let first = Upstream::always(Reply::sse([&*event.to_string()]));
    let gateway = gateway(&first, &first);
    let answer = gateway.speak(r#"{"model":"gemini-voice","input":"hello"}"#);
    assert_eq!(
        answer.header("content-type"),
        Some("audio/wav"),
        "{answer:?}"
    );
    assert_eq!(&answer.body[..4], b"RIFF");
    assert_eq!(&answer.body[44..], b"samples!");
    let path = "/v1beta/models/voice-at-gemini:streamGenerateContent?alt=sse";
    assert_eq!(first.request(0).path, path);
    used(&gateway, "0.000073");
    let mp3 = gateway.speak(r#"{"model":"gemini-voice","input":"a","response_format":"mp3"}"#);
    assert_eq!(mp3.status(), 400);
    let error = &mp3.json()["error"];
    assert_eq!(error["param"], "response_format");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("gemini speaks as wav or pcm, not mp3")
    );
}

#[test]
fn a_failed_provider_is_followed_by_the_next_until_the_first_byte() {
    let in_200 = r#"{"error":{"message":"busy","code":503}}"#;
    for failed in [
        Reply::json(500, "{}"),
        Reply::json(429, "{}"),
        Reply::json(200, in_200),
        file(b""),
        Reply::empty().and_reset(),
        Reply::chunked(200, &[("content-type", "audio/pcm")]).and_close(),
    ] {
        let (first, second) = (Upstream::always(failed), Upstream::always(file(&SECOND)));
        let gateway = gateway(&first, &second);
        let answer = gateway.speak(HELLO);
        assert_eq!((answer.status(), &answer.body[..]), (200, &SECOND[..]));
        // Nothing is charged for the failed attempt.
        used(&gateway, "0.000212");
        assert_eq!(second.requests().len(), 1);
    }
}

#[test]
fn every_provider_failing_is_told_as_json_and_costs_nothing() {
    let first = Upstream::always(Reply::json(500, "{}"));
    let gateway = gateway(&first, &first);
    let answer = gateway.speak(HELLO);
    assert_eq!(answer.status(), 502);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.json()["error"]["code"], "all_providers_failed");
    used(&gateway, "0");
}

#[test]
fn a_refusal_of_the_request_is_told_and_no_other_provider_asked() {
    let refusal = json!({"error": {"message": "no such voice", "param": "voice", "code": "bad"}});
    let first = Upstream::always(Reply::json(400, refusal.to_string()));
    let second = Upstream::always(file(&SECOND));
    let answer = gateway(&first, &second).speak(HELLO);
    assert_eq!(
        (answer.status(), &answer.json()["error"]["param"]),
        (400, &"voice".into())
    );
    assert!(second.requests().is_empty());
}

#[test]
fn a_file_that_breaks_off_never_looks_whole_and_costs_what_was_delivered() {
    let whole = begun().chunk(SECOND).end();
    for cut in [Cut::Close, Cut::Reset] {
        let first = Upstream::always(whole.clone().cut(60_000, cut));
        let second = Upstream::always(file(&SECOND));
        let gateway = gateway(&first, &second);
        let mut client = Client::connect(gateway.address());
        client.send(&gateway.speech_ask(HELLO).header("x-request-id", "cut"));
        let answer = client.answer();
        assert_eq!(answer.status(), 200);
        assert_ne!(answer.end, End::Complete);
        assert!(
            answer.body.iter().all(|byte| *byte == 7),
            "no text in a file"
        );
        let line = gateway.log_line("cut");
        assert_eq!(line["outcome"], "broken", "{line}");
        assert_eq!(line["estimated"], true);
        assert!(line["completion_tokens"].as_u64().unwrap() >= 25, "{line}");
        assert!(second.requests().is_empty());
    }
}

#[test]
fn an_event_stream_that_breaks_off_says_so_and_what_it_took() {
    let delta = json!({"type": "speech.audio.delta", "audio": STANDARD.encode(SECOND)});
    let first = Upstream::always(Reply::stream().event(&delta.to_string()).and_close());
    let gateway = gateway(&first, &first);
    let body =
        r#"{"model":"telling","input":"hello you","response_format":"pcm","stream_format":"sse"}"#;
    let answer = gateway.speak(body);
    assert_eq!(answer.end, End::Complete);
    let last = answer.text().rsplit("event: error\ndata: ").next().unwrap();
    let error: Value = serde_json::from_str(last.trim()).unwrap();
    assert_eq!(error["error"]["code"], "stream_truncated");
    assert_eq!(error["error"]["usage"]["output_tokens"], 25);
    assert!(!answer.text().contains("speech.audio.done"));
    used(&gateway, "0.000106");
}

#[test]
fn a_provider_that_hangs_is_left_and_costs_nothing() {
    let first = Upstream::always(Reply::hang());
    let more = "[routing]\nfirst_event_timeout_s = 1";
    let second = Upstream::always(file(&SECOND));
    let gateway = gateway_with(&first, &second, more, "1");
    let begun = Instant::now();
    assert_eq!(gateway.speak(HELLO).status(), 200);
    assert!(begun.elapsed() < Duration::from_secs(5));
    used(&gateway, "0.000212");
    let hung = gateway.speak(r#"{"model":"first/voice","input":"a"}"#);
    assert_eq!(
        (hung.status(), hung.json()["error"]["code"].as_str()),
        (504, Some("upstream_timeout"))
    );
}

#[test]
fn a_client_that_leaves_pays_for_what_was_delivered() {
    let gate = Gate::default();
    let upstream = Upstream::always(begun().wait(&gate).end());
    let gateway = gateway(&upstream, &upstream);
    let mut client = Client::connect(gateway.address());
    client.send(&gateway.speech_ask(HELLO).header("x-request-id", "gone"));
    assert_eq!(client.head().status, 200);
    assert!(client.chunk().is_some());
    drop(client);
    let line = gateway.log_line("gone");
    assert_eq!(line["outcome"], "client_gone", "{line}");
    used(&gateway, "0.000106");
    upstream.wait_closed(0);
}

#[test]
fn without_credit_no_provider_is_asked() {
    let first = Upstream::always(file(&SECOND));
    let gateway = gateway_with(&first, &first, "", "0");
    let answer = gateway.speak(HELLO);
    assert_eq!(
        (answer.status(), &answer.json()["error"]["code"]),
        (402, &"insufficient_credits".into())
    );
    assert!(first.requests().is_empty());
}

#[test]
fn speech_has_the_quota_of_audio() {
    let first = Upstream::always(file(&SECOND));
    let more = "[limits]\nrequests_per_minute = { audio = 2, chat = 1 }";
    let gateway = gateway_with(&first, &first, more, "1");
    let answers = [HELLO, "{", HELLO].map(|body| gateway.speak(body));
    assert_eq!(answers.each_ref().map(Answer::status), [200, 400, 429]);
    assert_eq!(answers[0].header("ratelimit-limit"), Some("2"));
    assert_ne!(gateway.chat("{").status(), 429);
}

/// Contract: model-gateway 2.12 model
/// Contract: model-gateway 2.12 input
/// Contract: model-gateway 2.12 speed
#[test]
fn a_bad_request_is_named_and_reaches_no_provider() {
    let first = Upstream::always(file(&SECOND));
    let gateway = gateway(&first, &first);
    for (body, status, param) in [
        (r#"{"model":"voice"}"#, 400, Some("input")),
        (r#"{"input":"a"}"#, 400, Some("model")),
        (r#"{"model":"voice","input":""}"#, 400, Some("input")),
        (
            r#"{"model":"voice","input":"a","speed":9}"#,
            400,
            Some("speed"),
        ),
        (
            r#"{"model":"voice","input":"a","response_format":"x"}"#,
            400,
            Some("response_format"),
        ),
        (r#"{"model":"chat","input":"a"}"#, 400, Some("model")),
        (r#"{"model":"auto","input":"a"}"#, 400, Some("model")),
        (r#"{"model":"nope","input":"a"}"#, 404, Some("model")),
        ("{", 400, None),
    ] {
        let answer = gateway.speak(body);
        let error = &answer.json()["error"];
        let found = (answer.status(), error["param"].as_str());
        assert_eq!(found, (status, param), "{body}: {error}");
    }
    let text = gateway.speech_ask(HELLO).without("content-type");
    let text = text.header("content-type", "text/plain");
    assert_eq!(ask(gateway.address(), &text).status(), 415);
    let get = Ask::get("/v1/audio/speech").key(&gateway.key);
    assert_eq!(ask(gateway.address(), &get).status(), 405);
    let keyless = Ask::post("/v1/audio/speech", HELLO);
    assert_eq!(ask(gateway.address(), &keyless).status(), 401);
    let chat = gateway.chat(r#"{"model":"voice","messages":[{"role":"user","content":"a"}]}"#);
    assert!(
        chat.text()
            .contains("is a model for speech, not for chat completions")
    );
    assert!(first.requests().is_empty());
}

#[test]
fn the_sandbox_speaks() {
    let models = "[[models]]\nid = \"say\"\ntype = \"speech\"\n[[models.providers]]\n\
                  provider = \"sandbox\"\nname = \"sandbox-speech\"\ncapabilities = []\n";
    let gateway = Gateway::start("[providers.sandbox]\nkind = \"sandbox\"\n", models);
    for (format, media_type, start) in [
        ("mp3", "audio/mpeg", &b"\xff\xfb"[..]),
        ("wav", "audio/wav", b"RIFF"),
        ("pcm", "audio/pcm", b""),
    ] {
        let body = json!({"model": "say", "input": "hello", "response_format": format});
        let answer = gateway.speak(body.to_string());
        assert_eq!(answer.header("content-type"), Some(media_type));
        assert!(answer.body.starts_with(start) && answer.body.len() > 4000);
    }
}
