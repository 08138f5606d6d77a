//! What every integration test stands on: a scripted upstream, a raw client, readers of what came back.
//!
//! | module | gives |
//! |---|---|
//! | [`script`] | what an upstream does with a connection, step by step: [`script::Reply`] |
//! | [`upstream`] | a server on a loopback address that plays scripts and records what it saw |
//! | [`boot`] | the gateway, in this process, with a store and a key |
//! | [`ask`] | a request, exactly as it goes out |
//! | [`client`] | a client that sends exact bytes and keeps exact bytes, with times |
//! | [`process`] | the program itself, one or several on one store |
//! | [`loopback`] | addresses that no other test uses |
//! | [`redis`] | a Redis server that can be killed |
//! | [`own_postgres`] | a PostgreSQL server that can be killed |
//! | [`server`] | the gateway as a process that can be killed |
//! | [`tls`] | TLS in front of a scripted server, and who signs its certificates |
//! | [`issuer`] | an issuer of tokens |
//! | [`sdk`] | the acceptance scripts of real client libraries |
//! | [`sse`] | the events of an event-stream text |
//!
//! All of it blocks and is used from plain `#[test]` functions. Tests wait for what they want to see
//! (`wait_requests`, `wait_closed`, [`script::Gate`]), they never sleep; a wait that is not fulfilled
//! within [`PATIENCE`] fails the test with what was awaited. No test chooses a port before it binds it.

pub mod ask;
pub mod boot;
pub mod client;
pub mod flags;
pub mod issuer;
pub mod loopback;
pub mod own_postgres;
pub mod process;
pub mod redis;
pub mod script;
pub mod sdk;
pub mod server;
pub mod sse;
pub mod tls;
pub mod upstream;

use std::time::Duration;

/// How long a test waits for something that must happen before it fails.
pub const PATIENCE: Duration = Duration::from_secs(20);
