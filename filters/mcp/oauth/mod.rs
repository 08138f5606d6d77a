//! The authorization server of the MCP server (OAuth 2.1), without I/O.
//!
//! A [`client`] is registered, or describes itself in a document. It sends a person with an [`authorization`]
//! request, and the response goes to one of its redirect URIs ([`redirect`]). A token permits a set of [`scope`]s; a
//! person allows them on the page of [`consent`]. [`metadata`] tells clients the URLs of all this. Source:
//! docs/mcp.md; docs/decisions.md 60.

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
