//! Which providers are tried for a request, in which order.
//!
//! [`catalog`] knows the models, [`resolve`] reads a model string, [`allowed`] drops what the caller may not have and
//! [`capable`] who cannot serve the request, [`score`] orders the rest, [`plan`] puts it together; [`health`] and [`sticky`] remember what
//! happened. Random numbers and time are passed in. No provider's name stands in here.

pub mod affinity;
pub mod allowed;
pub mod capable;
pub mod catalog;
mod catalog_file;
pub mod health;
pub mod plan;
pub mod resolve;
pub mod score;

#[cfg(test)]
mod allowed_tests;
#[cfg(test)]
mod tests;

pub use catalog_file::{CatalogFile, Date, WrittenMapping, WrittenModel};
