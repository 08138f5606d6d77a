#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use bytes::Bytes;
use serde_json::{Value, json};

use super::SPEECH;
use crate::fault::{Fault, FaultKind};
use crate::models::front::Front;
use crate::models::operation::Operation;
use crate::models::reply::{ReplyIdentity, ResponseKind, Writer};
use crate::models::request::{ModelRequest, Payload};
use crate::models::speech::format::AudioFormat;
use crate::models::usage::{Settlement, Usage};

fn checked(more: &Value) -> Result<ModelRequest, Fault> {
    let mut body = json!({"model": "m", "input": "Hi"});
    let fields = body.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    fields.retain(|_, value| *value != "(none)");
    SPEECH.parse(body.to_string().into())
}

fn writer(more: &Value) -> Box<dyn Writer> {
    let identity = ReplyIdentity {
        id: "1".into(),
        created: 7,
        model: "here/m".into(),
        maker: "here/m".into(),
    };
    SPEECH.writer(&checked(more).unwrap(), identity)
}

#[test]
fn a_request_tells_its_characters_format_and_speed() {
    let more = json!({"input": "Grüße 😀", "instructions": "soft", "voice": {"id": "v"},
        "response_format": "flac", "speed": 0.5, "stream_format": "sse", "unknown": [1]});
    let request = checked(&more).unwrap();
    assert_eq!(request.payload.operation(), Operation::Speech);
    assert_eq!((request.is_stream, request.text_bytes), (true, 16));
    assert_eq!(request.needs.speech_format, Some(AudioFormat::Flac));
    let Payload::Speech(facts) = request.payload else {
        unreachable!()
    };
    assert_eq!(facts.characters, 7);
    // Half the speed takes twice the tokens.
    assert_eq!(facts.max_tokens(), 7 * 8 * 2 + 256);
    let plain = checked(&json!({"speed": null})).unwrap();
    assert!(!plain.is_stream && plain.goes_out_at_once());
}

/// Contract: model-gateway 2.12 input
/// Contract: model-gateway 2.12 instructions
/// Contract: model-gateway 2.12 speed
/// Contract: model-gateway 2.12 stream_format
#[test]
fn a_refusal_names_the_field_what_came_and_what_is_accepted() {
    let long = "é".repeat(4097);
    for (more, param, came, accepted) in [
        (json!({"model": "(none)"}), "model", "missing", "a model id"),
        (
            json!({"input": "(none)"}),
            "input",
            "missing",
            "the text to speak",
        ),
        (json!({"input": ""}), "input", "empty", "a text"),
        (json!({"input": " \n"}), "input", "empty", "a text"),
        (json!({"input": ["a"]}), "input", "array", "a string"),
        (json!({"input": long}), "input", "4097 characters", "4096"),
        (
            json!({"instructions": long}),
            "instructions",
            "4097",
            "4096",
        ),
        (
            json!({"voice": ""}),
            "voice",
            "empty",
            "the name of a voice",
        ),
        (
            json!({"voice": 1}),
            "voice",
            "number (1)",
            "the name of a voice",
        ),
        (
            json!({"voice": {}}),
            "voice.id",
            "missing",
            "the id of a voice",
        ),
        (
            json!({"voice": {"id": 1}}),
            "voice.id",
            "number",
            "a string",
        ),
        (
            json!({"response_format": "midi"}),
            "response_format",
            "midi",
            "mp3, opus, aac",
        ),
        (json!({"speed": 0.2}), "speed", "0.2", "from 0.25 to 4"),
        (json!({"speed": 4.01}), "speed", "4.01", "from 0.25 to 4"),
        (json!({"speed": "1"}), "speed", "string", "a number"),
        (
            json!({"stream_format": "ws"}),
            "stream_format",
            "ws",
            "audio, sse",
        ),
    ] {
        let fault = checked(&more).unwrap_err();
        assert_eq!((fault.status(), fault.param.as_deref()), (400, Some(param)));
        let message = &*fault.message;
        assert!(
            message.contains(came) && message.contains(accepted),
            "{message}"
        );
    }
    let twice = Bytes::from_static(br#"{"model":"m","input":"a","input":"b"}"#);
    let fault = SPEECH.parse(twice).unwrap_err();
    assert_eq!(fault.param.as_deref(), Some("input"));
}

#[test]
fn the_bytes_of_a_file_pass_without_a_copy() {
    let mut file = writer(&json!({"response_format": "opus"}));
    assert_eq!(file.kind(), ResponseKind::Media("audio/opus"));
    let piece = Bytes::from(vec![7; 1000]);
    assert!(!file.has_content());
    file.media(&piece);
    assert!(file.has_content());
    let out = file.take();
    assert_eq!(out.as_ptr(), piece.as_ptr());
    assert!(file.take().is_empty());
    file.media(&Bytes::from_static(b"ab"));
    file.media(&Bytes::from_static(b"cd"));
    assert_eq!(&file.take()[..], b"abcd");
    // The provider's reply knows its format best.
    file.media_format(AudioFormat::Wav);
    assert_eq!(file.kind(), ResponseKind::Media("audio/wav"));
    file.fail(&Fault::new(FaultKind::StreamTruncated, "cut"), None);
    assert!(file.take().is_empty());
}

#[test]
fn a_token_of_audio_is_a_25th_of_a_second_where_nothing_is_reported() {
    let mut file = writer(&json!({"response_format": "pcm"}));
    file.media(&Bytes::from(vec![0; 48_000]));
    let usage = file.reported().to_usage(8, true);
    assert_eq!((usage.prompt, usage.completion), (2, 25));
    assert!(usage.estimated);
}

#[test]
fn events_hold_the_audio_and_end_with_the_usage() {
    let mut events = writer(&json!({"stream_format": "sse"}));
    assert_eq!(events.kind(), ResponseKind::Events);
    events.media(&Bytes::from_static(b"abc"));
    let event = "data: {\"type\":\"speech.audio.delta\",\"audio\":\"YWJj\"}\n\n";
    assert_eq!(&events.take()[..], event.as_bytes());
    let usage = Usage {
        prompt: 3,
        completion: 4,
        ..Usage::default()
    };
    events.usage(usage);
    let settlement = Settlement { usage, cost: None };
    events.fail(
        &Fault::new(FaultKind::StreamTruncated, "cut"),
        Some(&settlement),
    );
    let out = events.take();
    let text = std::str::from_utf8(&out).unwrap();
    let data = text.strip_prefix("event: error\ndata: ").unwrap();
    let error: Value = serde_json::from_str(data.trim()).unwrap();
    assert_eq!(error["error"]["code"], "stream_truncated");
    let expected = json!({"input_tokens": 3, "output_tokens": 4, "total_tokens": 7});
    assert_eq!(error["error"]["usage"], expected);
}
