//! The core: heads, bodies, connections, permits.

mod bad_input;
mod connections;
mod framed_bodies;
mod framing;
pub mod http2;
mod memory;
mod overload;
mod slow_clients;
mod tls;
pub mod uploads;
