//! What one request carries through the hooks.

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

/// What is known of a request, whatever handles it.
pub struct RequestInfo {
    /// Its id, from the client or made here.
    pub id: RequestId,
    /// When its head had been read.
    pub started: Instant,
    /// Whether the client speaks HTTP/1.1, where a response without a length is chunked.
    pub is_http1_1: bool,
    /// The index of its route.
    pub route: usize,
    /// The caller, where the route asks for one.
    pub caller: Option<Arc<Caller>>,
    /// Its permit among the model gateway requests that run at once.
    pub permit: Option<OwnedSemaphorePermit>,
    /// The quota it counted against.
    pub quota: Option<Quota>,
    /// Bytes of its body.
    pub body_bytes: usize,
}

/// The context of one request.
pub struct Context {
    /// What is known of the request.
    pub info: RequestInfo,
    /// Its exchange with an upstream, once it is opened.
    pub exchange: Option<Box<dyn Exchange>>,
    /// Where the real session is, while the buffered one stands in for it.
    pub slot: Option<SessionSlot>,
    /// The fault that the client was answered with.
    pub fault: Option<Fault>,
    /// The status that went out; 0 while none has.
    pub status: u16,
    /// Counts the request as in flight until it is dropped, even if its end is never logged.
    pub in_flight: InFlight,
}

impl Context {
    /// The context of a request whose head is about to be read.
    pub fn new(state: &ProxyState) -> Self {
        Self {
            info: RequestInfo {
                id: RequestId::NONE,
                started: Instant::now(),
                is_http1_1: true,
                route: state.router.none(),
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
