//! What Weirgate decides, as pure functions: no Pingora, no tokio, no sockets, files, clocks or randomness.
//!
//! Time, random numbers and settings are passed in, so everything a rule can be wrong about is tested here
//! without a proxy. Cargo keeps the crate pure: its manifest lists nothing that could do I/O.
//!
//! | module | decides |
//! |---|---|
//! | [`fault`] | what went wrong, whose fault it is, what the caller is told |
//! | [`cidr`] | which addresses a block holds |
//! | [`form`] | the pairs of a query, decoded |
//! | [`json`] | one pass over a JSON text: well formed, within limits, where each member stands |
//! | [`sse`] | where the events of an event stream begin and end |
//! | [`auth`] | who calls |
//! | [`limits`] | how many requests a caller may send |
//! | [`chat`] | the public chat shapes: what a request may say, what an answer looks like |
//! | [`routing`] | which providers are tried, in which order |
//! | [`money`] | what it costs, exactly |
//! | [`decisions`] | which variation of a flag a user gets |
//! | [`providers`] | each provider family's wire, both ways |
//!
//! Layers: `decisions`, `limits` and `money` are islands that know only `fault`, `form` and `json`, and `auth` knows `money`
//! beside those, because a key's terms are amounts and prices; `providers`
//! know `chat`, `json` and `sse`, never each other and never `routing`; `routing` never knows `providers`.

pub mod accounts;
pub mod auth;
pub mod chat;
pub mod cidr;
pub mod decisions;
pub mod fault;
pub mod form;
pub mod graph;
pub mod json;
pub mod ledger;
pub mod limits;
pub mod money;
pub mod providers;
pub mod proxy;
pub mod routing;
pub mod sse;
