//! The published table of what was tried with which agent on which wire.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;

use super::{installed, root};

/// The wires: the model of each, and its name.
const WIRES: [(&str, &str); 7] = [
    ("chat", "chat completions"),
    ("items", "Responses"),
    ("blocks", "Messages"),
    ("parts", "Gemini"),
    ("azure-messages", "Claude on Foundry"),
    ("bedrock-messages", "Claude on Bedrock"),
    ("vertex-messages", "Claude on Vertex"),
];

/// An agent of the table.
struct Agent {
    name: &'static str,
    /// Its package.
    package: &'static str,
    /// How the names of its scenarios begin.
    prefix: &'static str,
    /// The wires whose words it speaks itself.
    own: &'static [&'static str],
}

const AGENTS: [Agent; 3] = [
    Agent {
        name: "Claude Code",
        package: "@anthropic-ai/claude-code",
        prefix: "",
        own: &[
            "blocks",
            "azure-messages",
            "bedrock-messages",
            "vertex-messages",
        ],
    },
    Agent {
        name: "Codex",
        package: "@openai/codex",
        prefix: "Codex: ",
        own: &["items"],
    },
    Agent {
        name: "Gemini CLI",
        package: "@google/gemini-cli",
        prefix: "Gemini CLI: ",
        own: &["parts"],
    },
];

const HEAD: &str = "# What agents do, and on which models

Made by `make test-agents AGENTS=all`: each cell is a run of the agent as its maker publishes it, headless, through the gateway, in
front of a scripted provider on that wire; the hosts of clouds refuse what their vendors refuse. *native*: body and events pass as
bytes, but for what a cloud takes otherwise; *translated*: the model is asked in the words of its own wire; *rewritten*: the gateway
writes them anew, because it searches or asks a judge itself. An empty cell was not tried. The runs stand in tests/gateway/agents.

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
fn the_tables_are_written() {
    let mut rows: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let (model, scenario) = name.split_once(' ').unwrap();
        let passed = rows.entry(scenario.to_owned()).or_default();
        passed.push(model.to_owned());
    }
    let tables = AGENTS.iter().map(|agent| table(agent, &rows));
    let tables: Vec<String> = tables.collect();
    let text = [HEAD, &tables.join("\n")].concat();
    std::fs::write(root().join("docs/agents.md"), text).unwrap();
}

/// The agent whose scenario it is, and its name without the agent.
fn of_agent(scenario: &str) -> (&'static str, &str) {
    let named = AGENTS.iter().filter(|agent| !agent.prefix.is_empty());
    let mut found =
        named.filter_map(|agent| Some((agent.name, scenario.strip_prefix(agent.prefix)?)));
    found.next().unwrap_or((AGENTS[0].name, scenario))
}

fn table(agent: &Agent, rows: &BTreeMap<String, Vec<String>>) -> String {
    let own = rows.iter().filter_map(|(scenario, passed)| {
        let (of, scenario) = of_agent(scenario);
        (of == agent.name).then_some((scenario, passed))
    });
    let own: Vec<(&str, &Vec<String>)> = own.collect();
    // A wire on which nothing was tried has no column.
    let is_tried = |model: &str| {
        own.iter()
            .any(|(_, passed)| passed.iter().any(|it| it == model))
    };
    let wires = WIRES.iter().filter(|(model, _)| is_tried(model));
    let wires: Vec<&(&str, &str)> = wires.collect();
    let names: Vec<&str> = wires.iter().map(|(_, name)| *name).collect();
    let line = "|---".repeat(wires.len() + 1);
    let (name, version) = (agent.name, version(agent.package));
    let mut text = format!("| {name} {version} | {} |\n{line}|\n", names.join(" | "));
    for (scenario, passed) in own {
        let cell = |model: &str| match passed.iter().any(|it| it == model) {
            true if !agent.own.contains(&model) => "translated",
            true if REWRITTEN.contains(&scenario) => "rewritten",
            true => "native",
            false => "",
        };
        let cells: Vec<&str> = wires.iter().map(|(model, _)| cell(model)).collect();
        _ = writeln!(text, "| {scenario} | {} |", cells.join(" | "));
    }
    text
}
