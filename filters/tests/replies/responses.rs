//! Answers in the words of Responses, on their way through the wire and the front of the same name.
//!
//! Each file of `responses/` is a case: `# WHAT IT SHOWS`; lines `KEY: VALUE`; `< EVENT` for each event that the provider sends; and
//! `= BODY` where its whole reply is another than the response of its last event. Keys are
//!
//! - `request`: members of the request beside the usual ones.
//! - `fails`: the kind of failure that the reply is, in place of an answer.
//! - `lost`: what is not told in other words than the provider's own: types of items and of annotations, and members.
//!
//! A new file is a new case.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use bytes::Bytes;
use filters::fault::{Fault, FaultKind};
use filters::models::dialects::Dialect;
use filters::models::dialects::state::OwnedMaker;
use filters::models::front::Front;
use filters::models::fronts::chat_completions::ChatCompletions;
use filters::models::fronts::responses::Responses;
use filters::models::metadata::AnswerMembers;
use filters::models::operation::Operation;
use filters::models::reply::{ReplyIdentity, Writer};
use filters::models::reply_cache::cached_reply::CachedReply;
use filters::models::reply_cache::recorder::{Recording, ReplyRecorder};
use filters::models::request::ModelRequest;
use filters::models::wires::{
    BodySlice, EventFraming, Progress, Quirks, ReplyHead, Target, WireKind, decode_reply,
};
use serde_json::{Value, json};

use crate::grammars::messages::events;
use crate::grammars::responses::fold;
use crate::{complete, families, identity, meaning, relayed, settlement};

/// The model as the provider calls it in the files.
const MODEL: &str = "\"model\":\"upstream-model-2026-10-01\"";
/// The same model as the client gets it.
const TOLD_MODEL: &str = "\"model\":\"m\"";

struct Case {
    name: String,
    members: Value,
    fails: Option<String>,
    lost: Vec<String>,
    /// The data of the events.
    events: Vec<String>,
    /// The whole reply; empty: the provider never says it.
    whole: String,
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/replies/responses");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| case(path)).collect()
}

fn case(path: &Path) -> Case {
    let mut case = Case {
        name: path.file_stem().unwrap().to_string_lossy().into_owned(),
        members: json!({}),
        fails: None,
        lost: Vec::new(),
        events: Vec::new(),
        whole: String::new(),
    };
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.starts_with("# "), "{}: what does it show?", case.name);
    for line in text.lines().skip(1) {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("<", event) => case.events.push(event.to_owned()),
            ("=", body) => case.whole = body.to_owned(),
            ("request:", members) => case.members = serde_json::from_str(members).unwrap(),
            ("fails:", kind) => case.fails = Some(kind.to_owned()),
            ("lost:", words) => case.lost = words.split(' ').map(str::to_owned).collect(),
            _ => panic!("{}: {line}", case.name),
        }
    }
    if case.whole.is_empty() {
        let ends = case.events.iter().rev().map(|event| parsed(event));
        let mut ends = ends.filter(|event| event["response"]["status"] != "in_progress");
        let end = ends.find(|event| event["response"].is_object());
        case.whole = end.map_or_else(String::new, |end| end["response"].to_string());
    }
    case
}

/// Checks all cases, and names those that fail.
fn each(check: impl Fn(&Case)) {
    let mut failed = Vec::new();
    for case in cases() {
        if catch_unwind(AssertUnwindSafe(|| check(&case))).is_err() {
            failed.push(case.name);
        }
    }
    assert!(failed.is_empty(), "these fail: {failed:?}");
}

/// The JSON of an event; null where it is none.
fn parsed(event: &str) -> Value {
    serde_json::from_str(event).unwrap_or_default()
}

/// Who makes an answer: the vendor, whose state goes as it is, or another host.
fn made_by(is_vendor: bool) -> ReplyIdentity {
    ReplyIdentity {
        maker: OwnedMaker {
            dialect: Some(Dialect::Responses),
            is_vendor,
            ..OwnedMaker::from("here/upstream-model")
        },
        ..identity()
    }
}

impl Case {
    fn request(&self, is_stream: bool) -> ModelRequest {
        let mut body = json!({"model": "m", "stream": is_stream, "input": "Hi"});
        families::merge(&mut body, &self.members);
        Responses.parse(body.to_string().into()).unwrap()
    }

    /// What the provider sends, as an event stream or whole.
    fn said(&self, is_event_stream: bool) -> Vec<u8> {
        if !is_event_stream {
            return self.whole.clone().into_bytes();
        }
        let events = self.events.iter().map(|event| {
            let kind = parsed(event)["type"].as_str().map(str::to_owned);
            let name = kind.map_or_else(String::new, |kind| format!("event: {kind}\n"));
            format!("{name}data: {event}\n\n")
        });
        events.collect::<String>().into_bytes()
    }
}

/// Which request a provider's reply is read for: one of the same dialect, or one of another.
#[derive(Clone, Copy)]
enum Words {
    Own,
    Other,
}

/// Reads a reply and writes the response that the client gets of it. Errors: the kind of failure that the reply is.
fn answered<'p>(
    case: &Case,
    (words, is_stream): (Words, bool),
    is_event_stream: bool,
    identity: ReplyIdentity,
    pieces: impl IntoIterator<Item = &'p [u8]>,
) -> (String, Result<(), String>) {
    let request = case.request(is_stream);
    let chat =
        json!({"model": "m", "stream": is_stream, "messages": [{"role": "user", "content": "Hi"}]});
    let chat = ChatCompletions.parse(chat.to_string().into()).unwrap();
    let quirks = Quirks::default();
    let target = Target::plain("here", "upstream-model", &quirks);
    let head = ReplyHead {
        status: 200,
        events: is_event_stream.then_some(EventFraming::Sse),
        file: None,
        prompt_tokens: None,
        is_by_quota: false,
    };
    let read_for = match words {
        Words::Own => &request,
        Words::Other => &chat,
    };
    let mut decoder = decode_reply(WireKind::Responses.wire(), read_for, &target, &head).unwrap();
    let mut writer = request.front.writer(&request, identity);
    let mut progress = Ok(Progress::Open);
    for piece in pieces {
        if progress == Ok(Progress::Open) {
            progress = decoder.feed(&Bytes::copy_from_slice(piece), &mut *writer);
        }
    }
    if progress == Ok(Progress::Open) {
        progress = decoder.end(&mut *writer);
    }
    let ended = progress
        .map(|_| ())
        .map_err(|failure| format!("{:?}", failure.kind));
    end(&mut *writer, ended.is_ok());
    let answer = String::from_utf8(writer.take().into()).unwrap();
    (answer, ended)
}

/// Writes the responses that clients get of the stored answer to a stream. One that is not stored has none.
fn stored(case: &Case) -> Vec<Value> {
    let (request, stream) = (case.request(true), case.said(true));
    let quirks = Quirks::default();
    let target = Target::plain("here", "upstream-model", &quirks);
    let head = ReplyHead {
        status: 200,
        events: Some(EventFraming::Sse),
        file: None,
        prompt_tokens: None,
        is_by_quota: false,
    };
    let mut decoder = decode_reply(WireKind::Responses.wire(), &request, &target, &head).unwrap();
    let mut writer = request.front.writer(&request, made_by(true));
    let mut recorder = ReplyRecorder::new(usize::MAX);
    let mut sink = Recording {
        sink: &mut *writer,
        recorder: &mut recorder,
    };
    decoder.feed(&stream.into(), &mut sink).unwrap();
    let settlement = settlement(&*writer);
    let Some(events) = recorder.into_events() else {
        return Vec::new();
    };
    let members = AnswerMembers::Replayed("\"a\":1");
    let reply = CachedReply::new(events, settlement.usage, ("", "", ""), &members, 0);
    let answers = [true, false].map(|is_stream| {
        let request = case.request(is_stream);
        let mut writer = request.front.writer(&request, made_by(true));
        reply.replay(&mut *writer).unwrap();
        complete(&mut *writer, &settlement);
        let answer = String::from_utf8(writer.take().into()).unwrap();
        match is_stream {
            true => folded(&case.name, &answer),
            false => parsed(&answer),
        }
    });
    answers.into()
}

fn end(writer: &mut dyn Writer, is_whole: bool) {
    let settlement = settlement(writer);
    match is_whole {
        true => complete(writer, &settlement),
        false => {
            let fault = Fault::new(FaultKind::StreamTruncated, "broken");
            writer.fail(&fault, Some(&settlement));
        }
    }
}

/// Takes the member that the gateway has added out of a text that holds one response.
fn without_own(text: &str) -> String {
    let Some(start) = text.find(",\"weirgate\":{") else {
        return text.to_owned();
    };
    let object = start + ",\"weirgate\":".len();
    let mut objects = serde_json::Deserializer::from_str(&text[object..]).into_iter::<Value>();
    objects.next().unwrap().unwrap();
    let end = object + objects.byte_offset();
    [&text[..start], &text[end..]].concat()
}

/// The events as the client gets them: with names, and with the model as it has asked for it.
fn told_events(case: &Case) -> Vec<(String, String)> {
    let events = case.events.iter().filter_map(|event| {
        let kind = parsed(event)["type"].as_str()?.to_owned();
        let spaced = MODEL.replace(':', ": ");
        let told = event.replace(MODEL, TOLD_MODEL);
        Some((kind, told.replace(&spaced, "\"model\": \"m\"")))
    });
    events.collect()
}

#[test]
fn an_answer_of_the_same_dialect_passes_byte_for_byte() {
    each(passes);
}

fn passes(case: &Case) {
    let name = &case.name;
    let stream = case.said(true);
    let own = (Words::Own, true);
    let (out, ended) = answered(case, own, true, made_by(true), [&*stream]);
    assert_eq!(ended.as_ref().err(), case.fails.as_ref(), "{name}");
    let told = events(&out).unwrap();
    relayed::fold(told.iter().copied()).unwrap_or_else(|why| panic!("{name}: {why}"));
    let said = told_events(case);
    let whole = if ended.is_ok() {
        told.len()
    } else {
        told.len() - 1
    };
    assert!(whole <= said.len(), "{name}");
    for ((kind, data), (said_kind, said_data)) in told.iter().zip(&said).take(whole) {
        assert_eq!(
            (*kind, without_own(data)),
            (&**said_kind, said_data.clone()),
            "{name}"
        );
    }
    let behind = said.get(whole).map(|(kind, _)| &**kind);
    match ended.is_ok() {
        true => assert_eq!(behind, None, "{name}: an event that does not pass"),
        false => {
            assert!(
                matches!(
                    behind,
                    None | Some("error" | "response.failed" | "response.completed")
                ),
                "{name}"
            );
            assert_eq!(told[whole].0, "response.failed", "{name}");
        }
    }
    for length in [1, 3, 7, 50] {
        let cut = answered(case, own, true, made_by(true), stream.chunks(length));
        assert_eq!(
            cut,
            (out.clone(), ended.clone()),
            "{name} in pieces of {length}"
        );
    }
    if case.fails.is_some() {
        return;
    }
    let body = case.said(false);
    let (out, _) = answered(case, (Words::Own, false), false, made_by(true), [&*body]);
    let said = String::from_utf8(body).unwrap();
    assert_eq!(without_own(&out), said.replace(MODEL, TOLD_MODEL), "{name}");
}

/// The response of a stream that the gateway has written itself, which keeps its grammar.
fn folded(name: &str, stream: &str) -> Value {
    let told = events(stream).and_then(|events| fold(events.into_iter()));
    told.unwrap_or_else(|why| panic!("{name}: {why}\nof {stream}"))
}

#[test]
fn an_answer_in_other_words_means_the_same_streamed_and_whole() {
    each(means_the_same);
}

fn means_the_same(case: &Case) {
    let name = &case.name;
    let (stream, body) = (case.said(true), case.said(false));
    let other = |is_stream, is_event_stream, said: &[u8]| {
        let pieces = said.chunks(if is_event_stream { 50 } else { usize::MAX });
        answered(
            case,
            (Words::Other, is_stream),
            is_event_stream,
            made_by(false),
            pieces,
        )
    };
    let (streamed, ended) = other(true, true, &stream);
    assert_eq!(ended.as_ref().err(), case.fails.as_ref(), "{name}");
    let response = folded(name, &streamed);
    if let Some(fails) = &case.fails {
        assert_eq!(response["status"], "failed", "{name}");
        let (_, ended) = other(false, true, &stream);
        assert_eq!(ended.as_ref().err(), Some(fails), "{name}");
        return;
    }
    for (is_event_stream, said) in [(true, &stream), (false, &body)] {
        let (whole, _) = other(false, is_event_stream, said);
        let whole: Value = serde_json::from_str(&whole).unwrap();
        assert_eq!(whole, response, "{name}");
    }
    let (told_as_stream, _) = other(true, false, &body);
    assert_eq!(folded(name, &told_as_stream), response, "{name}");
    let said: Value = serde_json::from_slice(&body).unwrap();
    let lost = meaning::of_answer(&said, &case.lost);
    let mut meant = meaning::of_answer(&response, &case.lost);
    if lost["usage"].is_null() {
        meant["usage"] = Value::Null;
    }
    assert_eq!(meant, lost, "{name}");
    if let Some(tier) = said.get("service_tier") {
        assert_eq!(&response["service_tier"], tier, "{name}");
    }
}

/// A host that answers whole where a stream was asked for, or the other way round, and a stored answer: their items are those of the
/// provider, also where other dialects have no words for them.
#[test]
fn an_answer_of_the_same_dialect_in_another_form_keeps_its_items() {
    // What a text has beside its words has no place in pieces.
    let beside = [
        "logprobs",
        "file_citation",
        "container_file_citation",
        "file_path",
        "empty_arguments",
        "reason",
        "usage",
    ];
    each(|case| {
        if case.fails.is_some() {
            return;
        }
        let name = &case.name;
        let lost: Vec<String> = case
            .lost
            .iter()
            .filter(|it| beside.contains(&&***it))
            .cloned()
            .collect();
        let said: Value = serde_json::from_str(&case.whole).unwrap();
        let expected = meaning::of_answer(&said, &lost);
        let (stream, whole) = (case.said(true), case.said(false));
        let own = |is_stream, is_event_stream, said: &[u8]| {
            answered(
                case,
                (Words::Own, is_stream),
                is_event_stream,
                made_by(true),
                [said],
            )
            .0
        };
        for response in [
            folded(name, &own(true, false, &whole)),
            parsed(&own(false, true, &stream)),
        ]
        .into_iter()
        .chain(stored(case))
        {
            let mut meant = meaning::of_answer(&response, &lost);
            if expected["usage"].is_null() {
                meant["usage"] = Value::Null;
            }
            assert_eq!(meant, expected, "{name}");
        }
    });
}

/// What a host of the dialect gets of a history.
fn sent(items: &Value, is_vendor: bool) -> Value {
    let mut input = items.as_array().unwrap().clone();
    input.push(json!({"role": "user", "content": "Go on"}));
    let body = json!({"model": "m", "input": input});
    let request = Responses.parse(body.to_string().into()).unwrap();
    let quirks = Quirks::default();
    let target = Target {
        is_vendor,
        ..Target::plain("here", "upstream-model", &quirks)
    };
    let codec = WireKind::Responses.wire().codec(Operation::Chat).unwrap();
    let slices = codec.encode(&request, &target).unwrap();
    let bytes: Vec<u8> = slices
        .into_iter()
        .flat_map(|slice| match slice {
            BodySlice::Bytes(bytes) => bytes.to_vec(),
            BodySlice::Upload(range) => panic!("{range:?} is not in memory"),
        })
        .collect();
    let mut body: Value = serde_json::from_slice(&bytes).unwrap();
    let mut input = body["input"].take();
    input.as_array_mut().unwrap().pop();
    input
}

#[test]
fn an_answer_that_comes_back_is_what_its_maker_has_said() {
    each(|case| {
        if case.fails.is_some() {
            return;
        }
        let name = &case.name;
        let stream = case.said(true);
        let said: Value = serde_json::from_str(&case.whole).unwrap();
        for is_vendor in [true, false] {
            let own = (Words::Own, true);
            let (out, _) = answered(case, own, true, made_by(is_vendor), [&*stream]);
            let told = events(&out).unwrap();
            let response =
                relayed::fold(told.into_iter()).unwrap_or_else(|why| panic!("{name}: {why}"));
            let back = sent(&response["output"], is_vendor);
            let kept = said["output"].as_array().unwrap().iter();
            // Reasoning without state is nobody's for a vendor, who keeps none.
            let kept = kept.filter(|item| {
                !is_vendor || item["type"] != "reasoning" || item["encrypted_content"].is_string()
            });
            let kept: Vec<Value> = kept.cloned().collect();
            assert_eq!(back, Value::from(kept), "{name}, vendor {is_vendor}");
        }
        let (out, _) = answered(case, (Words::Other, true), true, made_by(false), [&*stream]);
        let response = folded(name, &out);
        let back = sent(&response["output"], false);
        let mut meant = meaning::of_items(&back, &case.lost);
        let mut expected = meaning::of_items(&said["output"], &case.lost);
        without_what_stays(&mut meant);
        without_what_stays(&mut expected);
        assert_eq!(meant, expected, "{name}");
    });
}

/// Takes out what a history of the gateway's own items leaves behind: reasoning without state, which is nobody's, and images.
fn without_what_stays(said: &mut Value) {
    let entries = said.as_array_mut().unwrap();
    entries.retain(|entry| {
        let is_stateless = entry.get("reasoning").is_some() && entry["state"].is_null();
        !is_stateless && entry.get("image").is_none()
    });
}

#[test]
fn each_case_loses_what_it_says() {
    let cases = cases();
    assert!(cases.len() >= 60, "{} cases", cases.len());
    for case in cases {
        let Ok(response) = serde_json::from_str::<Value>(&case.whole) else {
            assert!(case.fails.is_some(), "{}: no whole answer", case.name);
            continue;
        };
        let seen = meaning::lost_of(&response, &case.lost);
        let others = ["reason", "usage"];
        for lost in case.lost.iter().filter(|lost| !others.contains(&&***lost)) {
            assert!(seen.contains(&**lost), "{} has no {lost}", case.name);
        }
    }
}

/// Captured answers pass as they came, and mean the same in other words.
#[test]
#[ignore = "reads the replies in the folder that WEIRGATE_CAPTURED names"]
fn captured_answers_pass_and_mean_the_same() {
    let folder = std::env::var("WEIRGATE_CAPTURED").expect("WEIRGATE_CAPTURED names a folder");
    let entries = std::fs::read_dir(Path::new(&folder).join("openai-responses")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let streams = paths.filter(|path| path.to_string_lossy().ends_with(".chunks.txt"));
    for path in streams.collect::<Vec<_>>() {
        let text = std::fs::read_to_string(&path).unwrap();
        let events: Vec<String> = text
            .lines()
            .filter(|it| !it.is_empty())
            .map(str::to_owned)
            .collect();
        let first = parsed(&events[0]);
        let model = format!("\"model\":{}", first["response"]["model"]);
        let events: Vec<String> = events
            .iter()
            .map(|event| event.replace(&model, MODEL))
            .collect();
        let last = parsed(events.last().unwrap());
        let output = last["response"]["output"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let kinds = output.iter().map(|item| item["type"].as_str().unwrap());
        let others = kinds.filter(|kind| !["message", "reasoning", "function_call"].contains(kind));
        let has_failed = last["type"] == "response.failed";
        let case = Case {
            name: path.to_string_lossy().into_owned(),
            members: json!({}),
            fails: has_failed.then(|| "Status(429)".to_owned()),
            lost: others.map(str::to_owned).collect(),
            whole: last["response"].to_string(),
            events,
        };
        passes(&case);
        means_the_same(&case);
        println!(
            "{}: {} events, {} items",
            case.name,
            case.events.len(),
            output.len()
        );
    }
}
