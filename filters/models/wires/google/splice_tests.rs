#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use serde_json::{Value, json};

use super::*;
use crate::models::dialects::contents::NO_SIGNATURE;
use crate::models::dialects::state::{Maker, States};
use crate::models::front::Front;
use crate::models::fronts::contents::GENERATE;
use crate::models::operation::Operation;
use crate::models::routing::thinking::ThinkingControl;
use crate::models::wires::tests::replay;
use crate::models::wires::{BodySlice, Quirks, Target};

/// What goes out of a request, to a model that takes these efforts.
fn sent(body: &Value, efforts: &[&str], is_vendor: bool) -> Value {
    let quirks = Quirks::default();
    let control = (!efforts.is_empty()).then_some(ThinkingControl::Levels);
    let told = replay::told(&GOOGLE, control, efforts);
    let target = Target {
        parameters: &told.parameters,
        thinking: &told.thinking,
        max_output: Some(1000),
        is_vendor,
        ..Target::plain("google", "gemini-x", &quirks)
    };
    let request = GENERATE.parse(body.to_string().into()).unwrap();
    let codec = GOOGLE.codec(Operation::Chat).unwrap();
    let slices = codec.encode(&request, &target).unwrap();
    let bytes = slices.into_iter().flat_map(|slice| match slice {
        BodySlice::Bytes(bytes) => bytes.to_vec(),
        BodySlice::Upload(_) => Vec::new(),
    });
    serde_json::from_slice(&bytes.collect::<Vec<u8>>()).unwrap()
}

#[test]
fn a_request_of_the_same_dialect_passes_but_for_what_speaks_to_the_gateway() {
    let body = json!({
        "contents": [{"role": "user", "parts": [{"text": "Hi", "new": [1]}]}], "system_instruction": {"parts": [{"text": "s"}]},
        "generation_config": {"topK": 5, "maxOutputTokens": 5000, "new": {"a": null}}, "unknown": [1, {"b": "c"}],
        "model": "m", "stream": "sse", "routing": "auto", "free_models_only": false});
    let mut expected = body.clone();
    for key in [
        "model",
        "stream",
        "routing",
        "free_models_only",
        "generation_config",
    ] {
        expected.as_object_mut().unwrap().remove(key);
    }
    expected["generationConfig"] = json!({"topK": 5, "new": {"a": null}, "maxOutputTokens": 1000});
    assert_eq!(sent(&body, &[], true), expected);
}

#[test]
fn a_level_becomes_a_budget_for_models_that_take_no_levels() {
    let body = |thinking: Value| json!({"model": "m", "contents": [{"parts": [{"text": "a"}]}], "generationConfig": {"thinkingConfig": thinking}});
    let level = body(json!({"thinkingLevel": "HIGH", "includeThoughts": false}));
    let as_it_came = sent(&level, &["low", "high"], true);
    assert_eq!(as_it_came["generationConfig"], level["generationConfig"]);
    let told = sent(&level, &[], true);
    let thinking = &told["generationConfig"]["thinkingConfig"];
    assert!(
        thinking["thinkingBudget"].as_u64() > Some(0) || thinking.is_null(),
        "{told}"
    );
    assert!(thinking.get("thinkingLevel").is_none());
    let budget = body(json!({"thinkingBudget": 512}));
    assert_eq!(
        sent(&budget, &[], true)["generationConfig"],
        budget["generationConfig"]
    );
}

#[test]
fn state_goes_to_its_maker_alone() {
    let maker = Maker::from_name(States::NONE, "google/gemini-x");
    let own = maker.seal(Dialect::Contents, "c2ln");
    let other = Maker::from_name(States::NONE, "other/m").seal(Dialect::Messages, "EqQB");
    let body = json!({"model": "m", "contents": [
        {"role": "user", "parts": [{"text": "a"}]},
        {"role": "model", "parts": [
            {"text": "t", "thought": true}, {"text": "b", "thoughtSignature": own}, {"text": "", "thoughtSignature": other},
            {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": other},
            {"functionCall": {"name": "g", "args": {}}, "thoughtSignature": "YmFyZQ=="}]},
        {"role": "model", "parts": [{"text": "", "thoughtSignature": other}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]}]});
    let told = sent(&body, &["low"], true);
    let contents = told["contents"].as_array().unwrap();
    assert_eq!(contents.len(), 3);
    assert_eq!(
        contents[1]["parts"],
        json!([{"text": "t", "thought": true}, {"text": "b", "thoughtSignature": "c2ln"},
            {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": NO_SIGNATURE},
            {"functionCall": {"name": "g", "args": {}}, "thoughtSignature": "YmFyZQ=="}])
    );
    // Bare state is the vendor's, and a model without levels needs no stand-in.
    let told = sent(&body, &[], false);
    assert_eq!(
        told["contents"][1]["parts"],
        json!([{"text": "t", "thought": true}, {"text": "b", "thoughtSignature": "c2ln"},
            {"functionCall": {"name": "f", "args": {}}}, {"functionCall": {"name": "g", "args": {}}}])
    );
}

#[test]
fn a_stand_in_for_a_signature_passes() {
    let body = json!({"model": "m", "contents": [{"role": "model", "parts": [{"functionCall": {"name": "f"}, "thoughtSignature": NO_SIGNATURE}]},
        {"parts": [{"functionResponse": {"name": "f", "response": {}}}]}]});
    assert_eq!(sent(&body, &["low"], true)["contents"], body["contents"]);
}
