//! Request limits: windows in this process, or in Redis for several processes.

pub mod counters;
pub mod handover;
pub mod near_limits;
mod quotas;
mod redis_windows;
mod shared_windows;

pub use quotas::Quotas;
pub use shared_windows::Sharing;
