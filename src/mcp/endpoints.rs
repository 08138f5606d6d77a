//! What the server answers without a message: who it is, what pages may send, and the end of a session.

use std::sync::Arc;

use filters::fault::Fault;
use filters::mcp::answer;
use filters::mcp::message::{INVALID_REQUEST, RpcError};
use filters::mcp::origin::preflight_headers;
use filters::mcp::revision::{Revision, named_revision};
use filters::mcp::session::{SESSION_HEADER, Session, no_session, session_id};
use futures::future::BoxFuture;
use http::request::Parts;
use http::{HeaderName, HeaderValue, header};

use super::handler::accepts_events;
use super::listen::{Changes, StreamPlace};
use super::resume::{self, Resumed};
use super::{Mcp, PATH, error_response, response};
use crate::proxy::handler::{Endpoint, Request};
use crate::proxy::response::{Reply, Response};

/// `GET /mcp`: tells who the server is; as a stream of events it tells a session what changes.
pub(super) struct Info(pub(super) Arc<Mcp>);

/// `OPTIONS /mcp`: a page asks before its request.
pub(super) struct Preflight(pub(super) Arc<Mcp>);

/// `DELETE /mcp`: ends a session.
pub(super) struct EndSession(pub(super) Arc<Mcp>);

impl Endpoint for Info {
    fn check_head(&self, head: &Parts) -> Result<(), Fault> {
        self.0.check_origin(head)
    }

    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        Box::pin(async move {
            let headers = self.0.headers(request.headers);
            let offered = self.0.reads.offered();
            if !accepts_events(request.headers) {
                return Ok(response(200, headers, answer::info(PATH, offered)));
            }
            if let Some(resumed) = resume(&self.0, &request).await? {
                return Ok(resumed);
            }
            // Nothing but prompts changes.
            let (true, Some(caller)) = (offered.prompts, request.caller) else {
                return Ok(method_not_allowed(headers));
            };
            let session = match find_session(&self.0, &request).await {
                Ok(Some(session)) => session,
                Ok(None) => return Ok(method_not_allowed(headers)),
                Err(error) => return Ok(error_response(headers, &error)),
            };
            let place = StreamPlace::take(&self.0, &caller.key_id)?;
            let last_id = request.headers.get("last-event-id");
            let last_id = last_id.map(HeaderValue::as_bytes);
            let changes = Changes::begin(place, caller, session, last_id, request.now_ms).await;
            Ok(Response {
                status: 200,
                headers,
                body: Reply::Stream(Box::new(changes)),
            })
        })
    }
}

impl Endpoint for Preflight {
    fn check_head(&self, head: &Parts) -> Result<(), Fault> {
        self.0.check_origin(head)
    }

    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        let mut headers = self.0.headers(request.headers);
        headers.extend(preflight_headers());
        Box::pin(async { Ok(response(204, headers, Vec::new())) })
    }
}

impl Endpoint for EndSession {
    fn check_head(&self, head: &Parts) -> Result<(), Fault> {
        self.0.check_origin(head)
    }

    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        Box::pin(async move {
            let headers = self.0.headers(request.headers);
            Ok(match end_session(&self.0, &request).await {
                Ok(true) => response(204, headers, Vec::new()),
                Ok(false) => method_not_allowed(headers),
                Err(error) => error_response(headers, &error),
            })
        })
    }
}

/// Returns the rest of the answer that a client has lost; `None`: it comes back for none.
///
/// Errors: 429 if the key has as many streams as it may.
async fn resume(mcp: &Arc<Mcp>, request: &Request<'_>) -> Result<Option<Response>, Fault> {
    let (Some(last), Some(caller)) = (resume::last_event(request.headers), request.caller) else {
        return Ok(None);
    };
    let headers = mcp.headers(request.headers);
    let refused = |error| Ok(Some(error_response(mcp.headers(request.headers), &error)));
    let is_named = request.headers.contains_key(SESSION_HEADER);
    match named_revision(request.headers) {
        Ok(Some(revision)) if revision.is_stateless() => return Ok(None),
        Err(error) => return refused(error),
        Ok(_) => {}
    }
    // The answer is of the key; a session that has ended has none any more.
    if is_named && let Err(error) = find_session(mcp, request).await {
        return refused(error);
    }
    let listener = match resume::find(mcp, last, &caller.key_id) {
        Ok(listener) => listener,
        Err(error) => return refused(error),
    };
    let place = StreamPlace::take(mcp, &caller.key_id)?;
    let resumed = Resumed::new(place, listener, mcp.keepalive);
    Ok(Some(Response {
        status: 200,
        headers,
        body: Reply::Stream(Box::new(resumed)),
    }))
}

/// Ends the session that a request names; false: its revision has none.
///
/// Errors: those of [`find_session`].
async fn end_session(mcp: &Mcp, request: &Request<'_>) -> Result<bool, RpcError> {
    let Some(session) = find_session(mcp, request).await? else {
        return Ok(false);
    };
    let caller = request.caller.map(|caller| &*caller.key_id);
    let (key_id, now_s) = (caller.unwrap_or_default(), request.now_ms / 1000);
    mcp.sessions.end(session, key_id, now_s).await;
    Ok(true)
}

/// Returns the session that a request names; `None`: its revision has none.
///
/// Errors: 400 without one session, 404 for one that is none of the caller.
async fn find_session(mcp: &Mcp, request: &Request<'_>) -> Result<Option<Session>, RpcError> {
    if named_revision(request.headers)?.is_some_and(Revision::is_stateless) {
        return Ok(None);
    }
    let Some(id) = session_id(request.headers)? else {
        let message = "`Mcp-Session-Id` is missing: it names a session that `initialize` began";
        return Err(RpcError::new(INVALID_REQUEST, 400, message));
    };
    let caller = request.caller.map(|caller| &*caller.key_id);
    let now_s = request.now_ms / 1000;
    let found = mcp
        .sessions
        .find(id, caller.unwrap_or_default(), now_s)
        .await;
    found.map(Some).ok_or_else(|| no_session(None))
}

/// Returns the response to a method that the request's revision does not have.
fn method_not_allowed(mut headers: Vec<(HeaderName, HeaderValue)>) -> Response {
    headers.push((header::ALLOW, HeaderValue::from_static("POST")));
    response(405, headers, Vec::new())
}
