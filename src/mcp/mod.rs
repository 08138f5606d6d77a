//! The MCP server: `/mcp` over Streamable HTTP. Source: docs/mcp.md, docs/decisions.md 59.
//!
//! A call of a tool becomes a request to one of the gateway's own routes. [`handler`] reads the message and admits it to that
//! route, [`exchange`] makes the tool's result of the response, also where an upstream gives it, and [`tools`] holds the tools
//! whose routes are served.

mod arguments;
mod endpoints;
mod exchange;
mod handler;
pub mod routes;
mod tools;

use filters::mcp::origin::Origins;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, header};

use self::tools::Tools;
use crate::proxy::response::Response;

/// The path of the server.
const PATH: &str = "/mcp";

/// The server.
struct Mcp {
    origins: Origins,
    tools: Tools,
}

impl Mcp {
    /// Returns the headers that every response to a request with these headers has, beside those of all responses.
    fn headers(&self, host: Option<&str>, headers: &HeaderMap) -> Vec<(HeaderName, HeaderValue)> {
        let mut own = self.origins.headers(host, headers);
        own.push((header::CACHE_CONTROL, HeaderValue::from_static("no-store")));
        own
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

/// Returns the host that a request names.
fn host(head: &Parts) -> Option<&str> {
    let header = head.headers.get(header::HOST);
    let header = header.and_then(|host| host.to_str().ok());
    header.or_else(|| head.uri.authority().map(http::uri::Authority::as_str))
}
