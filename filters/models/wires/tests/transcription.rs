//! Transcriptions: the form that goes out, and what replies become, good and hostile ones.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use bytes::Bytes;
use serde_json::{Value, json};

use super::anthropic::ANTHROPIC;
use super::item::{Got, target};
use super::openai::OPENAI;
use super::{BodySlice, Failure, FailureKind, Quirks, ReplyHead, decode_reply};
use crate::models::front::Front;
use crate::models::fronts::transcriptions::{Transcriptions, Translations};
use crate::models::operation::Operation;
use crate::models::request::ModelRequest;
use crate::models::usage::Usage;
use crate::money::{Unit, UnitCounts};
use crate::multipart::{Form, FormField, FormFile};

/// A form of one second of audio and these texts.
fn form(fields: &[(&str, &str)]) -> Form {
    let field = |(name, content): &(&str, &str)| FormField {
        name: (*name).into(),
        content: content.as_bytes().to_vec(),
    };
    let file = FormFile {
        name: "file".into(),
        file_name: "a \"b\"".into(),
        media_type: Some("application/octet-stream".into()),
        range: 3..4003,
        head: b"OggS".to_vec(),
    };
    Form {
        fields: fields.iter().map(field).collect(),
        files: vec![file],
        boundary: "b0".into(),
    }
}

fn request(more: &[(&str, &str)]) -> ModelRequest {
    let fields = [&[("model", "m")], more].concat();
    Transcriptions.read_upload(form(&fields)).unwrap()
}

/// The pieces in memory, with a mark for the file.
fn encoded(request: &ModelRequest, quirks: &Quirks) -> String {
    let pieces = OPENAI
        .codec_of(request)
        .encode(request, &target(quirks))
        .unwrap();
    let piece = |piece: &BodySlice| match piece {
        BodySlice::Bytes(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
        BodySlice::Upload(range) => format!("<{}..{}>", range.start, range.end),
    };
    pieces.iter().map(piece).collect()
}

/// The names and values of the texts of a form.
fn fields(form: &str) -> Vec<(String, String)> {
    let parts = form
        .split("--b0\r\n")
        .filter(|part| !part.contains("filename"));
    let read = |part: &str| {
        let (head, value) = part.split_once("\r\n\r\n").unwrap();
        let name = head
            .strip_prefix("content-disposition: form-data; name=\"")
            .unwrap();
        let value = value.strip_suffix("\r\n").unwrap();
        (name.trim_end_matches('"').to_owned(), value.to_owned())
    };
    parts.filter(|part| !part.is_empty()).map(read).collect()
}

#[test]
fn the_form_has_the_providers_model_and_the_file_last() {
    let quirks = Quirks::default();
    let asked = request(&[
        ("language", "en"),
        ("response_format", "vtt"),
        ("x[]", "1"),
        ("x[]", "2"),
    ]);
    let form = encoded(&asked, &quirks);
    let expected = [
        ("model", "up x"),
        ("response_format", "verbose_json"),
        ("language", "en"),
        ("x[]", "1"),
        ("x[]", "2"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(fields(&form), expected);
    let end = "--b0\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a %22b%22.ogg\"\r\n\
               content-type: audio/ogg\r\n\r\n<3..4003>\r\n--b0--\r\n";
    assert!(form.ends_with(end), "{form}");
    let headers = OPENAI.codec_of(&asked).headers(
        &asked,
        &crate::models::wires::Target::plain("p", "up x", &quirks),
    );
    assert_eq!(headers[0].1, "multipart/form-data; boundary=b0");
    for (operation, path) in [
        (Operation::Transcriptions, "/audio/transcriptions"),
        (Operation::Translations, "/audio/translations"),
    ] {
        let head = OPENAI.head(operation, false, "up", &quirks).unwrap();
        assert_eq!(head.path, path);
        assert!(ANTHROPIC.head(operation, false, "up", &quirks).is_none());
        assert!(ANTHROPIC.limits(operation).is_none());
    }
}

#[test]
fn each_format_is_an_object_and_the_usual_one_is_not_said() {
    for (format, sent) in [
        ("json", None),
        ("text", None),
        ("srt", Some("verbose_json")),
        ("verbose_json", Some("verbose_json")),
        ("diarized_json", Some("diarized_json")),
    ] {
        let form = encoded(&request(&[("response_format", format)]), &Quirks::default());
        let fields = fields(&form);
        let found = fields.iter().find(|(name, _)| name == "response_format");
        assert_eq!(found.map(|(_, value)| value.as_str()), sent, "{format}");
    }
    let streamed = encoded(&request(&[("stream", "true")]), &Quirks::default());
    assert!(streamed.contains("name=\"stream\"\r\n\r\ntrue\r\n"));
}

/// Contract: model-gateway 2.16 chunking_strategy
#[test]
fn a_strict_provider_gets_no_unknown_field_and_no_provider_another_model() {
    let quirks = Quirks {
        drop_unknown_fields: true,
        ..Quirks::default()
    };
    let asked = request(&[
        ("keyterm", "x"),
        ("chunking_strategy[type]", "server_vad"),
        ("models[]", "other"),
        ("Model", "other"),
    ]);
    let strict: Vec<String> = fields(&encoded(&asked, &quirks))
        .into_iter()
        .map(|it| it.0)
        .collect();
    assert_eq!(strict, ["model", "chunking_strategy[type]"]);
    let open = fields(&encoded(&asked, &Quirks::default()));
    let open: Vec<String> = open.into_iter().map(|it| it.0).collect();
    assert_eq!(open, ["model", "keyterm", "chunking_strategy[type]"]);
}

fn decoded(
    request: &ModelRequest,
    is_event_stream: bool,
    pieces: &[&[u8]],
) -> Result<Got, Failure> {
    let head = match is_event_stream {
        true => ReplyHead::new(200, b"text/event-stream"),
        false => ReplyHead::new(200, b"application/json"),
    };
    let quirks = Quirks::default();
    let mut decoder = decode_reply(&OPENAI, request, &target(&quirks), &head).unwrap();
    let mut got = Got::default();
    for piece in pieces {
        if decoder.feed(&Bytes::copy_from_slice(piece), &mut got)? == super::Progress::Complete {
            return Ok(got);
        }
    }
    decoder.end(&mut got)?;
    Ok(got)
}

fn whole(reply: &Value) -> Result<Got, Failure> {
    decoded(&request(&[]), false, &[reply.to_string().as_bytes()])
}

fn seconds(ms: u64) -> UnitCounts {
    UnitCounts::ZERO.with(Unit::InputTime, ms)
}

#[test]
fn a_reply_tells_its_members_and_its_usage_in_tokens_or_seconds() {
    let reply = json!({"text": "Hi", "language": "en", "x": {"y": 1}, "model": "up",
        "usage": {"type": "duration", "seconds": 37}});
    let got = whole(&reply).unwrap();
    let members: Vec<&str> = got.members.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(members, ["text", "language", "x"]);
    let usage = got.usage.unwrap();
    assert_eq!(
        (usage.units, usage.prompt, usage.estimated),
        (seconds(37_000), 0, false)
    );
    let tokens = json!({"type": "tokens", "input_tokens": 14, "output_tokens": 45, "total_tokens": 59,
        "input_token_details": {"text_tokens": 4, "audio_tokens": 10}});
    let got = whole(&json!({"text": "Hi", "usage": tokens})).unwrap();
    let expected = Usage {
        prompt: 14,
        audio_prompt: 10,
        completion: 45,
        ..Usage::default()
    };
    assert_eq!(got.usage, Some(expected));
    let both = json!({"prompt_audio_seconds": 36, "prompt_tokens": 13, "completion_tokens": 151});
    let usage = whole(&json!({"text": "Hi", "usage": both}))
        .unwrap()
        .usage
        .unwrap();
    assert_eq!(
        (usage.units, usage.prompt, usage.completion),
        (seconds(36_000), 13, 151)
    );
}

#[test]
fn what_is_not_reported_is_estimated_by_the_reply_and_by_the_file() {
    let usage = whole(&json!({"text": "12345678"})).unwrap().usage.unwrap();
    assert_eq!((usage.units, usage.audio_prompt), (seconds(1000), 10));
    assert_eq!(
        (usage.prompt, usage.completion, usage.estimated),
        (10, 2, true)
    );
    let told = json!({"text": "", "duration": 2.5, "usage": {"type": "x"}});
    let usage = whole(&told).unwrap().usage.unwrap();
    assert_eq!((usage.units, usage.estimated), (seconds(2500), true));
    let negative = json!({"text": "", "usage": {"seconds": -5.0}});
    assert_eq!(whole(&negative).unwrap().usage.unwrap().units, seconds(0));
}

#[test]
fn a_reply_that_is_no_transcript_fails() {
    for reply in [
        "{}",
        "[]",
        "",
        "Hi",
        "{\"text\":7}",
        "{\"text\":\"a\"",
        "{\"text\":null,\"language\":\"en\"}",
        "{\"text\":\"a\",\"error\":{\"message\":\"no\"}}",
    ] {
        let failure = decoded(&request(&[]), false, &[reply.as_bytes()]).unwrap_err();
        assert!(failure.is_retryable, "{reply}: {failure:?}");
    }
}

const EVENTS: &str = "data: {\"type\":\"transcript.text.delta\",\"delta\":\"Hi\",\n\
    data: \"logprobs\":[]}\n\ndata: {\"type\":\"x\"}\n\n\
    data: {\"type\":\"transcript.text.delta\",\"delta\":\" you\"}\n\n\
    data: {\"type\":\"transcript.text.done\",\"text\":\"Hi you\",\"logprobs\":[],\
    \"usage\":{\"type\":\"tokens\",\"input_tokens\":14,\"output_tokens\":3}}\n\ndata: [DONE]\n\n";

#[test]
fn events_are_the_same_however_they_are_cut() {
    let asked = request(&[("stream", "true")]);
    let read = |pieces: &[&[u8]]| decoded(&asked, true, pieces).unwrap();
    let got = read(&[EVENTS.as_bytes()]);
    let deltas = [
        json!({"type": "transcript.text.delta", "delta": "Hi", "logprobs": []}),
        json!({"type": "transcript.text.delta", "delta": " you"}),
    ];
    assert_eq!(got.items, deltas);
    let members: Vec<&str> = got.members.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(members, ["text", "logprobs"]);
    assert_eq!(
        got.usage.map(|usage| (usage.prompt, usage.completion)),
        Some((14, 3))
    );
    for at in 0..EVENTS.len() {
        let (one, two) = EVENTS.as_bytes().split_at(at);
        assert_eq!(read(&[one, two]), got, "{at}");
    }
}

#[test]
fn other_names_of_events_become_those_of_the_convention() {
    let events = "data: {\"type\":\"transcription.language\",\"audio_language\":\"en\"}\n\n\
        data: {\"type\":\"transcription.text.delta\",\"text\":\"Hi\"}\n\n\
        data: {\"type\":\"transcription.segment\",\"text\":\"Hi\",\"start\":0,\"end\":1}\n\n\
        data: {\"type\":\"transcription.done\",\"model\":\"up\",\"text\":\"Hi\",\"usage\":{\"prompt_audio_seconds\":1}}\n\n";
    let got = decoded(&request(&[("stream", "true")]), true, &[events.as_bytes()]).unwrap();
    let expected = [
        json!({"type": "transcript.text.delta", "delta": "Hi"}),
        json!({"type": "transcript.text.segment", "text": "Hi", "start": 0, "end": 1}),
    ];
    assert_eq!(got.items, expected);
    assert_eq!(got.members, [("text".to_owned(), json!("Hi"))]);
    assert_eq!(got.usage.unwrap().units, seconds(1000));
}

#[test]
fn events_that_do_not_end_or_cannot_be_read_fail() {
    let asked = request(&[("stream", "true")]);
    for (events, kind) in [
        (
            "data: {\"type\":\"transcript.text.delta\",\"delta\":\"Hi\"}\n\n",
            FailureKind::Truncated,
        ),
        ("data: {\n\n", FailureKind::Malformed),
        (
            "data: {\"type\":\"transcript.text.done\"}\n\n",
            FailureKind::Malformed,
        ),
        (
            "data: {\"type\":\"error\",\"error\":{\"message\":\"x\",\"code\":503}}\n\n",
            FailureKind::Status(503),
        ),
    ] {
        let failure = decoded(&asked, true, &[events.as_bytes()]).unwrap_err();
        assert_eq!(failure.kind, kind, "{events}");
    }
}

#[test]
fn a_translation_is_a_request_of_its_own() {
    let asked = Translations.read_upload(form(&[("model", "m")])).unwrap();
    assert_eq!(asked.payload.operation(), Operation::Translations);
    assert!(encoded(&asked, &Quirks::default()).contains("<3..4003>"));
}
