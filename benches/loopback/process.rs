//! Runs a part as a process: starts it, measures it, ends it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A running part.
pub struct Part {
    child: Child,
    /// The address of its listener.
    pub address: String,
    /// The API key that it accepts, if it has one.
    pub key: String,
}

impl Part {
    /// Starts this program in a role. It prints its address and its key on its first line.
    pub fn start(role: &str, variables: &[(&str, &str)]) -> Part {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .env("WEIRGATE_BENCH_ROLE", role)
            .envs(variables.iter().copied());
        Self::run(command, role)
    }

    /// Starts the public npm SDK behind `node:http` on the same flags, if `make bench` has installed it.
    pub fn sdk() -> Option<Part> {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = root.join("target/oracle");
        if !folder.join("node_modules").is_dir() {
            return None;
        }
        let script = folder.join("sdk.mjs");
        std::fs::copy(root.join("benches/loopback/sdk.mjs"), &script).unwrap();
        let mut command = Command::new("node");
        command.arg(script).arg(root.join("conf/flags.json"));
        Some(Self::run(command, "sdk"))
    }

    fn run(mut command: Command, role: &str) -> Part {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let mut words = line.split_whitespace().map(str::to_owned);
        let address = words
            .next()
            .unwrap_or_else(|| panic!("{role} did not start"));
        Part {
            child,
            address,
            key: words.next().unwrap_or_default(),
        }
    }

    /// Returns the CPU time used so far, in microseconds.
    pub fn cpu_us(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat
            .rsplit(')')
            .next()
            .unwrap()
            .split_whitespace()
            .collect();
        let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
        // The kernel counts in hundredths of a second on all systems that run this bench.
        ticks * 10_000.0
    }

    /// Returns the resident memory.
    pub fn resident_kib(&self) -> u64 {
        self.status("VmRSS:")
    }

    /// Returns the peak of resident memory since [`Self::reset_peak_kib`].
    pub fn peak_kib(&self) -> u64 {
        self.status("VmHWM:")
    }

    /// Resets the peak and returns the resident memory.
    pub fn reset_peak_kib(&self) -> u64 {
        std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5").unwrap();
        self.resident_kib()
    }

    fn status(&self, key: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(key)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
