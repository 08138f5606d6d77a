#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use serde_json::{Value, json};

use super::{Transcriptions, Translations};
use crate::fault::Fault;
use crate::models::front::Front;
use crate::models::fronts::tests::end;
use crate::models::operation::Operation;
use crate::models::reply::{ReplyIdentity, ResponseKind, Writer};
use crate::models::request::{ModelRequest, Payload};
use crate::models::usage::{Settlement, Usage};
use crate::money::{Unit, UnitCounts};
use crate::multipart::{Form, FormField, FormFile};

const MP3: [u8; 4] = [0xff, 0xfb, 0x90, 0x64];

fn file() -> FormFile {
    FormFile {
        name: "file".into(),
        file_name: "a.mp3".into(),
        media_type: Some("audio/mpeg".into()),
        range: 0..16_000,
        head: MP3.to_vec(),
    }
}

fn form(fields: &[(&str, &str)], files: Vec<FormFile>) -> Form {
    let field = |(name, content): &(&str, &str)| FormField {
        name: (*name).into(),
        content: content.as_bytes().to_vec(),
    };
    Form {
        fields: fields.iter().map(field).collect(),
        files,
        boundary: "b".into(),
    }
}

/// A request for the model `m` with these fields beside.
fn asked(more: &[(&str, &str)]) -> Result<ModelRequest, Fault> {
    let fields = [&[("model", "m")], more].concat();
    Transcriptions.read_upload(form(&fields, vec![file()]))
}

fn of_file(file: FormFile) -> Result<ModelRequest, Fault> {
    Transcriptions.read_upload(form(&[("model", "m")], vec![file]))
}

#[test]
fn a_request_tells_its_audio_and_what_it_may_cost() {
    let request = asked(&[("prompt", "12345678"), ("response_format", "srt")]).unwrap();
    assert_eq!(request.payload.operation(), Operation::Transcriptions);
    assert!(request.needs.timestamps && !request.needs.diarization && !request.is_stream);
    assert_eq!(request.units.get(Unit::InputTime), 1000);
    assert_eq!(request.cost_inputs.units.get(Unit::InputTime), 21_334);
    assert_eq!(
        (request.cost_inputs.audio, request.cost_inputs.bytes),
        (1, 8)
    );
    assert_eq!(request.text_bytes, 8 + 40);
    let Payload::Transcription(facts) = &request.payload else {
        panic!("{request:?}")
    };
    assert_eq!(
        (&*facts.audio.name, &*facts.audio.media_type),
        ("a.mp3", "audio/mpeg")
    );
    assert_eq!(facts.fields.len(), 1);
    let streamed = asked(&[("stream", "true"), ("response_format", "diarized_json")]).unwrap();
    assert!(streamed.is_stream && streamed.needs.diarization);
}

#[test]
fn a_file_without_an_ending_or_a_type_gets_both() {
    for (name, expected) in [
        ("blob", "blob.mp3"),
        ("", "audio.mp3"),
        ("a.mpga", "a.mpga"),
    ] {
        let request = of_file(FormFile {
            file_name: name.into(),
            media_type: None,
            ..file()
        });
        let Payload::Transcription(facts) = request.unwrap().payload else {
            panic!("{name}")
        };
        let audio = facts.audio;
        assert_eq!((&*audio.name, &*audio.media_type), (expected, "audio/mpeg"));
    }
}

/// Contract: model-gateway 2.16 language
/// Contract: model-gateway 2.16 temperature
/// Contract: model-gateway 2.16 timestamp_granularities[]
/// Contract: model-gateway 2.16 include[]
/// Contract: model-gateway 2.16 stream
/// Contract: model-gateway 2.16 known_speaker_names[]
/// Contract: model-gateway 2.16 prompt
#[test]
fn a_wrong_field_is_named() {
    let speakers = ("known_speaker_names[]", "a");
    for (more, param) in [
        (&[("model", "m")][..], "model"),
        (&[("model[]", "m")], "model[]"),
        (&[("response_format", "xml")], "response_format"),
        (
            &[("response_format", "json"), ("response_format", "json")],
            "response_format",
        ),
        (&[("temperature", "1.5")], "temperature"),
        (&[("temperature", "-0.1")], "temperature"),
        (&[("temperature", "NaN")], "temperature"),
        (&[("language", "english!")], "language"),
        (&[("language", "")], "language"),
        (&[("stream", "1")], "stream"),
        (&[("stream", "true"), ("response_format", "vtt")], "stream"),
        (
            &[("timestamp_granularities[]", "page")],
            "timestamp_granularities[]",
        ),
        (
            &[("timestamp_granularities[]", "word")],
            "timestamp_granularities[]",
        ),
        (&[("include[]", "x")], "include[]"),
        (
            &[("include[]", "logprobs"), ("response_format", "text")],
            "include[]",
        ),
        (&[speakers], "known_speaker_names[]"),
        (
            &[("known_speaker_references[]", "https://a.test/x.wav")],
            "known_speaker_references[]",
        ),
        (&[("url", "https://a.test/x.mp3")], "url"),
        (&[("file", "x")], "file"),
        (&[("", "x")], ""),
    ] {
        let fault = asked(more).unwrap_err();
        assert_eq!(
            (fault.status(), fault.param.as_deref()),
            (400, Some(param)),
            "{fault:?}"
        );
        assert!(fault.message.contains(param), "{fault:?}");
    }
    let no_text = FormField {
        name: "prompt".into(),
        content: vec![0xff],
    };
    let mut body = form(&[("model", "m")], vec![file()]);
    body.fields.push(no_text);
    let fault = Transcriptions.read_upload(body).unwrap_err();
    assert_eq!(fault.param.as_deref(), Some("prompt"));
    let no_model = Transcriptions.read_upload(form(&[], vec![file()]));
    assert_eq!(no_model.unwrap_err().param.as_deref(), Some("model"));
    let reference = (
        "known_speaker_references[]",
        "data:audio/wav;base64,UklGRg==",
    );
    assert!(asked(&[speakers, reference]).is_ok());
    assert!(asked(&[[speakers, reference]; 4].concat()).is_ok());
    let fault = asked(&[[speakers, reference]; 5].concat()).unwrap_err();
    assert_eq!(fault.param.as_deref(), Some("known_speaker_names[]"));
    let words = ["word", "segment"].map(|word| ("timestamp_granularities[]", word));
    let verbose = [("response_format", "verbose_json")];
    assert!(asked(&[&words[..], &verbose].concat()).is_ok());
    assert!(asked(&[("include[]", "logprobs")]).is_ok());
    assert!(asked(&[("language", "zh-Hant"), ("temperature", "0")]).is_ok());
}

#[test]
fn translations_have_no_speakers_and_no_stream() {
    for more in [("response_format", "diarized_json"), ("stream", "true")] {
        let form = form(&[("model", "m"), more], vec![file()]);
        let fault = Translations.read_upload(form).unwrap_err();
        assert_eq!(fault.param.as_deref(), Some(more.0));
    }
}

/// Contract: model-gateway 2.16 file
#[test]
fn a_wrong_file_is_named() {
    let named = |name: &str| FormFile {
        file_name: name.into(),
        ..file()
    };
    let holding = |head: &[u8]| FormFile {
        head: head.to_vec(),
        ..file()
    };
    for (file, said) in [
        (named("../a.mp3"), "path"),
        (named("C:\\a.mp3"), "path"),
        (named(".."), "path"),
        (named("a\0.mp3"), "control"),
        (named(&"a".repeat(300)), "255"),
        (named("a.wav"), "calls itself a.wav"),
        (
            FormFile {
                range: 5..5,
                head: Vec::new(),
                ..file()
            },
            "0 bytes",
        ),
        (holding(b"<html>"), "no audio"),
        (holding(b"fLaC"), "its bytes are flac"),
        (
            FormFile {
                media_type: Some("audio/ogg".into()),
                ..file()
            },
            "audio/ogg",
        ),
    ] {
        let fault = of_file(file).unwrap_err();
        assert_eq!(
            (fault.status(), fault.param.as_deref()),
            (400, Some("file")),
            "{fault:?}"
        );
        assert!(fault.message.contains(said), "{fault:?}");
    }
    let other = FormFile {
        name: "audio".into(),
        ..file()
    };
    for (files, param) in [
        (vec![], "file"),
        (vec![file(), file()], "file"),
        (vec![file(), other], "audio"),
    ] {
        let fault = Transcriptions
            .read_upload(form(&[("model", "m")], files))
            .unwrap_err();
        assert_eq!(fault.param.as_deref(), Some(param));
    }
}

#[test]
fn json_is_no_form() {
    for front in [&Transcriptions as &dyn Front, &Translations] {
        assert_eq!(front.parse("{}".into()).unwrap_err().status(), 415);
    }
}

fn writer(more: &[(&str, &str)]) -> Box<dyn Writer> {
    let request = asked(more).unwrap();
    let identity = ReplyIdentity {
        id: "1".into(),
        created: 7,
        model: "here/m".into(),
        maker: "here/m".into(),
    };
    request.front.writer(&request, identity)
}

fn timed(ms: u64) -> Usage {
    Usage {
        units: UnitCounts::ZERO.with(Unit::InputTime, ms),
        ..Usage::default()
    }
}

/// The response to a request, made of these members of a reply.
fn written(format: &str, members: &[(&str, Value)], usage: Usage) -> Result<String, &'static str> {
    let mut writer = writer(&[("response_format", format)]);
    for (key, value) in members {
        writer.member(key, &value.to_string());
    }
    writer.usage(usage);
    assert!(!writer.has_content() && writer.take().is_empty());
    if let Some(lack) = writer.lack() {
        return Err(lack);
    }
    end(&mut *writer, usage);
    assert!(writer.has_content());
    Ok(String::from_utf8(writer.take().into()).unwrap())
}

fn members() -> [(&'static str, Value); 3] {
    let segments = json!([
        {"id": 0, "start": 0.0, "end": 3661.5, "text": " Hi --> you\n\n"},
        {"id": 1, "start": 3661.5, "end": 3662.0004, "text": "a <b> & c"},
    ]);
    [
        ("text", json!("Hi you")),
        ("duration", json!(36.5)),
        ("segments", segments),
    ]
}

/// Contract: model-gateway 2.16 response_format
#[test]
fn objects_have_the_members_that_came_and_the_usage() {
    for format in ["json", "verbose_json", "diarized_json"] {
        let object: Value =
            serde_json::from_str(&written(format, &members(), timed(36_500)).unwrap()).unwrap();
        assert_eq!(object["text"], "Hi you");
        assert_eq!(object["segments"][1]["text"], "a <b> & c");
        assert_eq!(
            object["usage"],
            json!({"type": "duration", "seconds": 36.5})
        );
    }
    let tokens = Usage {
        prompt: 14,
        audio_prompt: 10,
        completion: 45,
        estimated: true,
        ..Usage::default()
    };
    let object = written("json", &members(), tokens).unwrap();
    let object: Value = serde_json::from_str(&object).unwrap();
    let expected = json!({"type": "tokens", "input_tokens": 14, "input_token_details": {"text_tokens": 4,
        "audio_tokens": 10}, "output_tokens": 45, "total_tokens": 59, "info": "estimated"});
    assert_eq!(object["usage"], expected);
    assert_eq!(writer(&[]).kind(), ResponseKind::Json);
}

#[test]
fn texts_and_subtitles_are_made_of_the_members() {
    let srt = "1\n00:00:00,000 --> 01:01:01,500\nHi -> you\n\n2\n01:01:01,500 --> 01:01:02,000\na <b> & c\n\n";
    let vtt = "WEBVTT\n\n00:00:00.000 --> 01:01:01.500\nHi -> you\n\n01:01:01.500 --> 01:01:02.000\na &lt;b> &amp; c\n\n";
    for (format, expected, media_type) in [
        ("text", "Hi you\n", "text/plain; charset=utf-8"),
        ("srt", srt, "text/plain; charset=utf-8"),
        ("vtt", vtt, "text/vtt; charset=utf-8"),
    ] {
        assert_eq!(
            written(format, &members(), timed(1)).as_deref(),
            Ok(expected)
        );
        let kind = writer(&[("response_format", format)]).kind();
        assert_eq!(kind, ResponseKind::Media(media_type));
    }
    let silence = [("text", json!("")), ("segments", json!([]))];
    assert_eq!(written("srt", &silence, timed(1)).as_deref(), Ok(""));
}

#[test]
fn a_reply_without_what_the_format_needs_is_no_answer() {
    let text = ("text", json!("Hi"));
    for (format, members) in [
        ("json", &[("duration", json!(1))][..]),
        ("json", &[("text", json!(7))]),
        ("srt", std::slice::from_ref(&text)),
        ("vtt", &[text.clone(), ("segments", json!([]))]),
        (
            "srt",
            &[text.clone(), ("segments", json!([{"start": "0"}]))],
        ),
        ("verbose_json", std::slice::from_ref(&text)),
        ("diarized_json", &[text.clone(), ("words", json!([]))]),
    ] {
        assert!(
            written(format, members, timed(1)).is_err(),
            "{format}: {members:?}"
        );
    }
    assert!(written("verbose_json", &[text, ("words", json!([]))], timed(1)).is_ok());
}

fn events(writer: &mut dyn Writer) -> Vec<Value> {
    let out = String::from_utf8(writer.take().into()).unwrap();
    let event = |event: &str| {
        let data = event.lines().find_map(|line| line.strip_prefix("data: "));
        serde_json::from_str(data.unwrap()).unwrap()
    };
    out.split_terminator("\n\n").map(event).collect()
}

#[test]
fn events_commit_with_the_first_text_and_end_with_the_usage() {
    let mut writer = writer(&[("stream", "true")]);
    assert_eq!(
        (writer.kind(), writer.has_content()),
        (ResponseKind::Events, false)
    );
    let delta = json!({"type": "transcript.text.delta", "delta": "Hi"});
    writer.item(delta.to_string().as_bytes());
    assert!(writer.has_content());
    assert_eq!(writer.reported().output_bytes, 2);
    assert_eq!(events(&mut *writer), [delta]);
    assert!(writer.lack().is_some());
    writer.member("text", "\"Hi\"");
    assert_eq!(writer.lack(), None);
    end(&mut *writer, timed(2000));
    let done = json!({"type": "transcript.text.done", "text": "Hi", "usage": {"type": "duration", "seconds": 2}});
    assert_eq!(events(&mut *writer), [done]);
}

#[test]
fn a_text_that_comes_at_once_is_one_piece() {
    let mut writer = writer(&[("stream", "true")]);
    writer.member("text", "\"Hi\"");
    end(&mut *writer, timed(2000));
    let events = events(&mut *writer);
    assert_eq!(
        events[0],
        json!({"type": "transcript.text.delta", "delta": "Hi"})
    );
    assert_eq!(events[1]["type"], "transcript.text.done");
}

#[test]
fn a_broken_stream_ends_with_an_error() {
    let mut writer = writer(&[("stream", "true")]);
    writer.item(br#"{"type":"transcript.text.delta","delta":"Hi"}"#);
    writer.take();
    let fault = Fault::new(crate::fault::FaultKind::StreamTruncated, "it broke");
    let settlement = Settlement {
        usage: timed(500),
        cost: None,
    };
    writer.fail(&fault, Some(&settlement));
    let error = &events(&mut *writer)[0]["error"];
    assert_eq!(error["code"], "stream_truncated");
    assert_eq!(error["usage"], json!({"type": "duration", "seconds": 0.5}));
}
