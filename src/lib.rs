//! x
pub mod sandbox;

pub mod config;
pub mod refresh;
pub mod store;
