//! Weirgate: one edge proxy process on Pingora. This crate moves bytes; the crate `filters` decides.
//!
//! [`app::boot()`] starts a gateway from a configuration: tests and benches start the same one as the command line.
//!
//! | module | holds |
//! |---|---|
//! | [`config`], [`thread_number`], [`priority`], [`periodic`], [`durable`], [`owned_file`], [`shared_wait`], [`single_flight`], [`tasks`], [`outbound`], [`encryption`], [`json_schema`] | the configuration; numbers of threads, their priority, intervals, durable names of files, files that one process owns, how long requests wait for Redis, work that is done once for all, tasks that must run; the client of own requests; encryption; schemas of JSON |
//! | [`telemetry`], [`redis`], [`jwks`], [`store`], [`control`], [`cloud_credentials`] | metrics and logs, shared state, foreign keys, SQL, commands to the running process, sign-in to clouds |
//! | [`accounts`], [`limits`], [`ledger`], [`log_export`] | callers in memory, windows, money, lines of calls on their way to other stores |
//! | [`proxy`] | the core of every request: Pingora's hooks, connections, responses |
//! | [`models`] | the model gateway |
//! | [`decisions`] | the flag decisions |
//! | [`graph`] | the graph limits |
//! | [`mcp`] | the MCP server, whose tools call routes of the three |
//! | [`app`], [`admin`], [`cli`] | wiring, operators' endpoints, commands |
//! | [`sandbox`] | built-in upstreams for a first run and for tests |

pub mod accounts;
pub mod admin;
pub mod app;
pub mod cli;
pub mod cloud_credentials;
pub mod config;
pub mod console;
pub mod control;
pub mod decisions;
pub mod durable;
pub mod encryption;
pub mod graph;
pub mod json_schema;
pub mod jwks;
pub mod ledger;
pub mod limits;
pub mod log_export;
pub mod mcp;
pub mod models;
pub mod outbound;
pub mod owned_file;
pub mod periodic;
pub mod priority;
pub mod proxy;
pub mod redis;
pub mod sandbox;
pub mod shared_wait;
pub mod single_flight;
pub mod store;
pub mod tasks;
pub mod telemetry;
pub mod thread_number;
