#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{ImageEdits, ImageGenerations};
use crate::fault::Fault;
use crate::models::chat::piece::{Finish, Image, Piece};
use crate::models::front::Front;
use crate::models::images::ImageOptions;
use crate::models::metadata::{AnswerMembers, Metadata, UsedNames};
use crate::models::operation::Operation;
use crate::models::parameter::Parameter;
use crate::models::reply::{ReplyIdentity, Writer};
use crate::models::request::ModelRequest;
use crate::models::routing::parameters::Parameters;
use crate::models::usage::{Settlement, Unread, Usage};
use crate::models::wires::{BodySlice, Quirks, Target, WireKind};
use crate::money::UnitCounts;

/// The head of an image of 2 by 3 pixels.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x03\x08\x06\0\0\0";

fn data_url(bytes: &[u8]) -> String {
    format!("data:image/png;base64,{}", STANDARD.encode(bytes))
}

fn generated(more: Value) -> Result<ModelRequest, Fault> {
    let mut body = json!({"model": "m", "prompt": "A cat"});
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    ImageGenerations.parse(body.to_string().into())
}

fn edited(more: Value) -> Result<ModelRequest, Fault> {
    let images = json!([{"image_url": "https://a.test/x.png"}, {"image_url": data_url(PNG)}]);
    let mut body = json!({"model": "m", "prompt": "A cat", "images": images});
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    ImageEdits.parse(body.to_string().into())
}

/// The chat by which a provider of the chat convention draws.
fn chat(request: &ModelRequest) -> Value {
    let quirks = Quirks::default();
    let parameters = Parameters::plain();
    let target = Target {
        parameters: &parameters,
        ..Target::plain("p", "up", &quirks)
    };
    let codec = WireKind::Compatible
        .wire()
        .codec(request.payload.operation())
        .unwrap();
    let slices = codec.encode(request, &target).unwrap();
    let bytes = slices.into_iter().flat_map(|slice| match slice {
        BodySlice::Bytes(bytes) => bytes,
        BodySlice::Upload(range) => unreachable!("{range:?} was not uploaded"),
    });
    serde_json::from_slice(&bytes.collect::<Vec<u8>>()).unwrap()
}

/// Contract: model-gateway 2.7 aspect_ratio+
/// Contract: model-gateway 2.7 quality+
/// Contract: model-gateway 2.7 user
#[test]
fn a_request_stands_for_a_chat_that_draws() {
    let request = generated(
        json!({"n": 3, "size": "1024x1024", "quality": "hd", "moderation": "low",
        "aspect_ratio": "auto", "service_tier": "flex", "style": null, "user": "ann"}),
    )
    .unwrap();
    let expected = json!({"model": "up", "service_tier": "flex", "modalities": ["image", "text"],
        "messages": [{"role": "user", "content": "A cat"}],
        "image_config": {"image_size": "1024x1024", "image_quality": "high", "moderation": "low", "n": 3}});
    assert_eq!(chat(&request), expected);
    assert_eq!(request.payload.operation(), Operation::Images);
    assert_eq!(request.needs.image_output, Some(true));
    assert_eq!((request.cost_inputs.choices, request.text_bytes), (3, 5));
    assert_eq!(request.session.as_deref(), Some("ann"));
    assert!(!request.needs.vision && !request.is_stream);

    let request = edited(
        json!({"stream": true, "output_format": "webp", "output_compression": 0, "top": {"a": 1}}),
    )
    .unwrap();
    let chat = chat(&request);
    let parts = &chat["messages"][0]["content"];
    assert_eq!(parts[0], json!({"type": "text", "text": "A cat"}));
    assert_eq!(parts[2]["image_url"]["url"], data_url(PNG));
    assert_eq!(chat["stream"], true);
    assert_eq!(chat["image_config"], json!({"n": 1}));
    assert_eq!(request.payload.operation(), Operation::ImageEdits);
    let facts = request.payload.images().unwrap();
    let options = ImageOptions {
        output_format: Some("webp"),
        output_compression: Some(0),
        ..ImageOptions::default()
    };
    assert_eq!(facts.options, options);
    let text = |place: &std::ops::Range<usize>| request.source.body[place.clone()].to_vec();
    assert_eq!(text(&facts.prompt), b"\"A cat\"");
    assert_eq!(text(&facts.images[0]), b"\"https://a.test/x.png\"");
    let remote = request.payload.remote_images();
    assert_eq!(
        (remote.len(), &*remote[0].param),
        (1, "images[0].image_url")
    );
    assert!(request.needs.vision && request.needs.media.remote_images);
    assert_eq!(request.needs.media.images, ["image/png".into()]);
}

/// Contract: model-gateway 2.7 size+
/// Contract: model-gateway 2.7 quality+
#[test]
fn what_asks_for_nothing_is_not_asked_of_a_provider() {
    let set = |request: ModelRequest| request.asked.set.iter().collect::<Vec<_>>();
    let plain = json!({"size": "auto", "quality": "standard", "moderation": "auto", "background": "auto", "n": 1});
    assert_eq!(set(generated(plain).unwrap()), []);
    let auto = json!({"quality": "auto", "aspect_ratio": "auto"});
    assert_eq!(set(generated(auto).unwrap()), []);
    assert_eq!(set(edited(json!({"input_fidelity": "low"})).unwrap()), []);
    let all = json!({"size": "2K", "aspect_ratio": "3:2", "quality": "max", "style": "vivid", "output_format": "png"});
    let expected = [
        Parameter::ImageAspectRatio,
        Parameter::ImageSize,
        Parameter::ImageQuality,
        Parameter::ImageStyle,
        Parameter::OutputFormat,
    ];
    assert_eq!(set(generated(all).unwrap()), expected);
}

/// Contract: model-gateway 2.7 model
#[test]
fn without_a_model_it_is_auto() {
    let request = ImageGenerations.parse(br#"{"prompt":"x"}"#[..].into());
    assert_eq!(&*request.unwrap().model, "auto");
}

fn refused(parsed: Result<ModelRequest, Fault>, param: &str, said: &str) {
    let fault = parsed.unwrap_err();
    assert_eq!(
        (fault.status(), fault.param.as_deref()),
        (400, Some(param)),
        "{fault:?}"
    );
    assert!(fault.message.contains(said), "{fault:?}");
}

/// Contract: model-gateway 2.7 prompt
/// Contract: model-gateway 2.7 n
/// Contract: model-gateway 2.7 quality
/// Contract: model-gateway 2.7 style
/// Contract: model-gateway 2.7 moderation
/// Contract: model-gateway 2.7 mask
/// Contract: model-gateway 2.7 stream
#[test]
fn a_refusal_names_the_field_what_came_and_what_is_accepted() {
    for (key, value, said) in [
        ("prompt", json!(""), "empty"),
        ("prompt", json!(null), "null"),
        ("prompt", json!(["a"]), "array"),
        ("n", json!(0), "from 1 to 10"),
        ("n", json!(11), "from 1 to 10"),
        ("n", json!("2"), "string"),
        ("size", json!(1024), "number"),
        ("size", json!("x".repeat(65)), "64 bytes"),
        ("quality", json!("ultra"), "standard"),
        ("response_format", json!("url"), "b64_json"),
        ("style", json!("wild"), "vivid"),
        ("moderation", json!("none"), "auto"),
        ("service_tier", json!("gold"), "flex"),
        ("stream", json!("yes"), "boolean"),
        ("partial_images", json!(4), "from 0 to 3"),
        ("output_compression", json!(101), "from 0 to 100"),
        ("output_compression", json!(50), "output_format"),
        ("output_format", json!("gif"), "webp"),
        ("background", json!("red"), "transparent"),
        ("input_fidelity", json!("high"), "no image"),
        ("images", json!([]), "/v1/images/edits"),
        ("mask", json!("x"), "not supported"),
        ("model", json!("@prompt/x"), "only chats"),
    ] {
        refused(generated(json!({ key: value })), key, said);
    }
    refused(
        generated(json!({"output_compression": 1, "output_format": "png"})),
        "output_compression",
        "jpeg",
    );
    refused(
        ImageGenerations.parse(br#"{"model":"m"}"#[..].into()),
        "prompt",
        "missing",
    );
    for (key, value, said) in [
        ("quality", json!("hd"), "low, medium"),
        ("images", json!([]), "at least one"),
        ("images", json!("x"), "array"),
        ("image", json!("x"), "images"),
        ("mask", json!({}), "not supported"),
    ] {
        refused(edited(json!({ key: value })), key, said);
    }
    refused(
        ImageEdits.parse(br#"{"prompt":"x"}"#[..].into()),
        "images",
        "1 to 16",
    );
}

#[test]
fn images_that_are_none_or_too_many_or_too_large_are_refused() {
    let sized = |width: u32, height: u32| {
        let mut png = PNG.to_vec();
        png[16..20].copy_from_slice(&width.to_be_bytes());
        png[20..24].copy_from_slice(&height.to_be_bytes());
        data_url(&png)
    };
    let at = "images[0].image_url";
    for (image, param, said) in [
        (json!({}), at, "missing"),
        (json!("x"), "images[0]", "object"),
        (
            json!({"file_id": "file_1"}),
            "images[0].file_id",
            "one provider",
        ),
        (json!({"image_url": {"url": "x"}}), at, "object"),
        (json!({"image_url": ""}), at, "neither"),
        (
            json!({"image_url": "http://a.test/x.png"}),
            at,
            "plain http",
        ),
        (json!({"image_url": "ftp://a.test/x.png"}), at, "neither"),
        (
            json!({"image_url": "data:image/png;base64,%%%"}),
            at,
            "neither",
        ),
        (json!({"image_url": "data:image/png,abc"}), at, "neither"),
        (
            json!({"image_url": "data:image/png;base64,PGh0bWw+aGVsbG88L2h0bWw+"}),
            at,
            "no image",
        ),
        (
            json!({"image_url": data_url(PNG).replace("image/png", "text/html")}),
            at,
            "no image",
        ),
        (
            json!({"image_url": sized(50_000, 50_000)}),
            at,
            "50000 x 50000",
        ),
    ] {
        refused(edited(json!({"images": [image]})), param, said);
    }
    assert!(edited(json!({"images": [{"image_url": sized(8192, 8192)}]})).is_ok());
    let many = |count: usize| json!({"images": vec![json!({"image_url": data_url(PNG)}); count]});
    assert!(edited(many(16)).is_ok());
    refused(edited(many(17)), "images[16]", "more than 16");
}

#[test]
fn the_fields_of_the_chat_are_named_as_those_of_the_request() {
    let fault = Fault::invalid(
        "image_config.image_size",
        "no `image_config.image_size` here",
    );
    let fault = ImageEdits.explain(fault);
    assert_eq!(fault.param.as_deref(), Some("size"));
    assert_eq!(fault.message, "no `size` here");
    let other = Fault::invalid("images[0].image_url", "x");
    assert_eq!(ImageEdits.explain(other.clone()).param, other.param);
}

fn writer(is_stream: bool, is_edit: bool) -> Box<dyn Writer> {
    let identity = ReplyIdentity {
        id: "id".into(),
        created: 7,
        model: "p/m".into(),
        maker: "p/m".into(),
    };
    let stream = json!({ "stream": is_stream });
    match is_edit {
        true => ImageEdits.writer(&edited(stream).unwrap(), identity),
        false => ImageGenerations.writer(&generated(stream).unwrap(), identity),
    }
}

fn complete(writer: &mut dyn Writer) -> String {
    let usage = writer.reported().to_usage(5, true);
    let settlement = Settlement { usage, cost: None };
    let metadata = Metadata {
        request_id: "r",
        requested_model: "m",
        managed: None,
        requested_provider: None,
        organization_id: "o",
        project_id: "p",
        log_id: None,
        route: None,
        answer: AnswerMembers::Fresh {
            used: &UsedNames::new("m", "p", None, "u"),
            price: Default::default(),
            routing: &[],
        },
    };
    writer.complete(&settlement, &metadata);
    String::from_utf8(writer.take().to_vec()).unwrap()
}

const USAGE: Usage = Usage {
    prompt: 10,
    completion: 30,
    reasoning: None,
    cached: 0,
    cache_write: 0,
    cache_write_5m: None,
    cache_write_1h: None,
    audio_prompt: 0,
    image_prompt: 4,
    video_prompt: 0,
    audio_completion: 0,
    image_completion: 25,
    images: 0,
    web_searches: 0,
    units: UnitCounts::ZERO,
    estimated: false,
    is_api_equivalent: false,
    unread: Unread {
        prompt: false,
        completion: false,
    },
    set_aside: 0,
    billed_prompt: None,
    billed_completion: None,
};

fn images(items: &str) -> Piece<'_> {
    Piece::Image(Image::Said { items, count: 1 })
}

#[test]
fn images_of_a_chat_and_items_make_one_list() {
    let mut writer = writer(false, true);
    let item = json!({"type": "image_url", "image_url": {"url": data_url(PNG)}}).to_string();
    writer.pieces(0, &[images(&item)]);
    writer.item(br#"{"b64_json":"aGk=","revised_prompt":"A \"cat\""}"#);
    writer.member("quality", "\"high\"");
    writer.member("background", "\"auto\"");
    writer.member("service_tier", "\"flex\"");
    writer.usage(USAGE);
    assert!(writer.lack().is_none() && !writer.has_content());
    let list: Value = serde_json::from_str(&complete(&mut *writer)).unwrap();
    let usage = json!({"input_tokens": 10, "output_tokens": 30, "total_tokens": 40, "cost": null,
        "input_tokens_details": {"image_tokens": 4, "text_tokens": 6},
        "output_tokens_details": {"image_tokens": 25, "text_tokens": 5}});
    let expected = json!({"created": 7, "output_format": "png", "quality": "high", "usage": usage,
        "data": [{"b64_json": STANDARD.encode(PNG)}, {"b64_json": "aGk=", "revised_prompt": "A \"cat\""}]});
    assert_eq!(list, expected);
    assert_eq!(writer.reported().images, 2);
}

#[test]
fn a_filtered_request_is_an_empty_list_and_no_image_at_all_is_none() {
    let mut filtered = writer(false, false);
    filtered.pieces(0, &[Piece::Finish(Finish::Filtered)]);
    assert_eq!(filtered.lack(), None);
    let list: Value = serde_json::from_str(&complete(&mut *filtered)).unwrap();
    assert_eq!((&list["data"], &list["created"]), (&json!([]), &json!(7)));

    for (item, said) in [
        (
            r#"{"type":"image_url","image_url":{"url":"https://a.test"}}"#,
            "address",
        ),
        (r#"{"type":"text"}"#, "no image"),
        ("[1", "no image"),
    ] {
        let mut none = writer(false, false);
        none.pieces(0, &[images(item)]);
        assert!(none.lack().unwrap().contains(said), "{item}");
    }
}

fn events(text: &str) -> Vec<(String, Value)> {
    let events = text.split("\n\n").filter(|event| !event.is_empty());
    let read = |event: &str| {
        let (name, data) = event.split_once('\n').unwrap();
        let data = data.strip_prefix("data: ").unwrap();
        (name.to_owned(), serde_json::from_str(data).unwrap())
    };
    events.map(read).collect()
}

#[test]
fn a_stream_shows_unfinished_images_and_ends_with_the_usage() {
    let mut writer = writer(true, true);
    writer.partial(br#"{"b64_json":"YQ==","partial_image_index":0}"#);
    assert!(writer.has_content());
    writer.item(b"{\"b64_json\":\n\"aGk=\"}");
    writer.item(br#"{"b64_json":"aG8="}"#);
    writer.usage(USAGE);
    let events = events(&complete(&mut *writer));
    let names: Vec<&str> = events.iter().map(|(name, _)| &**name).collect();
    let completed = "event: image_edit.completed";
    assert_eq!(
        names,
        ["event: image_edit.partial_image", completed, completed]
    );
    let partial = json!({"type": "image_edit.partial_image", "created_at": 7, "b64_json": "YQ==", "partial_image_index": 0});
    assert_eq!(events[0].1, partial);
    assert_eq!(events[1].1["b64_json"], "aGk=");
    assert_eq!(events[1].1.get("usage"), None);
    assert_eq!(events[2].1["usage"]["output_tokens"], 30);
}

#[test]
fn parts_make_one_list_and_what_is_asked_for_again_is_dropped() {
    let one = |data: &str| format!("{{\"b64_json\":\"{data}\"}}").into_bytes();
    for is_stream in [false, true] {
        let identity = ReplyIdentity {
            id: "id".into(),
            created: 7,
            model: "p/m".into(),
            maker: "p/m".into(),
        };
        let request = generated(json!({"n": 2, "stream": is_stream})).unwrap();
        let mut writer = ImageGenerations.writer(&request, identity);
        writer.item(&one("YQ=="));
        writer.usage(USAGE);
        assert_eq!(writer.reported().images, 1);
        writer.end_part();
        assert!(writer.reported().usage.is_none() && !writer.has_content());
        writer.item(&one("broken"));
        writer.partial(&one("broken"));
        writer.begin_part();
        assert!(writer.lack().is_some());
        writer.item(&one("Yg=="));
        assert_eq!((writer.reported().images, writer.lack()), (1, None));
        let text = complete(&mut *writer);
        assert!(text.contains("YQ==") && text.contains("Yg==") && !text.contains("broken"));
        if is_stream {
            assert_eq!(events(&text).len(), 2, "{text}");
        }
    }
}

#[test]
fn a_filtered_stream_ends_with_an_error_and_a_broken_one_too() {
    let mut filtered = writer(true, false);
    filtered.pieces(0, &[Piece::Finish(Finish::Filtered)]);
    let events = events(&complete(&mut *filtered));
    assert_eq!(events[0].0, "event: error");
    let error = &events[0].1["error"];
    assert_eq!(error["code"], "content_policy_violation");
    assert_eq!(error["usage"]["info"], "estimated");
}
