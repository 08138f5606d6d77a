//! A person's machine: a home and a working folder of its own, and no way to other hosts than the gateway.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;

use super::installed;
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

/// How long a run may take. Units: seconds.
const LIMIT: &str = "150";

/// A person's machine.
pub struct Machine {
    home: TempDir,
    work: TempDir,
    /// Refuses all other hosts.
    proxy: Upstream,
}

impl Machine {
    pub fn new() -> Machine {
        Machine {
            home: tempfile::tempdir().unwrap(),
            work: tempfile::tempdir().unwrap(),
            proxy: Upstream::always(Reply::json(403, "{}")),
        }
    }

    /// The path of a file of the working folder.
    pub fn path(&self, name: &str) -> String {
        self.work.path().join(name).display().to_string()
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Writes a file of the home.
    pub fn configure(&self, name: &str, text: &str) {
        let path = self.home.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// The hosts that were asked beside the gateway.
    pub fn asked_elsewhere(&self) -> Vec<String> {
        let requests = self.proxy.requests().into_iter();
        requests.map(|request| request.path).collect()
    }

    /// Runs a program in the working folder to its end. `address` is the gateway's.
    pub fn run(
        &self,
        program: &str,
        address: SocketAddr,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Output {
        let programs = programs(program);
        let elsewhere = self.proxy.url();
        Command::new("timeout")
            .arg(LIMIT)
            .arg(programs.join(program))
            .args(arguments)
            .current_dir(self.work.path())
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", programs.display()))
            .env("HOME", self.home.path())
            .env("HTTP_PROXY", &elsewhere)
            .env("HTTPS_PROXY", &elsewhere)
            .env("NO_PROXY", address.ip().to_string())
            .envs(variables.iter().copied())
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap()
    }
}

fn programs(program: &str) -> PathBuf {
    let programs = installed().join("node_modules/.bin");
    let is_there = programs.join(program).exists();
    assert!(is_there, "{program} is missing: make test-agents");
    programs
}
