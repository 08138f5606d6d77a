//! The core: the path that every request takes, whichever product handles it.
//!
//! [`connections`] limits client connections and puts a `FramedStream` below each HTTP/1 connection. [`hooks`]
//! implements Pingora's callbacks. [`request`] takes a request through [`router`], [`admission`] and [`body`] to its
//! [`handler`]; an [`upload`] is on disk while its request runs. An [`exchange`] with an upstream runs behind
//! [`buffered`] sessions, and a [`hedge`] may run beside it; an [`own_call`] has no client. [`failure`] and [`finish`] end it. Only [`response`]
//! writes our own responses. The core names no product.

mod access_log;
pub mod address_limits;
pub mod admission;
pub mod body;
pub mod body_budget;
pub mod budget_head;
pub mod buffered;
pub mod clock;
pub mod concurrency_limit;
pub mod connection_state;
pub mod connections;
pub mod context;
pub mod deprecation;
pub mod drain;
pub mod exchange;
pub mod failure;
pub mod finish;
mod framed_stream;
pub mod handler;
pub mod hedge;
pub mod hooks;
pub mod origin;
pub mod own_call;
pub mod permits;
pub mod progress;
pub mod request;
pub mod request_id;
mod request_span;
pub mod response;
pub mod router;
pub mod state;
pub mod stream_resets;
pub mod tls;
pub mod upload;
