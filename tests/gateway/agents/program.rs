//! Claude Code as a process.

use serde_json::Value;

use super::machine::Machine;
use crate::support::boot::Gateway;

/// Its tools that scenarios use. What is not named asks a person, and here is none.
const TOOLS: &str = "Read,Edit,Write,Bash,Agent,ToolSearch,WebSearch,mcp__gate";

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
        let address = gateway.address();
        let url = format!("http://{address}");
        let own = [
            ("ANTHROPIC_BASE_URL", &*url),
            ("ANTHROPIC_AUTH_TOKEN", &gateway.key),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
        ];
        let asked = ["-p", prompt, "--output-format", "json", "--model", model];
        let arguments = [&asked, &["--allowedTools", TOOLS][..], more].concat();
        let variables = [&own, variables].concat();
        let output = self.run("claude", address, &arguments, &variables);
        let (out, err) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        let shown = || format!("{prompt} with {model}: {}\n{out}\n{err}", output.status);
        let last = out.lines().last().unwrap_or_default();
        let said: Value = serde_json::from_str(last).unwrap_or_else(|_| panic!("{}", shown()));
        let elsewhere = self.asked_elsewhere();
        assert!(elsewhere.is_empty(), "it asks {elsewhere:?}");
        let text = |key: &str| said[key].as_str().unwrap_or_default().to_owned();
        Ended {
            result: text("result"),
            is_error: said["is_error"] == true,
            session: text("session_id"),
            said,
        }
    }
}

impl Ended {
    /// Fails the test unless the run came to a good end with this text.
    pub fn says(&self, text: &str) {
        let is_good = !self.is_error && self.result.contains(text);
        assert!(is_good, "no {text:?} in {:#}", self.said);
    }
}
