//! Videos as long-running operations: an order names an operation, which is asked for until it is done. Source:
//! docs/facts/wire-formats.md 1.9.

use std::ops::Range;

use bytes::Bytes;
use serde_json::{Value, json};

use super::failure::{classify_error, find_error};
use crate::fault::Fault;
use crate::json::Walker;
use crate::models::chat::data_url;
use crate::models::reply::Sink;
use crate::models::request::ModelRequest;
use crate::models::videos::order::JobError;
use crate::models::videos::progress::{Expiry, VideoReport};
use crate::models::videos::{VideoFacts, VideoSize};
use crate::models::wires::codec::{BodySlice, OperationCodec};
use crate::models::wires::decoder::WholeReply;
use crate::models::wires::failure::Failure;
use crate::models::wires::scan;
use crate::models::wires::wire::{Target, VideoWire, write_body};

/// How long the provider keeps a video.
const KEPT_MS: u64 = 48 * 3_600_000;

pub(super) static CODEC: OperationCodec<VideoFacts> = OperationCodec::new(
    "/models/{model}:predictLongRunning",
    encode,
    |_, _, _, _| Box::new(WholeReply::new(read)),
);

/// Encodes an order.
///
/// Errors: a 400 that names what has no word here: another size, videos or sounds to follow, and pictures by address.
fn encode(
    request: &ModelRequest,
    facts: &VideoFacts,
    target: &Target<'_>,
) -> Result<Vec<BodySlice>, Fault> {
    let refuse = |param: &str, said: &str| {
        Fault::invalid(param.to_owned(), format!("{} {said}", target.provider))
    };
    if let Some(param) = facts.reference_media {
        return Err(refuse(param, "takes no videos and no sounds to follow"));
    }
    let (ratio, resolution) = shape(facts.size)
        .ok_or_else(|| refuse("size", "makes 720p, 1080p and 4k, upright or across"))?;
    let body = &request.source.body;
    let image = |place: &Range<usize>, param: &str| {
        image(body, place).ok_or_else(|| refuse(param, "takes images as base64 data URLs only"))
    };
    let mut instance = json!({ "prompt": text(body, &facts.prompt) });
    let mut set = |key: &str, value: Value| {
        if let Some(members) = instance.as_object_mut() {
            members.insert(key.to_owned(), value);
        }
    };
    if let Some(place) = &facts.image {
        set("image", image(place, "image")?);
    }
    if let Some(place) = &facts.last_frame {
        set("lastFrame", image(place, "last_frame")?);
    }
    let references = facts.reference_images.iter().map(|place| {
        let image = image(place, "reference_images")?;
        Ok(json!({ "image": image, "referenceType": "asset" }))
    });
    let references: Vec<Value> = references.collect::<Result<_, Fault>>()?;
    if !references.is_empty() {
        set("referenceImages", references.into());
    }
    let mut parameters = json!({
        "sampleCount": 1,
        "durationSeconds": facts.seconds,
        "aspectRatio": ratio,
        "resolution": resolution,
    });
    if let (Some(false), Some(members)) = (facts.audio, parameters.as_object_mut()) {
        members.insert("generateAudio".to_owned(), false.into());
    }
    write_body(
        &json!({ "instances": [instance], "parameters": parameters }),
        body.len(),
    )
}

/// Returns ratio and resolution of a size.
fn shape(size: VideoSize) -> Option<(&'static str, &'static str)> {
    let (long, short) = (size.width.max(size.height), size.width.min(size.height));
    let ratio = if size.width > size.height {
        "16:9"
    } else {
        "9:16"
    };
    let resolution = match (long, short) {
        (1280, 720) => "720p",
        (1920, 1080) => "1080p",
        (3840, 2160) => "4k",
        _ => return None,
    };
    Some((ratio, resolution))
}

/// Returns the text that stands at a place of the body.
fn text(body: &[u8], place: &Range<usize>) -> String {
    let json = body.get(place.clone()).unwrap_or_default();
    let text = Walker::new(json).and_then(|mut walk| Ok(walk.string()?.unescaped().into_owned()));
    text.unwrap_or_default()
}

/// Returns an image in the words of the provider; `None`: its data is not in the body.
fn image(body: &[u8], place: &Range<usize>) -> Option<Value> {
    let url = text(body, place);
    let found = data_url::parse(&url)?;
    Some(json!({ "bytesBase64Encoded": found.data, "mimeType": found.media_type }))
}

fn read(body: &Bytes, sink: &mut dyn Sink) -> Result<(), Failure> {
    if let Some(error) = find_error(body) {
        return Err(classify_error(&error));
    }
    let reply: Value = serde_json::from_slice(body).map_err(|_| not_json())?;
    let name = reply.get("name").and_then(Value::as_str);
    match name.filter(|name| operation(name).is_some()) {
        Some(name) => {
            sink.identity(Some(name), None);
            Ok(())
        }
        None => Err(Failure::malformed(
            "the provider's reply names no operation",
        )),
    }
}

fn not_json() -> Failure {
    Failure::malformed("the provider's reply is not JSON")
}

/// Returns the name of an operation as segments of a path; `None`: it is not one.
fn operation(name: &str) -> Option<&str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let is_segment = |segment: &str| {
        !segment.is_empty()
            && segment.bytes().all(is_plain)
            && segment.bytes().any(|byte| byte != b'.')
    };
    let is_operation = name.len() <= 512 && name.split('/').all(is_segment);
    is_operation.then_some(name)
}

/// How operations are asked for.
#[derive(Debug)]
pub(super) struct Operations {
    /// Whether they are those of the cloud, which is asked about them by the model, and whose replies hold the videos. Source:
    /// docs/facts/clouds.md 3.
    is_of_cloud: bool,
}

pub(super) static OPERATIONS: Operations = Operations { is_of_cloud: false };
pub(super) static CLOUD_OPERATIONS: Operations = Operations { is_of_cloud: true };

impl VideoWire for Operations {
    fn status_endpoint(&self, job: &str) -> Option<String> {
        let name = operation(job)?;
        Some(match self.is_of_cloud {
            true => "/models/{model}:fetchPredictOperation".to_owned(),
            false => format!("/{name}"),
        })
    }

    fn status_body(&self, job: &str) -> Option<Vec<u8>> {
        let body = json!({ "operationName": operation(job)? });
        self.is_of_cloud.then(|| body.to_string().into_bytes())
    }

    fn holds_videos(&self) -> bool {
        self.is_of_cloud
    }

    fn held_video(&self, body: &[u8]) -> Option<Vec<u8>> {
        let body = std::str::from_utf8(body).ok()?.trim_ascii();
        let [response] = scan::object(body, ["response"])?;
        let [videos] = scan::object(response, ["videos"])?;
        let [data] = scan::object(scan::items(videos)?.first()?, ["bytesBase64Encoded"])?;
        data_url::decode_base64(&scan::string(data)?.unescaped())
    }

    fn read_status(&self, body: &[u8]) -> Result<VideoReport, Failure> {
        let reply: Value = serde_json::from_slice(body).map_err(|_| not_json())?;
        if !reply.is_object() {
            return Err(Failure::malformed("the provider's reply is no operation"));
        }
        if reply.get("done") != Some(&Value::Bool(true)) {
            let metadata = reply.get("metadata");
            let progress = metadata.and_then(|it| it.get("progressPercent"));
            let progress = progress.and_then(Value::as_u64);
            return Ok(VideoReport::Running {
                has_begun: true,
                progress: progress.map(|progress| progress.min(100) as u8),
            });
        }
        if let Some(error) = find_error(body) {
            let message = error.get("message").and_then(Value::as_str);
            return Ok(failed(
                "video_failed",
                message.unwrap_or("the provider failed"),
            ));
        }
        let response = reply.get("response").unwrap_or(&Value::Null);
        Ok(match self.is_of_cloud && holds_video(response) {
            true => VideoReport::Completed {
                output_ms: None,
                link: None,
                expires: Expiry::Unknown,
            },
            false => read_videos(response),
        })
    }

    fn content_endpoint(&self, _: &str) -> Option<String> {
        None
    }

    fn delete_endpoint(&self, _: &str) -> Option<String> {
        None
    }
}

fn failed(code: &str, message: &str) -> VideoReport {
    VideoReport::Failed(JobError::new(code, message))
}

/// Returns whether the bytes of a video are in the response itself.
fn holds_video(response: &Value) -> bool {
    let data = response.pointer("/videos/0/bytesBase64Encoded");
    data.and_then(Value::as_str)
        .is_some_and(|data| !data.is_empty())
}

/// Reads the videos of an operation that is done. A filter has refused what is done and has none.
fn read_videos(response: &Value) -> VideoReport {
    let inner = response.get("generateVideoResponse").unwrap_or(response);
    let samples = inner.get("generatedSamples").or(inner.get("videos"));
    let first = samples.and_then(|samples| samples.get(0));
    let video = first.map(|first| first.get("video").unwrap_or(first));
    let link = video
        .and_then(|video| video.get("uri"))
        .and_then(Value::as_str);
    if let Some(link) = link {
        return VideoReport::Completed {
            output_ms: None,
            link: Some(link.into()),
            expires: Expiry::After(KEPT_MS),
        };
    }
    let filtered = inner.get("raiMediaFilteredCount").and_then(Value::as_u64);
    let reasons = inner.get("raiMediaFilteredReasons");
    let reason = reasons.and_then(|reasons| reasons.get(0)?.as_str());
    match (filtered.unwrap_or(0), reason) {
        (_, Some(reason)) => failed("video_filtered", reason),
        (1.., None) => failed(
            "video_filtered",
            "a filter of the provider has refused the video",
        ),
        (0, None) => failed("video_missing", "the provider made no video"),
    }
}
