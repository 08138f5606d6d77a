//! The sandbox's side of a connection: read a request, choose the model's behaviour, write the reply.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use pingora::Result;
use pingora::apps::{HttpPersistentSettings, HttpServerApp, ReusedHttpStream};
use pingora::http::ResponseHeader;
use pingora::protocols::http::ServerSession;
use pingora::server::ShutdownWatch;
use serde_json::{Value, json};

use super::answer::SandboxResponse;
use super::ask::Ask;

/// How long accepting rests after a failure.
pub(super) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const SLOW_START: Duration = Duration::from_secs(2);
const SLOW_EVENT: Duration = Duration::from_millis(50);
/// Larger requests are refused: the gateway's own caps are below it.
const BODY_BYTES: usize = 128 << 20;

/// The application Pingora runs on each connection.
pub(super) struct Chat;

/// What a request gets.
struct Reply {
    what: What,
    /// The silence before its head.
    pause: Duration,
    /// Whether only half of its body is sent and the connection then closed.
    is_cut: bool,
}

enum What {
    /// A status and a JSON body.
    Whole(u16, Value),
    /// A 200 event stream: the data of each event, and the silence before each.
    Events(Vec<String>, Duration),
    /// Nothing until the caller gives up.
    Nothing,
}

impl From<What> for Reply {
    fn from(what: What) -> Reply {
        Reply {
            what,
            pause: Duration::ZERO,
            is_cut: false,
        }
    }
}

#[async_trait]
impl HttpServerApp for Chat {
    async fn process_new_http(
        self: &Arc<Self>,
        mut session: ServerSession,
        shutdown: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        // Every early end means the same: the connection is of no more use and is dropped.
        if !session.read_request().await.ok()? {
            return None;
        }
        session.set_keepalive(if *shutdown.borrow() { None } else { Some(60) });
        let body = read_body(&mut session).await.ok()?;
        let reply = match body {
            Some(body) => reply(session.req_header().method.as_str(), path(&session), &body),
            None => refusal(413, "request_too_large", "The request body is too large."),
        };
        write(&mut session, reply).await.ok()?.then_some(())?;
        let settings = HttpPersistentSettings::for_session(&session);
        let stream = session.finish().await.ok()??;
        Some(ReusedHttpStream::from_reusable_stream(stream, settings))
    }
}

fn path(session: &ServerSession) -> &str {
    session.req_header().uri.path()
}

/// The whole body; `None` when it is larger than [`BODY_BYTES`].
pub(super) async fn read_body(session: &mut ServerSession) -> Result<Option<Vec<u8>>> {
    let mut body = Vec::new();
    while let Some(bytes) = session.read_request_body().await? {
        if body.len() + bytes.len() > BODY_BYTES {
            return Ok(None);
        }
        body.extend_from_slice(&bytes);
    }
    Ok(Some(body))
}

fn reply(method: &str, path: &str, body: &[u8]) -> Reply {
    if (method, path) != ("POST", "/v1/chat/completions") {
        return refusal(
            404,
            "not_found",
            "The sandbox serves POST /v1/chat/completions alone.",
        );
    }
    let Some(ask) = Ask::parse(body) else {
        return refusal(400, "invalid_json", "The request body is not JSON.");
    };
    match ask.model.as_str() {
        "sandbox-chat" => answer(&ask, Duration::ZERO).into(),
        "sandbox-slow" => Reply {
            pause: SLOW_START,
            ..answer(&ask, SLOW_EVENT).into()
        },
        "sandbox-cut" => Reply {
            is_cut: true,
            ..answer(&ask, Duration::ZERO).into()
        },
        "sandbox-hang" => What::Nothing.into(),
        "sandbox-error-event" => error_first(&ask).into(),
        "sandbox-401" => refusal(
            401,
            "invalid_api_key",
            "The sandbox refuses this key on demand.",
        ),
        "sandbox-429" => refusal(429, "rate_limit_exceeded", "The sandbox is busy on demand."),
        "sandbox-500" => refusal(500, "server_error", "The sandbox failed on demand."),
        _ => refusal(404, "model_not_found", "The sandbox has no such model."),
    }
}

fn answer(ask: &Ask, pause: Duration) -> What {
    let answer = SandboxResponse::new(ask);
    if !ask.is_streaming {
        return What::Whole(200, answer.whole());
    }
    let mut events: Vec<String> = answer.chunks().iter().map(Value::to_string).collect();
    events.push("[DONE]".to_owned());
    What::Events(events, pause)
}

fn error_first(ask: &Ask) -> What {
    let error = error(500, "server_error", "The sandbox failed on demand.");
    if ask.is_streaming {
        return What::Events(vec![error.to_string()], Duration::ZERO);
    }
    What::Whole(200, error)
}

fn refusal(status: u16, code: &str, message: &str) -> Reply {
    What::Whole(status, error(status, code, message)).into()
}

fn error(status: u16, code: &str, message: &str) -> Value {
    let kind = match status {
        401 => "authentication_error",
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

/// Writes a reply; false when the connection must be closed after it.
async fn write(session: &mut ServerSession, reply: Reply) -> Result<bool> {
    silence(session, reply.pause).await?;
    match reply.what {
        What::Whole(status, body) => write_whole(session, status, &body, reply.is_cut).await?,
        What::Events(events, pause) => write_events(session, &events, pause, reply.is_cut).await?,
        What::Nothing => silence(session, Duration::MAX).await?,
    }
    Ok(!reply.is_cut)
}

async fn write_whole(
    session: &mut ServerSession,
    status: u16,
    body: &Value,
    is_cut: bool,
) -> Result<()> {
    let mut body = Bytes::from(body.to_string());
    let mut head = ResponseHeader::build(status, Some(4))?;
    head.insert_header("content-type", "application/json")?;
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
    pause: Duration,
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
        silence(session, pause).await?;
        session
            .write_response_body(Bytes::from(format!("data: {event}\n\n")), false)
            .await?;
    }
    if is_cut {
        return Ok(());
    }
    session.write_response_body(Bytes::new(), true).await
}

/// Says nothing for so long; an error as soon as the caller hangs up.
async fn silence(session: &mut ServerSession, pause: Duration) -> Result<()> {
    if pause.is_zero() {
        return Ok(());
    }
    tokio::select! {
        () = tokio::time::sleep(pause) => Ok(()),
        gone = session.read_body_or_idle(true) => gone.map(drop),
    }
}
