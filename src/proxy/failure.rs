//! Reports a failed exchange to the client.

use filters::fault::{Fault, FaultKind};
use pingora::{Error, ErrorSource, Result};
use pingora_proxy::{FailToProxy, Session};

use super::buffered::error_types::ATTEMPT_ABORTED;
use super::buffered::session::{BufferedSession, write_queued};
use super::connection_state;
use super::context::Context;
use super::exchange::{Report, Write};
use super::request::error_response;
use super::response;
use super::state::ProxyState;

/// The status in the log line when the client disconnected before a response was sent.
pub(super) const CLIENT_CLOSED_REQUEST: u16 = 499;

/// Returns whether the client's side of the connection broke.
pub fn is_client_error(error: &Error) -> bool {
    *error.esource() == ErrorSource::Downstream && *error.etype() != ATTEMPT_ABORTED
}

/// Tells the client that no attempt succeeded or that the response broke.
pub async fn report(
    state: &ProxyState,
    session: &mut Session,
    error: &Error,
    ctx: &mut Context,
) -> FailToProxy {
    if let Some(slot) = &ctx.slot {
        BufferedSession::unwrap(session, &slot.clone());
        // What the attempt has queued stands before what is written next, which meets an error too.
        _ = Box::pin(write_queued(&mut session.downstream_session)).await;
    }
    let sent_head = session.response_written();
    let is_head_sent = sent_head.is_some_and(|head| !head.status.is_informational());
    let mut report = match &mut ctx.exchange {
        Some(exchange) => exchange.report(&ctx.info, error, is_head_sent),
        None => report_without_exchange(error),
    };
    if let Some(fault) = refused_body(error)
        && matches!(report.write, Write::Nothing)
        && !is_head_sent
    {
        report = Report {
            fault: Some(fault),
            write: Write::Error,
        };
    }
    let Report { fault, write } = report;
    let is_disconnected = fault.is_none() && matches!(write, Write::Nothing);
    if is_disconnected && session.response_written().is_none() {
        ctx.status = CLIENT_CLOSED_REQUEST;
    }
    let sent = self::write(state, session, ctx, fault, write).await;
    FailToProxy {
        error_code: if sent.is_ok() && !is_disconnected {
            ctx.status
        } else {
            0
        },
        can_reuse_downstream: false,
    }
}

/// Returns the fault of a body whose chunks were refused. Pingora takes such a body for a disconnected client.
fn refused_body(error: &Error) -> Option<Fault> {
    connection_state::body_fault().filter(|_| is_client_error(error))
}

fn report_without_exchange(error: &Error) -> Report {
    if is_client_error(error) {
        return Report {
            fault: None,
            write: Write::Nothing,
        };
    }
    let message = "the request could not be sent to a provider";
    Report {
        fault: Some(Fault::new(FaultKind::Internal, message)),
        write: Write::Error,
    }
}

async fn write(
    state: &ProxyState,
    session: &mut Session,
    ctx: &mut Context,
    fault: Option<Fault>,
    write: Write,
) -> Result<()> {
    let sent = match (write, &fault) {
        (Write::Nothing, _) => Ok(()),
        (Write::EndBody, _) => session.write_response_body(None, true).await,
        (Write::Tail(bytes, gate), _) => {
            if let Some(gate) = gate {
                // The client learns that the response broke even if the gate fails.
                _ = gate.await;
            }
            session.write_response_body(Some(bytes), true).await
        }
        (Write::Error, None) => Ok(()),
        (Write::Error, Some(fault)) => {
            ctx.status = fault.status();
            session.set_keepalive(None);
            let mut response = error_response(state, session, ctx, fault);
            response.headers.extend(ctx.info.head_fields().headers());
            response::send(session, response, ctx.info.id.as_header()).await
        }
    };
    ctx.fault = fault;
    sent
}
