#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::Ocr;
use crate::fault::Fault;
use crate::models::front::Front;
use crate::models::fronts::tests::complete;
use crate::models::ocr::OcrFacts;
use crate::models::reply::ReplyIdentity;
use crate::models::request::{ModelRequest, Payload};
use crate::models::usage::Usage;
use crate::money::Unit;
use crate::spooled_json::{KEPT_APPLICATION_CHARS, KEPT_CHARS, SpooledJsonReader};

const PIXEL: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB";

fn checked(body: &Value) -> Result<ModelRequest, Fault> {
    Ocr.parse(body.to_string().into())
}

fn with(key: &str, value: Value) -> Result<ModelRequest, Fault> {
    let mut body = json!({"model": "m", "document": {"document_url": "https://a.test/b"}});
    body[key] = value;
    checked(&body)
}

fn data(media_type: &str, bytes: &[u8]) -> String {
    format!("data:{media_type};base64,{}", STANDARD.encode(bytes))
}

fn pages(request: &ModelRequest) -> [u64; 2] {
    let most = request.cost_inputs.units.get(Unit::Page);
    [request.units.get(Unit::Page), most]
}

/// A request of which the data that is not in memory is missing, and the data.
fn spooled(body: &Value) -> (Result<ModelRequest, Fault>, Vec<u8>) {
    let (mut reader, mut data) = (SpooledJsonReader::new(), Vec::new());
    reader.feed(body.to_string().as_bytes(), &mut data);
    (Ocr.read_spooled(reader.finish()), data)
}

#[test]
fn a_long_document_is_judged_by_what_is_in_memory() {
    let long = |begin: &[u8]| [begin, &vec![7; 2 << 20]].concat();
    let png = |side: u32| {
        let side = side.to_be_bytes();
        [&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], &side, &side].concat()
    };
    // The size of this one stands behind as many segments as are read.
    let segment = [&b"\xff\xe1\xff\xff"[..], &vec![7; 65_533]].concat();
    let frame = b"\xff\xc2\0\x11\x08\xc3\x50\xc3\x50";
    let jpeg = [&b"\xff\xd8"[..], &segment.repeat(11), frame].concat();
    for (media_type, bytes, is_taken) in [
        ("application/pdf", long(b"%PDF-1.7"), true),
        ("application/pdf", long(b"text"), false),
        ("image/png", long(&png(80)), true),
        ("image/jpeg", long(&png(80)), false),
        ("image/png", long(&png(50_000)), false),
        ("image/jpeg", long(&jpeg), false),
    ] {
        let document = json!({"document_url": data(media_type, &bytes)});
        let body = json!({"model": "m", "pages": [0], "document": document});
        let (request, data) = spooled(&body);
        let whole = checked(&body);
        assert_eq!(whole.is_ok(), is_taken, "{media_type}");
        assert_eq!(request.as_ref().err(), whole.as_ref().err());
        let Ok((request, whole)) = request.and_then(|request| Ok((request, whole?))) else {
            continue;
        };
        assert_eq!(request.cost_inputs, whole.cost_inputs);
        let place = &request.source.spooled[0];
        assert_eq!(place.range, 0..data.len() as u64);
        let kept = match media_type.starts_with("image/") {
            true => KEPT_CHARS,
            false => KEPT_APPLICATION_CHARS,
        };
        assert_eq!((request.source.body.len() - kept) / 200, 0, "{media_type}");
    }
}

/// Contract: model-gateway 2.13 document
#[test]
fn every_kind_of_document_is_taken() {
    let pdf = data("application/pdf", b"\xef\xbb\xbf%PDF-1.7 and so on");
    let zip = data(
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        b"PK\x03\x04....",
    );
    for document in [
        json!({"type": "document_url", "document_url": "https://a.test/b.pdf", "document_name": "b"}),
        json!({"type": "document_url", "document_url": "http://a.test/b.pdf", "document_name": null}),
        json!({"document_url": pdf}),
        json!({"document_url": zip}),
        json!({"document_url": data("text/plain", b"Hi")}),
        json!({"document_url": data("image/jpg", b"\xff\xd8\xff\xe0 and so on.")}),
        json!({"type": "image_url", "image_url": PIXEL}),
        json!({"type": "image_url", "image_url": {"url": PIXEL, "detail": "high"}}),
        json!({"image_url": data("image/heic", b"\0\0\0\x18ftypmif1....")}),
        json!({"type": "file", "file_id": "f-1"}),
    ] {
        let request = with("document", document.clone());
        let request = request.unwrap_or_else(|fault| panic!("{document}: {fault}"));
        let is_image = document.get("image_url").is_some();
        let all = if is_image { 1 } else { 1000 };
        assert_eq!(pages(&request), [1, all], "{document}");
        let is_file = document.get("file_id").is_some();
        assert_eq!(request.needs.media.file_ids, is_file);
        assert!(request.cost_inputs.bytes < 300, "{document}");
    }
}

/// Contract: model-gateway 2.13 pages
#[test]
fn pages_are_counted_however_they_are_named() {
    for (named, count) in [
        (json!([0, 2, 2]), 2),
        (json!([5.0]), 1),
        (json!("7"), 1),
        (json!("0-4"), 5),
        (json!("0, 2-4,3"), 4),
        (json!("2-4,0-9,9-10,3,4-5"), 11),
        (json!("0-999,".repeat(100) + "0-999"), 1000),
    ] {
        let request = with("pages", named.clone()).unwrap();
        assert_eq!(pages(&request), [count, count], "{named}");
    }
    let all = with("pages", json!(null)).unwrap();
    assert_eq!(pages(&all), [1, 1000]);
    let body = json!({"model": "m", "pages": "0-9", "document": {"image_url": PIXEL}});
    assert_eq!(pages(&checked(&body).unwrap()), [1, 1]);
}

/// Contract: model-gateway 2.13 include_image_base64
/// Contract: model-gateway 2.13 image_limit
/// Contract: model-gateway 2.13 bbox_annotation_format
/// Contract: model-gateway 2.13 document_annotation_prompt
/// Contract: model-gateway 2.13 table_format
/// Contract: model-gateway 2.13 confidence_scores_granularity
#[test]
fn options_are_taken_and_nulls_are_none() {
    let schema = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": {}}});
    for (key, value) in [
        ("include_image_base64", json!(true)),
        ("image_limit", json!(0)),
        ("image_min_size", json!(10)),
        ("bbox_annotation_format", schema.clone()),
        ("document_annotation_format", schema),
        ("document_annotation_prompt", json!("Sum up")),
        ("table_format", json!("html")),
        ("extract_header", json!(false)),
        ("extract_footer", json!(true)),
        ("include_blocks", json!(true)),
        ("confidence_scores_granularity", json!("block")),
    ] {
        assert!(with(key, value).is_ok(), "{key}");
        assert!(with(key, json!(null)).is_ok(), "{key}");
        assert!(with(key, json!(["other"])).is_err(), "{key}");
    }
    for (key, taken, refused) in [
        ("image_limit", &[json!(1)][..], json!(-1)),
        ("image_min_size", &[json!(0)], json!(-1)),
        ("table_format", &[json!("markdown")], json!("csv")),
        (
            "confidence_scores_granularity",
            &[json!("word"), json!("page")],
            json!("line"),
        ),
    ] {
        for value in taken {
            assert!(with(key, value.clone()).is_ok(), "{key} {value}");
        }
        let fault = with(key, refused).unwrap_err();
        assert_eq!((fault.status(), fault.param.as_deref()), (400, Some(key)));
    }
}

/// Checks that each document is refused with the field, what came and what is accepted.
fn refuses(cases: &[(Value, &str, &str, &str)]) {
    for (document, param, came, accepted) in cases {
        let fault = with("document", document.clone()).unwrap_err();
        assert_eq!(fault.status(), 400);
        let named = fault.param.as_deref().unwrap();
        let is_twice = document["file_id"] == "f";
        assert!(named == *param || is_twice, "{document}: {fault}");
        for part in [came, accepted] {
            assert!(fault.message.contains(part), "{part:?} in {fault}");
        }
    }
}

/// Contract: model-gateway 2.13 document
#[test]
fn a_document_of_another_shape_is_named() {
    let url = "document.document_url";
    refuses(&[
        (json!(null), "document", "null", "an object with one of"),
        (
            json!("https://a.test/b"),
            "document",
            "string",
            "an object with one of",
        ),
        (json!({}), "document", "is empty", "an object with one of"),
        (
            json!({"type": "pdf"}),
            "document.type",
            "pdf",
            "document_url, image_url, file",
        ),
        (
            json!({"type": "file", "document_url": "https://a.test/b"}),
            "document.file_id",
            "is missing",
            "what `type` names",
        ),
        (
            json!({"image_url": PIXEL, "file_id": "f"}),
            "document.image_url",
            "beside another",
            "one of",
        ),
        (
            json!({"file_id": ""}),
            "document.file_id",
            "empty",
            "the id",
        ),
        (json!({"document_url": 7}), url, "7", "a string"),
        (
            json!({"document_url": ""}),
            url,
            "is none",
            "a base64 data URL of a document",
        ),
        (
            json!({"document_url": "file:///etc/passwd"}),
            url,
            "is none",
            "http",
        ),
        (
            json!({"document_url": "data:application/pdf,JVBERi0"}),
            url,
            "is none",
            "base64",
        ),
    ]);
}

/// Contract: model-gateway 2.13 document
#[test]
fn a_document_that_lies_or_is_private_is_named() {
    let url = "document.document_url";
    let image = "document.image_url";
    let png_as_jpeg = PIXEL.replace("png", "jpeg");
    let png_as_pdf = PIXEL.replace("image/png", "application/pdf");
    let huge = [
        b"\x89PNG\r\n\x1a\n....IHDR",
        &[0, 0, 0xc3, 0x50][..],
        &[0, 0, 0xc3, 0x50],
    ]
    .concat();
    refuses(&[
        (
            json!({"document_url": data("application/pdf", b"")}),
            url,
            "application/pdf",
            "media type",
        ),
        (
            json!({"document_url": data("application/pdf", b"<html>")}),
            url,
            "application/pdf",
            "media type",
        ),
        (
            json!({"document_url": data("application/epub+zip", b"%PDF-1.7")}),
            url,
            "epub",
            "media type",
        ),
        (
            json!({"document_url": png_as_pdf}),
            url,
            "application/pdf",
            "media type",
        ),
        (
            json!({"document_url": png_as_jpeg}),
            url,
            "image/jpeg",
            "media type",
        ),
        (
            json!({"document_url": "https://169.254.169.254/a"}),
            url,
            "not public",
            "public Internet",
        ),
        (
            json!({"document_url": "http://localhost:8080/"}),
            url,
            "not public",
            "public Internet",
        ),
        (
            json!({"image_url": "https://0x7f.1/a.png"}),
            image,
            "not public",
            "public Internet",
        ),
        (
            json!({"image_url": 7}),
            image,
            "7",
            "a string, or an object",
        ),
        (
            json!({"image_url": {}}),
            "document.image_url.url",
            "missing",
            "an address",
        ),
        (
            json!({"image_url": data("application/pdf", b"%PDF-1.7 and more")}),
            image,
            "no image",
            "PNG",
        ),
        (
            json!({"image_url": data("image/png", b"<svg>.............")}),
            image,
            "no image",
            "PNG",
        ),
        (
            json!({"image_url": {"url": data("image/png", &huge)}}),
            "document.image_url.url",
            "50000 x 50000",
            "100000000",
        ),
    ]);
    let private = with("document", json!({"document_url": "https://10.0.0.1/"})).unwrap_err();
    assert_eq!(private.code(), Some("destination_ip_prohibited"));
}

/// Contract: model-gateway 2.13 pages
#[test]
fn pages_that_are_none_are_named() {
    for (pages, came) in [
        (json!([]), "empty"),
        (json!(""), "accepted"),
        (json!("4-0"), "4-0"),
        (json!("0-"), "0-"),
        (json!("a"), "a"),
        (json!("+1"), "+1"),
        (json!(3), "3"),
        (json!([-1]), "-1"),
        (json!("0-1000"), "1001 pages"),
        (json!("0-99999"), "100000 pages"),
        (json!("7,".repeat(4096) + "7"), "more than 4096"),
        (json!(vec![7; 4097]), "more than 4096"),
        (json!("0-99999999999"), "accepted"),
        (json!((0..1001).collect::<Vec<_>>()), "1001 pages"),
    ] {
        let fault = with("pages", pages).unwrap_err();
        let param = fault.param.as_deref().unwrap();
        assert!(param.starts_with("pages"), "{fault}");
        assert!(fault.message.contains(came), "{came:?} in {fault}");
    }
}

/// Contract: model-gateway 2.13 bbox_annotation_format
#[test]
fn a_member_that_is_missing_is_named() {
    for missing in ["model", "document"] {
        let mut body = json!({"model": "m", "document": {"file_id": "f"}});
        body.as_object_mut().unwrap().remove(missing);
        let fault = checked(&body).unwrap_err();
        assert_eq!(fault.param.as_deref(), Some(missing));
    }
    let fault = with("bbox_annotation_format", json!({"type": "json_schema"})).unwrap_err();
    let param = "bbox_annotation_format.json_schema";
    assert_eq!(fault.param.as_deref(), Some(param));
}

proptest! {
    #[test]
    fn bytes_of_any_kind_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        _ = Ocr.parse(bytes.into());
    }

    #[test]
    fn pages_of_any_text_are_some_or_refused(text in "[0-9, -]{0,12}") {
        if let Ok(request) = with("pages", json!(text)) {
            prop_assert!((1..=1000).contains(&pages(&request)[0]));
        }
    }
}

#[test]
fn the_response_has_the_pages_and_what_is_billed() {
    let request = with("pages", json!([0])).unwrap();
    assert!(matches!(
        request.payload,
        Payload::Ocr(OcrFacts { pages: Some(1) })
    ));
    let identity = || ReplyIdentity {
        id: "1".into(),
        created: 7,
        model: "here/m".into(),
        maker: "here/m".into(),
    };
    let usage = Usage {
        units: OcrFacts::units(3),
        ..Usage::default()
    };
    let mut writer = request.front.writer(&request, identity());
    writer.item(br#"{"index":0}"#);
    writer.member("document_annotation", r#""{}""#);
    writer.member("doc_size_bytes", "9");
    assert!(!writer.has_content());
    let expected = json!({"pages": [{"index": 0}], "model": "here/m", "document_annotation": "{}",
        "usage_info": {"pages_processed": 3, "doc_size_bytes": 9}});
    assert_eq!(complete(&mut *writer, usage), expected);
    let mut writer = request.front.writer(&request, identity());
    let expected = json!({"pages": [], "model": "here/m", "document_annotation": null,
        "usage_info": {"pages_processed": 3, "doc_size_bytes": null}});
    assert_eq!(complete(&mut *writer, usage), expected);
}
