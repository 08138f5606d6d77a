//! The client's session while attempts run: it holds the response back until one attempt has content.

mod discard;
pub mod session;
pub mod state;
