//! The graph sandbox: a service that echoes queries, see [`echo_query`].
//!
//! It serves `POST` and `GET` on `/content/v2` only. It requires no key and stores nothing. Deliberately absent: a
//! schema, validation, introspection, mutations with effects.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use filters::form;
use pingora::Result;
use pingora::apps::{HttpPersistentSettings, HttpServerApp, ReusedHttpStream};
use pingora::http::ResponseHeader;
use pingora::protocols::http::ServerSession;
use pingora::server::ShutdownWatch;
use pingora::services::background::BackgroundService;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::budget;
use super::echo::echo_query;
use super::listener::LoopbackListener;
use super::server::read_body;

/// The graph sandbox, bound to a loopback port. It serves while it runs as a background service.
#[derive(Debug)]
pub struct GraphSandbox(LoopbackListener);

impl GraphSandbox {
    /// Binds a free loopback port. Errors: the operating system has no port.
    pub fn bind() -> io::Result<GraphSandbox> {
        LoopbackListener::bind().map(GraphSandbox)
    }

    /// Returns the listening address.
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }
}

#[async_trait]
impl BackgroundService for GraphSandbox {
    async fn start(&self, shutdown: ShutdownWatch) {
        if let Err(e) = self.0.serve(Arc::new(GraphServer), shutdown).await {
            log::error!("the graph sandbox at {} stopped: {e}", self.address());
        }
    }
}

/// The application that Pingora runs on each connection.
struct GraphServer;

#[async_trait]
impl HttpServerApp for GraphServer {
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
        let body = read_body(&mut session).await.ok()??;
        let head = session.req_header();
        let (status, body) = make_reply(
            head.method.as_str(),
            head.uri.path(),
            head.uri.query().unwrap_or_default(),
            &body,
        );
        write_reply(&mut session, status, &body).await.ok()?;
        let settings = HttpPersistentSettings::for_session(&session);
        let stream = session.finish().await.ok()??;
        Some(ReusedHttpStream::from_reusable_stream(stream, settings))
    }
}

/// A query from a body or a URL.
#[derive(Default, Deserialize)]
struct GraphqlRequest {
    query: String,
    #[serde(default, rename = "operationName")]
    operation: Option<String>,
    #[serde(default)]
    variables: Option<Map<String, Value>>,
}

fn make_reply(method: &str, path: &str, query: &str, body: &[u8]) -> (u16, Value) {
    let request = match (method, path) {
        ("POST", "/content/v2") => {
            budget::parse(body).and_then(|body| serde_json::from_value(body).ok())
        }
        ("GET", "/content/v2") => parse_query(query),
        _ => return (404, error_json("The sandbox serves /content/v2 alone.")),
    };
    let Some(request) = request else {
        return (400, error_json("There is no query, or it is not JSON."));
    };
    let variables = request.variables.unwrap_or_default();
    match echo_query(&request.query, request.operation.as_deref(), &variables) {
        Ok(data) => (200, json!({ "data": data })),
        Err(message) => (400, error_json(&message)),
    }
}

fn parse_query(query: &str) -> Option<GraphqlRequest> {
    let value = |name: &str| {
        let mut pairs = form::pairs(query);
        let pair = pairs.find(|pair| pair.decoded_name() == name)?;
        Some(pair.decoded_value().into_owned())
    };
    let variables = value("variables").map(|text| serde_json::from_str(&text));
    Some(GraphqlRequest {
        query: value("query")?,
        operation: value("operationName"),
        variables: variables.transpose().ok()?,
    })
}

fn error_json(message: &str) -> Value {
    json!({"errors": [{ "message": message }]})
}

async fn write_reply(session: &mut ServerSession, status: u16, body: &Value) -> Result<()> {
    let body = Bytes::from(body.to_string());
    let mut head = ResponseHeader::build(status, Some(2))?;
    head.insert_header("content-type", "application/json")?;
    head.insert_header("content-length", body.len())?;
    session.write_response_header(Box::new(head)).await?;
    session.write_response_body(body, true).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_answered_from_body_and_url() {
        let body = br#"{"query":"query A { a } query B($x: Int) { b(x: $x) }","operationName":"B","variables":{"x":7}}"#;
        let expected = (200, json!({"data": {"b": 7}}));
        assert_eq!(make_reply("POST", "/content/v2", "", body), expected);
        let query = "query=%7Bb(x:$x)%7D&variables=%7B%22x%22:7%7D&auth=k";
        assert_eq!(make_reply("GET", "/content/v2", query, b""), expected);
    }

    #[test]
    fn what_is_no_query_is_refused() {
        assert_eq!(make_reply("POST", "/content/v2", "", b"{").0, 400);
        assert_eq!(
            make_reply("POST", "/content/v2", "", br#"{"query":"{"}"#).0,
            400
        );
        assert_eq!(make_reply("GET", "/content/v2", "variables=1", b"").0, 400);
        assert_eq!(make_reply("POST", "/other", "", b"{}").0, 404);
    }
}
