//! Support for all integration tests: a scripted upstream, a raw client, readers of replies.
//!
//! | module | gives |
//! |---|---|
//! | [`script`] | the steps that an upstream takes on a connection: [`script::Reply`] |
//! | [`upstream`] | a server on a loopback address that plays scripts and records what it saw |
//! | [`boot`] | the gateway, in this process, with a store and a key |
//! | [`ask`] | a request, exactly as it is sent |
//! | [`client`] | a client that sends exact bytes and records exact bytes, with times |
//! | [`clouds`] | the hosts of clouds, as strict as their vendors |
//! | [`collector`] | collectors of traces |
//! | [`described`] | the description of the API, which every reply has to fit |
//! | [`frames`] | frames of event streams of AWS |
//! | [`grammars`] | grammars of streams |
//! | [`process`] | the program itself, one or several on one store |
//! | [`loopback`] | addresses that no other test uses |
//! | [`redis`] | a Redis server that can be killed |
//! | [`windows`] | windows of several processes with one Redis |
//! | [`own_postgres`] | a PostgreSQL server that can be killed |
//! | [`postgres_proxy`] | what stands before it, and can fall silent |
//! | [`server`] | the gateway as a process that can be killed |
//! | [`tls`] | TLS in front of a scripted server, and its certificate authority |
//! | [`issuer`] | an issuer of tokens |
//! | [`oauth`] | a client of the MCP server's OAuth, and the person who allows it |
//! | [`sdk`] | the acceptance scripts of real client libraries |
//! | [`scripted`] | a provider that speaks every wire and says what a script decides |
//! | [`sse`] | the events of an event-stream text |
//! | [`web_server`] | nginx, HAProxy and Caddy in front of a gateway, as the examples configure them |
//! | [`watchdog`] | the end of the suite where a test hangs |
//!
//! All of it blocks and is used from plain `#[test]` functions. Tests wait for events (`wait_requests`, `wait_closed`,
//! [`script::Gate`]) and never sleep. A wait longer than [`WAIT_TIMEOUT`] fails the test and names the event. No test
//! chooses a port before it binds it.

pub mod ask;
pub mod boot;
pub mod client;
pub mod clouds;
pub mod collector;
pub mod described;
pub mod flags;
#[path = "../../filters/tests/frames/mod.rs"]
pub mod frames;
#[path = "../../filters/tests/grammars/mod.rs"]
pub mod grammars;
pub mod issuer;
pub mod loopback;
pub mod oauth;
pub mod own_postgres;
pub mod postgres_proxy;
pub mod process;
pub mod redis;
pub mod redis_proxy;
pub mod script;
pub mod scripted;
pub mod sdk;
pub mod server;
pub mod sse;
pub mod tls;
pub mod upstream;
pub mod watchdog;
pub mod web_server;
pub mod windows;

use std::process::Command;
use std::time::{Duration, Instant};

/// How long a test waits for something that must happen before it fails.
pub const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// Names the program that tests start, where it is not that of this build.
const TEST_BINARY: &str = "WEIRGATE_TEST_BINARY";

/// The path of the program that tests start.
pub fn program_path() -> std::ffi::OsString {
    let named = std::env::var_os(TEST_BINARY);
    named.unwrap_or_else(|| env!("CARGO_BIN_EXE_weirgate").into())
}

/// The program that tests start. It does not see the variable that names it, which is no setting of its own.
pub fn program() -> Command {
    let mut command = Command::new(program_path());
    command.env_remove(TEST_BINARY);
    command
}

/// How often a test looks.
pub const POLL: Duration = Duration::from_millis(5);

/// Looks again and again for so long at the most: returns the time since the first look, which is at once.
pub fn every(pause: Duration, limit: Duration) -> impl Iterator<Item = Duration> {
    let started = Instant::now();
    std::iter::successors(Some(Duration::ZERO), move |_| {
        std::thread::sleep(pause);
        let waited = started.elapsed();
        (waited < limit).then_some(waited)
    })
}

/// Waits until `holds`, and returns how long it took.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) -> Duration {
    let mut looks = every(POLL, WAIT_TIMEOUT);
    let is_seen = |_: &Duration| holds();
    looks.find(is_seen).unwrap_or_else(|| panic!("{what}"))
}

/// Asserts that something holds for so long. No event ends a wait for what must not happen, so the time is short.
pub fn stays(what: &str, time: Duration, holds: impl Fn() -> bool) {
    for waited in every(POLL, time) {
        assert!(holds(), "{what}, but not after {waited:?}");
    }
}
