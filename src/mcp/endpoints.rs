//! The endpoints without a message: the server's description, preflight requests of pages, and the end of a session.

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
use super::listen::{PromptChanges, StreamPermit};
use super::resume::{self, Resumed};
use super::{McpState, PATH, error_response, response};
use crate::proxy::handler::{Endpoint, Request};
use crate::proxy::response::{Reply, Response};

/// `GET /mcp`: describes the server, or as an event stream announces changes to a session.
pub(super) struct Info(pub(super) Arc<McpState>);

/// `OPTIONS /mcp`: a page's preflight request.
pub(super) struct Preflight(pub(super) Arc<McpState>);

/// `DELETE /mcp`: ends a session.
pub(super) struct EndSession(pub(super) Arc<McpState>);

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
            // Only prompts can change.
            let (true, Some(caller)) = (offered.prompts, request.caller) else {
                return Ok(method_not_allowed(headers));
            };
            let session = match find_session(&self.0, &request).await {
                Ok(Some(session)) => session,
                Ok(None) => return Ok(method_not_allowed(headers)),
                Err(error) => return Ok(error_response(headers, &error)),
            };
            let place = StreamPermit::take(&self.0, &caller.key_id)?;
            let last_id = request.headers.get("last-event-id");
            let last_id = last_id.map(HeaderValue::as_bytes);
            let changes =
                PromptChanges::begin(place, caller, session, last_id, request.now_ms).await;
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

/// Returns the rest of a lost answer, or `None` if the client does not ask for one.
///
/// Errors: 429 if the key has the maximum number of streams.
async fn resume(mcp: &Arc<McpState>, request: &Request<'_>) -> Result<Option<Response>, Fault> {
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
    // Answers belong to the key. A session that has ended has no answers any more.
    if is_named && let Err(error) = find_session(mcp, request).await {
        return refused(error);
    }
    let listener = match resume::find(mcp, last, &caller.key_id) {
        Ok(listener) => listener,
        Err(error) => return refused(error),
    };
    let place = StreamPermit::take(mcp, &caller.key_id)?;
    let resumed = Resumed::new(place, listener, mcp.keepalive);
    Ok(Some(Response {
        status: 200,
        headers,
        body: Reply::Stream(Box::new(resumed)),
    }))
}

/// Ends the session that a request names. Returns false if its revision has no sessions.
///
/// Errors: those of [`find_session`].
async fn end_session(mcp: &McpState, request: &Request<'_>) -> Result<bool, RpcError> {
    let Some(session) = find_session(mcp, request).await? else {
        return Ok(false);
    };
    let caller = request.caller.map(|caller| &*caller.key_id);
    let (key_id, now_s) = (caller.unwrap_or_default(), request.now_ms / 1000);
    mcp.sessions.end(session, key_id, now_s).await;
    Ok(true)
}

/// Returns the session that a request names, or `None` if its revision has no sessions.
///
/// Errors: 400 without exactly one session, 404 for a session that is not the caller's.
async fn find_session(mcp: &McpState, request: &Request<'_>) -> Result<Option<Session>, RpcError> {
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

/// Returns the response to a method that the revision of the request does not have.
fn method_not_allowed(mut headers: Vec<(HeaderName, HeaderValue)>) -> Response {
    headers.push((header::ALLOW, HeaderValue::from_static("POST")));
    response(405, headers, Vec::new())
}
