//! The core: what every request goes through, whatever product handles it.
//!
//! [`connections`] limits client connections, [`hooks`] are Pingora's. [`request`] is the path of a request: [`router`],
//! [`admission`], [`body`], then a [`handler`]. An [`exchange`] with an upstream runs behind [`buffered`] sessions;
//! [`failure`] and [`finish`] end it. [`response`] alone writes responses of our own. No product is named here.

mod access_log;
pub mod admission;
pub mod body;
pub mod buffered;
pub mod clock;
pub mod connections;
pub mod context;
pub mod exchange;
pub mod failure;
pub mod finish;
pub mod handler;
pub mod hooks;
pub mod origin;
pub mod request;
pub mod request_id;
pub mod response;
pub mod router;
pub mod state;
