//! Images as predictions of a cloud: what is asked for, and what hostile replies become.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use serde_json::{Value, json};

use super::item::{Got, encoded, target};
use super::{Failure, FailureKind, Quirks, ReplyHead, Target, WireKind, decode_reply};
use crate::fault::Fault;
use crate::models::chat::piece::{Finish, Piece};
use crate::models::front::Front;
use crate::models::fronts::images::ImageGenerations;
use crate::models::reply::Sink;
use crate::models::request::ModelRequest;
use crate::models::usage::Usage;

fn image(more: &Value) -> ModelRequest {
    let mut body = json!({"model": "m", "prompt": "a \"cat\""});
    let members = body.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    ImageGenerations.parse(body.to_string().into()).unwrap()
}

fn sent(request: &ModelRequest) -> Result<(String, Value), Fault> {
    encoded(WireKind::Predictions.wire(), request, &Quirks::default())
}

#[test]
fn images_are_asked_for_as_predictions() {
    let plain = |more: Value| {
        let (path, body) = sent(&image(&more)).unwrap();
        assert!(path.ends_with("/models/up%20x:predict"), "{path}");
        assert_eq!(body["instances"], json!([{"prompt": "a \"cat\""}]));
        body["parameters"].clone()
    };
    assert_eq!(
        plain(json!({})),
        json!({"sampleCount": 1, "includeRaiReason": true})
    );
    let all = json!({"n": 2, "size": "2048x2048", "output_format": "jpeg", "output_compression": 80, "user": "ann",
        "negativePrompt": "dogs", "sampleCount": 9, "storageUri": "gs://a/b", "stream": true, "partial_images": 1});
    let expected = json!({"sampleCount": 2, "includeRaiReason": true, "aspectRatio": "1:1", "sampleImageSize": "2K",
        "outputOptions": {"mimeType": "image/jpeg", "compressionQuality": 80}, "negativePrompt": "dogs"});
    assert_eq!(plain(all), expected);
    for (more, ratio, size) in [
        (json!({"size": "1024x1024"}), json!("1:1"), Value::Null),
        (json!({"size": "2k"}), Value::Null, json!("2K")),
        (
            json!({"size": "1K", "aspect_ratio": "9:16"}),
            json!("9:16"),
            json!("1K"),
        ),
    ] {
        let parameters = plain(more);
        assert_eq!(
            (&parameters["aspectRatio"], &parameters["sampleImageSize"]),
            (&ratio, &size)
        );
    }
    for (more, param) in [
        (json!({"size": "1000x100"}), "size"),
        (json!({"size": "huge"}), "size"),
        (json!({"aspect_ratio": "3:2"}), "aspect_ratio"),
        (json!({"output_format": "webp"}), "output_format"),
    ] {
        let fault = sent(&image(&more)).unwrap_err();
        assert_eq!((fault.status(), fault.param.as_deref()), (400, Some(param)));
    }
    let many = image(&json!({"n": 6}));
    let (quirks, told) = (
        Quirks::default(),
        WireKind::Predictions.wire().defaults().parameters,
    );
    let target = Target {
        parameters: &told,
        part: 1,
        ..target(&quirks)
    };
    let codec = WireKind::Predictions.wire().codec_of(&many);
    assert_eq!(codec.parts(&many, &target).count, 2);
    let body = WireKind::Predictions.wire().encode(&many, &target).unwrap();
    let body: Value = serde_json::from_slice(&body.concat()).unwrap();
    assert_eq!(body["parameters"]["sampleCount"], 2);
}

/// Takes an answer with images.
#[derive(Default)]
struct Drawing {
    got: Got,
    is_filtered: bool,
}

impl Sink for Drawing {
    fn item(&mut self, item: &[u8]) {
        self.got.item(item);
    }

    fn member(&mut self, key: &str, value: &str) {
        self.got.member(key, value);
    }

    fn pieces(&mut self, _: u32, pieces: &[Piece<'_>]) {
        self.is_filtered |= matches!(pieces, [Piece::Finish(Finish::Filtered)]);
    }

    fn usage(&mut self, usage: Usage) {
        self.got.usage(usage);
    }
}

fn drawn(reply: &str) -> Result<Drawing, Failure> {
    let (quirks, request) = (Quirks::default(), image(&json!({})));
    let head = ReplyHead::new(200, b"application/json");
    let wire = WireKind::Predictions.wire();
    let mut decoder = decode_reply(wire, &request, &target(&quirks), &head).unwrap();
    let mut drawing = Drawing::default();
    decoder.feed(&reply.to_owned().into(), &mut drawing)?;
    decoder.end(&mut drawing)?;
    Ok(drawing)
}

#[test]
fn predictions_of_images_become_items_unless_a_filter_has_refused_them() {
    let reply = json!({"predictions": [{"raiFilteredReason": "no"}, {"bytesBase64Encoded": "aGk=", "mimeType": "image/png", "prompt": "a cat"},
        {"bytesBase64Encoded": "aG8=", "mimeType": "image/png"}], "deployedModelId": "1"});
    let drawing = drawn(&reply.to_string()).unwrap();
    let items = [
        json!({"b64_json": "aGk=", "revised_prompt": "a cat"}),
        json!({"b64_json": "aG8="}),
    ];
    assert_eq!(drawing.got.items, items);
    assert_eq!(
        drawing.got.members,
        [("output_format".to_owned(), json!("png"))]
    );
    assert_eq!(drawing.got.usage, Some(Usage::default()));
    assert!(!drawing.is_filtered);
    for reply in [
        json!({"predictions": []}),
        json!({"predictions": [{"raiFilteredReason": "no"}]}),
        json!({"predictions": [7, {"bytesBase64Encoded": 7}, {"bytesBase64Encoded": ""}]}),
    ] {
        let drawing = drawn(&reply.to_string()).unwrap();
        assert!(drawing.is_filtered && drawing.got.items.is_empty());
    }
    for bad in [
        "",
        "{}",
        "[]",
        "{\"predictions\": 7}",
        "{\"predictions\": [",
        "null",
    ] {
        let failure = drawn(bad).err().unwrap();
        assert_eq!(failure.kind, FailureKind::Malformed, "{bad}");
    }
    let error = json!({"error": {"code": 503, "message": "busy"}});
    for reply in [&error, &json!([error])] {
        let failure = drawn(&reply.to_string()).err().unwrap();
        assert_eq!(failure.kind, FailureKind::Status(503));
    }
}
