//! Pingora's hooks, in the order in which Pingora calls them. Each hook makes one call: into the request path, or to the
//! request's exchange. A hook that follows a wait reads the clock once, into [`RequestInfo::now`].
//!
//! [`RequestInfo::now`]: super::context::RequestInfo::now

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::upstreams::peer::HttpPeer;
use pingora::{Error, Result};
use pingora_proxy::{FailToProxy, ProxyHttp, ProxyWarnLogContext, Session};
use tokio::time::Instant;

use super::buffered::error_types::ATTEMPT_ABORTED;
use super::buffered::session::BufferedSession;
use super::context::{Context, PinnedContext};
use super::exchange::{Begun, Broken, Upstream};
use super::state::CurrentState;
use super::{connection_state, connections, failure, finish, request};

/// Implements Pingora's hooks.
pub struct Proxy {
    pub current: CurrentState,
}

#[async_trait]
impl ProxyHttp for Proxy {
    // Boxed, because Pingora moves it from future to future.
    type CTX = Box<PinnedContext>;

    fn new_ctx(&self) -> Self::CTX {
        let state = self.current.get();
        Box::new(PinnedContext {
            context: Context::new(&state),
            state,
        })
    }

    async fn early_request_filter(&self, session: &mut Session, ctx: &mut Self::CTX) -> Result<()> {
        connection_state::clear_head_deadline();
        connections::enable_keepalive(session, &ctx.state.drain);
        let PinnedContext { state, context } = &mut **ctx;
        request::prepare(state, session, context)
    }

    async fn request_filter(&self, session: &mut Session, ctx: &mut Self::CTX) -> Result<bool> {
        let PinnedContext { state, context } = &mut **ctx;
        request::handle(state, session, context).await
    }

    async fn upstream_peer(
        &self,
        session: &mut Session,
        ctx: &mut Self::CTX,
    ) -> Result<Box<HttpPeer>> {
        let ctx = &mut ctx.context;
        ctx.info.now = Instant::now();
        let Some(exchange) = ctx.exchange.as_deref_mut() else {
            return Error::e_explain(ATTEMPT_ABORTED, "no exchange is open");
        };
        let upstream = loop {
            match exchange.begin_attempt(&ctx.info)? {
                Begun::At(upstream) => break upstream,
                Begun::Wait(wait) => BufferedSession::watch_client(session, wait).await?,
            }
            ctx.info.now = Instant::now();
        };
        let peer = match upstream {
            Upstream::Origin(origin) => origin.peer().await,
            Upstream::Hedge(adopted) => Ok(adopted.peer()),
        };
        peer.map(Box::new)
            .map_err(|error| exchange.connect_failed(&ctx.info, error))
    }

    fn fail_to_connect(
        &self,
        _: &mut Session,
        _: &HttpPeer,
        ctx: &mut Self::CTX,
        error: Box<Error>,
    ) -> Box<Error> {
        let ctx = &mut ctx.context;
        ctx.info.now = Instant::now();
        match ctx.exchange.as_deref_mut() {
            Some(exchange) => exchange.connect_failed(&ctx.info, error),
            None => error,
        }
    }

    async fn upstream_request_filter(
        &self,
        session: &mut Session,
        head: &mut RequestHeader,
        ctx: &mut Self::CTX,
    ) -> Result<()> {
        let ctx = &mut ctx.context;
        let Some(exchange) = ctx.exchange.as_deref_mut() else {
            return Ok(());
        };
        // The client was not watched while credit was reserved and a connection was made.
        if exchange.is_billed() {
            BufferedSession::check_client(session)?;
        }
        exchange.upstream_head(&ctx.info, head)
    }

    async fn request_body_filter(
        &self,
        session: &mut Session,
        body: &mut Option<Bytes>,
        is_end: bool,
        ctx: &mut Self::CTX,
    ) -> Result<()> {
        let ctx = &mut ctx.context;
        // Pingora turns an empty last piece into the chunk that ends the body, and then writes a second one. The
        // connection's next request would then get the response to that chunk.
        body.take_if(|piece| is_end && piece.is_empty());
        let Some(exchange) = ctx.exchange.as_deref_mut() else {
            return Ok(());
        };
        // An empty piece here is a call of the session after a wait.
        if body.as_ref().is_some_and(Bytes::is_empty) {
            ctx.info.now = Instant::now();
        }
        exchange.upstream_body(&ctx.info, session.req_header(), body.as_ref())
    }

    async fn upstream_response_filter(
        &self,
        _: &mut Session,
        head: &mut ResponseHeader,
        ctx: &mut Self::CTX,
    ) -> Result<()> {
        let ctx = &mut ctx.context;
        ctx.info.now = Instant::now();
        let Some(exchange) = ctx.exchange.as_deref_mut() else {
            return Ok(());
        };
        let budget = ctx.info.shared_wait;
        let budget = match exchange.response_status(&ctx.info, head)? {
            Some(pending) => budget.hold(pending).await.1,
            None => budget,
        };
        ctx.info.shared_wait = budget;
        Ok(())
    }

    async fn response_filter(
        &self,
        session: &mut Session,
        head: &mut ResponseHeader,
        ctx: &mut Self::CTX,
    ) -> Result<()> {
        connections::close_if_draining(session, &ctx.state.drain);
        let ctx = &mut ctx.context;
        match ctx.exchange.as_deref_mut() {
            Some(exchange) => exchange.response_head(&ctx.info, head),
            None => Ok(()),
        }
    }

    fn response_body_filter(
        &self,
        _: &mut Session,
        body: &mut Option<Bytes>,
        is_end: bool,
        ctx: &mut Self::CTX,
    ) -> Result<Option<Duration>> {
        let ctx = &mut ctx.context;
        ctx.info.now = Instant::now();
        match ctx.exchange.as_deref_mut() {
            Some(exchange) => exchange
                .response_body(&ctx.info, body, is_end)
                .map(|()| None),
            None => Ok(None),
        }
    }

    fn error_while_proxy(
        &self,
        _: &HttpPeer,
        session: &mut Session,
        error: Box<Error>,
        ctx: &mut Self::CTX,
        was_reused: bool,
    ) -> Box<Error> {
        let ctx = &mut ctx.context;
        ctx.info.now = Instant::now();
        let Some(exchange) = ctx.exchange.as_deref_mut() else {
            return error;
        };
        let is_whole = !session.as_ref().retry_buffer_truncated();
        let broken = Broken {
            was_reused,
            is_repeatable: session.req_header().method.is_idempotent() && is_whole,
        };
        exchange.broke(&ctx.info, error, broken)
    }

    async fn fail_to_proxy(
        &self,
        session: &mut Session,
        error: &Error,
        ctx: &mut Self::CTX,
    ) -> FailToProxy {
        let PinnedContext { state, context } = &mut **ctx;
        context.info.now = Instant::now();
        failure::report(state, session, error, context).await
    }

    async fn logging(&self, session: &mut Session, error: Option<&Error>, ctx: &mut Self::CTX) {
        let PinnedContext { state, context } = &mut **ctx;
        context.info.now = Instant::now();
        finish::finish(state, session, error, context);
        connection_state::expect_next_head(context.info.now);
    }

    // The access log reports the request; Pingora's own log lines would repeat it, with addresses.

    fn suppress_error_log(&self, _: &Session, _: &Self::CTX, _: &Error) -> bool {
        true
    }

    fn suppress_proxy_warn_log(
        &self,
        _: &Session,
        _: &Self::CTX,
        _: &Error,
        _: ProxyWarnLogContext,
    ) -> bool {
        true
    }
}
