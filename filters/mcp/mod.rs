//! The Model Context Protocol, as far as it is pure: messages, revisions, origins and the tools.
//!
//! A client's message is read by [`message`], its head is held against it by [`revision`]. A tool of [`tools`] is a request to one
//! of the gateway's own routes and a result that is made of the response, as are [`resources`] and [`prompts`]; [`answer`] writes
//! results, [`stream`] the events of those that go out as they come. Ids of a [`session`] are sealed.
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
