//! The MCP server: `/mcp` over Streamable HTTP. Source: docs/mcp.md, docs/decisions.md 59, 62.
//!
//! A call of a tool becomes a request to one of the gateway's own routes. [`handler`] reads the message and admits it
//! to that route, and [`exchange`] makes the tool's result from the response, even if an upstream gives it. [`tools`]
//! has the tools whose routes are served. [`reads`] serves resources and prompts.

mod arguments;
mod calls;
mod endpoints;
mod exchange;
mod handler;
mod kept_answers;
mod listen;
pub mod oauth;
mod reads;
mod resume;
pub mod routes;
mod sessions;
mod tools;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use filters::fault::{Fault, FaultKind};
use filters::mcp::message::RpcError;
use filters::mcp::oauth::metadata::RESOURCE_DOCUMENT;
use filters::mcp::oauth::scopes::Scopes;
use filters::mcp::origin::Origins;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, header};

use self::calls::RunningCalls;
use self::kept_answers::{KeptAnswers, SharedAnswers};
use self::listen::StreamCounts;
use self::oauth::OAuth;
use self::reads::Reads;
use self::sessions::{McpSessions, SharedEndedSessions};
use self::tools::Tools;
use crate::accounts::AccountsHandle;
use crate::proxy::response::Response;

/// The path of the server.
const PATH: &str = "/mcp";

/// What outlives the configuration of the server: ended sessions, running calls, open streams and kept answers.
#[derive(Clone, Default)]
pub struct McpMemory {
    ended: SharedEndedSessions,
    calls: Arc<RunningCalls>,
    streams: Arc<StreamCounts>,
    answers: SharedAnswers,
}

/// The server.
struct McpState {
    origins: Origins,
    tools: Tools,
    sessions: McpSessions,
    reads: Reads,
    calls: Arc<RunningCalls>,
    accounts: AccountsHandle,
    streams: Arc<StreamCounts>,
    kept: Arc<KeptAnswers>,
    /// The maximum number of open streams of a key.
    max_streams: usize,
    /// The silence after which a client gets a comment.
    keepalive: Duration,
    oauth: Arc<OAuth>,
}

impl McpState {
    /// Checks the origin of a request.
    ///
    /// Errors: 403.
    fn check_origin(&self, head: &Parts) -> Result<(), Fault> {
        let checked = self.origins.check(host(&head.headers), &head.headers);
        checked.map_err(|message| Fault::new(FaultKind::Forbidden, message))
    }

    /// Returns the headers of every response to a request with these headers, beside those of all responses.
    fn headers(&self, headers: &HeaderMap) -> Vec<(HeaderName, HeaderValue)> {
        let mut own = self.origins.headers(host(headers), headers);
        own.push((header::CACHE_CONTROL, HeaderValue::from_static("no-store")));
        own
    }

    /// Returns `WWW-Authenticate`: where the client gets a token, and the scope that the token needs. `error` says
    /// what is wrong with the token of the request. Source: RFC 6750 3; RFC 9728 5.1.
    fn challenge(
        &self,
        (headers, client_ip): (&HeaderMap, Option<IpAddr>),
        error: Option<&str>,
        scopes: Scopes,
    ) -> (HeaderName, HeaderValue) {
        let mut parts = Vec::new();
        parts.extend(error.map(|error| format!("error=\"{error}\"")));
        if let Some(issuer) = self.oauth.issuer(headers, client_ip) {
            parts.push(format!("scope=\"{scopes}\""));
            parts.push(format!("resource_metadata=\"{issuer}{RESOURCE_DOCUMENT}\""));
        }
        let challenge = format!("Bearer {}", parts.join(", "));
        let challenge = HeaderValue::try_from(challenge.trim_end());
        let challenge = challenge.unwrap_or_else(|_| HeaderValue::from_static("Bearer"));
        (header::WWW_AUTHENTICATE, challenge)
    }
}

/// Returns a response with a JSON text.
fn response(status: u16, headers: Vec<(HeaderName, HeaderValue)>, body: Vec<u8>) -> Response {
    Response {
        status,
        headers,
        body: body.into(),
    }
}

/// Returns the response to a refused message.
fn error_response(headers: Vec<(HeaderName, HeaderValue)>, error: &RpcError) -> Response {
    response(error.status, headers, error.body())
}

/// Returns the host that a request names.
fn host(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::HOST)?.to_str().ok()
}
