//! The authorization server of the MCP server (OAuth 2.1), as far as it is pure.
//!
//! What a token permits is a [`scope`]; a person allows it on the page that [`consent`] writes.

pub mod consent;
pub mod scope;
