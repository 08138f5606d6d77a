//! x
pub mod sandbox;

pub mod config;
