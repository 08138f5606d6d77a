#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use serde_json::{Value, json};

use super::tests::{identity, request};
use super::*;
use crate::json::Str;
use crate::models::chat::piece::{Finish, Piece};
use crate::models::dialects::state::is_sealed;
use crate::models::fronts::tests::end;
use crate::models::usage::Usage;

/// The chunks of an answer with what the vendor may add.
fn said() -> [Value; 3] {
    let chunk = |parts: Value| json!({"candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0, "new": [1]}], "modelVersion": "up", "responseId": "r"});
    let mut last = chunk(json!([{"text": ""}]));
    last["candidates"][0]["finishReason"] = "STOP".into();
    last["usageMetadata"] = json!({"promptTokenCount": 3, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 3}]});
    [
        chunk(json!([{"text": "a", "thought": true}, {"executableCode": {"code": "1"}}])),
        chunk(json!([{"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2ln"}])),
        last,
    ]
}

fn relayed(stream: &str, is_vendor: bool) -> String {
    let request = request(&json!({"stream": stream}));
    let mut writer = GENERATE.writer(&request, identity(Dialect::Contents, is_vendor));
    writer.begin_relay();
    for (at, chunk) in said().iter().enumerate() {
        let pieces = match at {
            0 => Piece::Reasoning(Str::Plain("a")),
            1 => Piece::Call {
                key: 0,
                id: None,
                name: None,
            },
            _ => Piece::Finish(Finish::Stop),
        };
        writer.pieces(0, &[pieces]);
        writer.relay("", chunk.to_string().as_bytes());
        assert!(writer.has_content());
    }
    assert!(writer.reported().has_finished);
    end(&mut *writer, Usage::default());
    String::from_utf8(writer.take().to_vec()).unwrap()
}

#[test]
fn chunks_pass_as_they_came_but_for_the_model_and_the_last_one_has_the_cost() {
    let stream = relayed("sse", true);
    let chunks: Vec<Value> = stream
        .split_terminator("\n\n")
        .map(|event| serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap())
        .collect();
    assert_eq!(chunks.len(), 3);
    for (chunk, mut expected) in chunks.iter().zip(said()) {
        let mut chunk = chunk.clone();
        let own = chunk.as_object_mut().unwrap().remove("weirgate");
        assert_eq!(own.is_some(), expected.get("usageMetadata").is_some());
        expected["modelVersion"] = "m".into();
        assert_eq!(chunk, expected);
    }
    let list: Vec<Value> = serde_json::from_str(&relayed("array", true)).unwrap();
    assert_eq!(list.len(), 3);
}

#[test]
fn state_of_a_host_that_is_not_the_vendors_is_sealed() {
    let list: Vec<Value> = serde_json::from_str(&relayed("array", false)).unwrap();
    let part = &list[1]["candidates"][0]["content"]["parts"][0];
    assert!(is_sealed(part["thoughtSignature"].as_str().unwrap()));
    assert_eq!(part["functionCall"], json!({"name": "f", "args": {}}));
}

#[test]
fn a_whole_reply_gets_the_cost() {
    let request = request(&json!({}));
    let mut writer = GENERATE.writer(&request, identity(Dialect::Contents, true));
    writer.begin_relay();
    writer.pieces(0, &[Piece::Text(Str::Plain("a"))]);
    writer.pieces(0, &[Piece::Finish(Finish::Stop)]);
    let [.., reply] = said();
    writer.relay("", reply.to_string().as_bytes());
    assert!(!writer.has_content());
    end(&mut *writer, Usage::default());
    assert!(writer.has_content());
    let told: Value = serde_json::from_slice(&writer.take()).unwrap();
    assert!(told["weirgate"]["metadata"].is_object());
    assert_eq!(
        (&told["modelVersion"], &told["candidates"]),
        (&json!("m"), &reply["candidates"])
    );
}
