//! Moderations: requests and replies as golden texts, and what hostile replies become.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::item::{encoded, read};
use super::{FailureKind, Quirks, WireKind};
use crate::models::front::Front;
use crate::models::fronts::moderations::MODERATIONS;
use crate::models::operation::Operation;
use crate::models::request::ModelRequest;

fn request(input: &Value) -> ModelRequest {
    let body = json!({"model": "m", "x": 1, "input": input});
    MODERATIONS.parse(body.to_string().into()).unwrap()
}

fn sent(input: &Value, quirks: &Quirks) -> (String, Value) {
    encoded(WireKind::Compatible.wire(), &request(input), quirks).unwrap()
}

fn received(input: &Value, reply: &Value) -> Result<Vec<Value>, FailureKind> {
    let wire = WireKind::Compatible.wire();
    let got = read(wire, &request(input), 200, reply.to_string().as_bytes());
    got.map(|got| got.items).map_err(|failure| failure.kind)
}

#[test]
fn input_goes_out_as_it_came_and_parts_of_text_as_one_text() {
    let open = Quirks::default();
    let picture = json!([{"type": "text", "text": "a"},
                         {"type": "image_url", "image_url": {"url": "https://a.test/b"}}]);
    let parts = json!([{"type": "text", "text": "a\""}, {"type": "text", "text": "b"}]);
    for (input, expected) in [
        (json!("a\n"), json!("a\n")),
        (json!(["a", "b"]), json!(["a", "b"])),
        (picture.clone(), picture),
        (parts, json!("a\"\nb")),
    ] {
        let (path, body) = sent(&input, &open);
        assert_eq!(path, "/moderations");
        assert_eq!(body, json!({"model": "up x", "x": 1, "input": expected}));
    }
    let closed = Quirks {
        drop_unknown_fields: true,
        ..Quirks::default()
    };
    let (_, body) = sent(&json!("a"), &closed);
    assert_eq!(body, json!({"model": "up x", "input": "a"}));
    for wire in [WireKind::Messages, WireKind::Contents, WireKind::Cohere] {
        assert!(wire.wire().limits(Operation::Moderations).is_none());
    }
}

#[test]
fn a_result_that_does_not_say_so_is_flagged_by_its_categories() {
    let result = |hate: bool| json!({"categories": {"hate": hate, "pii": false}, "category_scores": {"hate": 0.5}});
    let mut marked = result(true);
    marked["flagged"] = false.into();
    let reply = json!({"id": "x", "results": [result(true), result(false), marked]});
    let got = received(&json!(["a", "b", "c"]), &reply).unwrap();
    let flagged: Vec<&Value> = got.iter().map(|result| &result["flagged"]).collect();
    assert_eq!(flagged, [true, false, false]);
    assert_eq!(got[0]["categories"], json!({"hate": true, "pii": false}));
}

#[test]
fn what_is_not_one_result_for_each_input_is_malformed() {
    let good = json!({"flagged": true, "categories": {}, "category_scores": {}});
    for bad in [
        json!({}),
        json!([]),
        json!({"results": []}),
        json!({"results": [good, good]}),
        json!({"results": [7]}),
        json!({"results": [{"categories": {}}]}),
        json!({"results": [{"categories": [], "category_scores": {}}]}),
        json!({"results": [{"flagged": 1, "categories": {}, "category_scores": {}}]}),
    ] {
        let failed = received(&json!("a"), &bad);
        assert_eq!(failed, Err(FailureKind::Malformed), "{bad}");
    }
    let error = json!({"error": {"message": "Rate limit reached", "code": 429}});
    assert_eq!(received(&json!("a"), &error), Err(FailureKind::Status(429)));
    let used = json!({"results": [good], "usage": {"prompt_tokens": 5, "total_tokens": 5}});
    let wire = WireKind::Compatible.wire();
    let got = read(
        wire,
        &request(&json!("a")),
        200,
        used.to_string().as_bytes(),
    )
    .unwrap();
    assert_eq!(got.usage.unwrap().prompt, 5);
}

proptest! {
    #[test]
    fn a_reply_cut_anywhere_or_of_any_bytes_never_panics(
        end in 0_usize..60, bytes in proptest::collection::vec(any::<u8>(), 0..60)
    ) {
        let wire = WireKind::Compatible.wire();
        let reply = br#"{"results":[{"flagged":true,"categories":{},"category_scores":{}}]}"#;
        let cut = &reply[..end.min(reply.len() - 1)];
        let read_cut = read(wire, &request(&json!("a")), 200, cut);
        prop_assert!(read_cut.is_err());
        _ = read(wire, &request(&json!("a")), 200, &bytes);
    }
}
