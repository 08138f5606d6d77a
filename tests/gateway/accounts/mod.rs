//! Organizations, their keys and their rules.

mod errors_apart;
mod keys;
mod rules;
