//! Facts of every request: its framing, its path and the client's address.

mod byte_class;
mod client_ip;
mod framing;
mod path;

pub use client_ip::client_address;
pub use framing::{HeadError, MAX_FIELDS, MAX_TARGET_BYTES, check_http1, check_http2};
pub use path::{InvalidPath, normalise};
