//! The authorization server of the MCP server (OAuth 2.1), as far as it is pure.
//!
//! A [`client`] is registered, or describes itself in a document. It sends a person with an [`authorization`] request, whose
//! answer goes to one of its redirect URIs ([`redirect`]). What a token permits is a [`scope`]; a person allows it on the page that
//! [`consent`] writes. [`metadata`] tells clients where all of this is. Source: docs/mcp.md; docs/decisions.md 60.

pub mod authorization;
pub mod client;
pub mod consent;
pub mod error;
pub mod form;
pub mod metadata;
pub mod pkce;
pub mod redirect;
pub mod refresh;
pub mod scope;
pub mod scopes;

#[cfg(test)]
mod tests;
