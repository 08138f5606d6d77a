//! The gateway from outside: every test talks to it over a socket. Folders mirror `src`; each row of the route table has a module.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]
#![allow(
    dead_code,
    unreachable_pub,
    reason = "support code is shared by several test binaries"
)]

#[path = "../support/mod.rs"]
mod support;

mod accounts;
mod agents;
mod app;
mod console;
mod decisions;
mod graph;
mod ledger;
mod limits;
mod log_export;
mod mcp;
mod models;
mod proxy;
mod redis;
mod sandbox;
mod store;
mod support_selftest;
mod telemetry;
