//! The server's rows of the route table.

use std::sync::Arc;

use filters::fault::Fault;
use filters::mcp::message::{INTERNAL_ERROR, INVALID_REQUEST, REFUSED, RpcError, UNAUTHENTICATED};
use http::{HeaderMap, Method, header};
use serde_json::json;

use super::endpoints::{Info, Preflight};
use super::handler::McpHandler;
use super::tools::Tools;
use super::{Mcp, PATH};
use crate::config::Config;
use crate::proxy::handler::Handler;
use crate::proxy::response::Response;
use crate::proxy::router::{Access, BodyRule, ErrorStyle, Route};

/// Returns the rows of the server; none where it is off. `others` are the rows of all products, which its tools call.
///
/// Errors: the description of a tool is not what it has to be.
pub fn routes(config: &Config, others: &[Route]) -> Result<Vec<Route>, String> {
    let Some(settings) = &config.mcp else {
        return Ok(Vec::new());
    };
    let headers = config.decisions.as_ref();
    let headers = headers.map_or(&[][..], |decisions| &decisions.sdk_key_headers);
    let mcp = Arc::new(Mcp {
        origins: settings.origins.clone(),
        tools: Tools::new(others, headers)?,
    });
    let errors = {
        let mcp = Arc::clone(&mcp);
        ErrorStyle {
            schema: Some("RpcError"),
            write: Arc::new(move |fault, headers| error_response(&mcp, fault, headers)),
        }
    };
    let open = Route {
        name: "mcp_info",
        method: Method::GET,
        path: PATH,
        access: Access::Open,
        quota: None,
        deprecation: None,
        takes_permit: false,
        body: BodyRule::None,
        errors,
        description: include_str!("info.json"),
        is_on: true,
        handler: Handler::Endpoint(Arc::new(Info(Arc::clone(&mcp)))),
    };
    let preflight = Route {
        name: "mcp_preflight",
        method: Method::OPTIONS,
        description: include_str!("preflight.json"),
        handler: Handler::Endpoint(Arc::new(Preflight(Arc::clone(&mcp)))),
        ..open.clone()
    };
    let call = Route {
        name: "mcp",
        method: Method::POST,
        access: Access::Key,
        body: BodyRule::Json(config.limits.body_bytes.chat),
        description: include_str!("call.json"),
        handler: Handler::Forward(Arc::new(McpHandler(mcp))),
        ..open.clone()
    };
    Ok(vec![call, open, preflight])
}

/// Returns the response to a request that is refused before its message is read, or whose tool fails: an error without an id.
fn error_response(mcp: &Mcp, fault: &Fault, headers: &HeaderMap) -> Response {
    let status = fault.status();
    let code = match status {
        400 => INVALID_REQUEST,
        401 => UNAUTHENTICATED,
        500 => INTERNAL_ERROR,
        _ => REFUSED,
    };
    let data = json!({
        "status": status,
        "type": fault.error_type(),
        "param": fault.param,
        "code": fault.code(),
    });
    let error = RpcError::new(code, status, fault.message.clone()).with_data(data);
    let mut response = Response {
        body: error.body().into(),
        ..Response::from(fault)
    };
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    response.headers.extend(mcp.headers(host, headers));
    response
}
