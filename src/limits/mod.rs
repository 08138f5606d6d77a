//! Request limits: windows in this process, or exact windows in Redis for several processes.

pub mod counters;
mod quotas;
pub mod redis_windows;

pub use quotas::Quotas;
