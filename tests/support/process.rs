//! The program as a new user starts it: in an empty folder, with the built-in provider.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use super::loopback::own_address;
use super::{POLL, every};

/// A running program. Killed when dropped.
pub struct Process {
    /// The program.
    pub child: Child,
    /// The public listener.
    pub address: SocketAddr,
    /// The admin listener.
    pub admin: SocketAddr,
    /// Its output on stderr.
    pub banner: Vec<String>,
    /// The folder of its start and of its store.
    pub folder: Arc<TempDir>,
}

/// How the last line of the first start begins.
const LAST_LINE: &str = "All of it: ";

pub const MODELS: &str = r#"
[[models]]
id = "sandbox-chat"
[[models.providers]]
provider = "sandbox"
name = "sandbox-chat"
input_price = "1"
output_price = "1"
"#;

/// The program on the configuration `weirgate.toml` of a folder, in that folder.
pub fn serve_in(folder: &Path) -> Command {
    let mut command = super::program();
    command
        .args(["serve", "-c", "weirgate.toml"])
        .current_dir(folder);
    command
}

/// Asserts that the program refuses the configuration of a folder with code 78; returns what it said.
pub fn misconfigured_start(folder: &Path) -> String {
    let output = serve_in(folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(78), "{said}");
    said
}

impl Process {
    /// The first of its folder, with more TOML in its configuration.
    pub fn start(more: &str) -> Process {
        Self::start_with(more, MODELS)
    }

    /// The same, with a catalogue of its own.
    pub fn start_with(more: &str, models: &str) -> Process {
        Self::start_by(serve_in, more, models)
    }

    /// The same, started by the command that this returns for its folder.
    pub fn start_by(command: impl FnOnce(&Path) -> Command, more: &str, models: &str) -> Process {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        std::fs::write(folder.path().join("models.toml"), models).unwrap();
        let listener = format!("{}:0", own_address());
        let toml = format!(
            "[listen]\naddress = \"{listener}\"\n[admin]\naddress = \"{listener}\"\n[models]\nfile = \"models.toml\"\n[providers.sandbox]\nkind = \"sandbox\"\n{more}\n"
        );
        std::fs::write(folder.path().join("weirgate.toml"), toml).unwrap();
        let is_all = |said: &[String]| said.iter().any(|line| line.starts_with(LAST_LINE));
        Self::spawn(command(folder.path()), folder, Stdio::piped(), is_all)
    }

    /// One more with the same configuration, organizations and keys, on a copy of the store. It prints no key.
    pub fn another(&self) -> Process {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        std::fs::create_dir(folder.path().join("var")).unwrap();
        for file in ["weirgate.toml", "models.toml", "var/secret.key"] {
            std::fs::copy(self.folder.path().join(file), folder.path().join(file)).unwrap();
        }
        let copy = folder.path().join("var/weirgate.db");
        let output = weirgate(self.folder.path(), &["backup", copy.to_str().unwrap()]);
        assert!(output.status.success(), "{output:?}");
        let is_all = |said: &[String]| said.iter().any(|line| line.contains("admin http://"));
        Self::spawn(serve_in(folder.path()), folder, Stdio::null(), is_all)
    }

    fn spawn(
        mut command: Command,
        folder: Arc<TempDir>,
        stdout: Stdio,
        is_all: impl Fn(&[String]) -> bool,
    ) -> Process {
        super::watchdog::watch_this_test();
        let command = command.stdout(stdout).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut banner: Vec<String> = Vec::new();
        while !is_all(&banner) {
            banner.push(lines.next().expect("a banner").unwrap());
        }
        keep_reading(lines);
        let said = banner.iter().find(|line| line.contains("admin http://"));
        let said = said.expect("the listeners");
        let address = |before: &str| {
            let from = said.find(before).unwrap() + before.len();
            let text = said[from..].split([' ', ')']).next().unwrap();
            text.parse().unwrap()
        };
        Process {
            address: address("on http://"),
            admin: address("admin http://"),
            child,
            banner,
            folder,
        }
    }

    /// The command lines that its first start printed.
    pub fn curls(&self) -> impl Iterator<Item = &String> {
        self.banner.iter().filter(|line| line.starts_with("curl "))
    }

    /// The key it printed.
    pub fn key(&self) -> &str {
        let key = self.banner.iter().find(|line| line.starts_with("wg_"));
        key.expect("a key")
    }

    /// Returns how much memory it holds, in bytes.
    pub fn memory(&self) -> u64 {
        self.status("VmRSS:")
    }

    /// Returns the most memory that it has held since [`Self::forget_most_memory`], in bytes.
    pub fn most_memory(&self) -> u64 {
        self.status("VmHWM:")
    }

    /// Lets [`Self::most_memory`] begin anew.
    pub fn forget_most_memory(&self) {
        std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5").unwrap();
    }

    /// Returns a line of its status, which the kernel gives in KiB.
    fn status(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kib << 10
    }

    /// Sends it SIGTERM.
    pub fn terminate(&self) {
        self.signal("-TERM");
    }

    /// Sends it a signal, as `kill` names it.
    pub fn signal(&self, name: &str) {
        let mut kill = Command::new("kill");
        let status = kill.args([name, &self.child.id().to_string()]).status();
        assert!(status.unwrap().success());
    }

    /// Returns how long it took to end, if it did.
    pub fn wait(&mut self, patience: Duration) -> Option<Duration> {
        every(POLL, patience).find(|_| self.child.try_wait().unwrap().is_some())
    }
}

/// Runs a command with the configuration of a folder, until it ends.
pub fn weirgate(folder: &Path, words: &[&str]) -> Output {
    super::program()
        .args(words)
        .args(["-c", "weirgate.toml"])
        .current_dir(folder)
        .output()
        .unwrap()
}

/// A full pipe would stop the program.
fn keep_reading(lines: std::io::Lines<BufReader<ChildStderr>>) {
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
}

impl Drop for Process {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
