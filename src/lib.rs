//! Weirgate: one edge proxy process on Pingora. This crate moves bytes; what is decided is decided in `filters`.
//!
//! [`boot::boot`] makes a gateway of a configuration: tests and benches start the same one as the command line.
//!
//! | module | is |
//! |---|---|
//! | [`front`] | client connections, counted and timed |
//! | [`gateway`] | Pingora's hooks, one line each |
//! | [`routes`] | the table of endpoints |
//! | [`request`] | the client's side of a request |
//! | [`attempt`] | the provider's side |
//! | [`endpoints`] | answers given in-process |
//! | [`reply`] | the only writer of responses of our own |
//! | [`choice`], [`upstreams`], [`origin`] | which providers, and how they are reached |
//! | [`limits`] | the windows of limits |
//! | [`decisions`] | the flag decisions: datafiles, events, endpoints |
//! | [`graph`] | the graph service: operations, tenants, answers kept |
//! | [`redis`] | what processes share |
//! | [`store`], [`accounts`] | accounts at rest, and their snapshot |
//! | [`jwks`] | keys of foreign tokens |
//! | [`config`], [`cli`] | what is configured, and what is commanded |
//! | [`telemetry`], [`admin`] | what operators see |
//! | [`sandbox`] | the built-in provider |
//! | [`boot`], [`serve`], [`house`] | how it is put together, run and stopped |

pub mod accounts;
pub mod admin;
pub mod boot;
pub mod cli;
pub mod config;
pub mod decisions;
pub mod endpoints;
pub mod graph;
pub mod house;
pub mod jwks;
pub mod ledger;
pub mod limits;
pub mod models;
pub mod proxy;
pub mod redis;
pub mod routes;
pub mod sandbox;
pub mod serve;
pub mod store;
pub mod telemetry;
