//! `[server]`, as the file has it.

use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::time;

/// The process settings.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// Worker threads; 0: as many as cores.
    #[schemars(range(max = 1024))]
    pub threads: usize,
    /// Whether the configuration is reloaded when its file, or a file that it names, has changed.
    pub watch: bool,
    /// Seconds after SIGTERM for which /readyz fails while connections are still accepted, so that load balancers look elsewhere.
    #[serde(rename = "drain_delay_s", with = "time::seconds")]
    #[schemars(with = "u64", range(max = 3600))]
    pub drain_delay: Duration,
    /// Seconds requests in flight may take after that, or after the new process of an upgrade is ready.
    #[serde(rename = "grace_period_s", with = "time::seconds")]
    #[schemars(with = "u64", range(max = 86_400))]
    pub grace_period: Duration,
    /// The socket over which the running process is reloaded and upgraded; empty: control.sock in store.state_dir.
    #[schemars(extend("format" = "socket-path-or-empty"))]
    pub upgrade_socket: String,
}

impl Server {
    /// Returns the number of worker threads, at least 1.
    pub fn worker_threads(&self) -> usize {
        let cores = || available_parallelism().map_or(1, NonZero::get);
        match self.threads {
            0 => cores(),
            threads => threads,
        }
    }
}

impl Default for Server {
    fn default() -> Self {
        Self {
            threads: 0,
            watch: false,
            drain_delay: Duration::ZERO,
            grace_period: Duration::from_secs(900),
            upgrade_socket: String::new(),
        }
    }
}
