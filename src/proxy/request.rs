//! The client's side of a request: the story from its head to the attempts, and its end.
//!
//! [`begin`] names the request, [`run`] tells the story, [`finish`] writes its one line. Nothing is decided
//! here that is not decided in `filters`.

use std::sync::Arc;

use bytes::Bytes;
use filters::fault::{Fault, FaultKind};
use pingora::Result;
use pingora::http::RequestHeader;
use pingora_proxy::Session;

use crate::app::routes;
use crate::app::routes::{Answers, Route};
use crate::app::state::AppState;
use crate::decisions::endpoints;
use crate::decisions::endpoints::Request;
use crate::models::endpoints::{key, models};
use crate::proxy::buffered::session::BufferedSession;
use crate::proxy::context::Context;
use crate::proxy::request_id::RequestId;
use crate::proxy::response;
use crate::proxy::response::Response;

/// Names the request and bounds what its connection may do.
///
/// Errors: none today; the hook may fail.
pub fn begin(session: &mut Session, ctx: &mut Context) -> Result<()> {
    session.set_read_timeout(Some(crate::proxy::body::BODY_IDLE_TIMEOUT));
    session.set_write_timeout(Some(crate::proxy::body::WRITE_TIMEOUT));
    let head = session.req_header();
    ctx.is_http1_1 = head.version == http::Version::HTTP_11;
    ctx.request_id = RequestId::of(&head.headers);
    Ok(())
}

/// The story of a request; answers whether it has been answered.
///
/// Errors: the client's connection broke.
pub async fn run(house: &Arc<AppState>, session: &mut Session, ctx: &mut Context) -> Result<bool> {
    let mut answer = match handle(house, session, ctx).await {
        Ok(Some(answer)) => answer,
        Ok(None) => return Ok(false),
        Err(fault) => {
            let is_of_flags = ctx.row.is_some_and(|row| row.answers.is_of_flags());
            let answer = match (&ctx.graph, &house.flags) {
                (Some(call), _) => Response::graph(&fault, call.headers()),
                (None, Some(organ)) if is_of_flags => {
                    endpoints::error_response(organ.protocol, &fault)
                }
                _ => Response::from(&fault),
            };
            if !session.is_body_done() {
                // What is left of the body is not worth reading.
                session.set_keepalive(None);
            }
            ctx.fault = Some(fault);
            answer
        }
    };
    if let Some(quota) = &ctx.quota {
        answer.headers.extend(quota.headers());
        if !quota.verdict.is_allowed {
            answer.headers.extend(quota.refusal(house.unix_s()));
        }
    }
    ctx.status = answer.status;
    if let Some(listener) = ctx.listener.take() {
        let id = ctx.request_id.header();
        return response::stream(session, id, listener, || house.is_ready())
            .await
            .map(|()| true);
    }
    response::send(session, answer, ctx.request_id.header()).await?;
    Ok(true)
}

/// Where the request goes, who sends it, what it says, and who answers; `None`: a provider does.
async fn handle(
    house: &Arc<AppState>,
    session: &mut Session,
    ctx: &mut Context,
) -> Result<Option<Response>, Fault> {
    let head = session.req_header();
    let (method, path) = (&head.method, head.uri.path());
    let framed = crate::proxy::admission::check_framing(head, house.settings.header_bytes);
    let found = routes::find(method, path, house.graph.is_some());
    // Whatever is refused from here on is refused in the words of its row.
    ctx.row = found.as_ref().ok().copied();
    let row = framed.and(found).inspect_err(|_| {
        let graph = house.graph.as_ref().filter(|_| !routes::is_reserved(path));
        ctx.graph = graph.map(|graph| crate::graph::admission::refused(graph, method, path));
    })?;
    ctx.caller = crate::proxy::admission::admit(house, row, &head.headers)?;
    crate::proxy::admission::check_address(house, session, ctx.caller.as_deref())?;
    ctx.place = crate::proxy::admission::acquire_permit(house, row)?;
    ctx.quota = crate::proxy::admission::check_quota(house, row, ctx.caller.as_deref()).await?;
    if let Some(quota) = ctx.quota.filter(|quota| !quota.verdict.is_allowed) {
        return Err(Fault::from(&quota));
    }
    match row.answers {
        Answers::Health => {
            let client = crate::proxy::admission::client_ip(house, session);
            let (status, body) = house.health(client, session.req_header().uri.query());
            Ok(Some(Response {
                status,
                ..Response::json(body)
            }))
        }
        Answers::Models => {
            let query = models::Query::parse(head.uri.query().unwrap_or_default());
            Ok(Some(Response::json(house.listing(query))))
        }
        Answers::Key => spent(house, ctx).await.map(Some),
        Answers::Chat => {
            let body =
                crate::proxy::body::read_json(session, house.settings.chat_body_bytes).await?;
            ctx.request_bytes = body.len();
            let is_stream = crate::models::handler::chat(house, session, ctx, body)?;
            crate::models::handler::pay(house, ctx).await?;
            hold(session, ctx, is_stream);
            Ok(None)
        }
        Answers::Graph => match &house.graph {
            Some(graph) => crate::graph::admission::pass(house, graph, session, ctx).await,
            None => Err(Fault::new(
                FaultKind::NotFound,
                "there is nothing at this path",
            )),
        },
        Answers::Notices => listen(house, session, ctx).await.map(Some),
        Answers::Flags | Answers::Batch | Answers::Token | Answers::Webhook => {
            let (decisions, batch) = house.settings.flags_body_bytes;
            let is_batch = matches!(row.answers, Answers::Batch);
            let body =
                crate::proxy::body::read_body(session, if is_batch { batch } else { decisions })
                    .await?;
            ctx.request_bytes = body.len();
            decide(house, session.req_header(), row, &body)
                .await
                .map(Some)
        }
    }
}

/// What the calling key has spent.
///
/// Errors: 503 where nobody can say.
async fn spent(house: &Arc<AppState>, ctx: &Context) -> Result<Response, Fault> {
    let Some(caller) = ctx.caller.as_deref() else {
        return Err(Fault::new(FaultKind::Internal, "nobody calls"));
    };
    let spent = house.ledger.spent(caller).await?;
    let plan = house.settings.plans.of(caller.plan);
    Ok(Response::json(key::key_status(
        caller,
        plan.as_ref(),
        &spent,
    )))
}

/// A stream of notices: the answer is its head, and the context holds who listens.
async fn listen(
    house: &Arc<AppState>,
    session: &mut Session,
    ctx: &mut Context,
) -> Result<Response, Fault> {
    let Some(organ) = &house.flags else {
        return Err(Fault::new(
            FaultKind::NotFound,
            "there is nothing at this path",
        ));
    };
    let call = call_of(house, session.req_header(), &[]);
    ctx.listener = Some(endpoints::event_stream::subscribe(organ, &call).await?);
    ctx.guard.is_stream();
    Ok(Response::json(Bytes::new()))
}

fn call_of<'a>(house: &AppState, head: &'a RequestHeader, body: &'a [u8]) -> Request<'a> {
    Request {
        headers: &head.headers,
        path: head.uri.path(),
        query: head.uri.query().unwrap_or_default(),
        body,
        now_ms: u64::try_from(house.unix_ms()).unwrap_or_default(),
    }
}

/// Answers a call of the decision endpoints in-process.
async fn decide(
    house: &Arc<AppState>,
    head: &RequestHeader,
    row: &Route,
    body: &[u8],
) -> Result<Response, Fault> {
    let Some(organ) = &house.flags else {
        return Err(Fault::new(
            FaultKind::NotFound,
            "there is nothing at this path",
        ));
    };
    let call = call_of(house, head, body);
    let answer = match row.answers {
        Answers::Flags => match endpoints::operation(row.name) {
            Some(handle) => handle(organ, &call).await,
            None => Err(Fault::new(
                FaultKind::Internal,
                "this endpoint is answered elsewhere",
            )),
        },
        Answers::Batch => endpoints::batch::handle(organ, &call).await,
        Answers::Webhook => endpoints::webhook::handle(organ, &call).await,
        Answers::Token => endpoints::token::handle(organ, &call).await,
        Answers::Health
        | Answers::Models
        | Answers::Key
        | Answers::Chat
        | Answers::Graph
        | Answers::Notices => Err(Fault::new(
            FaultKind::Internal,
            "this endpoint is answered elsewhere",
        )),
    };
    answer.map(|answer| endpoints::framed(organ.protocol, answer))
}

/// Puts the held session in the place of the real one: from here on Pingora's loop runs the attempts.
fn hold(session: &mut Session, ctx: &mut Context, is_stream: bool) {
    if is_stream {
        ctx.guard.is_stream();
    }
    if let Some(call) = &ctx.call {
        let watch = Arc::clone(&call.watch);
        let stamp = (ctx.request_id.header().clone(), ctx.quota);
        ctx.slot = Some(BufferedSession::wrap(session, watch, stamp, ctx.is_http1_1));
    }
}
