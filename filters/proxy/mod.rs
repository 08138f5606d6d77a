//! Facts of every request: its path and the client's address.

mod client_ip;
mod path;

pub use client_ip::client_address;
pub use path::{InvalidPath, normalise};
