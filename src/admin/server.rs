//! Serves the operator's listener: reads requests, and writes answers whole or piece by piece.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header};
use pingora::apps::{HttpPersistentSettings, HttpServerApp, ReusedHttpStream};
use pingora::protocols::http::ServerSession;
use pingora::server::ShutdownWatch;
use tokio::time::{Instant, interval_at, timeout};

use super::connections::{ConnectionUse, note_use};
use super::{Admin, PLAIN_TEXT};
use crate::console::{ConsoleBody, ConsoleCall, ConsoleStream, MAX_FORM_BYTES, PATH};

/// How long a client may take for its next head, for a body, and to read an answer or a piece of a stream: each time in all, however
/// many bytes come or go meanwhile.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a stream is sent. A page that follows calls comes back by itself, and goes on where it was.
const MAX_STREAM_TIME: Duration = Duration::from_secs(3600);
/// The interval at which a quiet stream says that it goes on, and looks whether the process does.
const STREAM_INTERVAL: Duration = Duration::from_secs(1);
/// After so many quiet intervals the pulse of a stream is sent.
const INTERVALS_PER_PULSE: u32 = 10;

/// The answer to a request.
type AdminAnswer = Response<ConsoleBody>;

#[async_trait]
impl HttpServerApp for Admin {
    async fn process_new_http(
        self: &Arc<Self>,
        mut http: ServerSession,
        shutdown: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        note_use(ConnectionUse::Waits);
        if !matches!(in_time(http.read_request()).await?, Ok(true)) {
            return None;
        }
        note_use(ConnectionUse::Answers);
        let is_stopping = *shutdown.borrow();
        http.set_keepalive((!is_stopping).then_some(CLIENT_TIMEOUT.as_secs()));
        let (head, body) = self.respond(&mut http).await.into_parts();
        let is_head = http.req_header().method == Method::HEAD;
        let mut head = Response::from_parts(head, ());
        match body {
            ConsoleBody::Whole(bytes) => {
                let length = HeaderValue::from(bytes.len());
                head.headers_mut().insert(header::CONTENT_LENGTH, length);
                let bytes = if is_head { Bytes::new() } else { bytes };
                in_time(write_whole(&mut http, head, bytes)).await??;
            }
            ConsoleBody::Pieces { stream, pulse } => {
                note_use(ConnectionUse::Streams);
                let chunked = HeaderValue::from_static("chunked");
                head.headers_mut()
                    .insert(header::TRANSFER_ENCODING, chunked);
                self.write_pieces(&mut http, head, (stream, pulse)).await?;
            }
        }
        let settings = HttpPersistentSettings::for_session(&http);
        // What comes behind the answer is read in the same time.
        let reusable = in_time(http.finish()).await?.ok()?;
        reusable.map(|stream| ReusedHttpStream::from_reusable_stream(stream, settings))
    }
}

impl Admin {
    async fn respond(&self, http: &mut ServerSession) -> AdminAnswer {
        let head = http.req_header();
        let path = head.uri.path();
        if path == "/" {
            let mut response = plain(302, PLAIN_TEXT, b"/console\n".to_vec());
            let to = HeaderValue::from_static(PATH);
            response.headers_mut().insert(header::LOCATION, to);
            return response;
        }
        let behind = path.strip_prefix(PATH);
        if behind.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
            return self.ask_console(http).await;
        }
        let is_read = matches!(head.method, Method::GET | Method::HEAD);
        if !is_read {
            let mut response = plain(405, PLAIN_TEXT, b"only GET is answered here\n".to_vec());
            let methods = HeaderValue::from_static("GET, HEAD");
            response.headers_mut().insert(header::ALLOW, methods);
            return response;
        }
        let address = http.server_addr().and_then(|it| it.as_inet());
        let address = address.map(|address| address.ip().to_canonical());
        let is_verbose = head.uri.query() == Some("verbose");
        let (status, media_type, body) = self.answer((path, is_verbose), &head.headers, address);
        let mut response = plain(status, media_type, body);
        if status == 401 {
            let challenge = HeaderValue::from_static("Bearer realm=\"weirgate\"");
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }

    async fn ask_console(&self, http: &mut ServerSession) -> AdminAnswer {
        let head = http.req_header().clone();
        let body = match head.method {
            Method::POST => match timeout(CLIENT_TIMEOUT, read_form(http)).await {
                Ok(Some(body)) => body,
                Ok(None) => {
                    let why = format!("a form may have {MAX_FORM_BYTES} bytes\n");
                    http.set_keepalive(None);
                    return plain(413, PLAIN_TEXT, why.into_bytes());
                }
                Err(_) => {
                    http.set_keepalive(None);
                    return plain(408, PLAIN_TEXT, b"the form did not come in time\n".to_vec());
                }
            },
            _ => Vec::new(),
        };
        let incoming = ConsoleCall {
            method: head.method.clone(),
            path: head.uri.path().to_owned(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            headers: head.headers.clone(),
            body,
            client: http.client_addr().and_then(|it| it.as_inet()).copied(),
        };
        self.console.answer(incoming).await
    }

    /// Writes pieces until they end, the client leaves or reads nothing, the time of the stream is over, or the process stops. Then the
    /// client comes back, to the next process.
    async fn write_pieces(
        &self,
        http: &mut ServerSession,
        head: Response<()>,
        (mut stream, pulse): (ConsoleStream, &'static [u8]),
    ) -> Option<()> {
        let (parts, ()) = head.into_parts();
        let written = in_time(http.write_response_header(Box::new(parts.into()))).await?;
        written.ok()?;
        let until = Instant::now() + MAX_STREAM_TIME;
        let mut ticks = interval_at(Instant::now() + STREAM_INTERVAL, STREAM_INTERVAL);
        let mut quiet = 0;
        while Instant::now() < until {
            let piece = tokio::select! {
                piece = stream.pieces.recv() => match piece {
                    Some(piece) => piece,
                    None => break,
                },
                // The client has left, or sends what nobody asked for.
                _ = http.read_body_or_idle(true) => return None,
                _ = ticks.tick() => {
                    if !self.current.get().accepts_requests() {
                        break;
                    }
                    quiet += 1;
                    if quiet < INTERVALS_PER_PULSE || pulse.is_empty() {
                        continue;
                    }
                    Bytes::from_static(pulse)
                }
            };
            quiet = 0;
            let written = in_time(http.write_response_body(piece, false)).await?;
            written.ok()?;
        }
        http.set_keepalive(None);
        let written = in_time(http.write_response_body(Bytes::new(), true)).await?;
        written.ok()
    }
}

/// Waits for the client, no longer than it may take. `None`: it took longer, and its connection closes.
async fn in_time<T>(step: impl Future<Output = T>) -> Option<T> {
    timeout(CLIENT_TIMEOUT, step).await.ok()
}

async fn write_whole(http: &mut ServerSession, head: Response<()>, body: Bytes) -> Option<()> {
    let (parts, ()) = head.into_parts();
    http.write_response_header(Box::new(parts.into()))
        .await
        .ok()?;
    match body.is_empty() {
        true => Some(()),
        false => http.write_response_body(body, true).await.ok(),
    }
}

/// Returns the body of a request, or `None` if it is too long or breaks.
async fn read_form(http: &mut ServerSession) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(piece) = http.read_request_body().await.ok()? {
        if body.len() + piece.len() > MAX_FORM_BYTES {
            return None;
        }
        body.extend_from_slice(&piece);
    }
    Some(body)
}

fn plain(status: u16, media_type: &'static str, body: Vec<u8>) -> AdminAnswer {
    let mut response = Response::new(ConsoleBody::Whole(body.into()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    let media_type = HeaderValue::from_static(media_type);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, media_type);
    response
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
    use tokio::time::sleep;

    use super::*;

    const PAUSE: Duration = Duration::from_secs(1);

    /// A connection whose peer is the test.
    fn connection() -> (ServerSession, DuplexStream) {
        let (ours, peers) = tokio::io::duplex(64);
        (ServerSession::new_http1(Box::new(ours)), peers)
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_sends_nothing_or_a_head_byte_by_byte_keeps_no_connection() {
        for is_silent in [true, false] {
            let (mut http, mut peer) = connection();
            let began = Instant::now();
            let sending = async {
                loop {
                    if !is_silent {
                        peer.write_u8(b'G').await.unwrap();
                    }
                    sleep(PAUSE).await;
                }
            };
            tokio::select! {
                read = in_time(http.read_request()) => assert!(read.is_none()),
                () = sending => {}
            }
            let took = began.elapsed();
            assert!(took < CLIENT_TIMEOUT + PAUSE, "{is_silent}: {took:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_nothing_or_byte_by_byte_keeps_no_connection() {
        for is_silent in [true, false] {
            let (mut http, mut peer) = connection();
            peer.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
            http.read_request().await.unwrap();
            let began = Instant::now();
            let reading = async {
                loop {
                    if !is_silent {
                        peer.read_u8().await.unwrap();
                    }
                    sleep(PAUSE).await;
                }
            };
            let body = Bytes::from(vec![b'x'; 4096]);
            tokio::select! {
                written = in_time(write_whole(&mut http, Response::new(()), body)) => assert!(written.is_none()),
                () = reading => {}
            }
            let took = began.elapsed();
            assert!(took < CLIENT_TIMEOUT + PAUSE, "{is_silent}: {took:?}");
        }
    }
}
