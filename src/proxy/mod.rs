//! The core: Pingora's hooks, client connections, and what every request goes through before a product handles it.

pub mod access_log;
pub mod admission;
pub mod body;
pub mod buffered;
pub mod connections;
pub mod context;
pub mod finish;
pub mod hooks;
pub mod origin;
pub mod request;
pub mod request_id;
pub mod response;
