//! Endpoints of the model gateway that are answered in-process.

pub mod key;
pub mod models;
mod pricing;
