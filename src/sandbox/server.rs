//! The server of the model sandbox: it reads a request, selects the model's behaviour and writes the reply.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use filters::multipart;
use pingora::Result;
use pingora::apps::{HttpPersistentSettings, HttpServerApp, ReusedHttpStream};
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::protocols::http::ServerSession;
use pingora::server::ShutdownWatch;
use serde_json::{Value, json};

use super::budget::{self, TooLarge};
use super::embeddings;
use super::request::SandboxRequest;
use super::response::SandboxResponse;
use super::speech::{Speech, speak};
use super::transcriptions::{Transcript, transcribe};
use super::{decisions, moderations, ocr, rerank, search, videos};

/// Delay after a failed accept.
pub(super) const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
const SLOW_START_DELAY: Duration = Duration::from_secs(2);
const SLOW_EVENT_DELAY: Duration = Duration::from_millis(50);
/// The maximum size of a request. The gateway's own limits are lower.
const MAX_BODY_BYTES: usize = 128 << 20;

const NO_JSON: &str = "The request body is not JSON, or has too many values.";

/// The prefix of the paths of jobs.
const VIDEOS: &str = "/v1/videos/";

/// The application that Pingora runs on each connection.
pub(super) struct ChatServer;

/// The reply to a request.
struct SandboxReply {
    body: ReplyBody,
    delay: Duration,
    /// Whether only half of the body is sent before the connection closes.
    is_cut: bool,
}

enum ReplyBody {
    /// A status and a JSON body.
    Whole(u16, Value),
    /// A 200 event stream: the data of each event, and the delay before each.
    Events(Vec<String>, Duration),
    /// A 200 file of this media type.
    File(&'static str, Vec<u8>),
    /// Nothing until the client disconnects.
    Nothing,
}

impl From<ReplyBody> for SandboxReply {
    fn from(body: ReplyBody) -> SandboxReply {
        SandboxReply {
            body,
            delay: Duration::ZERO,
            is_cut: false,
        }
    }
}

#[async_trait]
impl HttpServerApp for ChatServer {
    async fn process_new_http(
        self: &Arc<Self>,
        mut session: ServerSession,
        shutdown: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        // Every early return drops the connection, which cannot be reused.
        if !session.read_request().await.ok()? {
            return None;
        }
        session.set_keepalive(if *shutdown.borrow() { None } else { Some(60) });
        let body = read_body(&mut session).await.ok()?;
        let reply = match body {
            Some(body) => make_reply(session.req_header(), &body),
            None => refuse(413, "request_too_large", "The request body is too large."),
        };
        write_reply(&mut session, reply).await.ok()?.then_some(())?;
        let settings = HttpPersistentSettings::for_session(&session);
        let stream = session.finish().await.ok()??;
        Some(ReusedHttpStream::from_reusable_stream(stream, settings))
    }
}

/// Reads the whole body. Returns `None` if it is larger than [`MAX_BODY_BYTES`].
pub(super) async fn read_body(session: &mut ServerSession) -> Result<Option<Vec<u8>>> {
    let mut body = Vec::new();
    while let Some(bytes) = session.read_request_body().await? {
        if body.len() + bytes.len() > MAX_BODY_BYTES {
            return Ok(None);
        }
        body.extend_from_slice(&bytes);
    }
    Ok(Some(body))
}

fn make_reply(head: &RequestHeader, body: &[u8]) -> SandboxReply {
    match (head.method.as_str(), head.uri.path()) {
        ("POST", "/v1/chat/completions") => make_chat_reply(body),
        ("POST", "/v1/embeddings") => make_embeddings(body),
        ("POST", "/v1/rerank") => to_reply("sandbox-rerank", body, rerank::rank),
        ("POST", "/v1/moderations") => to_reply("sandbox-moderation", body, moderations::judge),
        ("POST", "/v1/audio/speech") => make_speech_reply(body),
        ("POST", "/v1/search") => to_reply("sandbox-search", body, search::search),
        ("POST", "/v1/decisions") => to_reply("sandbox-decision", body, decisions::decide),
        ("POST", "/v1/ocr") => to_reply("sandbox-ocr", body, ocr::read),
        ("POST", "/v1/audio/transcriptions" | "/v1/audio/translations") => {
            let boundary = multipart::boundary(&head.headers).unwrap_or_default();
            match transcribe(body, boundary) {
                Ok(Transcript::Whole(body)) => ReplyBody::Whole(200, body).into(),
                Ok(Transcript::Events(events)) => ReplyBody::Events(events, Duration::ZERO).into(),
                Err(message) => refuse(400, "invalid_request", message),
            }
        }
        ("POST", "/v1/videos") => to_reply("sandbox-video", body, videos::order),
        (method, path) if path.starts_with(VIDEOS) => make_video_reply(method, path),
        _ => refuse(404, "not_found", "The sandbox has no such endpoint."),
    }
}

/// Replies with the result of `make` for a request with this model. `make` returns `None` for an incomplete request.
fn to_reply(model: &str, body: &[u8], make: fn(&Value) -> Option<Value>) -> SandboxReply {
    let Some(request) = budget::parse(body) else {
        return refuse(400, "invalid_json", NO_JSON);
    };
    if request.get("model").and_then(Value::as_str) != Some(model) {
        return refuse(404, "model_not_found", "The sandbox has no such model.");
    }
    match make(&request) {
        Some(body) => ReplyBody::Whole(200, body).into(),
        None => refuse(400, "invalid_request", "The request is not complete."),
    }
}

fn make_speech_reply(body: &[u8]) -> SandboxReply {
    let Some(body) = budget::parse(body) else {
        return refuse(400, "invalid_json", NO_JSON);
    };
    if body.get("model").and_then(Value::as_str) != Some("sandbox-speech") {
        return refuse(404, "model_not_found", "The sandbox has no such voice.");
    }
    match speak(&body) {
        Ok(Speech::File(media_type, file)) => ReplyBody::File(media_type, file).into(),
        Ok(Speech::Events(events)) => ReplyBody::Events(events, Duration::ZERO).into(),
        Err(message) => refuse(400, "invalid_request", message),
    }
}

/// Makes the reply about a job, its content, or its cancellation.
fn make_video_reply(method: &str, path: &str) -> SandboxReply {
    let rest = path.strip_prefix(VIDEOS).unwrap_or_default();
    let reply = match (method, rest.split_once('/')) {
        ("GET", None) => videos::status(rest).map(|job| ReplyBody::Whole(200, job)),
        ("GET", Some((id, "content"))) => {
            videos::content(id).map(|file| ReplyBody::File("video/mp4", file))
        }
        ("DELETE", None) => videos::status(rest).map(|_| {
            let deleted = json!({"id": rest, "object": "video.deleted", "deleted": true});
            ReplyBody::Whole(200, deleted)
        }),
        _ => None,
    };
    match reply {
        Some(reply) => reply.into(),
        None => refuse(404, "not_found", "The sandbox has no such video."),
    }
}

fn make_chat_reply(body: &[u8]) -> SandboxReply {
    let Some(request) = SandboxRequest::parse(body) else {
        return refuse(400, "invalid_json", NO_JSON);
    };
    match request.model.as_str() {
        "sandbox-chat" | "sandbox-image" => make_body(&request, Duration::ZERO).into(),
        "sandbox-slow" => SandboxReply {
            delay: SLOW_START_DELAY,
            ..make_body(&request, SLOW_EVENT_DELAY).into()
        },
        "sandbox-cut" => SandboxReply {
            is_cut: true,
            ..make_body(&request, Duration::ZERO).into()
        },
        "sandbox-hang" => ReplyBody::Nothing.into(),
        "sandbox-error-event" => make_error_body(&request).into(),
        "sandbox-401" => refuse(
            401,
            "invalid_api_key",
            "The sandbox refuses this key on demand.",
        ),
        "sandbox-429" => refuse(429, "rate_limit_exceeded", "The sandbox is busy on demand."),
        "sandbox-500" => refuse(500, "server_error", "The sandbox failed on demand."),
        _ => refuse(404, "model_not_found", "The sandbox has no such model."),
    }
}

fn make_embeddings(body: &[u8]) -> SandboxReply {
    let body = budget::parse(body).unwrap_or_default();
    if body.get("model").and_then(Value::as_str) != Some("sandbox-embedding") {
        return refuse(404, "model_not_found", "The sandbox has no such model.");
    }
    match embeddings::embed(&body) {
        Some(list) => ReplyBody::Whole(200, list).into(),
        None => refuse(
            400,
            "invalid_request",
            "`input` holds nothing to embed, or too much.",
        ),
    }
}

fn make_body(request: &SandboxRequest, delay: Duration) -> ReplyBody {
    let Ok(response) = SandboxResponse::new(request) else {
        let error = error_json(400, "invalid_request", TooLarge::MESSAGE);
        return ReplyBody::Whole(400, error);
    };
    if !request.is_stream {
        return ReplyBody::Whole(200, response.to_whole());
    }
    let mut events: Vec<String> = response.to_chunks().iter().map(Value::to_string).collect();
    events.push("[DONE]".to_owned());
    ReplyBody::Events(events, delay)
}

fn make_error_body(request: &SandboxRequest) -> ReplyBody {
    let error = error_json(500, "server_error", "The sandbox failed on demand.");
    if request.is_stream {
        return ReplyBody::Events(vec![error.to_string()], Duration::ZERO);
    }
    ReplyBody::Whole(200, error)
}

fn refuse(status: u16, code: &str, message: &str) -> SandboxReply {
    ReplyBody::Whole(status, error_json(status, code, message)).into()
}

fn error_json(status: u16, code: &str, message: &str) -> Value {
    let kind = match status {
        401 => "authentication_error",
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

/// Writes a reply. Returns false if the connection must be closed after it.
async fn write_reply(session: &mut ServerSession, reply: SandboxReply) -> Result<bool> {
    wait(session, reply.delay).await?;
    match reply.body {
        ReplyBody::Whole(status, body) => {
            let body = ("application/json", body.to_string().into());
            write_whole(session, status, body, reply.is_cut).await?;
        }
        ReplyBody::File(media_type, file) => {
            write_whole(session, 200, (media_type, file.into()), reply.is_cut).await?;
        }
        ReplyBody::Events(events, delay) => {
            write_events(session, &events, delay, reply.is_cut).await?
        }
        ReplyBody::Nothing => wait(session, Duration::MAX).await?,
    }
    Ok(!reply.is_cut)
}

async fn write_whole(
    session: &mut ServerSession,
    status: u16,
    (media_type, mut body): (&str, Bytes),
    is_cut: bool,
) -> Result<()> {
    let mut head = ResponseHeader::build(status, Some(4))?;
    head.insert_header("content-type", media_type)?;
    head.insert_header("content-length", body.len())?;
    if status == 429 {
        head.insert_header("retry-after", "1")?;
    }
    session.write_response_header(Box::new(head)).await?;
    if is_cut {
        body.truncate(body.len() / 2);
    }
    session.write_response_body(body, !is_cut).await
}

async fn write_events(
    session: &mut ServerSession,
    events: &[String],
    delay: Duration,
    is_cut: bool,
) -> Result<()> {
    let mut head = ResponseHeader::build(200, Some(4))?;
    head.insert_header("content-type", "text/event-stream")?;
    head.insert_header("cache-control", "no-cache")?;
    head.insert_header("transfer-encoding", "chunked")?;
    session.write_response_header(Box::new(head)).await?;
    let count = if is_cut {
        events.len() / 2
    } else {
        events.len()
    };
    for event in events.iter().take(count) {
        wait(session, delay).await?;
        session
            .write_response_body(Bytes::from(format!("data: {event}\n\n")), false)
            .await?;
    }
    if is_cut {
        return Ok(());
    }
    session.write_response_body(Bytes::new(), true).await
}

/// Waits. Errors: the client disconnects.
async fn wait(session: &mut ServerSession, delay: Duration) -> Result<()> {
    if delay.is_zero() {
        return Ok(());
    }
    tokio::select! {
        () = tokio::time::sleep(delay) => Ok(()),
        disconnected = session.read_body_or_idle(true) => disconnected.map(drop),
    }
}
