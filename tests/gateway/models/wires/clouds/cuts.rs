//! A stream of a cloud that is cut at any point never becomes an end, whatever its wire and whoever asks.
//! Source: docs/promises-tests.md, While a provider answers.

use std::sync::{Arc, Mutex};

use filters::money::Usd;
use serde_json::{Value, json};

use super::{SaidByModel, ask_model, fronts};
use crate::ledger::used;
use crate::models::fronts::promises::{Api, events};
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, Client};
use crate::support::clouds::{CLOUDS, CloudHosts, CloudWire, Dialect};
use crate::support::frames;
use crate::support::script::{Cut, Gate, Reply, Step};
use crate::support::scripted::{Asked, Said, Turn};

const FIRST: &str = "aaaaaaaa";
const SECOND: &str = "bbbbbbbb";

fn turn() -> Turn {
    Turn::text(format!("{FIRST}{SECOND}"))
}

/// The whole stream of a cloud.
fn whole(cloud: &CloudWire) -> Reply {
    let asked = Asked {
        body: Value::Null,
        tools: Vec::new(),
        results: Vec::new(),
        last: Value::Null,
        has_result: false,
        reasons: false,
        is_stream: true,
    };
    cloud.reply(&asked, &turn())
}

/// Hosts whose streams a test breaks as it likes.
struct Breaking {
    hosts: CloudHosts,
    next: Arc<Mutex<Option<Reply>>>,
}

impl Breaking {
    fn start() -> Breaking {
        let next = Arc::new(Mutex::new(None::<Reply>));
        let told = next.clone();
        let hosts = CloudHosts::start(move |cloud, _| {
            let broken = told.lock().unwrap().clone();
            Said::Reply(broken.unwrap_or_else(|| whole(cloud)))
        });
        Breaking { hosts, next }
    }

    /// Makes the hosts say this; `None`: the whole stream.
    fn say(&self, reply: Option<Reply>) {
        *self.next.lock().unwrap() = reply;
    }

    /// Asks a model whose cloud says this.
    fn ask(&self, gateway: &Gateway, api: &Api, model: &str, reply: Option<Reply>) -> Answer {
        self.say(reply);
        let answer = ask_model(gateway, api, model, api.body(true));
        let refused = self.hosts.refusals();
        assert!(refused.is_empty(), "{refused:?}");
        answer
    }
}

/// The bytes of a reply.
fn bytes(reply: &Reply) -> Vec<u8> {
    let sent = reply.steps().iter().map(|step| match step {
        Step::Send(bytes) => bytes.as_slice(),
        step => panic!("another step than bytes: {step:?}"),
    });
    sent.collect::<Vec<_>>().concat()
}

/// Where in a stream the first event ends that holds a mark. The end of its chunk, two bytes, is behind it.
fn end_of(reply: &Reply, mark: &str) -> usize {
    let mut end = 0;
    for step in reply.steps() {
        let Step::Send(bytes) = step else {
            panic!("another step than bytes: {step:?}");
        };
        end += bytes.len();
        if String::from_utf8_lossy(bytes).contains(mark) {
            return end - 2;
        }
    }
    panic!("no {mark} in {:?}", String::from_utf8_lossy(&bytes(reply)))
}

/// What stands in the event that says why an answer has ended.
fn finish_mark(cloud: &CloudWire) -> &'static str {
    match cloud.dialect {
        Dialect::Chat => "\"finish_reason\":\"stop\"",
        Dialect::Items => "response.completed",
        Dialect::Blocks => "message_delta",
        Dialect::Parts => "\"finishReason\":\"STOP\"",
        Dialect::Converse => "messageStop",
        Dialect::V2 => "message-end",
    }
}

fn says_end(api: &Api, answer: &Answer) -> bool {
    answer.status() == 200 && events(answer).iter().any(|data| (api.last)(data))
}

/// Checks that an answer is no end: an error event ends it, or it has never begun.
fn assert_broken(api: &Api, answer: &Answer, place: &str) {
    let text = answer.text();
    if answer.status() != 200 {
        assert_eq!(answer.status(), 502, "{place}: {text}");
        return;
    }
    assert!(!says_end(api, answer), "{place}: {text}");
    let last: Value = serde_json::from_str(events(answer).last().unwrap()).unwrap();
    let told = last.pointer(api.broken);
    assert!(told.is_some_and(Value::is_string), "{place}: {last}");
}

/// Checks that an answer gives no reason for its end.
fn assert_without_reason(answer: &Answer, place: &str) {
    for reason in ["\"finish_reason\":\"", "\"stop_reason\":\""] {
        assert!(
            !answer.text().contains(reason),
            "{place}: {}",
            answer.text()
        );
    }
}

/// Places to cut at: all kinds of them, and others between.
fn places(reply: &Reply, finish: usize) -> Vec<usize> {
    let length = reply.wire_len();
    let head = bytes(reply)
        .windows(4)
        .position(|it| it == b"\r\n\r\n")
        .unwrap()
        + 4;
    let content = end_of(reply, FIRST);
    let named = [
        0,
        1,
        head - 1,
        head,
        head + 2,
        head + 9,
        content - 14,
        content,
        content + 1,
        finish - 9,
        finish - 1,
        finish,
    ];
    let step = length / 23 + 1;
    let mut places: Vec<usize> = (0..length).step_by(step).chain(named).collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// Cuts the streams of all clouds in many places, for a client of this API.
fn cut_anywhere(api: &Api) {
    let breaking = Breaking::start();
    let gateway = breaking.hosts.gateway("", "");
    for cloud in &CLOUDS {
        let stream = whole(cloud);
        let (content, finish) = (end_of(&stream, FIRST), end_of(&stream, finish_mark(cloud)));
        for at in places(&stream, finish) {
            let place = format!("{} {} at {at} of {finish}", api.path, cloud.id);
            let cut = stream.clone().cut(at, Cut::Close);
            let answer = breaking.ask(&gateway, api, cloud.id, Some(cut));
            if at < finish {
                assert_without_reason(&answer, &place);
            }
            if at < finish || !says_end(api, &answer) {
                assert_broken(api, &answer, &place);
            } else {
                let said = SaidByModel::read(&answer);
                assert_eq!(said.text, format!("{FIRST}{SECOND}"), "{place}");
            }
            let is_committed = answer.status() == 200;
            assert_eq!(is_committed, at >= content, "{place}: {}", answer.text());
            if is_committed {
                let said = SaidByModel::read(&answer).text;
                assert!(said.starts_with(FIRST), "{place}: {said}");
            }
        }
        let answer = breaking.ask(&gateway, api, cloud.id, None);
        assert!(says_end(api, &answer), "{}: {}", cloud.id, answer.text());
    }
}

#[test]
fn a_cut_stream_is_never_completed_for_chats() {
    cut_anywhere(&fronts()[0]);
}

#[test]
fn a_cut_stream_is_never_completed_for_clients_of_messages() {
    cut_anywhere(&fronts()[1]);
}

#[test]
fn a_cut_stream_is_never_completed_for_clients_of_responses() {
    cut_anywhere(&fronts()[2]);
}

/// The body ends in order, as that of a host whose worker has died, before the event that says why the answer has ended.
#[test]
fn a_stream_that_ends_too_soon_is_never_completed() {
    let breaking = Breaking::start();
    let gateway = breaking.hosts.gateway("", "");
    for cloud in &CLOUDS {
        let stream = whole(cloud);
        let finish = end_of(&stream, finish_mark(cloud));
        let (mut begun, mut count) = (Reply::empty(), 0);
        for step in stream.steps() {
            let Step::Send(bytes) = step else {
                panic!("another step than bytes: {step:?}");
            };
            begun = begun.bytes(bytes);
            if begun.wire_len() > finish {
                break;
            }
            let api = &fronts()[count % 3];
            count += 1;
            let place = format!("{} {} behind {count} steps", api.path, cloud.id);
            let answer = breaking.ask(&gateway, api, cloud.id, Some(begun.clone().end()));
            assert_broken(api, &answer, &place);
            assert_without_reason(&answer, &place);
        }
        assert!(count >= 3, "{}: {count}", cloud.id);
    }
}

#[test]
fn before_the_first_content_a_cut_stream_is_answered_by_the_next_provider() {
    let breaking = Breaking::start();
    let gateway = breaking.hosts.gateway("", "");
    for cloud in &CLOUDS {
        let model = format!("{}-or-behind", cloud.id);
        let stream = whole(cloud);
        let content = end_of(&stream, FIRST);
        for (api, at) in fronts().iter().zip([0, content / 2, content - 1]) {
            let place = format!("{} {} at {at}", api.path, cloud.id);
            let cut = stream.clone().cut(at, Cut::Close);
            let answer = breaking.ask(&gateway, api, &model, Some(cut));
            assert!(says_end(api, &answer), "{place}: {}", answer.text());
            let said = SaidByModel::read(&answer).text;
            assert_eq!(said, "said by the one behind", "{place}");
            // A good answer between two bad ones: who fails three times in a row is tried last.
            let answer = breaking.ask(&gateway, api, &model, None);
            let said = SaidByModel::read(&answer).text;
            assert_eq!(said, format!("{FIRST}{SECOND}"), "{place}");
        }
        let routed = breaking.hosts.host(cloud.id).requests().len();
        assert_eq!(routed, 6, "{}", cloud.id);
    }
}

/// What a cloud says in the middle of a stream that has failed.
fn failures(cloud: &CloudWire) -> Vec<(&'static str, Vec<u8>)> {
    let event = |name: &str, data: Value| match name {
        "" => format!("data: {data}\n\n").into_bytes(),
        name => format!("event: {name}\ndata: {data}\n\n").into_bytes(),
    };
    let error =
        json!({"type": "server_error", "code": "internal_error", "message": "boom", "param": null});
    match cloud.dialect {
        Dialect::Chat => vec![("an error", event("", json!({ "error": error })))],
        Dialect::Items => {
            let failed = json!({"type": "response.failed", "sequence_number": 9,
                "response": {"id": "resp_1", "object": "response", "status": "failed", "error": error, "output": []}});
            let mut flat = error.clone();
            flat["type"] = "error".into();
            vec![
                ("an error", event("error", flat)),
                ("a failed answer", event("response.failed", failed)),
            ]
        }
        Dialect::Blocks => {
            let error =
                json!({"type": "error", "error": {"type": "overloaded_error", "message": "boom"}});
            vec![("an error", event("error", error))]
        }
        Dialect::Parts => {
            let error = json!({"error": {"code": 503, "message": "boom", "status": "UNAVAILABLE"}});
            vec![("an error", event("", error))]
        }
        Dialect::Converse => {
            let failed =
                json!({"message": "boom", "originalStatusCode": 500, "originalMessage": "boom"});
            let mut wrong = frames::event(
                "contentBlockDelta",
                b"{\"contentBlockIndex\":0,\"delta\":{\"text\":\"c\"}}",
            );
            let last = wrong.len() - 1;
            let mut wrong_head = wrong.clone();
            wrong[last] ^= 1;
            wrong_head[9] ^= 1;
            vec![
                (
                    "an exception",
                    frames::exception("modelStreamErrorException", failed.to_string().as_bytes()),
                ),
                (
                    "a throttling",
                    frames::exception("throttlingException", b"{\"message\":\"slow\"}"),
                ),
                ("a wrong checksum", wrong),
                ("a wrong checksum of lengths", wrong_head),
            ]
        }
        Dialect::V2 => {
            let error = json!({"type": "message-end", "delta": {"finish_reason": "ERROR", "error": "boom"}});
            vec![("an error", event("message-end", error))]
        }
    }
}

/// A stream in whose middle, once the client has its first content, something else comes; `None`: it is cut there.
fn disturbed(stream: &Reply, by: Option<&[u8]>, gate: &Gate) -> Reply {
    let (mut reply, mut is_said) = (Reply::empty(), false);
    for step in stream.steps() {
        let Step::Send(bytes) = step else {
            panic!("another step than bytes: {step:?}");
        };
        reply = reply.bytes(bytes);
        if !is_said && String::from_utf8_lossy(bytes).contains(FIRST) {
            is_said = true;
            reply = reply.wait(gate);
            match by {
                Some(by) => reply = reply.chunk(by),
                None => return reply.and_close(),
            }
        }
    }
    reply
}

/// Asks, and opens the gate once the first content has come.
fn ask_in_lockstep(breaking: &Breaking, gateway: &Gateway, asked: &Ask, gate: &Gate) -> Answer {
    let mut client = Client::connect(gateway.address());
    client.send(asked);
    let head = client.head();
    let (mut chunks, mut body) = (Vec::new(), Vec::new());
    while let Some(chunk) = client.chunk() {
        body.extend_from_slice(&chunk.bytes);
        chunks.push(chunk);
        if String::from_utf8_lossy(&body).contains(FIRST) {
            gate.open();
        }
    }
    let refused = breaking.hosts.refusals();
    assert!(refused.is_empty(), "{refused:?}");
    Answer {
        informational: Vec::new(),
        head,
        chunks,
        body,
        end: client.end(),
    }
}

#[test]
fn what_fails_in_mid_stream_is_an_error_and_costs_what_was_delivered() {
    let breaking = Breaking::start();
    let gateway = breaking.hosts.gateway("", "");
    let mut spent = Usd::ZERO;
    for cloud in &CLOUDS {
        let stream = whole(cloud);
        let failures = failures(cloud).into_iter();
        let failures = failures.map(|(what, bytes)| (what, Some(bytes)));
        for (what, bytes) in failures.chain([("a cut", None)]) {
            for api in fronts() {
                let place = format!("{what}: {} {}", api.path, cloud.id);
                let gate = Gate::default();
                breaking.say(Some(disturbed(&stream, bytes.as_deref(), &gate)));
                let mut body = api.body(true);
                body["model"] = cloud.id.into();
                let asked = api.request(&gateway, &body);
                let answer = ask_in_lockstep(&breaking, &gateway, &asked, &gate);
                assert_eq!(answer.status(), 200, "{place}: {}", answer.text());
                assert_broken(api, &answer, &place);
                assert_eq!(SaidByModel::read(&answer).text, FIRST, "{place}");
                assert_without_reason(&answer, &place);
                let line = gateway.log_line(answer.header("x-request-id").unwrap());
                // Eight characters are two tokens. Some report the prompt first, and tokens of the answer.
                let reports = matches!(cloud.dialect, Dialect::Blocks | Dialect::Parts);
                let (prompt, completion) = if reports { (9, 5) } else { (1, 2) };
                assert_eq!(line["prompt_tokens"], prompt, "{place}: {line}");
                assert_eq!(line["completion_tokens"], completion, "{place}: {line}");
                assert_eq!(line["estimated"], !reports, "{place}: {line}");
                let cost = format!("0.{:06}", prompt + 2 * completion);
                assert_eq!(line["cost"], cost, "{place}: {line}");
                spent = spent.plus(Usd::parse(&cost).unwrap());
            }
        }
    }
    used(&gateway, &spent.to_string());
}
