//! Histories that are summarized, and what a summary is to a model.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use serde_json::{Value, json};

use super::tests::{fold, identity};
use super::*;
use crate::json::Str;
use crate::models::chat::conversation::{BlockKind, Role};
use crate::models::chat::piece::{Finish, Piece};
use crate::models::chat::tools::ToolChoice;
use crate::models::dialects::compaction;
use crate::models::fronts::tests::end;
use crate::models::usage::Usage;

fn history() -> Value {
    json!([{"role": "user", "content": "Read a"},
        {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "A cat."}])
}

/// A request for a summary by its last item.
fn asking(more: &Value) -> ModelRequest {
    let mut items = history();
    items
        .as_array_mut()
        .unwrap()
        .push(json!({"type": "compaction_trigger"}));
    let mut body = json!({"model": "m", "input": items});
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    Responses.parse(body.to_string().into()).unwrap()
}

/// What is written of pieces, and what the answer lacks.
fn written(request: &ModelRequest, pieces: &[Piece<'_>]) -> (String, Option<&'static str>) {
    let mut writer = request.front.writer(request, identity(Dialect::Messages));
    for piece in pieces {
        writer.pieces(0, std::slice::from_ref(piece));
    }
    let lack = writer.lack();
    end(&mut *writer, Usage::default());
    (String::from_utf8(writer.take().to_vec()).unwrap(), lack)
}

fn said() -> [Piece<'static>; 5] {
    [
        Piece::Reasoning(Str::Plain("hm")),
        Piece::Text(Str::Plain("They read \"a\".")),
        Piece::Call {
            key: 0,
            id: None,
            name: Some(Str::Plain("read")),
        },
        Piece::Text(Str::Plain("\nA cat.")),
        Piece::Finish(Finish::Stop),
    ]
}

#[test]
fn a_summary_is_asked_for_behind_the_history_and_calls_nothing() {
    let tools = json!([{"type": "function", "name": "read", "parameters": {"type": "object"}}, {"type": "web_search"}]);
    let format =
        json!({"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}});
    let request = asking(&json!({"tools": tools, "tool_choice": "required", "text": format}));
    assert!(!request.needs.forced_tools && !request.needs.json_schema);
    assert!(request.needs.web_search.is_none() && request.needs.native.is_none());
    let conversation = Responses.conversation(&request).unwrap();
    assert!(matches!(conversation.choice, Some(ToolChoice::None)));
    let last = conversation.turns.last().unwrap();
    assert_eq!(last.role, Role::User);
    let asks = last.blocks.iter().any(
        |block| matches!(&block.kind, BlockKind::Text(text) if **text == *compaction::REQUEST),
    );
    assert!(asks, "{last:?}");
}

#[test]
fn the_answer_is_one_item_that_any_model_reads() {
    let whole = written(&asking(&json!({})), &said());
    let whole: Value = serde_json::from_str(&whole.0).unwrap();
    let streamed = fold(&written(&asking(&json!({"stream": true})), &said()).0);
    assert_eq!(streamed, whole);
    let output = whole["output"].as_array().unwrap();
    assert_eq!(
        (output.len(), &output[0]["type"]),
        (1, &json!("compaction"))
    );
    let sealed = output[0]["encrypted_content"].as_str().unwrap();
    let opened = compaction::open(sealed).unwrap();
    assert!(opened.ends_with("They read \"a\".\nA cat."), "{opened}");
    let next = json!({"model": "m", "input": [output[0], {"role": "user", "content": "Go on"}]});
    let next = Responses.parse(next.to_string().into()).unwrap();
    assert!(next.needs.native.is_none());
    assert!(next.text_bytes > opened.len() as u64);
    let conversation = Responses.conversation(&next).unwrap();
    let first = &conversation.turns[0];
    assert_eq!(first.role, Role::User);
    assert!(matches!(&first.blocks[0].kind, BlockKind::Text(text) if **text == *opened));
}

#[test]
fn the_path_answers_with_what_stands_in_place_of_the_history() {
    let body = json!({"model": "m", "input": history(), "instructions": "Be kind."});
    let request = Compact.parse(body.to_string().into()).unwrap();
    let (whole, lack) = written(&request, &said());
    assert_eq!(lack, None);
    let whole: Value = serde_json::from_str(&whole).unwrap();
    let members: Vec<&str> = whole
        .as_object()
        .unwrap()
        .keys()
        .map(|key| &**key)
        .collect();
    assert_eq!(
        members,
        ["id", "object", "created_at", "output", "usage", "weirgate"]
    );
    assert_eq!(whole["object"], "response.compaction");
    assert_eq!(whole["output"][0]["type"], "compaction");
}

#[test]
fn an_answer_without_a_whole_summary_is_none() {
    let nothing = [
        Piece::Reasoning(Str::Plain("hm")),
        Piece::Finish(Finish::Stop),
    ];
    let cut = [
        Piece::Text(Str::Plain("They")),
        Piece::Finish(Finish::Length),
    ];
    let by_item = asking(&json!({}));
    let body = json!({"model": "m", "input": "Hi"});
    let by_path = Compact.parse(body.to_string().into()).unwrap();
    assert!(written(&by_item, &nothing).1.is_some());
    assert!(written(&by_path, &nothing).1.is_some());
    assert!(written(&by_path, &cut).1.is_some());
    // A response says by itself that it is incomplete.
    let (told, lack) = written(&by_item, &cut);
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!((lack, &told["status"]), (None, &json!("incomplete")));
}

#[test]
fn what_is_wrong_is_named() {
    let trigger = json!({"type": "compaction_trigger"});
    let refused = |front: &dyn Front, body: Value| {
        front
            .read(&ClientHead::silent(), body.to_string().into())
            .unwrap_err()
    };
    let damaged = compaction::seal("so far").replace("WGC1", "WGC1AAAA");
    for (input, param) in [
        (json!([trigger]), "input"),
        (
            json!([{"role": "user", "content": "Hi"}, trigger, {"role": "user", "content": "Hi"}]),
            "input[2]",
        ),
        (
            json!([{"type": "compaction", "encrypted_content": damaged}]),
            "input[0].encrypted_content",
        ),
        (
            json!([{"type": "compaction", "encrypted_content": ""}]),
            "input[0].encrypted_content",
        ),
    ] {
        let fault = refused(&Responses, json!({"model": "m", "input": input}));
        assert_eq!(fault.param.as_deref(), Some(param), "{}", fault.message);
    }
    let fault = refused(
        &Compact,
        json!({"model": "m", "input": "Hi", "stream": true}),
    );
    assert_eq!(fault.param.as_deref(), Some("stream"));
}

/// A summary of the vendor's reaches hosts of the dialect alone, so others are never asked for a conversation with one.
#[test]
fn a_foreign_summary_is_no_part_of_another_dialect() {
    let body = json!({"model": "m", "input": [{"type": "compaction", "encrypted_content": "gAAA"}, {"role": "user", "content": "Hi"}]});
    let request = Responses.parse(body.to_string().into()).unwrap();
    assert!(request.needs.native.is_some());
    let fault = Responses.conversation(&request).unwrap_err();
    assert_eq!(fault.param.as_deref(), Some("input[0]"));
}
