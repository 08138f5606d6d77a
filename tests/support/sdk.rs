//! Runs the acceptance scripts of `tests/clients` with the real client libraries.
//!
//! `make clients` installs them under `target/clients`. If it has not run, the test fails and says so.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A script with its runtime.
#[derive(Clone, Copy, Debug)]
pub enum Script {
    /// `openai_python.py` in the virtual environment.
    OpenaiPython,
    /// `openai_node.mjs` beside node_modules.
    OpenaiNode,
    /// `items_python.py` in the virtual environment.
    ItemsPython,
    /// `mcp_python.py` in the virtual environment.
    McpPython,
    /// `mcp_node.mjs` beside node_modules.
    McpNode,
    /// `mcp_oauth_python.py` in the virtual environment.
    McpOauthPython,
    /// `mcp_oauth_node.mjs` beside node_modules.
    McpOauthNode,
    /// `mcp_conformance.mjs` beside node_modules.
    McpConformance,
    /// `urql_node.mjs` beside node_modules.
    UrqlNode,
    /// `wires_python.py` in the virtual environment.
    WiresPython,
    /// `wires_node.mjs` beside node_modules.
    WiresNode,
    /// `messages_python.py` in the virtual environment.
    MessagesPython,
    /// `messages_node.mjs` beside node_modules.
    MessagesNode,
    /// `responses_python.py` in the virtual environment.
    ResponsesPython,
    /// `responses_node.mjs` beside node_modules.
    ResponsesNode,
    /// `langchain_python.py` in the virtual environment.
    LangchainPython,
    /// `contents_python.py` in the virtual environment.
    ContentsPython,
    /// `contents_node.mjs` beside node_modules.
    ContentsNode,
    /// `ofrep_web_node.mjs` beside node_modules.
    OfrepWebNode,
    /// `sigv4_python.py` in the virtual environment.
    Sigv4Python,
    /// `kubernetes_python.py` in the virtual environment.
    KubernetesPython,
    /// `schemathesis_api.py` in the virtual environment.
    SchemathesisApi,
    /// `s3_python.py` in the virtual environment.
    S3Python,
}

/// The environment of a script; the scripts describe what each model must do.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    pub base_url: &'a str,
    pub api_key: &'a str,
    pub model: &'a str,
    pub cut_model: &'a str,
    pub flaky_model: &'a str,
    pub base_model: &'a str,
    pub embedding_model: &'a str,
    pub speech_model: &'a str,
    pub transcription_model: &'a str,
}

impl<'a> Settings<'a> {
    /// The variables of the environment.
    pub fn variables(self) -> [(&'static str, &'a str); 9] {
        [
            ("BASE_URL", self.base_url),
            ("API_KEY", self.api_key),
            ("MODEL", self.model),
            ("CUT_MODEL", self.cut_model),
            ("FLAKY_MODEL", self.flaky_model),
            ("BASE_MODEL", self.base_model),
            ("EMBEDDING_MODEL", self.embedding_model),
            ("SPEECH_MODEL", self.speech_model),
            ("TRANSCRIPTION_MODEL", self.transcription_model),
        ]
    }
}

/// Runs these checks of a script, all when none is named; fails the test with its output when one fails.
pub fn run(script: Script, variables: &[(&str, &str)], checks: &[&str]) {
    let out = output(script, variables, checks);
    // A script that ran nothing would succeed too.
    let passed = out.lines().filter(|line| line.starts_with("ok ")).count();
    assert!(
        passed >= checks.len().max(1),
        "{script:?} ran {passed} checks\n{out}"
    );
}

/// Runs a script, and returns what it has written; fails the test when it fails.
pub fn output(script: Script, variables: &[(&str, &str)], checks: &[&str]) -> String {
    let (mut command, name) = command(script);
    let output = command
        .args(checks)
        .envs(variables.iter().copied())
        .output()
        .unwrap_or_else(|e| panic!("running {name}: {e}"));
    let [out, err] =
        [output.stdout, output.stderr].map(|b| String::from_utf8_lossy(&b).into_owned());
    assert!(
        output.status.success(),
        "{name}: {}\n{out}\n{err}",
        output.status
    );
    out
}

/// Starts a script that serves, with pipes to its input and from its output.
pub fn start(script: Script) -> Child {
    let (mut command, name) = command(script);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let command = command.stderr(Stdio::null());
    command
        .spawn()
        .unwrap_or_else(|e| panic!("starting {name}: {e}"))
}

/// Returns the command of a script, and its name.
fn command(script: Script) -> (Command, &'static str) {
    super::watchdog::watch_this_test();
    let (program, name) = match script {
        Script::OpenaiPython => (installed("venv/bin/python"), "openai_python.py"),
        Script::OpenaiNode => (PathBuf::from("node"), "openai_node.mjs"),
        Script::ItemsPython => (installed("venv/bin/python"), "items_python.py"),
        Script::McpPython => (installed("venv/bin/python"), "mcp_python.py"),
        Script::McpNode => (PathBuf::from("node"), "mcp_node.mjs"),
        Script::McpOauthPython => (installed("venv/bin/python"), "mcp_oauth_python.py"),
        Script::McpOauthNode => (PathBuf::from("node"), "mcp_oauth_node.mjs"),
        Script::McpConformance => (PathBuf::from("node"), "mcp_conformance.mjs"),
        Script::UrqlNode => (PathBuf::from("node"), "urql_node.mjs"),
        Script::WiresPython => (installed("venv/bin/python"), "wires_python.py"),
        Script::WiresNode => (PathBuf::from("node"), "wires_node.mjs"),
        Script::MessagesPython => (installed("venv/bin/python"), "messages_python.py"),
        Script::MessagesNode => (PathBuf::from("node"), "messages_node.mjs"),
        Script::ResponsesPython => (installed("venv/bin/python"), "responses_python.py"),
        Script::ResponsesNode => (PathBuf::from("node"), "responses_node.mjs"),
        Script::LangchainPython => (installed("venv/bin/python"), "langchain_python.py"),
        Script::ContentsPython => (installed("venv/bin/python"), "contents_python.py"),
        Script::ContentsNode => (PathBuf::from("node"), "contents_node.mjs"),
        Script::OfrepWebNode => (PathBuf::from("node"), "ofrep_web_node.mjs"),
        Script::Sigv4Python => (installed("venv/bin/python"), "sigv4_python.py"),
        Script::KubernetesPython => (installed("venv/bin/python"), "kubernetes_python.py"),
        Script::SchemathesisApi => (installed("venv/bin/python"), "schemathesis_api.py"),
        Script::S3Python => (installed("venv/bin/python"), "s3_python.py"),
    };
    let mut command = Command::new(program);
    command
        .current_dir(installed("node_modules").parent().unwrap())
        .arg(root().join("tests/clients").join(name))
        .env("PYTHONDONTWRITEBYTECODE", "1");
    (command, name)
}

fn installed(what: &str) -> PathBuf {
    let path = root().join("target/clients").join(what);
    assert!(
        path.exists(),
        "{} is missing: run `make clients`",
        path.display()
    );
    path
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
