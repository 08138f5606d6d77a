#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::Videos;
use crate::fault::Fault;
use crate::models::check::samples::{NO_PICTURES, PIXEL};
use crate::models::front::{Front, Received};
use crate::models::fronts::tests::complete;
use crate::models::reply::ReplyIdentity;
use crate::models::request::ModelRequest;
use crate::models::usage::Usage;
use crate::money::Unit;

fn checked(more: &Value) -> Result<ModelRequest, Fault> {
    let mut body = json!({"model": "m", "prompt": "a cat", "seconds": 8});
    let members = body.as_object_mut().unwrap();
    for (key, value) in more.as_object().unwrap() {
        members.insert(key.clone(), value.clone());
    }
    members.retain(|_, value| *value != json!("absent"));
    Videos.parse(body.to_string().into())
}

/// Contract: model-gateway 2.17 seconds
/// Contract: model-gateway 2.17 reference_images
/// Contract: model-gateway 2.17 reference_videos
#[test]
fn what_is_asked_is_counted() {
    let request =
        checked(&json!({"seconds": "4", "size": "1920x1080", "audio": null, "x": 1})).unwrap();
    let facts = request.payload.video().unwrap();
    assert_eq!(
        (facts.seconds, facts.size.width, facts.audio),
        (4, 1920, None)
    );
    assert_eq!(request.units.get(Unit::OutputTime), 4_000);
    assert_eq!(request.cost_inputs.units.get(Unit::OutputTime), 4_000);
    assert_eq!(request.text_bytes, 5);
    assert!(!request.needs.vision);
    let frames = json!({"image": PIXEL, "last_frame": {"image_url": {"url": "https://a.test/b"}}});
    let request = checked(&frames).unwrap();
    let facts = request.payload.video().unwrap();
    assert!(facts.image.is_some() && facts.last_frame.is_some() && request.needs.vision);
    let references = json!({"reference_images": [PIXEL, {"image_url": PIXEL}], "input_reference": PIXEL,
                            "reference_videos": [{"video_url": "https://a.test/b"}]});
    let request = checked(&references).unwrap();
    let facts = request.payload.video().unwrap();
    assert_eq!(
        (facts.reference_images.len(), facts.reference_media),
        (3, Some("reference_videos"))
    );
    let callback = json!({"callback_url": "https://a.test/b", "callback_secret": "s"});
    let request = checked(&callback).unwrap();
    let callback = request.payload.video().unwrap().callback.clone().unwrap();
    assert_eq!(
        (&*callback.url, &*callback.secret),
        ("https://a.test/b", "s")
    );
}

/// Contract: model-gateway 2.17 prompt
/// Contract: model-gateway 2.17 seconds
/// Contract: model-gateway 2.17 audio
/// Contract: model-gateway 2.17 image
/// Contract: model-gateway 2.17 reference_images
/// Contract: model-gateway 2.17 reference_videos
/// Contract: model-gateway 2.17 callback_url
#[test]
fn each_bad_field_is_named() {
    for (more, param) in [
        (json!({"model": "absent"}), "model"),
        (json!({"model": ""}), "model"),
        (json!({"prompt": "absent"}), "prompt"),
        (json!({"prompt": ""}), "prompt"),
        (json!({"prompt": " \n"}), "prompt"),
        (json!({"prompt": null}), "prompt"),
        (json!({"prompt": "a".repeat(40_000)}), "prompt"),
        (json!({"seconds": "absent"}), "seconds"),
        (json!({"seconds": 0}), "seconds"),
        (json!({"seconds": 4.5}), "seconds"),
        (json!({"seconds": 601}), "seconds"),
        (json!({"seconds": "8s"}), "seconds"),
        (json!({"seconds": ""}), "seconds"),
        (json!({"seconds": null}), "seconds"),
        (json!({"size": "big"}), "size"),
        (json!({"size": 720}), "size"),
        (json!({"size": "0x0"}), "size"),
        (json!({"audio": "yes"}), "audio"),
        (json!({"n": 2}), "n"),
        (json!({"image": 7}), "image"),
        (json!({"image": {}}), "image.image_url"),
        (json!({"image": "http://a.test/b"}), "image"),
        (
            json!({"image": {"image_url": "data:text/plain;base64,YQ=="}}),
            "image.image_url",
        ),
        (json!({"last_frame": PIXEL}), "last_frame"),
        (
            json!({"image": PIXEL, "reference_images": [PIXEL]}),
            "image",
        ),
        (json!({"reference_images": []}), "reference_images"),
        (
            json!({"reference_images": [PIXEL, PIXEL, PIXEL, PIXEL]}),
            "reference_images[3]",
        ),
        (
            json!({"reference_videos": ["http://a.test/b"]}),
            "reference_videos[0]",
        ),
        (
            json!({"reference_audios": [{}]}),
            "reference_audios[0].audio_url",
        ),
        (
            json!({"callback_url": "https://a.test/b"}),
            "callback_secret",
        ),
        (json!({"callback_secret": "s"}), "callback_url"),
        (
            json!({"callback_url": "https://u@a.test/b", "callback_secret": "s"}),
            "callback_url",
        ),
        (
            json!({"callback_url": "file:///etc/passwd", "callback_secret": "s"}),
            "callback_url",
        ),
        (
            json!({"callback_url": "https://", "callback_secret": "s"}),
            "callback_url",
        ),
        (
            json!({"callback_url": "https://a.test/ b", "callback_secret": "s"}),
            "callback_url",
        ),
        (
            json!({"callback_url": "https://a.test/b", "callback_secret": ""}),
            "callback_secret",
        ),
    ] {
        let fault = checked(&more).unwrap_err();
        assert_eq!(
            (fault.status(), fault.param.as_deref()),
            (400, Some(param)),
            "{more}: {fault:?}"
        );
    }
}

/// Contract: model-gateway 2.17 image
#[test]
fn a_picture_is_judged_as_by_other_operations() {
    for (url, why) in NO_PICTURES {
        let nested = json!({"image_url": {"url": url}});
        for (more, param) in [
            (json!({"image": url}), "image"),
            (
                json!({"image": PIXEL, "last_frame": nested}),
                "last_frame.image_url.url",
            ),
            (
                json!({"reference_images": [PIXEL, url]}),
                "reference_images[1]",
            ),
            (json!({"input_reference": url}), "input_reference"),
        ] {
            let fault = checked(&more).unwrap_err();
            let named = (fault.status(), fault.param.as_deref());
            assert_eq!(named, (400, Some(param)), "{more}: {fault}");
            assert!(fault.message.contains(why), "{url}: {fault}");
        }
    }
    for (more, param) in [
        (
            json!({"reference_videos": ["https://10.0.0.1/a.mp4"]}),
            "reference_videos[0]",
        ),
        (
            json!({"reference_audios": [{"audio_url": "https://a@b.test/a.mp3"}]}),
            "reference_audios[0].audio_url",
        ),
    ] {
        let fault = checked(&more).unwrap_err();
        let named = (fault.param.as_deref(), fault.code());
        assert_eq!(
            named,
            (Some(param), Some("destination_ip_prohibited")),
            "{more}: {fault}"
        );
    }
}

/// Contract: model-gateway 4 POST /v1/videos
#[test]
fn a_form_says_the_same() {
    let part = |name: &str, text: &str| {
        format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n")
    };
    let file = "--b\r\nContent-Disposition: form-data; name=\"input_reference\"; filename=\"a.png\"\r\n\r\n\
                \u{89}PNG";
    let mut body: Vec<u8> = [
        part("model", "m"),
        part("prompt", "a cat"),
        part("seconds", "4"),
    ]
    .concat()
    .into();
    body.extend(file.split('\u{89}').next().unwrap().as_bytes());
    body.extend(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01");
    body.extend(b"\r\n--b--\r\n");
    let Received::Complete(request) = Videos.read_form(&body.into(), "b").unwrap() else {
        unreachable!("a form names no prompt")
    };
    let facts = request.payload.video().unwrap();
    assert_eq!((facts.seconds, facts.reference_images.len()), (4, 1));
    let fault = Videos
        .read_form(&part("model", "m").into_bytes().into(), "b")
        .unwrap_err();
    assert_eq!(fault.status(), 400);
}

#[test]
fn the_answer_is_a_queued_job() {
    let request = checked(&json!({})).unwrap();
    let identity = ReplyIdentity {
        id: "1".into(),
        created: 5,
        model: "here/m".into(),
        maker: "here/m".into(),
    };
    let mut writer = Videos.writer(&request, identity);
    assert!(writer.lack().is_some() && writer.job().is_none());
    writer.identity(Some("up_1"), None);
    assert_eq!((writer.lack(), writer.job()), (None, Some("up_1")));
    assert!(!writer.has_content());
    let job = complete(&mut *writer, Usage::default());
    assert_eq!(
        (&job["object"], &job["status"], &job["model"]),
        (&json!("video"), &json!("queued"), &json!("here/m"))
    );
    assert_eq!(
        (&job["seconds"], &job["size"], &job["created_at"]),
        (&json!("8"), &json!("1280x720"), &json!(5))
    );
}

proptest! {
    #[test]
    fn no_body_breaks_the_front(body in prop::collection::vec(any::<u8>(), 0..200), text in ".{0,80}") {
        _ = Videos.parse(body.clone().into());
        _ = Videos.read_form(&body.into(), "b");
        _ = checked(&json!({"seconds": text, "size": text}));
    }
}
