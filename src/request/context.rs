//! What one request carries through the hooks; the journey's two halves know it, nobody else.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use filters::auth::Caller;
use filters::fault::Fault;
use filters::limits::headers::Quota;
use http::{HeaderMap, HeaderValue};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::held::Slot;
use crate::attempt::Call;
use crate::flags::notices::Listener;
use crate::graph;
use crate::house::House;
use crate::metrics::InFlight;
use crate::routes::Row;

/// The context of one request.
pub struct Context {
    /// The request's id, from the client or made here.
    pub request_id: Box<str>,
    /// The same as the value of a header.
    pub request_id_value: HeaderValue,
    /// When its head had been read.
    pub started: Instant,
    /// Whether the client speaks HTTP/1.1, where an answer without a length is chunked.
    pub is_http1_1: bool,
    /// Which endpoint it goes to.
    pub row: Option<&'static Row>,
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
    pub call: Option<Box<Call>>,
    /// The request to the graph service, once its row is found.
    pub graph: Option<Box<graph::Call>>,
    /// Who listens, where the answer is a stream of notices.
    pub listener: Option<Listener>,
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
            request_id_value: HeaderValue::from_static(""),
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

    /// Keeps the client's `x-request-id` if it is 1–128 of `A-Za-z0-9_.-`, else makes one. Source: interface.
    pub fn take_request_id(&mut self, headers: &HeaderMap) {
        let theirs = headers
            .get("x-request-id")
            .filter(|value| (1..=128).contains(&value.len()))
            .filter(|value| value.as_bytes().iter().all(|&b| is_of_an_id(b)))
            .and_then(|value| value.to_str().ok().map(|id| (id, value)));
        (self.request_id, self.request_id_value) = match theirs {
            Some((id, value)) => (id.into(), value.clone()),
            None => {
                let id = new_id();
                // Hex digits always make a header.
                let value = HeaderValue::from_str(&id).unwrap_or(HeaderValue::from_static(""));
                (id, value)
            }
        };
    }
}

fn is_of_an_id(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_.-".contains(&byte)
}

/// An id that sorts by time. It is a name and no secret: numbers of the thread's own generator make it unique,
/// for which the system's would cost a call per request.
fn new_id() -> Box<str> {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let mut random = [0; 10];
    fastrand::fill(&mut random);
    let ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
    let id = uuid::Builder::from_unix_timestamp_millis(ms, &random).into_uuid();
    let mut buffer = uuid::Uuid::encode_buffer();
    (&*id.simple().encode_lower(&mut buffer)).into()
}
