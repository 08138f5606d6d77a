//! What one request carries through the hooks; the journey's two halves know it, nobody else.

use std::sync::Arc;

use filters::auth::Caller;
use filters::fault::Fault;
use http::HeaderMap;
use tokio::time::Instant;

use super::held::Slot;
use crate::attempt::Call;
use crate::house::House;
use crate::metrics::InFlight;
use crate::routes::Row;

/// The context of one request.
pub struct Context {
    /// The request's id, from the client or made here.
    pub request_id: Box<str>,
    /// When its head had been read.
    pub started: Instant,
    /// Whether the client speaks HTTP/1.1, where an answer without a length is chunked.
    pub is_http1_1: bool,
    /// Which endpoint it goes to.
    pub row: Option<&'static Row>,
    /// Who calls.
    pub caller: Option<Arc<Caller>>,
    /// Bytes of the request's body.
    pub request_bytes: usize,
    /// The status that went out; 0 while none has.
    pub status: u16,
    /// What the client was told went wrong.
    pub fault: Option<Fault>,
    /// The call of a model, once it is planned.
    pub call: Option<Box<Call>>,
    /// Where the real session is, while the held one stands in for it.
    pub slot: Option<Slot>,
    /// Counts the request as in flight until it is dropped, also when nobody logs it.
    pub guard: InFlight,
}

impl Context {
    /// The context of a request whose head is about to be looked at.
    pub fn new(house: &House) -> Self {
        Self {
            request_id: Box::default(),
            started: Instant::now(),
            is_http1_1: true,
            row: None,
            caller: None,
            request_bytes: 0,
            status: 0,
            fault: None,
            call: None,
            slot: None,
            guard: InFlight::new(&house.metrics),
        }
    }

    /// Keeps the client's `x-request-id` if it is 1–128 of `A-Za-z0-9_.-`, else makes one. Source: interface.
    pub fn take_request_id(&mut self, headers: &HeaderMap) {
        let theirs = headers
            .get("x-request-id")
            .map(|value| value.as_bytes())
            .filter(|id| (1..=128).contains(&id.len()))
            .filter(|id| {
                id.iter()
                    .all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(b))
            })
            .and_then(|id| std::str::from_utf8(id).ok());
        self.request_id = match theirs {
            Some(id) => id.into(),
            None => {
                let mut buffer = uuid::Uuid::encode_buffer();
                let id = uuid::Uuid::now_v7();
                (&*id.simple().encode_lower(&mut buffer)).into()
            }
        };
    }
}
