//! Money at work: what is reserved before a call, what it costs in the end, and how none of it is lost.
//!
//! [`journal`] keeps on disk what has happened until the store has it, [`adopt`] finds what a process left behind that
//! is gone. Rules and arithmetic are in `filters::money`, SQL is in [`crate::store`].

pub mod adopt;
mod error;
pub mod files;
pub mod journal;
pub mod open;

pub use error::Error;

#[cfg(test)]
mod tests;
