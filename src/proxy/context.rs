//! The context that one request carries through the hooks.

use std::sync::Arc;

use filters::accounts::Caller;
use filters::fault::Fault;
use filters::limits::headers::Quota;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::buffered::session::SessionSlot;
use super::exchange::Exchange;
use super::request_id::RequestId;
use super::state::ProxyState;
use crate::telemetry::metrics::InFlight;

/// Facts about a request that are the same for all handlers.
pub struct RequestInfo {
    /// The request id, from the client or generated here.
    pub id: RequestId,
    /// The time at which the head was read.
    pub started: Instant,
    /// Whether the client speaks HTTP/1.1: a response without a length is then chunked.
    pub is_http1_1: bool,
    /// The index of the route.
    pub route: usize,
    /// The caller, if the route requires an API key.
    pub caller: Option<Arc<Caller>>,
    /// One of the permits for concurrent model gateway requests, if the route needs one.
    pub permit: Option<OwnedSemaphorePermit>,
    /// The quota that the request counted against.
    pub quota: Option<Quota>,
    /// The size of the request body.
    pub body_bytes: usize,
}

/// The context of one request.
pub struct Context {
    /// The facts that every handler sees.
    pub info: RequestInfo,
    /// The exchange with an upstream, once it is open.
    pub exchange: Option<Box<dyn Exchange>>,
    /// The slot that gets the real session back when the buffered one is dropped.
    pub slot: Option<SessionSlot>,
    /// The fault that the client was sent.
    pub fault: Option<Fault>,
    /// The status that was sent; 0 before that.
    pub status: u16,
    /// Counts the request as in flight until the context is dropped, even if its end is never logged.
    pub in_flight: InFlight,
}

impl Context {
    /// Returns the context of a request before its head is read.
    pub fn new(state: &ProxyState) -> Self {
        Self {
            info: RequestInfo {
                id: RequestId::NONE,
                started: Instant::now(),
                is_http1_1: true,
                route: state.router.no_route(),
                caller: None,
                permit: None,
                quota: None,
                body_bytes: 0,
            },
            exchange: None,
            slot: None,
            fault: None,
            status: 0,
            in_flight: InFlight::new(&state.metrics),
        }
    }
}
