//! The gateway as a process that can be killed and restarted on the same address and state.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::boot::unlimited;

/// A process. Killed when dropped.
pub struct Server {
    child: Child,
    /// The public listener.
    pub address: SocketAddr,
    /// The admin listener.
    pub admin: SocketAddr,
}

impl Server {
    /// Starts it in a folder with a `weirgate.toml`; fails the test if it does not start.
    pub fn start(folder: &Path) -> Server {
        Self::launch(folder).unwrap_or_else(|said| panic!("the server did not start: {said}"))
    }

    /// The same with more variables in its environment.
    pub fn start_with_env(folder: &Path, env: &[(&str, &str)]) -> Server {
        Self::run(folder, env).unwrap_or_else(|said| panic!("the server did not start: {said}"))
    }

    /// Starts it, or returns its error output.
    pub fn launch(folder: &Path) -> Result<Server, String> {
        Self::run(folder, &[])
    }

    /// Forgets the most memory that it ever had.
    pub fn reset_peak_memory(&self) {
        let path = format!("/proc/{}/clear_refs", self.child.id());
        std::fs::write(path, "5").unwrap();
    }

    /// A line of its status in KiB, such as `VmRSS` (its memory) or `VmHWM` (the most that it had).
    pub fn memory_kib(&self, line: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let value = status.lines().find_map(|it| it.strip_prefix(line)).unwrap();
        let value = value.trim_start_matches(':').trim();
        value.trim_end_matches(" kB").parse().unwrap()
    }

    /// Limits the size of all files to this many bytes from now on, as a full disk would.
    pub fn limit_files(&self, bytes: u32) {
        let id = self.child.id().to_string();
        let limit = format!("--fsize={bytes}:{bytes}");
        let done = Command::new("prlimit")
            .args(["--pid", &id, &limit])
            .status();
        assert!(done.unwrap().success());
    }

    /// The same; its log and all it says on stderr go to this file.
    pub fn start_logging(folder: &Path, env: &[(&str, &str)], log: &Path) -> Server {
        let log = std::fs::File::create(log).unwrap();
        Self::spawn(folder, env, log.try_clone().unwrap().into(), log)
            .unwrap_or_else(|said| panic!("the server did not start: {said}"))
    }

    fn run(folder: &Path, env: &[(&str, &str)]) -> Result<Server, String> {
        Self::spawn(folder, env, Stdio::null(), std::io::sink())
    }

    fn spawn(
        folder: &Path,
        env: &[(&str, &str)],
        stdout: Stdio,
        mut copy: impl Write + Send + 'static,
    ) -> Result<Server, String> {
        super::watchdog::watch_this_test();
        let toml = std::fs::read_to_string(folder.join("weirgate.toml")).unwrap();
        let mut child = super::program()
            .args(["serve", "-c", "weirgate.toml"])
            .current_dir(folder)
            .envs(unlimited(&toml))
            .envs(env.iter().copied())
            .stdout(stdout)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        let banner = loop {
            match lines.next() {
                Some(Ok(line)) if line.contains("listens on http://") => break line,
                Some(Ok(line)) => said.push(line),
                _ => {
                    child.wait().unwrap();
                    return Err(said.join("\n"));
                }
            }
        };
        // A thread reads on, because a full pipe would stop the server.
        for line in said.iter().chain([&banner]) {
            writeln!(copy, "{line}").unwrap();
        }
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                _ = writeln!(copy, "{line}");
            }
        });
        let address = |before: &str| {
            let from = banner.find(before).unwrap() + before.len();
            let address = banner[from..].split([' ', ')']).next().unwrap();
            address.parse().unwrap()
        };
        Ok(Server {
            address: address("on http://"),
            admin: address("admin http://"),
            child,
        })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &id])
            .status();
        assert!(sent.unwrap().success());
    }

    /// Ends it at once (SIGKILL).
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends it SIGTERM and waits for its end.
    pub fn stop(mut self) {
        let id = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &id]).status().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
