//! Wiring: from a configuration to a process that serves, and to its end.

pub mod boot;
pub mod health;
pub mod routes;
mod running;
pub mod serve;
pub mod state;

pub use boot::boot;
pub use running::{Running, StopMode};
