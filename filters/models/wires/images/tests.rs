#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::fault::Fault;
use crate::models::chat::inlined::{InlinedImage, InlinedImages};
use crate::models::front::Front;
use crate::models::fronts::images::{ImageEdits, ImageGenerations};
use crate::models::operation::Operation;
use crate::models::reply::Sink;
use crate::models::request::ModelRequest;
use crate::models::routing::parameters::Parameters;
use crate::models::usage::Usage;
use crate::models::wires::tests::replay;
use crate::models::wires::{
    EventFraming, Failure, FailureKind, Progress, Quirks, ReplyHead, Target, WireKind, decode_reply,
};

/// One transparent pixel.
const GIF: &[u8] = b"GIF89a\x01\0\x01\0";
const PNG: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB";

fn with_target<T>(
    kind: WireKind,
    inlined: &InlinedImages,
    run: impl FnOnce(&Target<'_>) -> T,
) -> T {
    let told = replay::told(kind.wire(), None, &[]);
    let quirks = Quirks::default();
    run(&Target {
        image_output: Some(true),
        parameters: &told.parameters,
        thinking: &told.thinking,
        inlined,
        ..Target::plain("p", "up", &quirks)
    })
}

fn generation(more: Value) -> ModelRequest {
    let mut body = json!({"model": "m", "prompt": "A \"cat\""});
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    ImageGenerations.parse(body.to_string().into()).unwrap()
}

fn edit(images: &[&str], more: Value) -> ModelRequest {
    let images: Vec<Value> = images
        .iter()
        .map(|url| json!({ "image_url": url }))
        .collect();
    let mut body = json!({"model": "m", "prompt": "A cat", "images": images});
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    ImageEdits.parse(body.to_string().into()).unwrap()
}

fn sent(kind: WireKind, request: &ModelRequest) -> Result<Vec<u8>, Fault> {
    let mut inlined = InlinedImages::default();
    let fetched = Arc::new(InlinedImage::read(GIF).unwrap());
    inlined.add("https://a.test/x", fetched);
    with_target(kind, &inlined, |target| {
        Ok(kind.wire().encode(request, target)?.concat())
    })
}

fn sent_json(kind: WireKind, request: &ModelRequest) -> Value {
    serde_json::from_slice(&sent(kind, request).unwrap()).unwrap()
}

const ALL: &str = r#"{"n": 3, "size": "1536x1024", "quality": "high", "moderation": "low", "background": "opaque",
    "output_format": "webp", "output_compression": 80, "service_tier": "flex", "stream": true, "partial_images": 2,
    "user": "ann", "complexity": "low", "num_images": 9}"#;

/// Contract: model-gateway 2.7 n
/// Contract: model-gateway 2.7 service_tier
/// Contract: model-gateway 2.7 user
/// Contract: model-gateway 2.7 others
#[test]
fn a_generation_goes_out_with_all_its_options() {
    let request = generation(serde_json::from_str(ALL).unwrap());
    let expected = json!({"model": "up", "prompt": "A \"cat\"", "n": 3, "size": "1536x1024", "quality": "high",
        "moderation": "low", "background": "opaque", "output_format": "webp", "output_compression": 80,
        "service_tier": "flex", "stream": true, "partial_images": 2, "complexity": "low"});
    assert_eq!(sent_json(WireKind::Images, &request), expected);
    let head = |operation| {
        WireKind::Images
            .wire()
            .head(operation, true, "up", &Quirks::default())
    };
    let head_of = head(Operation::Images).unwrap();
    assert_eq!(
        (&*head_of.path, head_of.headers.len()),
        ("/images/generations", 0)
    );
    assert!(head(Operation::Chat).is_none());
    let plain = json!({"model": "up", "prompt": "A \"cat\""});
    assert_eq!(sent_json(WireKind::Images, &generation(json!({}))), plain);
}

/// Contract: model-gateway 2.7 aspect_ratio
/// Contract: model-gateway 2.7 size+
/// Contract: model-gateway 2.7 aspect_ratio+
#[test]
fn a_ratio_takes_precedence_over_a_size() {
    let request = generation(json!({"aspect_ratio": "2:3", "size": "1024x1024"}));
    assert_eq!(sent_json(WireKind::Images, &request)["size"], "1024x1536");
    let request = generation(json!({"aspect_ratio": "2:3", "size": "2048x2048"}));
    let expected = json!({"model": "up", "prompt": "A \"cat\"", "aspect_ratio": "2:3", "resolution": "2k",
        "response_format": "b64_json"});
    assert_eq!(sent_json(WireKind::ImagesByRatio, &request), expected);
    let by_size = generation(json!({"size": "1792x1024", "quality": "low"}));
    let sent = sent_json(WireKind::ImagesByRatio, &by_size);
    let expected = json!(["16:9", "1k", "low"]);
    assert_eq!(
        json!([sent["aspect_ratio"], sent["resolution"], sent["quality"]]),
        expected
    );
}

/// Contract: model-gateway 2.7 style+
#[test]
fn a_style_goes_to_who_passes_it() {
    let request = generation(json!({"style": "vivid"}));
    let quirks = Quirks::default();
    let target = Target {
        image_output: Some(true),
        parameters: Parameters::PLAIN,
        ..Target::plain("p", "up", &quirks)
    };
    let body = WireKind::Images.wire().encode(&request, &target).unwrap();
    let passed: Value = serde_json::from_slice(&body.concat()).unwrap();
    assert_eq!(passed["style"], "vivid");
    let usual = sent_json(WireKind::Images, &request);
    assert_eq!(usual.get("style"), None, "{usual}");
}

#[test]
fn what_has_no_word_is_refused_by_name() {
    let (sizes, ratios) = (WireKind::Images, WireKind::ImagesByRatio);
    for (kind, more, param) in [
        (sizes, json!({"aspect_ratio": "16:9"}), "aspect_ratio"),
        (sizes, json!({"size": "4K"}), "size"),
        (ratios, json!({"size": "4K"}), "size"),
        (ratios, json!({"size": "1000x10"}), "size"),
    ] {
        let fault = sent(kind, &generation(more)).unwrap_err();
        assert_eq!(fault.param.as_deref(), Some(param));
        assert_eq!(fault.status(), 400);
    }
    let fault = sent(ratios, &edit(&[PNG; 4], json!({}))).unwrap_err();
    assert_eq!(fault.param.as_deref(), Some("images"));
}

/// The parts of a form: their heads and their contents.
fn parts(body: &[u8], boundary: &str) -> Vec<(String, Vec<u8>)> {
    let text: String = body.iter().map(|b| char::from(*b)).collect();
    let mut pieces: Vec<&str> = text.split(&format!("--{boundary}")).collect();
    assert_eq!((pieces.remove(0), pieces.pop()), ("", Some("--\r\n")));
    let part = |piece: &str| {
        let piece = piece
            .strip_prefix("\r\n")
            .unwrap()
            .strip_suffix("\r\n")
            .unwrap();
        let (head, content) = piece.split_once("\r\n\r\n").unwrap();
        let content = content.chars().map(|c| u8::try_from(c).unwrap()).collect();
        (head.to_owned(), content)
    };
    pieces.into_iter().map(part).collect()
}

#[test]
fn an_edit_is_a_form_with_a_file_for_each_image() {
    let more = json!({"n": 2, "input_fidelity": "high", "size": "1024x1024"});
    let body = sent(WireKind::Images, &edit(&[PNG, "https://a.test/x"], more)).unwrap();
    let head = WireKind::Images
        .wire()
        .head(Operation::ImageEdits, false, "up", &Quirks::default());
    let head = head.unwrap();
    assert_eq!(head.path, "/images/edits");
    let media_type = head.headers[0].1.to_str().unwrap().to_owned();
    let boundary = media_type
        .strip_prefix("multipart/form-data; boundary=")
        .unwrap();
    let parts = parts(&body, boundary);
    let disposition = |name: &str| format!("content-disposition: form-data; name=\"{name}\"");
    let fields = [
        ("model", "up"),
        ("prompt", "A cat"),
        ("n", "2"),
        ("input_fidelity", "high"),
        ("size", "1024x1024"),
    ];
    for ((head, content), (name, value)) in parts.iter().zip(fields) {
        assert_eq!(
            (&**head, &**content),
            (&*disposition(name), value.as_bytes())
        );
    }
    let file = |at: usize, kind: &str| {
        let head = disposition("image[]");
        format!("{head}; filename=\"image-{at}.{kind}\"\r\ncontent-type: image/{kind}")
    };
    assert_eq!(parts[5].0, file(0, "png"));
    assert!(parts[5].1.starts_with(b"\x89PNG\r\n\x1a\n"));
    assert_eq!(parts[6], (file(1, "gif"), GIF.to_vec()));
    let one = sent(WireKind::Images, &edit(&[PNG], json!({}))).unwrap();
    assert!(String::from_utf8_lossy(&one).contains("name=\"image\"; filename"));
}

#[test]
fn nobody_adds_parts_to_a_form() {
    let boundary = "weirgate-Zp4Fq7Xw2Ks9Rv1Tn6Hb";
    let prompt =
        format!("x\r\n--{boundary}\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\nbig");
    let fault = sent(WireKind::Images, &edit(&[PNG], json!({ "prompt": prompt }))).unwrap_err();
    assert_eq!(
        (fault.status(), fault.param.as_deref()),
        (400, Some("prompt"))
    );
    let key = format!("a--{boundary}");
    assert!(sent(WireKind::Images, &edit(&[PNG], json!({ key: 1 }))).is_err());
    let quoted = sent(WireKind::Images, &edit(&[PNG], json!({"a\"\r\nb": "c"}))).unwrap();
    assert!(String::from_utf8_lossy(&quoted).contains("name=\"a%22%0D%0Ab\"\r\n\r\nc\r\n"));
}

#[test]
fn an_edit_by_ratio_is_json_with_what_was_fetched() {
    let one = sent_json(
        WireKind::ImagesByRatio,
        &edit(&["https://a.test/x"], json!({})),
    );
    let url = InlinedImage::read(GIF).unwrap().url;
    assert_eq!(one["image"], json!({"type": "image_url", "url": url}));
    let three = sent_json(WireKind::ImagesByRatio, &edit(&[PNG; 3], json!({})));
    assert_eq!(three["images"].as_array().unwrap().len(), 3);
    assert_eq!(three["images"][2]["url"], PNG);
}

/// What a sink has taken.
#[derive(Debug, Default)]
struct Taken {
    items: Vec<Value>,
    partial: Vec<Value>,
    members: Vec<(String, String)>,
    usage: Option<Usage>,
    is_filtered: bool,
}

impl Sink for Taken {
    fn pieces(&mut self, _: u32, pieces: &[crate::models::chat::piece::Piece<'_>]) {
        let is_end = |piece: &_| matches!(piece, crate::models::chat::piece::Piece::Finish(_));
        self.is_filtered |= pieces.iter().any(is_end);
    }
    fn item(&mut self, item: &[u8]) {
        self.items.push(serde_json::from_slice(item).unwrap());
    }
    fn partial(&mut self, item: &[u8]) {
        self.partial.push(serde_json::from_slice(item).unwrap());
    }
    fn member(&mut self, key: &str, value: &str) {
        self.members.push((key.to_owned(), value.to_owned()));
    }
    fn usage(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }
}

fn read(
    status: u16,
    is_event_stream: bool,
    request: &ModelRequest,
    body: &str,
) -> Result<Taken, Failure> {
    let kind = WireKind::Images;
    let head = ReplyHead {
        is_by_quota: false,
        status,
        events: is_event_stream.then_some(EventFraming::Sse),
        file: None,
        prompt_tokens: None,
    };
    let mut taken = Taken::default();
    with_target(kind, InlinedImages::NONE, |target| {
        let mut decoder = decode_reply(kind.wire(), request, target, &head).unwrap();
        let body = Bytes::copy_from_slice(body.as_bytes());
        if decoder.feed(&body, &mut taken)? == Progress::Open {
            assert_eq!(decoder.end(&mut taken)?, Progress::Complete);
        }
        Ok(taken)
    })
}

#[test]
fn a_whole_reply_is_read() {
    let body = json!({"created": 5, "background": "opaque", "output_format": "png", "quality": "high", "size": "1024x1024",
        "data": [{"b64_json": "YQ==", "revised_prompt": "A cat"}, {"b64_json": "Yg=="}],
        "usage": {"input_tokens": 50, "output_tokens": 300, "total_tokens": 350,
            "input_tokens_details": {"text_tokens": 10, "image_tokens": 40}}});
    let taken = read(200, false, &generation(json!({"n": 2})), &body.to_string()).unwrap();
    let items = json!([{"b64_json": "YQ==", "revised_prompt": "A cat"}, {"b64_json": "Yg=="}]);
    assert_eq!(json!(taken.items), items);
    assert_eq!(taken.members.len(), 4);
    let usage = taken.usage.unwrap();
    assert_eq!((usage.prompt, usage.image_prompt), (50, 40));
    assert_eq!((usage.completion, usage.image_completion), (300, 300));
}

#[test]
fn a_reply_without_an_image_of_its_own_is_malformed() {
    for body in [
        json!({"data": [{"url": "https://a.test/x.png"}]}).to_string(),
        json!({"created": 1}).to_string(),
        "<html>".to_owned(),
        "[]".to_owned(),
    ] {
        let failure = read(200, false, &generation(json!({})), &body).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Malformed, "{body}");
    }
    let error = json!({"error": {"message": "busy", "code": "overloaded"}}).to_string();
    assert!(read(200, false, &generation(json!({})), &error).is_err());
}

#[test]
fn a_filter_that_refuses_is_an_answer_without_images() {
    for (status, code, is_answer) in [
        (400, "moderation_blocked", true),
        (400, "content_policy_violation", true),
        (400, "invalid_value", false),
        (200, "content_policy_violation", true),
    ] {
        let body = json!({"error": {"message": "no", "code": code}}).to_string();
        let taken = read(status, false, &generation(json!({})), &body);
        assert_eq!(taken.is_ok(), is_answer, "{status} {code}");
        if let Ok(taken) = taken {
            assert!(taken.is_filtered && taken.items.is_empty());
            assert_eq!(taken.usage, Some(Usage::default()));
        }
    }
}

#[test]
fn the_events_of_a_stream_are_read() {
    let partial = json!({"type": "image_generation.partial_image", "b64_json": "YQ==", "partial_image_index": 1,
        "size": "1024x1024", "created_at": 5});
    let completed = json!({"type": "image_generation.completed", "b64_json": "Yg==", "output_format": "png",
        "usage": {"input_tokens": 1, "output_tokens": 2, "output_tokens_details": {"image_tokens": 2}}});
    let stream = format!("event: x\ndata: {partial}\n\ndata: {completed}\n\n");
    let request = generation(json!({"stream": true}));
    let taken = read(200, true, &request, &stream).unwrap();
    assert_eq!(
        json!(taken.partial),
        json!([{"b64_json": "YQ==", "partial_image_index": 1}])
    );
    assert_eq!(json!(taken.items), json!([{"b64_json": "Yg=="}]));
    assert_eq!(taken.usage.unwrap().image_completion, 2);
    let cut = format!("data: {partial}\n\n");
    let failure = read(200, true, &request, &cut).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Truncated);
    let error = json!({"type": "error", "error": {"message": "x", "code": "moderation_blocked"}});
    let taken = read(200, true, &request, &format!("data: {error}\n\n")).unwrap();
    assert!(taken.is_filtered);
}
