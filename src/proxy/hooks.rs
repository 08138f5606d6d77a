//! Pingora's hooks in the order in which it calls them, each handing on to the journey.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::upstreams::peer::HttpPeer;
use pingora::{Error, Result};
use pingora_proxy::{FailToProxy, ProxyHttp, ProxyWarnLogContext, Session};

use crate::app::state::AppState;
use crate::models::exchange::{failure, upstream_request, upstream_response};
use crate::proxy::connections;
use crate::proxy::context::Context;
use crate::proxy::request;

/// The gateway.
pub struct Proxy {
    /// What all requests share.
    pub house: Arc<AppState>,
}

#[async_trait]
impl ProxyHttp for Proxy {
    type CTX = Context;

    fn new_ctx(&self) -> Context {
        Context::new(&self.house)
    }

    async fn early_request_filter(&self, session: &mut Session, ctx: &mut Context) -> Result<()> {
        connections::saw_head();
        connections::keep(session);
        request::begin(session, ctx)
    }

    async fn request_filter(&self, session: &mut Session, ctx: &mut Context) -> Result<bool> {
        request::run(&self.house, session, ctx).await
    }

    async fn upstream_peer(&self, _: &mut Session, ctx: &mut Context) -> Result<Box<HttpPeer>> {
        upstream_request::peer(&self.house, ctx).await
    }

    fn fail_to_connect(
        &self,
        _: &mut Session,
        _: &HttpPeer,
        ctx: &mut Context,
        error: Box<Error>,
    ) -> Box<Error> {
        failure::connect(&self.house, ctx, error)
    }

    async fn upstream_request_filter(
        &self,
        _: &mut Session,
        head: &mut RequestHeader,
        ctx: &mut Context,
    ) -> Result<()> {
        upstream_request::head(&self.house, ctx, head)
    }

    async fn request_body_filter(
        &self,
        _: &mut Session,
        body: &mut Option<Bytes>,
        _is_end: bool,
        ctx: &mut Context,
    ) -> Result<()> {
        upstream_request::body(ctx, body.as_ref())
    }

    async fn upstream_response_filter(
        &self,
        _: &mut Session,
        head: &mut ResponseHeader,
        ctx: &mut Context,
    ) -> Result<()> {
        upstream_response::status(&self.house, ctx, head).await
    }

    async fn response_filter(
        &self,
        _: &mut Session,
        head: &mut ResponseHeader,
        ctx: &mut Context,
    ) -> Result<()> {
        upstream_response::head(ctx, head)
    }

    fn response_body_filter(
        &self,
        _: &mut Session,
        body: &mut Option<Bytes>,
        is_end: bool,
        ctx: &mut Context,
    ) -> Result<Option<Duration>> {
        upstream_response::body(ctx, body, is_end).map(|()| None)
    }

    fn error_while_proxy(
        &self,
        _: &HttpPeer,
        session: &mut Session,
        error: Box<Error>,
        ctx: &mut Context,
        was_reused: bool,
    ) -> Box<Error> {
        failure::broke(&self.house, session, ctx, error, was_reused)
    }

    async fn fail_to_proxy(
        &self,
        session: &mut Session,
        error: &Error,
        ctx: &mut Context,
    ) -> FailToProxy {
        failure::report(&self.house, session, error, ctx).await
    }

    async fn logging(&self, session: &mut Session, error: Option<&Error>, ctx: &mut Context) {
        crate::proxy::finish::finish(&self.house, session, error, ctx);
    }

    // The request's one line tells what happened; Pingora's own lines would say it again, with addresses.

    fn suppress_error_log(&self, _: &Session, _: &Context, _: &Error) -> bool {
        true
    }

    fn suppress_proxy_warn_log(
        &self,
        _: &Session,
        _: &Context,
        _: &Error,
        _: ProxyWarnLogContext,
    ) -> bool {
        true
    }
}
