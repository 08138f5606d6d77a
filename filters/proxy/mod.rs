//! What every request has: a path and a client address.

mod client_ip;
mod path;

pub use client_ip::client_address;
pub use path::{InvalidPath, normalise};
