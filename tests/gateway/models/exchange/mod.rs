//! A call from its first attempt to its price.

pub mod fallback;
mod healing;
mod healing_ends;
mod hedging;
mod opaque_state;
mod search_loop;
pub mod secrets;
mod settlement;
pub mod streams;
mod tiers;
mod usage_reports;
