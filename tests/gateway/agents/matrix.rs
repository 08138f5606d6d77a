//! The published table of what was tried with which agent on which wire.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;

use super::{installed, root};

/// How a wire carries what the client says.
const KINDS: [(&str, &str, &str); 4] = [
    ("chat", "chat completions", "translated"),
    ("items", "Responses", "translated"),
    ("blocks", "Messages", "native"),
    ("parts", "Gemini", "translated"),
];

const HEAD: &str = "# What agents do, and on which models

Made by `make test-agents AGENTS=all`: each cell is a run of the agent as its maker publishes it, headless, through the gateway, in
front of a scripted provider on that wire. *native*: body and events pass as bytes; *translated*: the model is asked in the words of
its own wire; *rewritten*: the gateway writes them anew, because it searches or asks a judge itself. An empty cell was not tried. The runs stand in tests/gateway/agents.

";

/// Scenarios of which nothing passes as bytes.
const REWRITTEN: [&str; 2] = [
    "a search of the web",
    "auto mode, judged by the operator's model",
];

fn folder() -> std::path::PathBuf {
    installed().join("passed")
}

/// Notes that a scenario has passed on a wire.
pub fn note(scenario: &str, model: &str) {
    std::fs::create_dir_all(folder()).unwrap();
    std::fs::write(folder().join(format!("{model} {scenario}")), "").unwrap();
}

/// The version of an agent, of the file that pins it.
fn version(package: &str) -> String {
    let text = std::fs::read_to_string(root().join("tests/agents/package.json")).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    file["dependencies"][package].as_str().unwrap().to_owned()
}

#[test]
#[ignore = "writes docs/agents.md of what has run: make test-agents AGENTS=all"]
fn the_table_is_written() {
    let mut rows: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let (model, scenario) = name.split_once(' ').unwrap();
        let passed = rows.entry(scenario.to_owned()).or_default();
        passed.push(model.to_owned());
    }
    let mut text = HEAD.to_owned();
    let version = version("@anthropic-ai/claude-code");
    let names: Vec<&str> = KINDS.iter().map(|(_, name, _)| *name).collect();
    let line = "|---".repeat(KINDS.len() + 1);
    _ = writeln!(
        text,
        "| Claude Code {version} | {} |\n{line}|",
        names.join(" | ")
    );
    for (scenario, passed) in rows {
        let is_rewritten = REWRITTEN.contains(&&*scenario);
        let cell = |model: &str, kind: &'static str| match passed.iter().any(|it| it == model) {
            true if is_rewritten && kind == "native" => "rewritten",
            true => kind,
            false => "",
        };
        let cells: Vec<&str> = KINDS
            .iter()
            .map(|(model, _, kind)| cell(model, kind))
            .collect();
        _ = writeln!(text, "| {scenario} | {} |", cells.join(" | "));
    }
    std::fs::write(root().join("docs/agents.md"), text).unwrap();
}
