//! Speech on all wires: what goes up, what replies become however they are cut, and what hostile ones become.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};

use super::anthropic::ANTHROPIC;
use super::google::GOOGLE;
use super::openai::OPENAI;
use super::responses::RESPONSES;
use super::{Failure, FailureKind, Progress, Quirks, ReplyHead, Target, Wire, decode_reply};
use crate::models::front::Front;
use crate::models::fronts::speech::SPEECH;
use crate::models::operation::Operation;
use crate::models::reply::{ReplyIdentity, ResponseKind};
use crate::models::request::ModelRequest;
use crate::models::usage::Usage;

fn target(quirks: &Quirks, streams: bool) -> Target<'_> {
    Target {
        streams,
        key_id: Some("key_1"),
        ..Target::plain("here", "up x", quirks)
    }
}

fn request(more: &Value) -> ModelRequest {
    let mut body = json!({"model": "m", "input": "Hi \"you\""});
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    SPEECH.parse(body.to_string().into()).unwrap()
}

fn encoded(wire: &Wire, more: &Value, streams: bool) -> Value {
    let quirks = Quirks::default();
    let pieces = wire
        .encode(&request(more), &target(&quirks, streams))
        .unwrap();
    serde_json::from_slice(&pieces.concat()).unwrap()
}

/// The media type, the bytes and the usage that a reply of pieces becomes.
fn response(
    wire: &'static Wire,
    more: &Value,
    media_type: &str,
    pieces: &[&[u8]],
) -> Result<(&'static str, Vec<u8>, Option<Usage>), Failure> {
    let request = request(more);
    let identity = ReplyIdentity {
        id: "1".into(),
        created: 7,
        model: "here/m".into(),
        maker: "here/m".into(),
    };
    let mut writer = request.front.writer(&request, identity);
    let quirks = Quirks::default();
    let head = ReplyHead::new(200, media_type.as_bytes());
    let mut decoder = decode_reply(wire, &request, &target(&quirks, false), &head).unwrap();
    if let Some(format) = decoder.media_format() {
        writer.media_format(format);
    }
    let ResponseKind::Media(media_type) = writer.kind() else {
        panic!("no file")
    };
    let mut out = Vec::new();
    let mut progress = Progress::Open;
    for piece in pieces {
        progress = decoder.feed(&Bytes::copy_from_slice(piece), &mut *writer)?;
        out.extend_from_slice(&writer.take());
    }
    if progress == Progress::Open {
        progress = decoder.end(&mut *writer)?;
    }
    assert_eq!(progress, Progress::Complete);
    out.extend_from_slice(&writer.take());
    Ok((media_type, out, writer.reported().usage))
}

fn openai_events() -> String {
    let delta =
        |bytes: &[u8]| json!({"type": "speech.audio.delta", "audio": STANDARD.encode(bytes)});
    let done = json!({"type": "speech.audio.done",
        "usage": {"input_tokens": 14, "output_tokens": 101, "total_tokens": 115}});
    format!(
        "data: {}\n\ndata: {}\n\ndata: {done}\n\n",
        delta(b"ID3ab"),
        delta(b"c")
    )
}

fn google_event(samples: &[u8], finish: Option<&str>) -> String {
    let part = json!({"inlineData": {"mimeType": "audio/L16;codec=pcm;rate=16000",
        "data": STANDARD.encode(samples)}});
    let event = json!({
        "candidates": [{"content": {"parts": [part], "role": "model"}, "finishReason": finish}],
        "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 40, "totalTokenCount": 45,
            "candidatesTokensDetails": [{"modality": "AUDIO", "tokenCount": 40}]},
    });
    format!("data: {event}\r\n\r\n")
}

/// Contract: model-gateway 2.12 voice
#[test]
fn our_own_wire_gets_the_members_as_they_came_and_a_voice() {
    let more = json!({"response_format": "wav", "speed": 1.5, "lang_code": "b"});
    let expected = json!({"model": "up x", "input": "Hi \"you\"", "response_format": "wav",
        "speed": 1.5, "lang_code": "b", "voice": "alloy"});
    assert_eq!(encoded(&OPENAI, &more, false), expected);
    let more = json!({"voice": {"id": "v"}, "stream_format": "audio"});
    let expected = json!({"model": "up x", "input": "Hi \"you\"", "voice": {"id": "v"}});
    assert_eq!(encoded(&OPENAI, &more, false), expected);
    // Only events tell the tokens, so a provider that has them is asked for them.
    assert_eq!(encoded(&OPENAI, &more, true)["stream_format"], "sse");
    let quirks = Quirks {
        chat_path: "/deployments/d/chat/completions?api-version=1".into(),
        ..Quirks::default()
    };
    let head = OPENAI.head(Operation::Speech, false, "m", &quirks).unwrap();
    assert_eq!(head.path, "/deployments/d/audio/speech?api-version=1");
}

/// Contract: model-gateway 2.12 voice
/// Contract: model-gateway 2.12 instructions
/// Contract: model-gateway 2.12 speed
#[test]
fn gemini_is_told_a_voice_and_a_style() {
    let body = encoded(
        &GOOGLE,
        &json!({"instructions": "Softly:", "speed": 1}),
        false,
    );
    let config = json!({"responseModalities": ["AUDIO"],
        "speechConfig": {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": "Kore"}}}});
    let parts = json!([{"text": "Softly:\n\nHi \"you\""}]);
    let expected =
        json!({"contents": [{"role": "user", "parts": parts}], "generationConfig": config});
    assert_eq!(body, expected);
    let quirks = Quirks::default();
    for (more, param) in [
        (json!({"speed": 2}), "speed"),
        (json!({"voice": {"id": "v"}}), "voice"),
    ] {
        let fault = GOOGLE
            .encode(&request(&more), &target(&quirks, false))
            .unwrap_err();
        assert_eq!((fault.status(), fault.param.as_deref()), (400, Some(param)));
    }
    for wire in [&ANTHROPIC, &RESPONSES] {
        assert!(wire.limits(Operation::Speech).is_none());
        assert!(
            wire.encode(&request(&json!({})), &target(&quirks, false))
                .is_err()
        );
    }
}

#[test]
fn a_file_passes_as_it_comes_and_has_the_type_that_the_provider_names() {
    let reply = |more: &Value, media_type| {
        let (media_type, out, usage) =
            response(&OPENAI, more, media_type, &[b"ID3", b"", b"abc"]).unwrap();
        assert_eq!((&out[..], usage), (&b"ID3abc"[..], None));
        media_type
    };
    assert_eq!(reply(&json!({}), "audio/mp3"), "audio/mpeg");
    assert_eq!(reply(&json!({}), "audio/x-wav; q"), "audio/wav");
    let flac = json!({"response_format": "flac"});
    assert_eq!(reply(&flac, "application/octet-stream"), "audio/flac");
    assert_eq!(reply(&flac, "audio/strange"), "audio/flac");
}

#[test]
fn events_become_the_same_bytes_wherever_they_are_cut() {
    let ours = openai_events();
    let samples = google_event(b"abcd", None) + &google_event(b"ef", Some("STOP"));
    let ours: (&'static Wire, _, &[u8]) = (&OPENAI, ours, b"ID3abc");
    let mut wav = crate::models::speech::wav::head(16_000).to_vec();
    wav.extend_from_slice(b"abcdef");
    let theirs: (&'static Wire, _, &[u8]) = (&GOOGLE, samples, &wav);
    for (wire, events, expected) in [ours, theirs] {
        for cut in 0..events.len() {
            let (one, two) = events.as_bytes().split_at(cut);
            let read = response(wire, &json!({}), "text/event-stream", &[one, two]);
            let (_, out, usage) = read.unwrap();
            assert_eq!(out, expected, "{cut}");
            let usage = usage.unwrap();
            assert!([(14, 101), (5, 40)].contains(&(usage.prompt, usage.completion)));
        }
    }
    let pcm = google_event(b"abcd", Some("STOP"));
    let read = response(
        &GOOGLE,
        &json!({"response_format": "pcm"}),
        "text/event-stream",
        &[pcm.as_bytes()],
    );
    let (media_type, out, _) = read.unwrap();
    assert_eq!((media_type, &out[..]), ("audio/pcm", &b"abcd"[..]));
}

#[test]
fn a_reply_without_audio_fails() {
    let error = br#"{"error":{"message":"You exceeded your quota","code":"insufficient_quota"}}"#;
    let theirs = br#"{"error":{"code":429,"message":"no","status":"RESOURCE_EXHAUSTED"}}"#;
    let done = b"data: {\"type\":\"speech.audio.done\"}\n\n";
    let delta = b"data: {\"type\":\"speech.audio.delta\",\"audio\":\"YWJj\"}\n\n";
    let silent = google_event(b"", Some("STOP"));
    let unended = google_event(b"ab", None);
    let events = "text/event-stream";
    let cases: [(&'static Wire, &str, &[u8], FailureKind); 9] = [
        (&OPENAI, "application/json", error, FailureKind::Status(429)),
        (&OPENAI, "text/html", b"<html>", FailureKind::Malformed),
        (&OPENAI, "audio/mpeg", b"", FailureKind::Malformed),
        (&OPENAI, events, done, FailureKind::Malformed),
        (&OPENAI, events, delta, FailureKind::Truncated),
        (
            &OPENAI,
            events,
            b"data: {\"audio\":\"?\"}\n\n",
            FailureKind::Malformed,
        ),
        (&GOOGLE, events, silent.as_bytes(), FailureKind::Malformed),
        (&GOOGLE, events, unended.as_bytes(), FailureKind::Truncated),
        (
            &GOOGLE,
            "application/json",
            theirs,
            FailureKind::Status(429),
        ),
    ];
    for (wire, media_type, body, kind) in cases {
        let failure = response(wire, &json!({}), media_type, &[body]).unwrap_err();
        assert_eq!(failure.kind, kind, "{media_type} {body:?} {failure:?}");
        assert!(failure.is_retryable);
    }
}
