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
//! | [`proxy`] | what every request has: its path, its client's address |
//! | [`money`] | what a call costs, exactly |
//! | [`ledger`] | entries, balances and the journal's bytes |
//! | [`limits`] | how many requests a caller may send |
//! | [`auth`] | which tokens are genuine |
//! | [`accounts`] | who calls, and what the caller may do |
//! | [`models`] | requests of models, providers' wires, and who is tried in which order |
//! | [`decisions`] | which variation of a flag a user gets |
//! | [`graph`] | operations, tenants and cacheability of the graph service |

pub mod accounts;
pub mod auth;
pub mod cidr;
pub mod decisions;
pub mod fault;
pub mod form;
pub mod graph;
pub mod json;
pub mod ledger;
pub mod limits;
pub mod models;
pub mod money;
pub mod proxy;
pub mod sse;
