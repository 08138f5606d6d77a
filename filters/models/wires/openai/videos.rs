//! Videos as servers of the convention offer them beside their chat: an order, a job to ask for, and its bytes. Source:
//! docs/facts/wire-formats.md 1.9.

use std::borrow::Cow;

use bytes::Bytes;

use crate::fault::Fault;
use crate::json::Str;
use crate::models::reply::Sink;
use crate::models::request::ModelRequest;
use crate::models::videos::VideoFacts;
use crate::models::videos::order::JobError;
use crate::models::videos::progress::{Expiry, VideoReport};
use crate::models::wires::codec::{BodySlice, OperationCodec};
use crate::models::wires::decoder::WholeReply;
use crate::models::wires::error_body::classify_error;
use crate::models::wires::failure::Failure;
use crate::models::wires::scan;
use crate::models::wires::splice::Splice;
use crate::models::wires::wire::{Target, VideoWire};

/// Members of the convention, beside those that are written anew.
const KNOWN: [&str; 9] = [
    "prompt",
    "audio",
    "n",
    "image",
    "last_frame",
    "reference_images",
    "input_reference",
    "reference_videos",
    "reference_audios",
];
/// Members that are written anew, and those that are for the gateway alone.
const OWN: [&str; 5] = [
    "model",
    "seconds",
    "size",
    "callback_url",
    "callback_secret",
];

pub(super) static CODEC: OperationCodec<VideoFacts> =
    OperationCodec::new("videos", encode, |_, _, _, _| {
        Box::new(WholeReply::new(read))
    });

fn encode(
    request: &ModelRequest,
    facts: &VideoFacts,
    target: &Target<'_>,
) -> Result<Vec<BodySlice>, Fault> {
    let source = &request.source;
    let mut splice = Splice::new(&source.body);
    splice.new_bytes(b"{\"model\":");
    splice.new_string(target.model);
    let fixed = format!(
        ",\"seconds\":\"{}\",\"size\":\"{}\"",
        facts.seconds, facts.size
    );
    splice.new_bytes(fixed.as_bytes());
    for member in &source.members {
        let key = &*member.key;
        let passes = target.quirks.passes(key, &KNOWN);
        if passes && !OWN.contains(&key) {
            splice.new_bytes(b",");
            splice.slice(member.whole.clone());
        }
    }
    splice.new_bytes(b"}");
    Ok(splice.finish())
}

fn read(body: &Bytes, sink: &mut dyn Sink) -> Result<(), Failure> {
    let [id, error] = members(body, ["id", "error"])?;
    let id = text(id).filter(|id| segment(id).is_some());
    let Some(id) = id else {
        // What is not a job is the provider's failure, so the next one may try.
        return Err(match error {
            "" | "null" => Failure::malformed("the provider's reply names no job"),
            error => classify_error(error),
        });
    };
    sink.identity(Some(&id), None);
    Ok(())
}

/// Returns the JSON of these members of a job.
fn members<'a, const N: usize>(body: &'a [u8], keys: [&str; N]) -> Result<[&'a str; N], Failure> {
    let members = std::str::from_utf8(body).ok();
    let members = members.and_then(|body| scan::object(body, keys));
    members.ok_or_else(|| Failure::malformed("the provider's reply is no JSON object"))
}

/// Returns the text that a JSON is.
fn text(json: &str) -> Option<Cow<'_, str>> {
    scan::string(json).map(Str::unescaped)
}

/// Returns an id as a segment of a path; `None`: it is not one.
fn segment(id: &str) -> Option<&str> {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':');
    let is_id = (1..=512).contains(&id.len()) && id.bytes().all(is_plain);
    // Dots alone would be another path.
    (is_id && id.bytes().any(|byte| byte != b'.')).then_some(id)
}

/// How the convention tells of a job.
#[derive(Debug)]
pub(super) struct ConventionVideos;

impl VideoWire for ConventionVideos {
    fn status_endpoint(&self, job: &str) -> Option<String> {
        Some(format!("videos/{}", segment(job)?))
    }

    fn read_status(&self, body: &[u8]) -> Result<VideoReport, Failure> {
        let keys = ["status", "progress", "seconds", "expires_at", "error"];
        let [status, progress, seconds, expires, error] = members(body, keys)?;
        let progress = progress.parse().ok();
        let progress = progress.map(|progress: f64| progress.clamp(0.0, 100.0) as u8);
        let running = |has_begun| VideoReport::Running {
            has_begun,
            progress,
        };
        match &*text(status).unwrap_or_default() {
            "queued" => Ok(running(false)),
            "in_progress" | "processing" => Ok(running(true)),
            "completed" => Ok(VideoReport::Completed {
                output_ms: to_ms(seconds),
                link: None,
                expires: match expires.parse::<u64>() {
                    Ok(seconds) => Expiry::At(seconds.saturating_mul(1000)),
                    Err(_) => Expiry::Unknown,
                },
            }),
            status @ ("failed" | "cancelled" | "canceled" | "expired") => {
                let said = scan::object(error, ["code", "message"]).unwrap_or_default();
                let [code, message] = said.map(|said| text(said).map(Box::from));
                Ok(VideoReport::Failed(JobError {
                    code: code.unwrap_or_else(|| format!("video_{status}").into()),
                    message: message.unwrap_or_else(|| "the provider failed".into()),
                }))
            }
            _ => Err(Failure::malformed(
                "the provider's reply has no status of a job",
            )),
        }
    }

    fn content_endpoint(&self, job: &str) -> Option<String> {
        Some(format!("{}/content", self.status_endpoint(job)?))
    }

    fn delete_endpoint(&self, job: &str) -> Option<String> {
        self.status_endpoint(job)
    }
}

/// Returns the milliseconds of a number of seconds, which may be a text.
fn to_ms(seconds: &str) -> Option<u64> {
    let seconds: f64 = match text(seconds) {
        Some(text) => text.parse().ok()?,
        None => seconds.parse().ok()?,
    };
    (seconds > 0.0 && seconds < 86_400.0).then_some((seconds * 1000.0).round() as u64)
}
