//! Claude Code as a process, with a home and a working folder of its own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::installed;
use crate::support::boot::Gateway;
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

/// Its tools that scenarios use. What is not named asks a person, and here is none.
const TOOLS: &str = "Read,Edit,Write,Bash,Agent,ToolSearch,WebSearch,mcp__gate";

/// How long a run may take.
const LIMIT: &str = "150";

/// A person's machine.
pub struct Machine {
    home: TempDir,
    work: TempDir,
    /// Refuses all other hosts.
    proxy: Upstream,
}

/// What a run says at its end.
#[derive(Debug)]
pub struct Ended {
    /// The last answer, or the error.
    pub result: String,
    pub is_error: bool,
    pub session: String,
    /// All of it.
    pub said: Value,
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

    /// Asks for something and waits for the end. `more` are further arguments.
    pub fn ask(&self, gateway: &Gateway, model: &str, prompt: &str, more: &[&str]) -> Ended {
        self.ask_with(gateway, model, prompt, more, &[])
    }

    /// The same with more variables in the environment.
    pub fn ask_with(
        &self,
        gateway: &Gateway,
        model: &str,
        prompt: &str,
        more: &[&str],
        variables: &[(&str, &str)],
    ) -> Ended {
        let programs = programs();
        let address = gateway.address();
        let output = Command::new("timeout")
            .arg(LIMIT)
            .arg(programs.join("claude"))
            .args(["-p", prompt, "--output-format", "json", "--model", model])
            .args(["--allowedTools", TOOLS])
            .args(more)
            .current_dir(self.work.path())
            .env_clear()
            .envs(self.environment(&programs, address, &gateway.key))
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        let (out, err) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        let shown = || format!("{prompt} with {model}: {}\n{out}\n{err}", output.status);
        let last = out.lines().last().unwrap_or_default();
        let said: Value = serde_json::from_str(last).unwrap_or_else(|_| panic!("{}", shown()));
        let elsewhere = self.proxy.requests();
        assert!(elsewhere.is_empty(), "it asks {:?}", elsewhere[0].path);
        let text = |key: &str| said[key].as_str().unwrap_or_default().to_owned();
        Ended {
            result: text("result"),
            is_error: said["is_error"] == true,
            session: text("session_id"),
            said,
        }
    }

    fn environment(
        &self,
        programs: &Path,
        address: SocketAddr,
        key: &str,
    ) -> Vec<(&'static str, String)> {
        let elsewhere = self.proxy.url();
        vec![
            ("PATH", format!("{}:/usr/bin:/bin", programs.display())),
            ("HOME", self.home.path().display().to_string()),
            ("ANTHROPIC_BASE_URL", format!("http://{address}")),
            ("ANTHROPIC_AUTH_TOKEN", key.to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
            ("HTTP_PROXY", elsewhere.clone()),
            ("HTTPS_PROXY", elsewhere),
            ("NO_PROXY", address.ip().to_string()),
        ]
    }
}

impl Ended {
    /// Fails the test unless the run came to a good end with this text.
    pub fn says(&self, text: &str) {
        let is_good = !self.is_error && self.result.contains(text);
        assert!(is_good, "no {text:?} in {:#}", self.said);
    }
}

fn programs() -> PathBuf {
    let programs = installed().join("node_modules/.bin");
    let is_there = programs.join("claude").exists();
    assert!(is_there, "Claude Code is missing: make test-agents");
    programs
}
