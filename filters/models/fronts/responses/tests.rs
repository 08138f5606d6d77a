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
use crate::models::chat::piece::{Citation, Finish, Image, Piece, Search, StateOf, StatePiece};
use crate::models::dialects::state::sealed_dialect;
use crate::models::fronts::tests::end;
use crate::models::fronts::tests::grammars::messages::events;
use crate::models::fronts::tests::grammars::responses as grammar;
use crate::models::usage::Usage;

/// What a provider says together.
#[derive(Clone, Debug)]
enum Said {
    Text(&'static str),
    Refusal(&'static str),
    Message(Option<&'static str>),
    Reasoning(&'static str),
    /// The state of the reasoning before it.
    Signature(&'static str),
    Redacted(&'static str),
    Call(u64, &'static str, &'static str),
    /// A call with the state that belongs to it.
    Signed(u64, &'static str),
    Arguments(u64, &'static str),
    CallEnd(u64),
    Cited(u64, u64),
    Drawn,
    Searched,
    Finish(Finish<'static>),
}

fn state(of: StateOf<'static>, dialect: Dialect, data: &'static str) -> Piece<'static> {
    Piece::State(StatePiece {
        of,
        dialect,
        number: 0,
        data: Str::Plain(data),
    })
}

impl Said {
    fn pieces(&self) -> Vec<Piece<'static>> {
        let text = Str::Plain;
        match *self {
            Self::Text(said) => vec![Piece::Text(text(said))],
            Self::Refusal(said) => vec![Piece::Refusal(text(said))],
            Self::Message(phase) => vec![Piece::Message {
                phase: phase.map(text),
            }],
            Self::Reasoning(said) => vec![Piece::Reasoning(text(said))],
            Self::Signature(data) => {
                vec![state(StateOf::Reasoning(text("")), Dialect::Messages, data)]
            }
            Self::Redacted(data) => vec![state(StateOf::Redacted, Dialect::Messages, data)],
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
                state(StateOf::Call(key), Dialect::Contents, data),
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
            Self::Drawn => vec![Piece::Image(Image::Data {
                media_type: "image/webp",
                data: text("AAE="),
            })],
            Self::Searched => vec![Piece::Search(Search {
                query: "cats",
                number: 0,
                found: Ok(r#"[{"title":"Cats","url":"https://cats.test","snippet":"s"}]"#),
            })],
            Self::Finish(finish) => vec![Piece::Finish(finish)],
        }
    }
}

pub(super) fn request(more: &Value) -> ModelRequest {
    let mut body = json!({"model": "gpt-x", "input": "Hi"});
    let more = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(more);
    Responses.parse(body.to_string().into()).unwrap()
}

pub(super) fn identity(dialect: Dialect) -> ReplyIdentity {
    let mut maker: crate::models::dialects::state::OwnedMaker = "here/m".into();
    maker.dialect = Some(dialect);
    ReplyIdentity {
        id: "0123abcd".into(),
        created: 7,
        model: "here/m".into(),
        maker,
    }
}

fn written(more: &Value, said: &[Said]) -> String {
    let request = request(more);
    let mut writer = Responses.writer(&request, identity(Dialect::Messages));
    for said in said {
        writer.pieces(0, &said.pieces());
    }
    let usage = Usage {
        prompt: 20,
        completion: 7,
        cached: 4,
        reasoning: Some(3),
        ..Usage::default()
    };
    end(&mut *writer, usage);
    String::from_utf8(writer.take().to_vec()).unwrap()
}

fn whole(more: &Value, said: &[Said]) -> Value {
    serde_json::from_str(&written(more, said)).unwrap()
}

/// Checks the grammar of a stream, and returns the response that it ends with.
pub(super) fn fold(stream: &str) -> Value {
    let events = events(stream).unwrap();
    let folded = grammar::fold(events.into_iter()).unwrap_or_else(|why| panic!("{why}"));
    assert!(folded.is_object(), "no end: {stream}");
    folded
}

fn streamed(more: &Value, said: &[Said]) -> Value {
    let mut more = more.clone();
    more["stream"] = true.into();
    fold(&written(&more, said))
}

fn kinds(response: &Value) -> Vec<&str> {
    let items = response["output"].as_array().unwrap();
    items
        .iter()
        .map(|item| item["type"].as_str().unwrap())
        .collect()
}

#[test]
fn a_whole_response_and_a_stream_say_the_same() {
    use Said::{Arguments, Call, Cited, Message, Reasoning, Redacted, Refusal, Signature, Text};
    let said = [
        Reasoning("hm"),
        Reasoning("m\n"),
        Signature("c2ln"),
        Redacted("cmVk"),
        Message(Some("commentary")),
        Text("Let me \"look\""),
        Cited(0, 3),
        Text("…"),
        Message(Some("final_answer")),
        Text("So."),
        Refusal("No."),
        Said::Searched,
        Said::Drawn,
        Call(0, "call_1", "read"),
        Arguments(0, "{\"path\":"),
        Arguments(0, "\"a\\nb\"}"),
        Call(1, "call_1", "list"),
        Said::Finish(Finish::ToolCalls),
    ];
    let more = json!({"instructions": "Be\nkind.", "metadata": {"a": "b"}, "include": ["web_search_call.action.sources"]});
    let response = whole(&more, &said);
    assert_eq!(streamed(&more, &said), response);
    assert_eq!(
        kinds(&response),
        [
            "reasoning",
            "reasoning",
            "message",
            "message",
            "message",
            "web_search_call",
            "image_generation_call",
            "function_call",
            "function_call"
        ]
    );
    let output = &response["output"];
    assert_eq!(output[0]["summary"][0]["text"], "hmm\n");
    assert_eq!(output[1]["summary"], json!([]));
    let text = &output[2]["content"][0];
    assert_eq!(text["text"], "Let me \"look\"…");
    assert_eq!(text["annotations"][0]["url"], "https://a.example/");
    let phases = [&output[2]["phase"], &output[3]["phase"]];
    assert_eq!(phases, ["commentary", "final_answer"]);
    assert_eq!(
        output[4]["content"][0],
        json!({"type": "refusal", "refusal": "No."})
    );
    assert_eq!(
        output[5]["action"]["sources"][0]["url"],
        "https://cats.test"
    );
    assert_eq!(output[6]["result"], "AAE=");
    assert_eq!(output[7]["arguments"], "{\"path\":\"a\\nb\"}");
    // No arguments are an object, and an id that was given twice is one of ours.
    assert_eq!(output[8]["arguments"], "{}");
    assert_eq!(output[7]["call_id"], "call_1");
    let other = output[8]["call_id"].as_str().unwrap();
    assert!(other.starts_with("call_0123abcd_"), "{other}");
    for (key, value) in [
        ("id", json!("resp_0123abcd")),
        ("object", json!("response")),
        ("created_at", json!(7)),
        ("status", json!("completed")),
        ("model", json!("gpt-x")),
        ("instructions", json!("Be\nkind.")),
        ("metadata", json!({"a": "b"})),
        ("store", json!(false)),
        ("parallel_tool_calls", json!(true)),
        ("text", json!({"format": {"type": "text"}})),
        ("error", Value::Null),
        (
            "usage",
            json!({"input_tokens": 20, "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
            "output_tokens": 7, "output_tokens_details": {"reasoning_tokens": 3}, "total_tokens": 27}),
        ),
    ] {
        assert_eq!(response[key], value, "{key}");
    }
    assert_eq!(response["weirgate"]["usage"]["prompt_tokens"], 20);
    assert_eq!(response["weirgate"]["metadata"]["request_id"], "1");
}

#[test]
fn calls_have_the_names_and_the_form_that_the_request_gives_them() {
    let tools = json!([
        {"type": "custom", "name": "apply_patch", "description": "Edits.", "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}},
        {"type": "namespace", "name": "files", "description": "d", "tools": [{"type": "function", "name": "read", "parameters": {"type": "object"}}, {"type": "custom", "name": "raw"}]},
        {"type": "tool_search", "execution": "client", "description": "Finds.", "parameters": {"type": "object"}},
        {"type": "function", "name": "plain", "parameters": {"type": "object"}}]);
    use Said::{Arguments, Call};
    let said = [
        Call(0, "call_0", "apply_patch"),
        Arguments(0, "{\"input\":\"*** a\\n\\\""),
        Arguments(0, "b\\\"\"}"),
        Call(1, "call_1", "files__read"),
        Arguments(1, "{\"path\":1}"),
        Call(2, "call_2", "files__raw"),
        Arguments(2, "no json"),
        Call(3, "call_3", "tool_search"),
        Arguments(3, "{\"query\":\"x\"}"),
        Call(4, "call_4", "unknown"),
    ];
    let more = json!({ "tools": tools });
    let response = whole(&more, &said);
    assert_eq!(streamed(&more, &said), response);
    let bare: Vec<Value> = response["output"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| {
            let mut item = item.clone();
            let members = item.as_object_mut().unwrap();
            members.remove("id");
            members.remove("status");
            item
        })
        .collect();
    assert_eq!(
        Value::from(bare),
        json!([
            {"type": "custom_tool_call", "call_id": "call_0", "name": "apply_patch", "input": "*** a\n\"b\""},
            {"type": "function_call", "call_id": "call_1", "name": "read", "namespace": "files", "arguments": "{\"path\":1}"},
            {"type": "custom_tool_call", "call_id": "call_2", "name": "raw", "namespace": "files", "input": "no json"},
            {"type": "tool_search_call", "call_id": "call_3", "execution": "client", "arguments": {"query": "x"}},
            {"type": "function_call", "call_id": "call_4", "name": "unknown", "arguments": "{}"}
        ])
    );
}

#[test]
fn the_end_fits_what_was_said() {
    for (finish, status, reason) in [
        (Finish::Stop, "completed", Value::Null),
        (Finish::ToolCalls, "completed", Value::Null),
        (Finish::Paused, "completed", Value::Null),
        (Finish::Sequence(Str::Plain("x")), "completed", Value::Null),
        (Finish::Length, "incomplete", "max_output_tokens".into()),
        (
            Finish::ContextFull,
            "incomplete",
            "max_output_tokens".into(),
        ),
        (Finish::Filtered, "incomplete", "content_filter".into()),
    ] {
        let said = [Said::Text("Hi"), Said::Finish(finish)];
        let response = streamed(&json!({}), &said);
        assert_eq!(response["status"], status, "{finish:?}");
        let details = &response["incomplete_details"];
        match reason.is_null() {
            true => assert!(details.is_null()),
            false => assert_eq!(details["reason"], reason),
        }
        assert_eq!(response["output"][0]["status"], status);
    }
    // An answer that has no end of its own, and nothing in it, ends all the same.
    assert_eq!(streamed(&json!({}), &[])["output"], json!([]));
}

#[test]
fn a_stream_that_breaks_has_failed_and_nothing_follows() {
    let request = request(&json!({"stream": true}));
    for said in [
        vec![],
        vec![Said::Text("Hi")],
        vec![Said::Text("Hi"), Said::Call(0, "c", "f")],
    ] {
        let mut writer = Responses.writer(&request, identity(Dialect::Chat));
        for said in &said {
            writer.pieces(0, &said.pieces());
        }
        let fault = Fault::new(crate::fault::FaultKind::StreamTruncated, "it broke off");
        writer.fail(&fault, None);
        let text = String::from_utf8(writer.take().to_vec()).unwrap();
        let response = fold(&text);
        assert_eq!(response["status"], "failed");
        assert_eq!(
            response["error"],
            json!({"code": "stream_truncated", "message": "it broke off"})
        );
        let whole_items = said.len().saturating_sub(1);
        assert_eq!(response["output"].as_array().unwrap().len(), whole_items);
    }
}

#[test]
fn state_is_sealed_and_says_what_it_belongs_to() {
    let said = [
        Said::Reasoning("hm"),
        Said::Text("Hi"),
        Said::Signature("c2ln"),
        Said::Redacted("cmVk"),
        Said::Signed(3, "c2ln"),
    ];
    let response = streamed(&json!({}), &said);
    assert_eq!(
        kinds(&response),
        [
            "reasoning",
            "message",
            "reasoning",
            "reasoning",
            "reasoning",
            "function_call"
        ]
    );
    let output = &response["output"];
    let sealed = [0, 2, 3, 4].map(|at| {
        let state = output[at]["encrypted_content"].as_str().unwrap();
        sealed_dialect(state).unwrap()
    });
    use Dialect::{Contents, Messages};
    assert_eq!(sealed, [Messages, Messages, Messages, Contents]);
    // What is signed and not shown has an empty summary, what the state holds has none.
    let summaries = [2, 3].map(|at| output[at]["summary"].as_array().unwrap().len());
    assert_eq!(summaries, [1, 0]);
}

fn any_said() -> impl Strategy<Value = Said> {
    prop_oneof![
        prop::sample::select(vec!["", "a", "\"\n", "…"]).prop_map(Said::Text),
        prop::sample::select(vec!["", "no"]).prop_map(Said::Refusal),
        prop::sample::select(vec![None, Some("commentary")]).prop_map(Said::Message),
        prop::sample::select(vec!["", "hm", "\\"]).prop_map(Said::Reasoning),
        Just(Said::Signature("c2ln")),
        Just(Said::Redacted("cmVk")),
        (0..3_u64, prop::sample::select(vec!["", "call_1"]))
            .prop_map(|(key, id)| Said::Call(key, id, "f")),
        (5..7_u64).prop_map(|key| Said::Signed(key, "c2ln")),
        (0..3_u64, prop::sample::select(vec!["", "{\"a\"", ":1}"]))
            .prop_map(|(key, json)| Said::Arguments(key, json)),
        (0..3_u64).prop_map(Said::CallEnd),
        Just(Said::Cited(0, 1)),
        Just(Said::Drawn),
        Just(Said::Searched),
        Just(Said::Finish(Finish::Length)),
        Just(Said::Finish(Finish::Stop)),
    ]
}

proptest! {
    #[test]
    fn whatever_is_said_keeps_the_grammar_and_a_fold_is_the_whole(
        said in prop::collection::vec(any_said(), 0..12),
    ) {
        prop_assert_eq!(streamed(&json!({}), &said), whole(&json!({}), &said));
    }
}
