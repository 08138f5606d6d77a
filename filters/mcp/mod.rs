//! The Model Context Protocol without I/O: messages, revisions, origins and the tools.
//!
//! [`message`] reads a client's message, and [`revision`] checks the head against it. A tool of [`tools`] is a
//! request to one of the gateway's own routes and a result made of the response; so are [`resources`] and
//! [`prompts`]. [`answer`] writes results, and [`stream`] the events of results that are streamed. The ids of a
//! [`session`] are signed.
//! Source: docs/mcp.md; docs/decisions.md 59.

pub mod answer;
pub mod message;
pub mod oauth;
pub mod origin;
pub mod prompts;
pub mod resources;
pub mod revision;
pub mod session;
pub mod stream;
pub mod tools;

#[cfg(test)]
mod tests;
