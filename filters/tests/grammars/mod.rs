//! Grammars of what the gateway writes, for tests of all kinds.

pub mod contents;
pub mod messages;
pub mod responses;
