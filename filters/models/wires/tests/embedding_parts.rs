//! Parts of a batch: what each asks for, and what its vectors are numbered.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use bytes::Bytes;
use serde_json::{Value, json};

use super::embeddings::{HEAD, openai_item, openai_reply, request, target};
use crate::models::embeddings::batch::BatchLimits;
use crate::models::reply::Sink;
use crate::models::usage::Usage;
use crate::models::wires::cohere::COHERE;
use crate::models::wires::google::GOOGLE;
use crate::models::wires::openai::OPENAI;
use crate::models::wires::voyage::VOYAGE;
use crate::models::wires::{Progress, Quirks, Target};

#[test]
fn a_batch_is_asked_for_in_parts_and_its_vectors_numbered_through() {
    let texts: Vec<String> = (0..250).map(|at| at.to_string()).collect();
    let request = request(&json!({"input": texts, "dimensions": 2}));
    let quirks = Quirks::default();
    let narrow = BatchLimits {
        inputs: 200,
        tokens: u64::MAX,
    };
    // Where the inputs stand, and how many parts there are.
    for (wire, place, counts) in [
        (&OPENAI, "/input", vec![200, 50]),
        (&GOOGLE, "/requests", vec![100, 100, 50]),
        (&COHERE, "/texts", vec![96, 96, 58]),
        (&VOYAGE, "/input", vec![200, 50]),
    ] {
        let mut first = 0;
        for (part, count) in counts.iter().enumerate() {
            let part = u32::try_from(part).unwrap();
            let target = Target {
                batch: narrow,
                part,
                ..target(&quirks)
            };
            let parts = wire.codec_of(&request).parts(&request, &target);
            assert_eq!(parts.count as usize, counts.len());
            let bytes: usize = texts[first..first + count].iter().map(String::len).sum();
            assert_eq!(parts.text_bytes, bytes as u64);
            let body = wire.encode(&request, &target).unwrap().concat();
            let body: Value = serde_json::from_slice(&body).unwrap();
            let inputs = body.pointer(place).unwrap().as_array().unwrap();
            let text = |input: &Value| match input.pointer("/content/parts/0/text") {
                Some(text) => text.clone(),
                None => input.clone(),
            };
            let inputs: Value = inputs.iter().map(text).collect();
            assert_eq!(inputs, json!(texts[first..first + count]));
            first += count;
        }
    }
}

#[test]
fn the_vectors_of_a_later_part_have_the_numbers_of_their_inputs() {
    let request = request(&json!({"input": ["a", "b", "c"]}));
    let quirks = Quirks::default();
    let batch = BatchLimits {
        inputs: 2,
        tokens: u64::MAX,
    };
    let target = Target {
        batch,
        part: 1,
        ..target(&quirks)
    };
    let list = openai_reply(json!([openai_item(0, json!([7]))]));
    let cohere = json!({"embeddings": {"float": [[7]]}});
    for (wire, reply) in [
        (&OPENAI, &list),
        (&VOYAGE, &list),
        (&GOOGLE, &json!({"embeddings": [{"values": [7]}]})),
        (&COHERE, &cohere),
    ] {
        let mut items = Items::default();
        let mut decoder = wire.decoder(&request, &target, &HEAD);
        let reply = Bytes::from(reply.to_string());
        assert_eq!(decoder.feed(&reply, &mut items), Ok(Progress::Open));
        assert_eq!(decoder.end(&mut items), Ok(Progress::Complete));
        assert_eq!(items.0, [openai_item(2, json!([7]))]);
    }
}

/// Takes items.
#[derive(Default)]
struct Items(Vec<Value>);

impl Sink for Items {
    fn item(&mut self, item: &[u8]) {
        self.0.push(serde_json::from_slice(item).unwrap());
    }

    fn usage(&mut self, _: Usage) {}
}
