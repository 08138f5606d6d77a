//! State that processes share over Redis.

mod cluster;
pub mod fleet;
pub mod outage;
