//! The server's rows of the route table.

use std::net::IpAddr;
use std::sync::Arc;

use filters::fault::Fault;
use filters::mcp::message::{INTERNAL_ERROR, INVALID_REQUEST, REFUSED, RpcError, UNAUTHENTICATED};
use filters::mcp::oauth::scopes::Scopes;
use filters::mcp::session::SECRET_PURPOSE;
use http::{HeaderMap, Method, header};
use serde_json::{Value, json};

use super::endpoints::{EndSession, Info, Preflight};
use super::handler::McpHandler;
use super::kept_answers::KeptAnswers;
use super::oauth::{self, OAuth, OAuthParts};
use super::reads::Reads;
use super::sessions::McpSessions;
use super::tools::Tools;
use super::{McpMemory, McpState, PATH};
use crate::config::Config;
use crate::proxy::handler::Handler;
use crate::proxy::response::Response;
use crate::proxy::router::{Access, BodyRule, ErrorStyle, Route};
use crate::redis::Redis;

/// The maximum bytes of a message. Tools take texts, not files.
const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// The parts of the server other than its configuration.
pub struct McpParts<'p> {
    redis: Option<&'p Redis>,
    oauth: OAuthParts,
    memory: &'p McpMemory,
}

impl<'p> McpParts<'p> {
    /// Over Redis, other processes learn which sessions were ended. `memory` is the same for all configurations of a
    /// process.
    pub fn new(redis: Option<&'p Redis>, oauth: OAuthParts, memory: &'p McpMemory) -> Self {
        Self {
            redis,
            oauth,
            memory,
        }
    }
}

/// Returns the rows of the server, or none if it is off. `others` are the rows of all products, which its tools call.
///
/// Errors: the description of a tool is invalid.
pub fn routes(
    config: &Config,
    others: &[Route],
    parts: McpParts<'_>,
) -> Result<Vec<Route>, String> {
    let Some(settings) = &config.mcp else {
        return Ok(Vec::new());
    };
    let headers = config.decisions.as_ref();
    let headers = headers.map_or(&[][..], |decisions| &decisions.sdk_key_headers);
    let secret = parts.oauth.pepper.derive(SECRET_PURPOSE);
    let accounts = parts.oauth.accounts.clone();
    let oauth = OAuth::new(parts.oauth, settings).map_err(|error| format!("OAuth: {error:?}"))?;
    let memory = parts.memory;
    let lifetime = settings.session_lifetime;
    let mcp = Arc::new(McpState {
        oauth: Arc::new(oauth),
        origins: settings.origins.clone(),
        tools: Tools::new(others, headers)?,
        sessions: McpSessions::new(&secret, lifetime, parts.redis, &memory.ended),
        reads: Reads::new(others, headers),
        calls: Arc::clone(&memory.calls),
        accounts,
        streams: Arc::clone(&memory.streams),
        kept: Arc::new(KeptAnswers::new(settings.resume_timeout, &memory.answers)),
        max_streams: settings.streams_per_key,
        keepalive: config.routing.keepalive,
    });
    let mut rows = rows(config, &mcp);
    rows.extend(oauth::routes::routes(&mcp.oauth));
    Ok(rows)
}

fn rows(config: &Config, mcp: &Arc<McpState>) -> Vec<Route> {
    let open = Route {
        name: "mcp_info",
        method: Method::GET,
        path: PATH,
        access: Access::KeyOrTokenForEvents,
        quota: None,
        deprecation: None,
        takes_permit: false,
        body: BodyRule::None,
        errors: error_style(mcp),
        description: include_str!("info.json"),
        is_on: true,
        handler: Handler::Endpoint(Arc::new(Info(Arc::clone(mcp)))),
    };
    let preflight = Route {
        name: "mcp_preflight",
        method: Method::OPTIONS,
        access: Access::Open,
        description: include_str!("preflight.json"),
        handler: Handler::Endpoint(Arc::new(Preflight(Arc::clone(mcp)))),
        ..open.clone()
    };
    let end = Route {
        name: "mcp_end",
        method: Method::DELETE,
        access: Access::KeyOrToken,
        description: include_str!("end.json"),
        handler: Handler::Endpoint(Arc::new(EndSession(Arc::clone(mcp)))),
        ..open.clone()
    };
    let call = Route {
        name: "mcp",
        method: Method::POST,
        access: Access::KeyOrToken,
        takes_permit: true,
        body: BodyRule::Json(config.limits.body_bytes.chat.min(MAX_MESSAGE_BYTES)),
        description: include_str!("call.json"),
        handler: Handler::Forward(Arc::new(McpHandler(Arc::clone(mcp)))),
        ..open.clone()
    };
    vec![call, open, end, preflight]
}

fn error_style(mcp: &Arc<McpState>) -> ErrorStyle {
    let mcp = Arc::clone(mcp);
    ErrorStyle {
        schema: Some("RpcError"),
        write: Arc::new(move |fault, refused| {
            error_response(&mcp, fault, (refused.headers, refused.client_ip))
        }),
    }
}

/// Returns the response to a request that is refused before its message is read, or whose tool fails: an error
/// without an id.
fn error_response(
    mcp: &McpState,
    fault: &Fault,
    (headers, client_ip): (&HeaderMap, Option<IpAddr>),
) -> Response {
    let status = fault.status();
    let code = match status {
        400 => INVALID_REQUEST,
        401 => UNAUTHENTICATED,
        500 => INTERNAL_ERROR,
        _ => REFUSED,
    };
    let error = RpcError::new(code, status, fault.message.clone()).with_data(fault_data(fault));
    let mut response = Response {
        body: error.body().into(),
        ..Response::from(fault)
    };
    response.headers.extend(mcp.headers(headers));
    if status == 401 {
        let has_credential =
            headers.contains_key(header::AUTHORIZATION) || headers.contains_key("x-api-key");
        let error = has_credential.then_some("invalid_token");
        let challenge = mcp.challenge((headers, client_ip), error, Scopes::all());
        let others = response.headers.iter_mut();
        let mut others = others.filter(|(name, _)| *name == header::WWW_AUTHENTICATE);
        match others.next() {
            Some(plain) => *plain = challenge,
            None => response.headers.push(challenge),
        }
    }
    response
}

/// Returns the details of a fault for programs.
pub(super) fn fault_data(fault: &Fault) -> Value {
    json!({
        "status": fault.status(),
        "type": fault.error_type(),
        "param": fault.param,
        "code": fault.code(),
    })
}
