//! Fuzz targets for everything that reads a stranger's bytes.
//!
//! A target gets a stream of random choices ([`choices`]), composes a valid document with them ([`grammar`]), damages it
//! ([`damage`]), and checks what has to hold for any input. `cargo test` runs a bounded number of inputs of each target,
//! `make fuzz` a million of each in an optimised build.
//!
//! Stable toolchain, no coverage: inputs get their depth from the grammars. proptest makes the choices and shrinks them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    reason = "tests"
)]

mod accounts;
mod choices;
mod cloud_credentials;
mod clouds;
mod cohere;
mod completions;
mod contents;
mod converse;
mod cost;
mod damage;
mod datafiles;
mod decisions;
mod event_frames;
#[path = "../frames/mod.rs"]
mod frames;
mod framing;
mod grammar;
#[path = "../grammars/mod.rs"]
mod grammars;
mod graph;
mod healing;
mod histories;
mod json;
mod ledger;
mod lists;
mod mcp;
mod messages;
mod models;
mod oauth;
mod paths;
mod reply_cache;
mod requests;
mod responses;
mod round_trips;
mod run;
#[path = "../seals/mod.rs"]
mod seals;
mod shapes;
mod sse;
mod streams;
mod tokens;
mod traces;
mod uploads;
mod wires;
