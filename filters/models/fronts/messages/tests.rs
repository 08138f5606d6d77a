#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::json::Str;
use crate::models::chat::piece::{Citation, Finish, Piece, StateOf, StatePiece};
use crate::models::fronts::tests::end;
use crate::models::fronts::tests::grammars::messages::{self as grammar, StreamEnd};
use crate::models::usage::Usage;

/// A piece of its own.
#[derive(Clone, Debug)]
enum Said {
    Text(&'static str),
    Reasoning(&'static str),
    /// The state of the reasoning before it.
    Signature(&'static str),
    Redacted(&'static str),
    Call(u64, &'static str, &'static str),
    /// A call with the state that belongs to it.
    Signed(u64, &'static str),
    Arguments(u64, &'static str),
    CallEnd(u64),
    /// A page on which these characters of the text rest.
    Cited(u64, u64),
    Finish(Finish<'static>),
}

fn state(of: StateOf<'static>, data: &'static str) -> Piece<'static> {
    Piece::State(StatePiece {
        of,
        dialect: Dialect::Messages,
        number: 0,
        data: Str::Plain(data),
    })
}

impl Said {
    fn pieces(&self) -> Vec<Piece<'static>> {
        let text = Str::Plain;
        match *self {
            Self::Text(said) => vec![Piece::Text(text(said))],
            Self::Reasoning(said) => vec![Piece::Reasoning(text(said))],
            Self::Signature(data) => vec![state(StateOf::Reasoning(text("")), data)],
            Self::Redacted(data) => vec![state(StateOf::Redacted, data)],
            Self::Call(key, id, name) => vec![Piece::Call {
                key,
                id: Some(text(id)),
                name: Some(text(name)),
            }],
            Self::Signed(key, data) => vec![
                Piece::Call {
                    key,
                    id: None,
                    name: Some(text("signed")),
                },
                Piece::Arguments {
                    key,
                    json: text("{}"),
                },
                state(StateOf::Call(key), data),
                Piece::CallEnd { key },
            ],
            Self::Arguments(key, json) => vec![Piece::Arguments {
                key,
                json: text(json),
            }],
            Self::CallEnd(key) => vec![Piece::CallEnd { key }],
            Self::Cited(start, end) => vec![Piece::Citation(Citation::Page {
                url: text("https://a.example/"),
                title: None,
                start,
                end,
            })],
            Self::Finish(finish) => vec![Piece::Finish(finish)],
        }
    }
}

pub(super) fn request(more: &Value) -> ModelRequest {
    let mut body = json!({"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]});
    let more = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(more);
    Messages.parse(body.to_string().into()).unwrap()
}

pub(super) fn identity(is_vendor: bool) -> ReplyIdentity {
    let mut maker: crate::models::dialects::state::OwnedMaker = "here/m".into();
    maker.dialect = Some(Dialect::Messages);
    maker.is_vendor = is_vendor;
    ReplyIdentity {
        id: "0123abcd".into(),
        created: 7,
        model: "here/m".into(),
        maker,
    }
}

fn written(more: &Value, is_vendor: bool, said: &[Said]) -> String {
    let request = request(more);
    let mut writer = Messages.writer(&request, identity(is_vendor));
    for said in said {
        writer.pieces(0, &said.pieces());
    }
    let usage = Usage {
        prompt: 20,
        completion: 7,
        cached: 4,
        cache_write: 6,
        ..Usage::default()
    };
    end(&mut *writer, usage);
    String::from_utf8(writer.take().to_vec()).unwrap()
}

fn whole(said: &[Said]) -> Value {
    serde_json::from_str(&written(&json!({}), false, said)).unwrap()
}

/// Checks the grammar of a stream, and returns the message that it makes.
pub(super) fn fold(stream: &str) -> Value {
    let input = |text: &str| {
        let object = crate::models::chat::input::object(text);
        serde_json::from_str(object.get()).unwrap()
    };
    let events = grammar::events(stream).unwrap();
    let folded = grammar::fold(events.into_iter(), input).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(folded.end, StreamEnd::Whole, "{stream}");
    folded.message
}

fn streamed(said: &[Said]) -> Value {
    fold(&written(&json!({"stream": true}), false, said))
}

#[test]
fn a_whole_message_and_a_stream_say_the_same() {
    use Said::{Arguments, Call, Reasoning, Redacted, Signature, Text};
    let said = [
        Reasoning("hm"),
        Reasoning("m\n"),
        Signature("c2ln"),
        Redacted("cmVk"),
        Text("Let me \"look\""),
        Text("…"),
        Call(0, "call_1", "read"),
        Arguments(0, "{\"path\":"),
        Arguments(0, "\"a\\nb\"}"),
        Call(1, "call_1", "list"),
        Said::Finish(Finish::ToolCalls),
    ];
    let message = whole(&said);
    assert_eq!(streamed(&said), message);
    assert_eq!(message["id"], "msg_0123abcd");
    assert_eq!(message["model"], "claude-x");
    assert_eq!(message["stop_reason"], "tool_use");
    assert_eq!(message["stop_sequence"], Value::Null);
    let usage = &message["usage"];
    assert_eq!(
        (&usage["input_tokens"], &usage["output_tokens"]),
        (&json!(10), &json!(7))
    );
    assert_eq!(usage["cache_read_input_tokens"], 4);
    assert_eq!(usage["cache_creation"]["ephemeral_5m_input_tokens"], 6);
    assert_eq!(message["weirgate"]["usage"]["prompt_tokens"], 20);
    assert_eq!(message["weirgate"]["metadata"]["request_id"], "1");
    let content = message["content"].as_array().unwrap();
    let kinds: Vec<&str> = content
        .iter()
        .map(|block| block["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "thinking",
            "redacted_thinking",
            "text",
            "tool_use",
            "tool_use"
        ]
    );
    assert_eq!(content[0]["thinking"], "hmm\n");
    assert_eq!(content[2]["text"], "Let me \"look\"…");
    assert_eq!(content[3]["input"], json!({"path": "a\nb"}));
    // No arguments are an object, and an id that was given twice is one of ours.
    assert_eq!(content[4]["input"], json!({}));
    assert_eq!(content[3]["id"], "call_1");
    assert!(
        content[4]["id"]
            .as_str()
            .unwrap()
            .starts_with("toolu_0123abcd_")
    );
}

#[test]
fn state_goes_bare_to_clients_of_its_vendor_and_sealed_to_others() {
    use crate::models::dialects::state::sealed_dialect;
    let said = [
        Said::Reasoning("hm"),
        Said::Signature("c2ln"),
        Said::Redacted("cmVk"),
    ];
    for is_vendor in [true, false] {
        let message = fold(&written(&json!({"stream": true}), is_vendor, &said));
        let (signature, data) = (
            message["content"][0]["signature"].as_str().unwrap(),
            message["content"][1]["data"].as_str().unwrap(),
        );
        let sealed = [sealed_dialect(signature), sealed_dialect(data)];
        match is_vendor {
            true => assert_eq!((signature, data), ("c2ln", "cmVk")),
            false => assert_eq!(sealed, [Some(Dialect::Messages); 2]),
        }
    }
    // Reasoning without state is signed too, so that its maker knows it again.
    let unsigned = whole(&[Said::Reasoning("hm"), Said::Text("Hi")]);
    let signature = unsigned["content"][0]["signature"].as_str().unwrap();
    assert_eq!(sealed_dialect(signature), Some(Dialect::Messages));
}

#[test]
fn the_state_of_a_call_stands_before_it() {
    let message = streamed(&[Said::Text("Hi"), Said::Signed(3, "c2ln")]);
    let content = message["content"].as_array().unwrap();
    let kinds: Vec<&Value> = content.iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["text", "redacted_thinking", "tool_use"]);
}

#[test]
fn the_end_fits_what_was_said() {
    use Said::{Call, Text};
    for (said, finish, reason, sequence) in [
        (Text("Hi"), Finish::Stop, "end_turn", Value::Null),
        (Text("Hi"), Finish::ToolCalls, "end_turn", Value::Null),
        (Text("Hi"), Finish::Length, "max_tokens", Value::Null),
        (
            Text("Hi"),
            Finish::ContextFull,
            "model_context_window_exceeded",
            Value::Null,
        ),
        (Text("Hi"), Finish::Paused, "pause_turn", Value::Null),
        (Text("Hi"), Finish::Filtered, "refusal", Value::Null),
        (
            Text("Hi"),
            Finish::Sequence(Str::Plain("\"x\"")),
            "stop_sequence",
            json!("\"x\""),
        ),
        (
            Text("Hi"),
            Finish::Sequence(Str::Plain("")),
            "end_turn",
            Value::Null,
        ),
        (Call(0, "a", "f"), Finish::Stop, "tool_use", Value::Null),
        (Call(0, "a", "f"), Finish::Length, "max_tokens", Value::Null),
    ] {
        let said = [said, Said::Finish(finish)];
        let message = streamed(&said);
        assert_eq!(message, whole(&said));
        assert_eq!(
            (&message["stop_reason"], &message["stop_sequence"]),
            (&json!(reason), &sequence),
            "{said:?}"
        );
    }
    // Without a reason the blocks decide.
    assert_eq!(streamed(&[Call(0, "a", "f")])["stop_reason"], "tool_use");
    assert_eq!(streamed(&[])["stop_reason"], "end_turn");
    assert_eq!(streamed(&[])["content"], json!([]));
}

#[test]
fn interleaved_calls_wait_for_the_end_of_the_first() {
    use Said::{Arguments, Call, CallEnd};
    let said = [
        Call(7, "a", "one"),
        Call(9, "b", "two"),
        Arguments(9, "{\"x\":"),
        Arguments(7, "{\"y\":1}"),
        Arguments(9, "2}"),
        CallEnd(9),
        CallEnd(7),
        Said::Text("then"),
    ];
    let content = streamed(&said)["content"].clone();
    assert_eq!(
        content,
        json!([
            {"type": "tool_use", "id": "a", "name": "one", "input": {"y": 1}},
            {"type": "tool_use", "id": "b", "name": "two", "input": {"x": 2}},
            {"type": "text", "text": "then"},
        ])
    );
    assert_eq!(content, whole(&said)["content"]);
}

#[test]
fn a_text_is_cut_at_a_stop_sequence_that_its_provider_ignores() {
    let stops = json!({"stream": true, "stop_sequences": ["</s>"]});
    let said = [
        Said::Text("one<"),
        Said::Text("/s>two"),
        Said::Call(0, "a", "f"),
        Said::Finish(Finish::Stop),
    ];
    let message = fold(&written(&stops, false, &said));
    assert_eq!(message["content"], json!([{"type": "text", "text": "one"}]));
    assert_eq!(
        (&message["stop_reason"], &message["stop_sequence"]),
        (&json!("stop_sequence"), &json!("</s>"))
    );
    let kept = [Said::Text("one</"), Said::Finish(Finish::Stop)];
    let message = fold(&written(&stops, false, &kept));
    assert_eq!(message["content"][0]["text"], "one</");
}

#[test]
fn a_broken_stream_ends_with_an_error_and_nothing_behind_it() {
    let request = request(&json!({"stream": true}));
    let mut writer = Messages.writer(&request, identity(false));
    writer.pieces(0, &Said::Text("Hi").pieces());
    let fault = Fault::new(crate::fault::FaultKind::Overloaded, "too much");
    writer.fail(&fault, None);
    let stream = String::from_utf8(writer.take().to_vec()).unwrap();
    let (_, last) = stream.trim_end().rsplit_once("\n\n").unwrap();
    let data = last.strip_prefix("event: error\ndata: ").unwrap();
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["type"], "error");
    assert_eq!(data["error"]["type"], "overloaded_error");
    assert_eq!(data["request_id"], "0123abcd");
    assert!(!stream.contains("message_stop"));
}

#[test]
fn nothing_goes_out_before_there_is_content() {
    let request = request(&json!({"stream": true}));
    let mut writer = Messages.writer(&request, identity(false));
    writer.pieces(0, &[]);
    writer.pieces(0, &Said::Text("").pieces());
    assert!(!writer.has_content());
    writer.pieces(0, &Said::Text("Hi").pieces());
    assert!(writer.has_content());
}

fn drawn() -> impl Strategy<Value = Vec<Said>> {
    let texts = prop_oneof![Just(""), Just("a"), Just("é\"\\"), Just("</s>")];
    let said = prop_oneof![
        texts.clone().prop_map(Said::Text),
        texts.prop_map(Said::Reasoning),
        Just(Said::Signature("c2ln")),
        Just(Said::Redacted("cmVk")),
        (0_u64..3).prop_map(|key| Said::Call(key, "id", "name")),
        (3_u64..5).prop_map(|key| Said::Signed(key, "c2ln")),
        (0_u64..4).prop_map(|key| Said::Arguments(key, "{\"a\"")),
        (0_u64..4).prop_map(Said::CallEnd),
        (0_u64..4).prop_map(|start| Said::Cited(start, 2)),
        Just(Said::Finish(Finish::Stop)),
    ];
    proptest::collection::vec(said, 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]
    #[test]
    fn the_fold_of_any_stream_is_the_whole_message(said in drawn()) {
        prop_assert_eq!(streamed(&said), whole(&said));
    }
}

/// Clients leave out a call whose id they know.
#[test]
fn a_call_has_an_id_that_no_call_of_the_history_had() {
    use Said::Call;
    let history = json!([{"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "call_0", "name": "read", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_0", "content": "a"}]}]);
    let said = [
        Call(0, "call_0", "edit"),
        Call(1, "call", "edit"),
        Call(2, "call_1", "edit"),
    ];
    let message: Value =
        serde_json::from_str(&written(&json!({"messages": history}), false, &said)).unwrap();
    let ids: Vec<&Value> = message["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| &block["id"])
        .collect();
    assert_eq!(ids, ["toolu_0123abcd_0", "call", "call_1"]);
    // What is looked for has a bound.
    let names: Vec<String> = (0..100).map(|number| format!("c{number}")).collect();
    let many: Vec<Said> = (0..100)
        .map(|number| Call(number, names[number as usize].clone().leak(), "f"))
        .collect();
    let message = whole(&many);
    let content = message["content"].as_array().unwrap();
    assert_eq!(
        (&content[63]["id"], &content[64]["id"]),
        (&json!("c63"), &json!("toolu_0123abcd_64"))
    );
}
