//! The client's session while attempts run: it buffers the response until one attempt has content.

mod discard;
pub mod error_types;
pub mod interim;
pub mod kept_stream;
pub mod session;
pub mod state;
