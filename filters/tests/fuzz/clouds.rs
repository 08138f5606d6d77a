//! What clouds serve by wires of their own: predictions, and models that are invoked.

use filters::models::front::Front;
use filters::models::fronts::embeddings::EMBEDDINGS;
use filters::models::fronts::images::ImageGenerations;
use filters::models::wires::{BodySlice, WireKind};
use serde_json::{Value, json};

use crate::models::{quirks, target};
use crate::run::run;
use crate::wires::whole;
use crate::{damage, grammar};

/// A reply of any of them.
pub fn reply() -> Value {
    let vector =
        json!({"$one": [[0.5, 1, -2e-3], [0.5, 1], {"$many": "$number"}, "$text", "$any"]});
    let embeddings = json!({"values": vector, "statistics?": {"token_count": {"$one": [4, 4.0, "$int", "$any"]}}});
    let drawn = json!({"bytesBase64Encoded?": {"$one": ["aGk=", "$text", "$any"]}, "mimeType?": {"$one": ["image/png", "$text"]},
        "prompt?": "$text", "raiFilteredReason?": "$text"});
    let prediction = json!({"$one": [{"embeddings": embeddings}, drawn, "$any"]});
    json!({"$one": [
        {"predictions": {"$one": [{"$many": prediction}, [{"embeddings": embeddings}, {"embeddings": embeddings}], [drawn]]}, "deployedModelId?": "$text"},
        {"embedding": vector, "inputTextTokenCount?": {"$one": [3, "$any"]}},
        {"embeddings": {"$one": [[vector, vector], {"float": [vector, vector]}, {"$many": "$any"}]}, "response_type?": "$text"},
        {"__type": "$text", "message?": "$any"}, {"error": "$any"}, [{"error": {"code": 429, "message": "$text"}}],
    ]})
}

const WIRES: [WireKind; 4] = [
    WireKind::CloudContents,
    WireKind::Predictions,
    WireKind::Titan,
    WireKind::InvokedCohere,
];

#[test]
fn replies_of_the_wires_of_clouds_are_the_same_however_they_are_cut() {
    for wire in WIRES {
        whole(&format!("wires: {wire:?}, whole replies"), wire);
    }
}

/// Encodes what is accepted on all these wires: each is JSON, or names what is in the way.
fn encodes(name: &str, front: &'static dyn Front, grammar: &Value) {
    run(name, |choices| {
        let body = grammar::compose(choices, grammar);
        let body = damage::tree(choices, body);
        let body = grammar::write(choices, &body);
        let body = damage::bytes(choices, body);
        let request = match front.parse(body.into()) {
            Ok(request) => request,
            Err(fault) => return assert!((400..500).contains(&fault.status()), "{fault:?}"),
        };
        let quirks = quirks(choices);
        for wire in WIRES {
            let Some(codec) = wire.wire().codec(request.payload.operation()) else {
                continue;
            };
            match codec.encode(&request, &target(&quirks)) {
                Ok(slices) => {
                    let body: Vec<u8> = slices.into_iter().flat_map(in_memory).collect();
                    let read: Result<Value, _> = serde_json::from_slice(&body);
                    assert!(read.is_ok_and(|body| body.is_object()), "{wire:?}");
                }
                Err(fault) => assert_eq!(fault.status(), 400, "{fault:?}"),
            }
        }
    });
}

fn in_memory(slice: BodySlice) -> Vec<u8> {
    match slice {
        BodySlice::Bytes(bytes) => bytes.to_vec(),
        BodySlice::Upload(range) => panic!("{range:?} is not in memory"),
    }
}

#[test]
fn accepted_embeddings_are_json_on_the_wires_of_clouds() {
    let grammar = json!({
        "model": "m", "input": {"$one": ["Hi", "$text", ["a", "b"], {"$many": "$text"}]}, "dimensions?": {"$one": [8, "$int"]},
        "encoding_format?": {"$one": ["float", "base64"]}, "input_type?": {"$one": ["query", "clustering", null, "$any"]},
    });
    encodes("models: embeddings of clouds", &EMBEDDINGS, &grammar);
}

#[test]
fn accepted_requests_for_images_are_json_on_the_wires_of_clouds() {
    let grammar = json!({
        "prompt": {"$one": ["A cat", "$text"]}, "n?": {"$one": [1, 10, "$int"]}, "size?": {"$one": ["1024x1024", "2048x2048", "2K", "$text"]},
        "aspect_ratio?": {"$one": ["3:4", "3:2", "$text"]}, "output_format?": {"$one": ["jpeg", "png", "webp"]},
        "output_compression?": {"$one": [50, "$int"]}, "service_tier?": "flex", "negativePrompt?": "$text", "sampleCount?": "$any",
    });
    encodes("models: images of clouds", &ImageGenerations, &grammar);
}
