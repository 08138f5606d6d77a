//! What one request carries through the hooks; the journey's two halves know it, nobody else.

use std::sync::Arc;

use filters::accounts::Caller;
use filters::fault::Fault;
use filters::limits::headers::Quota;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::buffered::session::SessionSlot;
use super::request_id::RequestId;
use crate::app::routes::Route;
use crate::app::state::AppState;
use crate::decisions::notifications::Subscription;
use crate::graph;
use crate::models::exchange::ModelExchange;
use crate::telemetry::metrics::InFlight;

/// The context of one request.
pub struct Context {
    /// The request's id, from the client or made here.
    pub request_id: RequestId,
    /// When its head had been read.
    pub started: Instant,
    /// Whether the client speaks HTTP/1.1, where an answer without a length is chunked.
    pub is_http1_1: bool,
    /// Which endpoint it goes to.
    pub row: Option<&'static Route>,
    /// Who calls.
    pub caller: Option<Arc<Caller>>,
    /// Its place among the model requests that run at once.
    pub place: Option<OwnedSemaphorePermit>,
    /// The quota it was held against.
    pub quota: Option<Quota>,
    /// Bytes of the request's body.
    pub request_bytes: usize,
    /// The status that went out; 0 while none has.
    pub status: u16,
    /// What the client was told went wrong.
    pub fault: Option<Fault>,
    /// The call of a model, once it is planned.
    pub call: Option<Box<ModelExchange>>,
    /// The request to the graph service, once its row is found.
    pub graph: Option<Box<graph::GraphExchange>>,
    /// Who listens, where the answer is a stream of notices.
    pub listener: Option<Subscription>,
    /// Where the real session is, while the held one stands in for it.
    pub slot: Option<SessionSlot>,
    /// Counts the request as in flight until it is dropped, also when nobody logs it.
    pub guard: InFlight,
}

impl Context {
    /// The context of a request whose head is about to be looked at.
    pub fn new(house: &AppState) -> Self {
        Self {
            request_id: RequestId::NONE,
            started: Instant::now(),
            is_http1_1: true,
            row: None,
            caller: None,
            place: None,
            quota: None,
            request_bytes: 0,
            status: 0,
            fault: None,
            call: None,
            graph: None,
            listener: None,
            slot: None,
            guard: InFlight::new(&house.metrics),
        }
    }
}
