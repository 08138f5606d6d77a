//! How clouds let callers sign in: signatures of requests, and the sources of short-lived credentials.
//!
//! [`sigv4`] signs a request with AWS keys.

pub mod secret_text;
pub mod sigv4;
