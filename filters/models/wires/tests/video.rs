//! Videos: orders and reports of both wires as golden texts, and what hostile replies become.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::item::{encoded, target};
use super::{Failure, Quirks, ReplyHead, VideoWire, WireKind, decode_reply};
use crate::fault::Fault;
use crate::models::front::Front;
use crate::models::fronts::videos::Videos;
use crate::models::reply::Sink;
use crate::models::request::ModelRequest;
use crate::models::usage::Usage;
use crate::models::videos::progress::{Expiry, VideoReport};

const PIXEL: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUg==";

fn request(more: &Value) -> ModelRequest {
    let mut body = json!({"model": "m", "prompt": "a \"cat\"", "seconds": 8});
    let members = body.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    Videos.parse(body.to_string().into()).unwrap()
}

fn sent(kind: WireKind, more: &Value, quirks: &Quirks) -> Result<(String, Value), Fault> {
    encoded(kind.wire(), &request(more), quirks)
}

#[derive(Default)]
struct Job(Option<String>);

impl Sink for Job {
    fn identity(&mut self, id: Option<&str>, _: Option<u64>) {
        self.0 = id.map(str::to_owned);
    }

    fn usage(&mut self, _: Usage) {}
}

/// The id of the job that a reply names.
fn job(kind: WireKind, status: u16, reply: &[u8]) -> Result<Option<String>, Failure> {
    let quirks = Quirks::default();
    let head = ReplyHead::new(status, b"application/json");
    let request = request(&json!({}));
    let mut decoder = decode_reply(kind.wire(), &request, &target(&quirks), &head).unwrap();
    let mut job = Job::default();
    decoder.feed(&reply.to_vec().into(), &mut job)?;
    decoder.end(&mut job)?;
    Ok(job.0)
}

fn videos(kind: WireKind) -> &'static dyn VideoWire {
    kind.wire().videos.unwrap()
}

fn report(kind: WireKind, reply: &Value) -> Option<VideoReport> {
    let read = videos(kind).read_status(reply.to_string().as_bytes());
    read.ok()
}

/// Contract: model-gateway 2.17 audio
#[test]
fn an_order_goes_out_in_the_conventions_words_without_the_callback() {
    let more = json!({"size": "720x1280", "audio": false, "image": PIXEL, "x": 1,
                      "callback_url": "https://a.test/b", "callback_secret": "s"});
    let (path, body) = sent(WireKind::Compatible, &more, &Quirks::default()).unwrap();
    assert_eq!(path, "/videos");
    let expected = json!({"model": "up x", "prompt": "a \"cat\"", "seconds": "8", "size": "720x1280",
                          "audio": false, "image": PIXEL, "x": 1});
    assert_eq!(body, expected);
    let closed = Quirks {
        drop_unknown_fields: true,
        ..Quirks::default()
    };
    let (_, body) = sent(WireKind::Compatible, &json!({"x": 1}), &closed).unwrap();
    let expected =
        json!({"model": "up x", "prompt": "a \"cat\"", "seconds": "8", "size": "1280x720"});
    assert_eq!(body, expected);
}

/// Contract: model-gateway 2.17 audio
/// Contract: model-gateway 2.17 reference_images
#[test]
fn an_order_becomes_an_operation() {
    let more = json!({"size": "1080x1920", "audio": false, "image": PIXEL, "last_frame": {"image_url": PIXEL}});
    let (path, body) = sent(WireKind::Contents, &more, &Quirks::default()).unwrap();
    assert_eq!(path, "/v1beta/models/up%20x:predictLongRunning");
    let image = json!({"bytesBase64Encoded": "iVBORw0KGgoAAAANSUhEUg==", "mimeType": "image/png"});
    let instance = json!({"prompt": "a \"cat\"", "image": image, "lastFrame": image});
    let parameters = json!({"sampleCount": 1, "durationSeconds": 8, "aspectRatio": "9:16",
                            "resolution": "1080p", "generateAudio": false});
    assert_eq!(
        body,
        json!({"instances": [instance], "parameters": parameters})
    );
    let (_, body) = sent(
        WireKind::Contents,
        &json!({"reference_images": [{"image_url": PIXEL}]}),
        &Quirks::default(),
    )
    .unwrap();
    let reference = json!([{"image": image, "referenceType": "asset"}]);
    assert_eq!(body["instances"][0]["referenceImages"], reference);
    assert_eq!(body["parameters"]["resolution"], "720p");
    // Sound is there unless it is switched off.
    assert_eq!(body["parameters"].get("generateAudio"), None);
}

/// Contract: model-gateway 2.17 image
/// Contract: model-gateway 2.17 reference_videos
#[test]
fn what_an_operation_cannot_say_is_named() {
    for (more, param) in [
        (json!({"size": "640x480"}), "size"),
        (json!({"image": "https://a.test/b.png"}), "image"),
        (
            json!({"reference_videos": ["https://a.test/b.mp4"]}),
            "reference_videos",
        ),
    ] {
        let fault = sent(WireKind::Contents, &more, &Quirks::default()).unwrap_err();
        assert_eq!((fault.status(), fault.param.as_deref()), (400, Some(param)));
    }
}

#[test]
fn a_reply_to_an_order_names_its_job() {
    let named = |kind, reply: Value| job(kind, 200, reply.to_string().as_bytes());
    let reply = json!({"id": "video_1", "status": "queued", "error": null});
    assert_eq!(
        named(WireKind::Compatible, reply).unwrap().unwrap(),
        "video_1"
    );
    let operation = "models/veo/operations/a1";
    let reply = json!({"name": operation});
    assert_eq!(
        named(WireKind::Contents, reply).unwrap().unwrap(),
        operation
    );
    for reply in [
        json!({}),
        json!([]),
        json!({"id": ""}),
        json!({"id": "../v1/files", "name": "models/../../a"}),
        json!({"id": "..", "name": ".."}),
        json!({"id": 7, "name": 7}),
        json!({"error": {"message": "overloaded", "code": 503}}),
    ] {
        for kind in [WireKind::Compatible, WireKind::Contents] {
            let failure = named(kind, reply.clone()).unwrap_err();
            assert!(failure.is_retryable, "{kind:?} {reply}");
        }
    }
}

#[test]
fn paths_stand_beside_those_of_orders() {
    let path = |kind: WireKind, end: Option<String>| {
        end.map(|end| kind.wire().path(&end, &Quirks::default()))
    };
    let (chat, convention) = (WireKind::Compatible, videos(WireKind::Compatible));
    let status = path(chat, convention.status_endpoint("video_1"));
    assert_eq!(status.unwrap(), "/videos/video_1");
    let content = path(chat, convention.content_endpoint("video_1"));
    assert_eq!(content.unwrap(), "/videos/video_1/content");
    assert_eq!(convention.status_endpoint("a/b"), None);
    let operations = videos(WireKind::Contents);
    let status = operations.status_endpoint("models/veo/operations/a1");
    assert_eq!(
        path(WireKind::Contents, status).unwrap(),
        "/v1beta/models/veo/operations/a1"
    );
    assert_eq!(operations.content_endpoint("a"), None);
}

#[test]
fn the_convention_tells_how_a_job_does() {
    let told = |reply: Value| report(WireKind::Compatible, &reply);
    let running = |has_begun, progress| {
        Some(VideoReport::Running {
            has_begun,
            progress,
        })
    };
    assert_eq!(told(json!({"status": "queued"})), running(false, None));
    assert_eq!(
        told(json!({"status": "in_progress", "progress": 33.5})),
        running(true, Some(33))
    );
    let completed = Some(VideoReport::Completed {
        output_ms: Some(4_000),
        link: None,
        expires: Expiry::At(9_000),
    });
    assert_eq!(
        told(json!({"status": "completed", "seconds": "4", "expires_at": 9})),
        completed
    );
    let Some(VideoReport::Failed(error)) =
        told(json!({"status": "failed", "error": {"code": "c", "message": "m"}}))
    else {
        unreachable!("it failed")
    };
    assert_eq!((&*error.code, &*error.message), ("c", "m"));
    for other in [json!({}), json!([]), json!({"status": "new"})] {
        assert_eq!(told(other), None);
    }
}

#[test]
fn an_operation_tells_how_a_job_does() {
    let told = |reply: Value| report(WireKind::Contents, &reply);
    let done = |response: Value| told(json!({"done": true, "response": response}));
    assert_eq!(
        told(json!({"name": "a"})),
        Some(VideoReport::Running {
            has_begun: true,
            progress: None
        })
    );
    let completed = Some(VideoReport::Completed {
        output_ms: None,
        link: Some("https://a.test/v".into()),
        expires: Expiry::After(48 * 3_600_000),
    });
    let samples = json!([{"video": {"uri": "https://a.test/v"}}]);
    assert_eq!(
        done(json!({"generateVideoResponse": {"generatedSamples": samples}})),
        completed
    );
    assert_eq!(
        done(json!({"videos": [{"uri": "https://a.test/v"}]})),
        completed
    );
    let code = |told: Option<VideoReport>| match told {
        Some(VideoReport::Failed(error)) => error.code,
        _ => "none".into(),
    };
    let filtered = json!({"generateVideoResponse": {"raiMediaFilteredCount": 1}});
    assert_eq!(&*code(done(filtered)), "video_filtered");
    let reasons = json!({"raiMediaFilteredReasons": ["no"]});
    assert_eq!(&*code(done(reasons)), "video_filtered");
    assert_eq!(&*code(done(json!({}))), "video_missing");
    let error = json!({"done": true, "error": {"code": 13, "message": "internal"}});
    assert_eq!(&*code(told(error)), "video_failed");
}

proptest! {
    #[test]
    fn no_reply_breaks_a_wire(bytes in prop::collection::vec(any::<u8>(), 0..200), status in 200_u16..600) {
        for kind in [WireKind::Compatible, WireKind::Contents] {
            _ = job(kind, status, &bytes);
            _ = videos(kind).read_status(&bytes);
        }
    }
}
