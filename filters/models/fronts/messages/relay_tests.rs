#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use serde_json::{Value, json};

use super::tests::{identity, request};
use super::*;
use crate::json::Str;
use crate::models::chat::piece::{Finish, Piece};
use crate::models::fronts::tests::end;
use crate::models::usage::Usage;

/// The events of an answer with what the vendor may add.
fn events() -> Vec<Value> {
    vec![
        json!({"type": "message_start", "message": {"id": "msg_up", "type": "message", "role": "assistant", "model": "up", "content": [],
            "usage": {"input_tokens": 3, "output_tokens": 1, "new": true}, "container": null}}),
        json!({"type": "ping"}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm", "estimated_tokens": 2}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2"}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "ln"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "cmVk"}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "content_block_start", "index": 2, "content_block": {"type": "compaction", "content": "so far"}}),
        json!({"type": "content_block_stop", "index": 2}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": {"output_tokens": 9}, "context_management": {"applied_edits": []}}),
        json!({"type": "message_stop"}),
    ]
}

/// Passes events on; returns what the client gets.
fn relayed(is_vendor: bool) -> String {
    let request = request(&json!({"stream": true}));
    let mut writer = Messages.writer(&request, identity(is_vendor));
    writer.begin_relay();
    for event in events() {
        let name = event["type"].as_str().unwrap();
        if name == "content_block_delta" {
            writer.pieces(0, &[Piece::Reasoning(Str::Plain("hm"))]);
        }
        writer.relay(name, event.to_string().as_bytes());
        assert_eq!(
            writer.has_content(),
            !matches!(name, "message_start" | "ping") && event != events()[2]
        );
    }
    writer.pieces(0, &[Piece::Finish(Finish::Stop)]);
    end(&mut *writer, Usage::default());
    String::from_utf8(writer.take().to_vec()).unwrap()
}

/// The data of all events, whose names are checked.
fn data(stream: &str) -> Vec<Value> {
    let events = stream.split_terminator("\n\n").map(|event| {
        let (name, data) = event.split_once('\n').unwrap();
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(name.strip_prefix("event: ").unwrap(), data["type"]);
        data
    });
    events.collect()
}

#[test]
fn what_the_vendor_says_passes_as_it_came() {
    let told = data(&relayed(true));
    let mut expected = events();
    expected[0]["message"]["model"] = "claude-x".into();
    let end = &told[told.len() - 2];
    assert_eq!(end["weirgate"]["metadata"]["request_id"], "1");
    expected[11]["weirgate"] = end["weirgate"].clone();
    assert_eq!(told, expected);
}

#[test]
fn the_state_of_others_than_the_vendor_is_sealed_once_it_is_whole() {
    let told = data(&relayed(false));
    let maker = identity(false).maker;
    let open = |sealed: &Value| {
        let sealed = sealed.as_str().unwrap();
        let opened = maker.borrow().open(Dialect::Messages, sealed);
        opened.unwrap().into_owned()
    };
    let signatures: Vec<&Value> = told
        .iter()
        .filter(|event| event["delta"]["type"] == "signature_delta")
        .collect();
    assert_eq!(signatures.len(), 1);
    assert_eq!(signatures[0]["index"], 0);
    assert_eq!(open(&signatures[0]["delta"]["signature"]), "c2ln");
    let redacted = told
        .iter()
        .find(|event| event["content_block"]["type"] == "redacted_thinking");
    assert_eq!(open(&redacted.unwrap()["content_block"]["data"]), "cmVk");
    assert_eq!(told.len(), events().len() - 1);
}

#[test]
fn a_whole_message_passes_with_its_cost() {
    let request = request(&json!({}));
    let body = json!({"id": "msg_up", "type": "message", "model": "up", "container": {"id": "c"}, "stop_reason": "end_turn",
        "content": [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}, {"type": "text", "text": "Hi", "citations": [{}]}]});
    for is_vendor in [true, false] {
        let mut writer = Messages.writer(&request, identity(is_vendor));
        writer.begin_relay();
        writer.pieces(0, &[Piece::Finish(Finish::Stop)]);
        writer.relay("", body.to_string().as_bytes());
        assert!(!writer.has_content());
        end(&mut *writer, Usage::default());
        let mut told: Value = serde_json::from_slice(&writer.take()).unwrap();
        assert!(told["weirgate"]["usage"].is_object());
        told.as_object_mut().unwrap().remove("weirgate");
        let mut expected = body.clone();
        expected["model"] = "claude-x".into();
        let is_bare = told["content"][0]["signature"] == "c2ln";
        assert_eq!(is_bare, is_vendor);
        expected["content"][0]["signature"] = told["content"][0]["signature"].clone();
        assert_eq!(told, expected);
    }
}

#[test]
fn a_relayed_stream_that_breaks_ends_with_an_error() {
    let request = request(&json!({"stream": true}));
    let mut writer = Messages.writer(&request, identity(true));
    writer.begin_relay();
    writer.pieces(0, &[Piece::Text(Str::Plain("Hi"))]);
    let events = events();
    for event in &events[..4] {
        writer.relay(
            event["type"].as_str().unwrap(),
            event.to_string().as_bytes(),
        );
    }
    writer.fail(
        &Fault::new(crate::fault::FaultKind::StreamTruncated, "cut"),
        None,
    );
    let stream = String::from_utf8(writer.take().to_vec()).unwrap();
    assert_eq!(data(&stream).last().unwrap()["error"]["type"], "api_error");
}

#[test]
fn an_event_without_data_does_not_pass() {
    let request = request(&json!({"stream": true}));
    let mut writer = Messages.writer(&request, identity(true));
    writer.begin_relay();
    writer.relay("message_start", b" ");
    writer.relay("new", b"");
    assert!(writer.take().is_empty());
}
