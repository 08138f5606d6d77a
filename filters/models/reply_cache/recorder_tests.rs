#![allow(clippy::unwrap_used, reason = "tests")]
use bytes::Bytes;

use super::cached_reply::CachedReply;
use super::recorder::{Recording, ReplyRecorder};
use crate::json::Str;
use crate::models::chat::delta::{Delta, Finish, ToolDelta};
use crate::models::metadata::AnswerMembers;
use crate::models::reply::Sink;
use crate::models::usage::Usage;

/// Notes the calls that it gets.
#[derive(Default)]
struct Noted(Vec<String>);

impl Sink for Noted {
    fn delta(&mut self, delta: &Delta<'_>) {
        self.0.push(format!("{delta:?}"));
    }

    fn tool_done(&mut self, index: u32, key: u64) {
        self.0.push(format!("done {index} {key}"));
    }

    fn member(&mut self, key: &str, value: &str) {
        self.0.push(format!("{key} {value}"));
    }

    fn item(&mut self, item: &[u8]) {
        self.0.push(format!("item {item:?}"));
    }

    fn usage(&mut self, _: Usage) {}
}

fn text(text: &str) -> Delta<'_> {
    Delta {
        content: Some(Str::Raw(text)),
        ..Delta::default()
    }
}

fn ending(finish: Finish) -> Delta<'static> {
    Delta {
        finish: Some(finish),
        ..Delta::default()
    }
}

fn record(max_bytes: usize, deltas: &[Delta<'_>]) -> Option<Bytes> {
    let (mut noted, mut recorder) = (Noted::default(), ReplyRecorder::new(max_bytes));
    let mut recording = Recording {
        sink: &mut noted,
        recorder: &mut recorder,
    };
    deltas.iter().for_each(|delta| recording.delta(delta));
    assert_eq!(noted.0.len(), deltas.len());
    recorder.into_events()
}

#[test]
fn a_replay_makes_the_calls_that_were_recorded() {
    let tool = ToolDelta {
        key: 7,
        id: Some(Str::Raw("c\\n")),
        name: Some(Str::Raw("f")),
        arguments: Some(Str::Raw("{}")),
        extra_content: Some("{\"google\":1}"),
    };
    let whole = Delta {
        index: 1,
        content: Some(Str::Raw("a\\\"b")),
        reasoning: Some(Str::Raw("hm")),
        reasoning_details: Some("{\"type\":\"x\"}"),
        native_blocks: Some("{\"b\":1}"),
        annotations: Some("{}"),
        images: Some("{},{}"),
        image_count: 2,
        tools: &[tool],
        logprobs: Some("null"),
        extra: &[("k", "[1]")],
        finish: Some(Finish::Length),
        refusal: None,
    };
    let mut recorder = ReplyRecorder::new(10_000);
    let mut expected = Noted::default();
    let mut recording = Recording {
        sink: &mut expected,
        recorder: &mut recorder,
    };
    recording.text(0, Str::Raw("one"));
    recording.delta(&whole);
    recording.tool_done(1, 7);
    recording.member("system_fingerprint", "\"fp\"");
    recording.item(b"{}");
    recording.delta(&ending(Finish::Stop));
    let members = AnswerMembers::Replayed("\"a\":1");
    let names = ("provider/model", "provider/up", "\"provider\":\"p\"");
    let events = recorder.into_events().unwrap();
    let reply = CachedReply::new(events, Usage::default(), names, &members, 5);
    let stored = Bytes::from(reply.to_bytes().unwrap());
    let reply = CachedReply::from_bytes(&stored).unwrap();
    let mut replayed = Noted::default();
    reply.replay(&mut replayed).unwrap();
    assert_eq!(replayed.0, expected.0);
    assert_eq!((reply.used_model(), reply.maker(), reply.log()), names);
    assert_eq!((reply.age_ms(4), reply.age_ms(9)), (0, 4));
}

#[test]
fn a_plain_text_is_recorded_with_its_escapes() {
    let deltas = [
        Delta {
            content: Some(Str::Plain("a\n\"")),
            ..Delta::default()
        },
        ending(Finish::Stop),
    ];
    let events = record(1000, &deltas).unwrap();
    let members = AnswerMembers::Replayed("\"a\":1");
    let reply = CachedReply::new(events, Usage::default(), ("", "", ""), &members, 0);
    let mut replayed = Noted::default();
    reply.replay(&mut replayed).unwrap();
    let first = format!("{:?}", text(r#"a\n\""#));
    assert_eq!(replayed.0.first(), Some(&first));
}

#[test]
fn only_whole_unfiltered_answers_with_content_are_stored() {
    let stop = ending(Finish::Stop);
    let other = Delta {
        index: 1,
        ..text("b")
    };
    let refusal = Delta {
        refusal: Some(Str::Raw("no")),
        ..Delta::default()
    };
    let reasoning = Delta {
        reasoning: Some(Str::Raw("hm")),
        ..Delta::default()
    };
    let call = Delta {
        tools: &[ToolDelta {
            key: 1,
            id: None,
            name: None,
            arguments: None,
            extra_content: None,
        }],
        ..Delta::default()
    };
    let cases: [(&str, &[Delta<'_>], bool); 11] = [
        ("stop", &[text("a"), stop], true),
        ("length", &[text("a"), ending(Finish::Length)], true),
        ("calls", &[call, ending(Finish::ToolCalls)], true),
        (
            "both choices",
            &[text("a"), other, stop, Delta { index: 1, ..stop }],
            true,
        ),
        (
            "filtered",
            &[text("a"), ending(Finish::ContentFilter)],
            false,
        ),
        ("refused", &[refusal, stop], false),
        ("empty", &[text(""), stop], false),
        ("reasoning alone", &[reasoning, stop], false),
        ("nothing", &[], false),
        ("no end", &[text("a")], false),
        ("one choice without end", &[text("a"), other, stop], false),
    ];
    for (name, deltas, is_stored) in cases {
        assert_eq!(record(1000, deltas).is_some(), is_stored, "{name}");
    }
}

#[test]
fn a_record_is_bounded() {
    let long = "x".repeat(1000);
    let deltas = [text(&long), text("a"), ending(Finish::Stop)];
    assert!(record(900, &deltas).is_none());
    assert!(record(1100, &deltas).is_some());
}

#[test]
fn what_is_no_stored_reply_is_refused() {
    let events = record(1000, &[text("abc"), ending(Finish::Stop)]).unwrap();
    let members = AnswerMembers::Replayed("\"a\":1");
    let reply = CachedReply::new(events, Usage::default(), ("m", "p/m", "l"), &members, 0);
    let bytes = reply.to_bytes().unwrap();
    for cut in 1..bytes.len() {
        let cut = Bytes::copy_from_slice(bytes.get(..cut).unwrap());
        let read = CachedReply::from_bytes(&cut);
        assert!(read.is_none_or(|read| read != reply));
    }
    for garbage in ["", "garbage", "{\"a\":1}"] {
        assert!(CachedReply::from_bytes(&Bytes::from(garbage)).is_none());
    }
}
