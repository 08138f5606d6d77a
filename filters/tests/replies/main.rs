//! Replies of every family of providers: what the client gets keeps the rules of docs/facts/wire-formats.md 9, is the same
//! whole and streamed, and does not depend on how the reply is cut.
//!
//! `WEIRGATE_CAPTURED=DIR cargo test -p filters --test replies -- --ignored` reads replies that someone has captured, as
//! `DIR/PROVIDER/CASE.json` (a whole reply) and `DIR/PROVIDER/CASE.chunks.txt` (the JSON of one event a line).
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]

mod families;
mod golden;
#[path = "../grammars/mod.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests use the rest")]
mod grammars;
mod meaning;
#[path = "../grammars/relayed.rs"]
mod relayed;
mod replay;
mod responses;
mod rules;

use bytes::Bytes;
use filters::models::front::Front;
use filters::models::fronts::chat_completions::ChatCompletions;
use filters::models::metadata::{AnswerMembers, Metadata, UsedNames};
use filters::models::reply::{ReplyIdentity, Writer};
use filters::models::reply_cache::recorder::{Recording, ReplyRecorder};
use filters::models::request::ModelRequest;
use filters::models::usage::Settlement;
use filters::models::wires::failure::Failure;
use filters::models::wires::{EventFraming, Progress, ReplyHead, Target, WireKind, decode_reply};
use serde_json::{Value, json};

use crate::families::Case;
use crate::rules::{read_stream, read_whole};

fn identity() -> ReplyIdentity {
    ReplyIdentity {
        id: "made".into(),
        created: 7,
        model: "here/m".into(),
        maker: "here/upstream-model".into(),
    }
}

fn request(is_stream: bool, members: &Value) -> ModelRequest {
    let mut body =
        json!({"model": "m", "stream": is_stream, "messages": [{"role": "user", "content": "Hi"}]});
    families::merge(&mut body, members);
    ChatCompletions.parse(body.to_string().into()).unwrap()
}

/// What reading a reply came to: the writer and the recorder that took it, and why it was given up.
struct Read {
    writer: Box<dyn Writer>,
    recorder: ReplyRecorder,
    failure: Option<Failure>,
}

/// Reads a reply that comes in these pieces.
fn read<'p>(
    case: &Case,
    is_stream: bool,
    is_event_stream: bool,
    pieces: impl IntoIterator<Item = &'p [u8]>,
) -> Read {
    let request = request(is_stream, &case.members);
    let target = Target::plain("here", "upstream-model", &case.quirks);
    let head = ReplyHead {
        status: 200,
        events: is_event_stream.then_some(EventFraming::Sse),
        file: None,
        prompt_tokens: None,
        is_by_quota: false,
    };
    let mut writer = request.front.writer(&request, identity());
    let mut recorder = ReplyRecorder::new(usize::MAX);
    let mut decoder = decode_reply(case.wire.wire(), &request, &target, &head).unwrap();
    let mut sink = Recording {
        sink: &mut *writer,
        recorder: &mut recorder,
    };
    let mut progress = Ok(Progress::Open);
    for piece in pieces {
        if progress == Ok(Progress::Open) {
            progress = decoder.feed(&Bytes::copy_from_slice(piece), &mut sink);
        }
    }
    if progress == Ok(Progress::Open) {
        progress = decoder.end(&mut sink);
    }
    Read {
        writer,
        recorder,
        failure: progress.err(),
    }
}

/// What the client gets of a reply that comes in these pieces. Errors: why the reply was given up.
fn answer<'p>(
    case: &Case,
    is_stream: bool,
    is_event_stream: bool,
    pieces: impl IntoIterator<Item = &'p [u8]>,
) -> Result<Vec<u8>, String> {
    let mut read = read(case, is_stream, is_event_stream, pieces);
    if let Some(failure) = read.failure {
        return Err(format!("{failure:?}"));
    }
    let settlement = settlement(&*read.writer);
    complete(&mut *read.writer, &settlement);
    let answered: Vec<u8> = read.writer.take().into();
    replay::check(case, read.recorder, &settlement, is_stream, &answered);
    Ok(answered)
}

fn settlement(writer: &dyn Writer) -> Settlement {
    Settlement {
        usage: writer.reported().to_usage(2, true),
        cost: None,
    }
}

/// Ends a response of this usage.
fn complete(writer: &mut dyn Writer, settlement: &Settlement) {
    let metadata = Metadata {
        route: None,
        request_id: "r",
        requested_model: "m",
        managed: None,
        requested_provider: None,
        organization_id: "o",
        project_id: "p",
        log_id: None,
        answer: AnswerMembers::Fresh {
            used: &UsedNames::new("m", "here", None, "upstream-model"),
            price: Default::default(),
            routing: &[],
        },
    };
    writer.complete(settlement, &metadata);
}

/// The bytes of a stream of these events.
fn stream_of(case: &Case) -> Vec<u8> {
    let mut stream = Vec::new();
    for event in &case.events {
        let parsed: Value = serde_json::from_str(event).unwrap_or_default();
        if let Some(kind) = parsed["type"].as_str() {
            stream.extend_from_slice(format!("event: {kind}\n").as_bytes());
        }
        stream.extend_from_slice(format!("data: {event}\n\n").as_bytes());
    }
    stream
}

/// Checks a stream: as it came, in pieces of some lengths, cut in two at every byte, and folded into a whole answer.
fn check_stream(case: &Case) -> Value {
    let name = &case.name;
    let mut stream = stream_of(case);
    if case.wire == WireKind::Compatible {
        stream.extend_from_slice(b"data: [DONE]\n\n");
    }
    let streamed =
        answer(case, true, true, [&*stream]).unwrap_or_else(|why| panic!("{name}: {why}"));
    let shown = read_stream(name, &streamed);
    for length in [1, 2, 3, 7, 100] {
        let cut = answer(case, true, true, stream.chunks(length)).unwrap();
        assert_eq!(
            read_stream(name, &cut),
            shown,
            "{name} in pieces of {length}"
        );
    }
    let step = 1 + stream.len() / 400;
    for at in (1..stream.len()).step_by(step) {
        let (first, rest) = stream.split_at(at);
        let cut = answer(case, true, true, [first, rest]).unwrap();
        assert_eq!(read_stream(name, &cut), shown, "{name} cut at {at}");
    }
    let folded = answer(case, false, true, [&*stream]).unwrap();
    assert_eq!(
        read_whole(name, &folded),
        shown,
        "{name}: whole and streamed differ"
    );
    shown
}

fn check_whole(case: &Case, whole: &str) -> Value {
    let name = &case.name;
    let answered = answer(case, false, false, [whole.as_bytes()])
        .unwrap_or_else(|why| panic!("{name}: {why}"));
    let cut = answer(case, false, false, whole.as_bytes().chunks(5)).unwrap();
    assert_eq!(answered, cut, "{name} in pieces");
    let shown = read_whole(name, &answered);
    // A provider that answers whole where a stream was asked for.
    let streamed = answer(case, true, false, [whole.as_bytes()]).unwrap();
    assert_eq!(
        read_stream(name, &streamed),
        shown,
        "{name}: whole, told as a stream"
    );
    shown
}

#[test]
fn replies_of_every_family_keep_the_rules() {
    for case in families::composed() {
        let streamed = check_stream(&case);
        let whole = check_whole(&case, case.whole.as_deref().unwrap());
        assert_eq!(streamed, whole, "{}: whole and streamed differ", case.name);
    }
}

#[test]
#[ignore = "reads the replies in the folder that WEIRGATE_CAPTURED names"]
fn captured_replies_keep_the_rules() {
    let folder = std::env::var("WEIRGATE_CAPTURED").expect("WEIRGATE_CAPTURED names a folder");
    let cases = families::captured(folder.as_ref());
    assert!(!cases.is_empty(), "no replies in {folder}");
    for case in cases {
        let streamed = (!case.events.is_empty()).then(|| check_stream(&case));
        let whole = case.whole.as_deref().map(|whole| check_whole(&case, whole));
        println!(
            "{}: stream {} whole {}",
            case.name,
            streamed.is_some(),
            whole.is_some()
        );
    }
}
