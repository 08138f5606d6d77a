//! Passes the bytes of a video from its provider to the client, piece by piece. They are not stored.

use std::time::Duration;

use bytes::Bytes;
use filters::fault::{Fault, FaultKind};
use filters::fault_code::FaultCode;
use filters::models::videos::order::{JobStatus, VideoOrder};
use filters::models::videos::progress::PollFailure;
use filters::models::videos::range::{AskedRange, part};
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use reqwest::Url;
use tokio::time::timeout;

use super::{ReadJob, Videos, provider::JobProvider};
use crate::models::Models;
use crate::outbound::{self, describe};
use crate::proxy::response::{PieceSource, Reply, Response};

/// The maximum number of redirects. Each one is checked like the first address.
const MAX_REDIRECTS: usize = 3;
/// How long a provider may be silent.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// The request headers that are passed on.
const ASKED: [HeaderName; 2] = [header::RANGE, header::IF_RANGE];
/// The reply headers that are passed on.
const TOLD: [HeaderName; 5] = [
    header::CONTENT_LENGTH,
    header::CONTENT_RANGE,
    header::ACCEPT_RANGES,
    header::ETAG,
    header::LAST_MODIFIED,
];

/// Opens the bytes of a job for a request with these headers.
///
/// Errors: 400 if the job has no bytes, 404 if its provider no longer has them, 502, 503, 504.
pub async fn open(
    models: &Models,
    organization: &str,
    job: &ReadJob,
    headers: &HeaderMap,
) -> Result<Response, Fault> {
    let order = &job.order;
    if job.state.status != JobStatus::Completed {
        let status = job.state.status.as_str();
        let message =
            format!("the video is `{status}`; its content is there once it is `completed`");
        return Err(Fault::new(FaultKind::Invalid, message).with_code(FaultCode::VideoNotCompleted));
    }
    let unavailable = || {
        let message = "the provider of the video is not configured any more";
        Fault::new(FaultKind::UpstreamUnavailable, message)
    };
    let provider = JobProvider::find(models, organization, order).ok_or_else(unavailable)?;
    if provider.holds_videos() {
        let video = held_video(&models.videos, &provider).await?;
        return Ok(answer_held(video, headers));
    }
    let url = provider.content_url(job.state.link.as_deref());
    let url = url.ok_or_else(unavailable)?;
    let reply = ask(&models.videos, &provider, url, headers).await?;
    check(&models.videos, order, &reply)?;
    Ok(answer(&models.videos, reply, headers))
}

/// Returns the bytes that the provider's reply about the job holds.
///
/// Errors: 404, 502.
async fn held_video(videos: &Videos, provider: &JobProvider) -> Result<Bytes, Fault> {
    let video = provider.held_video(videos).await;
    let video = video.map_err(|failure| match failure {
        PollFailure::Unknown => expired(),
        PollFailure::Failed => failed("its provider does not give it"),
    })?;
    match video.len() as u64 > videos.max_bytes {
        true => Err(too_large(videos)),
        false => Ok(video),
    }
}

/// Returns the response with bytes that are in memory.
fn answer_held(video: Bytes, headers: &HeaderMap) -> Response {
    let length = video.len() as u64;
    let mut told = copy_headers(&HeaderMap::new());
    set(&mut told, header::ACCEPT_RANGES, "bytes");
    let (status, body) = match parse_range(headers, length) {
        AskedRange::Whole => (200, video),
        AskedRange::Some(range) => {
            let place = format!("bytes {}-{}/{length}", range.start, range.end - 1);
            set(&mut told, header::CONTENT_RANGE, &place);
            // The range is within the length.
            let range = range.start as usize..range.end as usize;
            (206, video.slice(range))
        }
        AskedRange::Unsatisfiable => return unsatisfiable(place_of_none(length)),
    };
    Response {
        status,
        headers: told,
        body: Reply::Bytes(body),
    }
}

/// Requests the bytes, and follows redirects. A credential is only sent to the provider's own origin; the origin of
/// another provider is foreign.
async fn ask(
    videos: &Videos,
    provider: &JobProvider,
    mut url: Url,
    headers: &HeaderMap,
) -> Result<reqwest::Response, Fault> {
    for _ in 0..=MAX_REDIRECTS {
        let request = match provider.is_own_origin(&url) {
            true => videos.contents.get(url.as_str()),
            false => videos.contents.get_foreign(&url),
        };
        let request = request.map_err(|_| failed("it is at an address that must not be asked"))?;
        let mut request = provider
            .sign(request, &url)
            .header(header::ACCEPT_ENCODING, "identity");
        for name in &ASKED {
            if let Some(value) = headers.get(name) {
                request = request.header(name, value);
            }
        }
        let reply = timeout(IDLE_TIMEOUT, request.send()).await;
        let reply = match reply {
            Ok(Ok(reply)) => reply,
            Ok(Err(error)) if outbound::is_prohibited(&error) => {
                return Err(failed("it is at an address that must not be asked"));
            }
            Ok(Err(error)) => {
                let message = "the provider of the video could not be reached";
                let fault = Fault::new(FaultKind::ConnectFailed, message);
                return Err(fault.with_detail(describe(error)));
            }
            Err(_) => {
                let message = "the provider of the video did not answer in time";
                return Err(Fault::new(FaultKind::UpstreamTimeout, message));
            }
        };
        if !reply.status().is_redirection() || reply.status() == StatusCode::NOT_MODIFIED {
            return Ok(reply);
        }
        let location = reply.headers().get(header::LOCATION);
        let next = location.and_then(|location| url.join(location.to_str().ok()?).ok());
        url = next.ok_or_else(|| failed("its provider redirects to no address"))?;
    }
    Err(failed("its provider redirects too often"))
}

fn failed(why: &str) -> Fault {
    Fault::new(
        FaultKind::UpstreamFailed,
        format!("the content of the video cannot be had: {why}"),
    )
    .with_code(FaultCode::VideoContentFailed)
}

fn too_large(videos: &Videos) -> Fault {
    let most = videos.max_bytes;
    let message = format!("the video has more than {most} bytes, which limits.body_bytes.video is");
    Fault::new(FaultKind::UpstreamFailed, message).with_code(FaultCode::VideoTooLarge)
}

fn expired() -> Fault {
    let message = "the provider has the content of the video no more";
    Fault::new(FaultKind::NotFound, message).with_code(FaultCode::VideoContentExpired)
}

/// Checks the status and the length of the provider's reply.
///
/// Errors: 404, 502, 503.
fn check(videos: &Videos, order: &VideoOrder, reply: &reqwest::Response) -> Result<(), Fault> {
    let status = reply.status().as_u16();
    let fault = match status {
        200 | 206
            if reply
                .content_length()
                .is_some_and(|it| it > videos.max_bytes) =>
        {
            too_large(videos)
        }
        200 | 206 | 416 => return Ok(()),
        404 | 410 => expired(),
        429 | 503 => {
            let message = "the provider of the video is overloaded or unavailable";
            Fault::new(FaultKind::UpstreamUnavailable, message)
        }
        _ => {
            let detail = format!("status {status} of {}", order.provider);
            failed("its provider answers with an error").with_detail(detail)
        }
    };
    Err(fault)
}

/// Returns the response for the provider's reply.
fn answer(videos: &Videos, reply: reqwest::Response, headers: &HeaderMap) -> Response {
    let length = reply.content_length();
    let mut status = reply.status().as_u16();
    if status == 416 {
        return unsatisfiable(reply.headers().get(header::CONTENT_RANGE).cloned());
    }
    let mut told = copy_headers(reply.headers());
    let mut pieces = Pieces {
        reply,
        skip: 0,
        left: videos.max_bytes,
        is_part: false,
    };
    // A provider without support for ranges sends all bytes.
    if let (200, Some(length)) = (status, length) {
        match parse_range(headers, length) {
            AskedRange::Whole => {}
            AskedRange::Some(range) => {
                (pieces.skip, pieces.left) = (range.start, range.end - range.start);
                pieces.is_part = true;
                status = 206;
                let last = range.end - 1;
                set(&mut told, header::CONTENT_LENGTH, &pieces.left.to_string());
                let place = format!("bytes {}-{last}/{length}", range.start);
                set(&mut told, header::CONTENT_RANGE, &place);
            }
            AskedRange::Unsatisfiable => return unsatisfiable(place_of_none(length)),
        }
        set(&mut told, header::ACCEPT_RANGES, "bytes");
    }
    Response {
        status,
        headers: told,
        body: Reply::Pieces(Box::new(pieces)),
    }
}

/// Returns the requested range of `length` bytes. Only the provider could evaluate a condition, and it has sent
/// everything.
fn parse_range(headers: &HeaderMap, length: u64) -> AskedRange {
    let range = headers.get(header::RANGE).and_then(|it| it.to_str().ok());
    match range {
        Some(range) if !headers.contains_key(header::IF_RANGE) => part(range, length),
        _ => AskedRange::Whole,
    }
}

/// Returns the value of `Content-Range` for a range after the end.
fn place_of_none(length: u64) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!("bytes */{length}")).ok()
}

fn set(told: &mut Vec<(HeaderName, HeaderValue)>, name: HeaderName, value: &str) {
    told.retain(|(known, _)| *known != name);
    if let Ok(value) = HeaderValue::from_str(value) {
        told.push((name, value));
    }
}

/// Returns the reply headers that are passed on. A media type that is not a video becomes that of one.
fn copy_headers(headers: &HeaderMap) -> Vec<(HeaderName, HeaderValue)> {
    let media_type = headers.get(header::CONTENT_TYPE);
    let is_video = |value: &&HeaderValue| value.as_bytes().starts_with(b"video/");
    let media_type = media_type.filter(is_video).cloned();
    let media_type = media_type.unwrap_or(HeaderValue::from_static("video/mp4"));
    let passed = TOLD.into_iter().filter_map(|name| {
        let value = headers.get(&name)?.clone();
        Some((name, value))
    });
    passed.chain([(header::CONTENT_TYPE, media_type)]).collect()
}

/// Returns the response to a range after the end.
fn unsatisfiable(place: Option<HeaderValue>) -> Response {
    let message = "`Range` begins behind the end of the video";
    let fault = Fault::new(FaultKind::Invalid, message)
        .with_status(416)
        .with_code(FaultCode::RangeNotSatisfiable);
    let mut response = Response::from(&fault);
    let place = place.map(|place| (header::CONTENT_RANGE, place));
    response.headers.extend(place);
    response
}

/// The pieces of a reply.
struct Pieces {
    reply: reqwest::Response,
    /// The bytes to skip.
    skip: u64,
    /// The bytes that may still be sent.
    left: u64,
    /// Whether the bytes after these are cut off, and are not an error.
    is_part: bool,
}

impl Pieces {
    /// Returns the part of a piece to send, which may be empty.
    fn cut(&mut self, mut piece: Bytes) -> Result<Bytes, String> {
        let skipped = usize::try_from(self.skip)
            .unwrap_or(usize::MAX)
            .min(piece.len());
        drop(piece.split_to(skipped));
        self.skip -= skipped as u64;
        if piece.len() as u64 > self.left {
            if !self.is_part {
                return Err("it has more bytes than limits.body_bytes.video".to_owned());
            }
            piece.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
        }
        self.left -= piece.len() as u64;
        Ok(piece)
    }
}

impl PieceSource for Pieces {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, String>> {
        Box::pin(async {
            loop {
                if self.is_part && self.left == 0 {
                    return Ok(None);
                }
                let piece = timeout(IDLE_TIMEOUT, self.reply.chunk()).await;
                let piece = piece.map_err(|_| "the provider is silent".to_owned())?;
                let Some(piece) = piece.map_err(describe)? else {
                    return Ok(None);
                };
                let piece = self.cut(piece)?;
                if !piece.is_empty() {
                    return Ok(Some(piece));
                }
            }
        })
    }
}
