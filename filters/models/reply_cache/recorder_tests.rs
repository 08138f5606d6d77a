#![allow(clippy::unwrap_used, reason = "tests")]
use bytes::Bytes;

use super::cached_reply::CachedReply;
use super::recorder::{Recording, ReplyRecorder};
use crate::json::Str;
use crate::models::chat::piece::{Citation, Finish, Image, Piece, StateOf, StatePiece};
use crate::models::dialects::Dialect;
use crate::models::metadata::AnswerMembers;
use crate::models::reply::Sink;
use crate::models::usage::Usage;

/// Notes the calls that it gets.
#[derive(Default)]
struct Noted(Vec<String>);

impl Sink for Noted {
    fn pieces(&mut self, choice: u32, pieces: &[Piece<'_>]) {
        self.0.push(format!("{choice} {pieces:?}"));
    }

    fn member(&mut self, key: &str, value: &str) {
        self.0.push(format!("{key} {value}"));
    }

    fn item(&mut self, item: &[u8]) {
        self.0.push(format!("item {item:?}"));
    }
}

/// Pieces of a choice that are said together.
type Said<'a> = (u32, &'a [Piece<'a>]);

const STOP: Said<'_> = (0, &[Piece::Finish(Finish::Stop)]);
const A: Said<'_> = (0, &[Piece::Text(Str::Raw("a"))]);

fn record(max_bytes: usize, said: &[Said<'_>]) -> Option<Bytes> {
    let (mut noted, mut recorder) = (Noted::default(), ReplyRecorder::new(max_bytes));
    let mut recording = Recording {
        sink: &mut noted,
        recorder: &mut recorder,
    };
    for (choice, pieces) in said {
        recording.pieces(*choice, pieces);
    }
    assert_eq!(noted.0.len(), said.len());
    recorder.into_events()
}

#[test]
fn a_replay_makes_the_calls_that_were_recorded() {
    let raw = Str::Raw;
    let state = |of| {
        Piece::State(StatePiece {
            of,
            dialect: Dialect::Messages,
            number: 3,
            data: raw("s\\n"),
        })
    };
    let (id, name, url, title) = (Some(raw("c\\n")), Some(raw("f")), raw("u"), Some(raw("t")));
    let (start, end) = (1, 2);
    let whole = [
        Piece::Text(raw("a\\\"b")),
        Piece::Reasoning(raw("hm")),
        Piece::Message {
            phase: Some(raw("p")),
        },
        Piece::Message { phase: None },
        state(StateOf::Reasoning(raw("hm"))),
        state(StateOf::Redacted),
        state(StateOf::Item { id, summary: "[]" }),
        state(StateOf::Text),
        state(StateOf::Image),
        state(StateOf::Call(7)),
        state(StateOf::Details),
        state(StateOf::Extra(Some(7))),
        Piece::Details("{\"type\":\"x\"}"),
        Piece::Call { key: 7, id, name },
        Piece::Arguments {
            key: 7,
            json: raw("{}"),
        },
        Piece::CallEnd { key: 7 },
        Piece::Citation(Citation::Page {
            url,
            title,
            start,
            end,
        }),
        Piece::Citation(Citation::Said("{}")),
        Piece::Image(Image::Data {
            media_type: "image/png",
            data: raw("aGk="),
        }),
        Piece::Image(Image::Said {
            items: "{},{}",
            count: 2,
        }),
        Piece::Native {
            dialect: Dialect::Messages,
            number: 1,
            json: "{\"b\":1}",
        },
        Piece::Safeguards("[]"),
        Piece::Logprobs("null"),
        Piece::Other {
            key: "k",
            json: "[1]",
        },
        Piece::Finish(Finish::Sequence(raw("END"))),
    ];
    let mut recorder = ReplyRecorder::new(10_000);
    let mut expected = Noted::default();
    let mut recording = Recording {
        sink: &mut expected,
        recorder: &mut recorder,
    };
    recording.text(0, raw("one"));
    recording.pieces(1, &whole);
    recording.member("system_fingerprint", "\"fp\"");
    recording.item(b"{}");
    recording.pieces(0, &[Piece::Finish(Finish::Stop)]);
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
    let text = [Piece::Text(Str::Plain("a\n\""))];
    let events = record(1000, &[(0, &text), STOP]).unwrap();
    let members = AnswerMembers::Replayed("\"a\":1");
    let reply = CachedReply::new(events, Usage::default(), ("", "", ""), &members, 0);
    let mut replayed = Noted::default();
    reply.replay(&mut replayed).unwrap();
    let first = format!("0 {:?}", [Piece::Text(Str::Raw(r#"a\n\""#))]);
    assert_eq!(replayed.0.first(), Some(&first));
}

#[test]
fn only_whole_unfiltered_answers_with_content_are_stored() {
    let length: Said<'_> = (0, &[Piece::Finish(Finish::Length)]);
    let called: Said<'_> = (0, &[Piece::Finish(Finish::ToolCalls)]);
    let filtered: Said<'_> = (0, &[Piece::Finish(Finish::Filtered)]);
    let other: Said<'_> = (1, &[Piece::Text(Str::Raw("b"))]);
    let other_stop: Said<'_> = (1, STOP.1);
    let refusal: Said<'_> = (0, &[Piece::Refusal(Str::Raw("no"))]);
    let reasoning: Said<'_> = (0, &[Piece::Reasoning(Str::Raw("hm"))]);
    let empty: Said<'_> = (0, &[Piece::Text(Str::Raw(""))]);
    let (key, id, name) = (1, None, None);
    let call = [Piece::Call { key, id, name }];
    let cases: [(&str, &[Said<'_>], bool); 11] = [
        ("stop", &[A, STOP], true),
        ("length", &[A, length], true),
        ("calls", &[(0, &call), called], true),
        ("both choices", &[A, other, STOP, other_stop], true),
        ("filtered", &[A, filtered], false),
        ("refused", &[refusal, STOP], false),
        ("empty", &[empty, STOP], false),
        ("reasoning alone", &[reasoning, STOP], false),
        ("nothing", &[], false),
        ("no end", &[A], false),
        ("one choice without end", &[A, other, STOP], false),
    ];
    for (name, said, is_stored) in cases {
        assert_eq!(record(1000, said).is_some(), is_stored, "{name}");
    }
}

#[test]
fn a_record_is_bounded() {
    let long = "x".repeat(1000);
    let long = [Piece::Text(Str::Raw(&long))];
    let said = [(0, &long[..]), A, STOP];
    assert!(record(900, &said).is_none());
    assert!(record(1100, &said).is_some());
}

#[test]
fn what_is_no_stored_reply_is_refused() {
    let events = record(1000, &[A, STOP]).unwrap();
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
