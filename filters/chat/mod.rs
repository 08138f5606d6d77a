//! The public chat shapes: what a request may say, and what an answer looks like.
//!
//! A request is checked once ([`check`]) and kept as its bytes ([`request`]); providers of another convention
//! read it as a typed tree ([`call`]). Answers come from every provider as [`delta::Delta`]s and leave either as
//! chunks or as one whole reply. No provider's name stands in here.

pub mod call;
pub mod check;
pub mod delta;
pub mod envelope;
pub mod fold;
mod members;
pub mod metadata;
pub mod request;
pub mod stream;
mod tools;
pub mod usage;
