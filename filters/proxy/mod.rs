//! Facts of every request: its framing, its path, the client's address and the gateway's own origin.

mod byte_class;
mod client_ip;
mod framing;
mod own_origin;
mod path;

pub use client_ip::client_address;
pub use framing::{HeadError, MAX_FIELDS, MAX_TARGET_BYTES, check_http1, check_http2};
pub use own_origin::{OwnOrigin, is_loopback};
pub use path::{InvalidPath, has_nameless_segment, normalise};
