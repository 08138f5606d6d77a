//! Wiring: starts a process from a configuration and stops it.

mod background;
pub mod boot;
pub mod bound;
mod build;
mod commands;
mod config_watch;
mod drain;
mod experiments;
mod generation;
pub mod handover;
pub mod health;
mod late_store;
mod listeners;
mod open_store;
pub mod openapi;
mod passed_state;
mod process;
mod reload;
pub mod routes;
mod running;
mod sandboxes;
pub mod serve;
pub mod state;
mod status;
mod supervisor;
mod upgrade;
mod watchdog;

pub use boot::boot;
pub use bound::{BoundService, ReadyListener};
pub use reload::{RefusedReload, Reloaded, Reloader};
pub use running::{Running, StopMode};
