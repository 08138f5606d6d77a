//! The operator's listener with metrics and probes. They are never served on the public listener.

use std::sync::Arc;

use async_trait::async_trait;
use http::{Response, StatusCode, header};
use pingora::apps::http_app::ServeHttp;
use pingora::protocols::http::ServerSession;

use crate::proxy::state::ProxyState;

/// The operator's endpoints.
pub struct Admin {
    /// The state that they report.
    pub state: Arc<ProxyState>,
}

#[async_trait]
impl ServeHttp for Admin {
    async fn response(&self, session: &mut ServerSession) -> Response<Vec<u8>> {
        let head = session.req_header();
        let is_read = matches!(head.method, http::Method::GET | http::Method::HEAD);
        let (status, content_type, body) = match head.uri.path() {
            _ if !is_read => (405, "text/plain", b"only GET is answered here\n".to_vec()),
            "/metrics" => (
                200,
                "text/plain; version=0.0.4",
                self.state.metrics.render(),
            ),
            "/livez" => (200, "text/plain", b"ok\n".to_vec()),
            "/readyz" if self.state.is_ready() => (200, "text/plain", b"ok\n".to_vec()),
            "/readyz" => (
                503,
                "text/plain",
                b"not ready: starting or stopping\n".to_vec(),
            ),
            _ => (
                404,
                "text/plain",
                b"/metrics, /livez and /readyz are answered here\n".to_vec(),
            ),
        };
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
        let length = response.body().len();
        response
            .headers_mut()
            .insert(header::CONTENT_LENGTH, length.into());
        let content_type = http::HeaderValue::from_static(content_type);
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, content_type);
        response
    }
}
