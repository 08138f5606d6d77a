//! The model gateway.

mod cloud_credentials;
mod debug_keys;
pub mod endpoints;
pub mod exchange;
mod experiments;
pub mod fronts;
mod media;
mod passthrough;
mod providers;
mod reply_cache;
mod retry_budget;
mod routing;
mod session_usage;
mod sessions;
mod shared_health;
mod shared_sessions;
mod variations;
mod wires;
