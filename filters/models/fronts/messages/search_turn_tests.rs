//! What a client of Messages gets of a turn between whose parts the gateway searches the web.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use serde_json::{Value, json};

use super::Messages;
use super::tests::identity;
use crate::json::Str;
use crate::models::chat::piece::{Finish, Piece};
use crate::models::front::Front;
use crate::models::fronts::tests::complete;
use crate::models::reply::{Sink, Writer};
use crate::models::request::ModelRequest;
use crate::models::search_loop::turn::{SearchTurn, TurnSink};
use crate::models::usage::Usage;

fn request() -> ModelRequest {
    let body =
        json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]});
    Messages.parse(body.to_string().into()).unwrap()
}

fn writer() -> Box<dyn Writer> {
    Messages.writer(&request(), identity(false))
}

fn call<'a>(key: u64, id: Option<&'a str>, name: Option<&'a str>) -> Piece<'a> {
    Piece::Call {
        key,
        id: id.map(Str::Plain),
        name: name.map(Str::Plain),
    }
}

fn arguments(key: u64, json: &str) -> Piece<'_> {
    Piece::Arguments {
        key,
        json: Str::Plain(json),
    }
}

/// The blocks that a client gets of a turn, and whether it wants a search.
fn shown(pieces: &[&[Piece<'_>]], is_whole: bool) -> (Value, bool) {
    let mut turn = SearchTurn::new(writer(), "web_search", "", is_whole);
    let mut client = writer();
    for said in pieces {
        let sink = &mut TurnSink {
            turn: &mut turn,
            client: client.as_mut(),
        };
        sink.pieces(0, said);
    }
    turn.release(client.as_mut());
    let answer = complete(client.as_mut(), Usage::default());
    (answer["content"].clone(), turn.wants_search())
}

#[test]
fn a_call_of_the_function_is_kept_from_the_client() {
    let said: [&[Piece<'_>]; 4] = [
        &[Piece::Text(Str::Plain("one"))],
        &[
            call(3, Some("c"), Some("web_search")),
            arguments(3, "{\"query\":"),
        ],
        &[arguments(3, "\"x\"}"), Piece::CallEnd { key: 3 }],
        &[Piece::Finish(Finish::ToolCalls)],
    ];
    for is_whole in [false, true] {
        let (content, wants) = shown(&said, is_whole);
        assert_eq!(content, json!([{"type": "text", "text": "one"}]));
        assert!(wants);
    }
}

#[test]
fn a_call_whose_name_comes_late_waits_for_it() {
    for (name, blocks) in [("web_search", 0), ("read", 1)] {
        let said: [&[Piece<'_>]; 3] = [
            &[call(0, Some("call_9"), None), arguments(0, "{\"a\":")],
            &[call(0, None, Some(name)), arguments(0, "1}")],
            &[Piece::Finish(Finish::Stop)],
        ];
        let (content, wants) = shown(&said, false);
        assert_eq!(content.as_array().unwrap().len(), blocks, "{content}");
        assert_eq!(wants, blocks == 0);
        if blocks > 0 {
            assert_eq!(content[0]["id"], "call_9");
            assert_eq!(content[0]["input"], json!({"a": 1}));
        }
    }
}

#[test]
fn a_turn_that_was_cut_or_calls_other_tools_is_the_last() {
    let search = call(0, Some("c"), Some("web_search"));
    let read = call(1, Some("d"), Some("read"));
    let ends = [
        (vec![search], Finish::Length, 0),
        (vec![search, read], Finish::ToolCalls, 1),
        (vec![read], Finish::ToolCalls, 1),
        (vec![], Finish::Stop, 0),
    ];
    for (calls, finish, blocks) in ends {
        let (content, wants) = shown(&[&calls, &[Piece::Finish(finish)]], false);
        assert_eq!(content.as_array().unwrap().len(), blocks);
        assert!(!wants);
    }
}

#[test]
fn a_separator_stands_before_the_first_text_alone() {
    let mut turn = SearchTurn::new(writer(), "web_search", "\n\n", true);
    let mut client = writer();
    let sink = &mut TurnSink {
        turn: &mut turn,
        client: client.as_mut(),
    };
    sink.text(0, Str::Plain(""));
    sink.text(0, Str::Plain("a"));
    sink.pieces(
        0,
        &[Piece::Text(Str::Plain("b")), Piece::Finish(Finish::Stop)],
    );
    turn.release(client.as_mut());
    let answer = complete(client.as_mut(), Usage::default());
    assert_eq!(answer["content"][0]["text"], "\n\nab");
}
