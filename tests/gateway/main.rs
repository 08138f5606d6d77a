//! The gateway from outside: every test talks to it over a socket. Modules mirror the rows of the route table.
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

mod bad_input;
mod chat_completions;
mod clients;
mod connections;
mod fallback;
mod health;
mod keys;
mod models;
mod process;
mod routing;
mod sandbox;
mod streams;
mod support_selftest;
