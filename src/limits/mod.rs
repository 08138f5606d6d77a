//! Windows at work: in this process, or exact over Redis for several of them.

pub mod counters;
mod quotas;
pub mod redis_windows;

pub use quotas::Quotas;
