//! OCR: requests and replies as golden texts, and what hostile replies become.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::item::{Got, encoded, read, target};
use super::{BodySlice, FailureKind, Quirks, WireKind};
use crate::models::front::Front;
use crate::models::fronts::ocr::Ocr;
use crate::models::operation::Operation;
use crate::models::request::ModelRequest;
use crate::money::Unit;
use crate::spooled_json::SpooledJsonReader;

fn body() -> Value {
    json!({"model": "m", "document": {"type": "document_url", "document_url": "https://a.test/b", "x": 1},
        "pages": "0-1", "include_image_base64": false, "extract_header": null, "document_annotation_prompt": "p"})
}

fn request() -> ModelRequest {
    let mut body = body();
    body["unknown"] = json!({"a": 1});
    Ocr.parse(body.to_string().into()).unwrap()
}

fn received(reply: &Value) -> Result<Got, FailureKind> {
    let wire = WireKind::Compatible.wire();
    let got = read(wire, &request(), 200, reply.to_string().as_bytes());
    got.map_err(|failure| failure.kind)
}

/// Contract: model-gateway 2.13 include_image_base64
/// Contract: model-gateway 2.13 document_annotation_prompt
#[test]
fn the_request_goes_out_as_it_came() {
    let wire = WireKind::Compatible.wire();
    let (path, sent) = encoded(wire, &request(), &Quirks::default()).unwrap();
    let mut expected = body();
    expected["model"] = "up x".into();
    let mut open = expected.clone();
    open["unknown"] = json!({"a": 1});
    assert_eq!((path.as_str(), sent), ("/ocr", open));
    let closed = Quirks {
        drop_unknown_fields: true,
        ..Quirks::default()
    };
    let (_, sent) = encoded(wire, &request(), &closed).unwrap();
    assert_eq!(sent, expected);
    for other in [WireKind::Messages, WireKind::Contents, WireKind::Cohere] {
        assert!(other.wire().limits(Operation::Ocr).is_none());
    }
}

#[test]
fn data_that_is_not_in_memory_goes_out_in_its_place() {
    let data = "QUJD".repeat(300_000);
    let url = format!("data:text/plain;base64,{data}");
    let body = json!({"model": "m", "other": url, "document": {"document_url": url}, "pages": [0]});
    let (mut reader, mut spooled) = (SpooledJsonReader::new(), Vec::new());
    reader.feed(body.to_string().as_bytes(), &mut spooled);
    let request = Ocr.read_spooled(reader.finish()).unwrap();
    let wire = WireKind::Compatible.wire();
    for drop_unknown_fields in [false, true] {
        let quirks = Quirks {
            drop_unknown_fields,
            ..Quirks::default()
        };
        let mut sent = Vec::new();
        for piece in wire
            .codec_of(&request)
            .encode(&request, &target(&quirks))
            .unwrap()
        {
            match piece {
                BodySlice::Bytes(bytes) => sent.extend_from_slice(&bytes),
                BodySlice::Upload(range) => {
                    sent.extend_from_slice(&spooled[range.start as usize..range.end as usize]);
                }
            }
        }
        let mut expected = body.clone();
        expected["model"] = "up x".into();
        if drop_unknown_fields {
            expected.as_object_mut().unwrap().remove("other");
        }
        let sent: Value = serde_json::from_slice(&sent).unwrap();
        assert!(sent == expected, "{drop_unknown_fields}");
    }
}

#[test]
fn pages_pass_as_they_came_and_the_processed_ones_are_billed() {
    let page = |index: u32| json!({"index": index, "markdown": "# Hi", "images": [], "dimensions": null, "new": [1e-7]});
    let mut reply = json!({"pages": [page(0), page(1)], "model": "x", "document_annotation": "{\"a\":1}",
        "usage_info": {"pages_processed": 5, "doc_size_bytes": 99}});
    let got = received(&reply).unwrap();
    assert_eq!(got.items, [page(0), page(1)]);
    let annotation = ("document_annotation".to_owned(), json!("{\"a\":1}"));
    assert_eq!(
        got.members,
        [annotation, ("doc_size_bytes".to_owned(), json!(99))]
    );
    assert_eq!(got.usage.unwrap().units.get(Unit::Page), 5);
    for unsaid in [
        json!(null),
        json!({}),
        json!({"pages_processed": "5"}),
        json!({"pages_processed": -1}),
    ] {
        reply["usage_info"] = unsaid;
        let usage = received(&reply).unwrap().usage.unwrap();
        assert_eq!((usage.units.get(Unit::Page), usage.prompt), (2, 0));
    }
    let none = received(&json!({"pages": [], "document_annotation": null})).unwrap();
    assert_eq!(none.usage.unwrap().units.get(Unit::Page), 0);
}

#[test]
fn what_holds_no_pages_is_malformed() {
    for bad in [
        json!({}),
        json!([]),
        json!({"pages": null}),
        json!({"pages": {}}),
        json!({"pages": [7]}),
        json!({"pages": [{"index": 0}]}),
        json!({"pages": [{"index": "0", "markdown": "a"}]}),
        json!({"pages": [{"index": 0, "markdown": null}]}),
    ] {
        assert_eq!(received(&bad), Err(FailureKind::Malformed), "{bad}");
    }
    let error = json!({"error": {"message": "Rate limit reached", "code": 429}});
    assert_eq!(received(&error), Err(FailureKind::Status(429)));
}

proptest! {
    #[test]
    fn a_reply_cut_anywhere_or_of_any_bytes_never_panics(
        end in 0_usize..60, bytes in proptest::collection::vec(any::<u8>(), 0..60)
    ) {
        let wire = WireKind::Compatible.wire();
        let reply = br#"{"pages":[{"index":0,"markdown":"a","images":[]}],"usage_info":{}}"#;
        let cut = &reply[..end.min(reply.len() - 1)];
        let read_cut = read(wire, &request(), 200, cut);
        prop_assert!(read_cut.is_err());
        _ = read(wire, &request(), 200, &bytes);
    }
}
