#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use serde_json::{Value, json};

use super::tests::{fold, identity, request};
use super::*;
use crate::json::Str;
use crate::models::chat::piece::{Finish, Piece};
use crate::models::fronts::tests::end;
use crate::models::usage::Usage;

const VERDICTS: &str = r#"[{"type":"dangerous_tool_use","status":{"type":"available","tool_uses":{"toolu_1":{"type":"evaluated","outcome":"not_flagged"}}}}]"#;

fn unsupported() -> Value {
    json!([{"type": "dangerous_tool_use", "status": {"type": "unsupported"}}])
}

fn verdicts() -> Value {
    serde_json::from_str(VERDICTS).unwrap()
}

/// A request with these safeguards.
fn asking(kinds: &[&str], is_stream: bool) -> ModelRequest {
    let kinds = kinds
        .iter()
        .map(|kind| json!({"type": kind, "classifier_context": {"v": 1}}));
    let mut more = json!({"stream": is_stream});
    if kinds.len() > 0 {
        more["safeguards"] = kinds.collect();
    }
    request(&more)
}

fn call() -> Piece<'static> {
    Piece::Call {
        key: 0,
        id: Some(Str::Plain("toolu_1")),
        name: Some(Str::Plain("Bash")),
    }
}

/// The message that a host says, which is as it is where `is_relayed`, and has verdicts where `judges`.
fn told(
    request: &ModelRequest,
    is_vendor: bool,
    is_relayed: bool,
    judges: bool,
    calls: bool,
) -> Value {
    let mut writer = Messages.writer(request, identity(is_vendor));
    let said = if calls {
        call()
    } else {
        Piece::Text(Str::Plain("Hi"))
    };
    if is_relayed {
        writer.begin_relay();
    }
    writer.pieces(0, &[said]);
    if judges {
        writer.pieces(0, &[Piece::Safeguards(VERDICTS)]);
    }
    writer.pieces(0, &[Piece::Finish(Finish::ToolCalls)]);
    let found = judges.then(verdicts);
    let block = match calls {
        true => json!({"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}),
        false => json!({"type": "text", "text": ""}),
    };
    match is_relayed {
        true if request.is_stream => relay_events(&mut *writer, &block, found),
        true => {
            let mut message = json!({"id": "msg_1", "type": "message", "role": "assistant", "content": [block], "stop_reason": "tool_use"});
            if let Some(found) = found {
                message["safeguard_results"] = found;
            }
            writer.relay("", message.to_string().as_bytes());
        }
        false => {}
    }
    end(&mut *writer, Usage::default());
    let text = String::from_utf8(writer.take().to_vec()).unwrap();
    match request.is_stream {
        true => fold(&text),
        false => serde_json::from_str(&text).unwrap(),
    }
}

fn relay_events(writer: &mut dyn Writer, block: &Value, found: Option<Value>) {
    let mut delta = json!({"stop_reason": "tool_use", "stop_sequence": null});
    if let Some(found) = found {
        delta["safeguard_results"] = found;
    }
    for event in [
        json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "up", "content": [],
            "usage": {"input_tokens": 3, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ] {
        writer.relay(
            event["type"].as_str().unwrap(),
            event.to_string().as_bytes(),
        );
    }
}

/// Each way of a host's answer to the client: streamed or whole, as it came or made of pieces.
fn ways() -> impl Iterator<Item = (bool, bool)> {
    [(true, true), (true, false), (false, true), (false, false)].into_iter()
}

#[test]
fn verdicts_of_the_vendor_pass_and_none_is_made_in_its_place() {
    for (is_stream, is_relayed) in ways() {
        let asked = asking(&["dangerous_tool_use"], is_stream);
        let message = told(&asked, true, is_relayed, true, true);
        assert_eq!(message["safeguard_results"], verdicts());
        let message = told(&asked, true, is_relayed, false, true);
        assert_eq!(message.get("safeguard_results"), None, "{message}");
    }
}

#[test]
fn where_no_host_judges_the_calls_of_an_answer_that_is_said() {
    for (is_stream, is_relayed) in ways() {
        let asked = asking(&["other", "dangerous_tool_use"], is_stream);
        // What a host says that was not asked is no verdict.
        for judges in [false, true] {
            let message = told(&asked, false, is_relayed, judges, true);
            assert_eq!(message["safeguard_results"], unsupported(), "{message}");
            assert_eq!(message["stop_reason"], "tool_use");
        }
        let message = told(&asked, false, is_relayed, false, false);
        assert_eq!(message.get("safeguard_results"), None, "{message}");
    }
}

#[test]
fn who_did_not_ask_is_told_nothing() {
    for (is_stream, is_relayed) in ways() {
        for kinds in [&[][..], &["other"]] {
            let asked = asking(kinds, is_stream);
            let message = told(&asked, false, is_relayed, false, true);
            assert_eq!(message.get("safeguard_results"), None, "{message}");
        }
    }
    for odd in [
        json!({}),
        json!("dangerous_tool_use"),
        json!([1]),
        json!([{}]),
    ] {
        let asked = request(&json!({"safeguards": odd}));
        let message = told(&asked, false, false, false, true);
        assert_eq!(message.get("safeguard_results"), None, "{odd}");
    }
}
