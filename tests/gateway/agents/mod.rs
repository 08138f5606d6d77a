//! Coding agents as their makers publish them, headless, in front of models on every wire. `make test-agents` installs them and
//! runs these tests, which the rest of the suite leaves out.
//!
//! An agent runs in an empty environment with a home of its own. What it asks of other hosts goes to a proxy that refuses all.
//! `WEIRGATE_AGENTS=all` runs each scenario on every wire; otherwise all run on one, and the first two on each. What passed is
//! noted, and [`matrix`] makes the published table of it.

mod claude_code;
mod claude_code_clouds;
mod codex;
mod codex_tools;
mod gemini;
mod machine;
mod matrix;
mod program;

use std::path::{Path, PathBuf};

use crate::support::scripted::MODELS;

/// A scenario that every run tries on every wire.
const ON_ALL: bool = true;
/// A scenario of which one wire is enough, where not all are asked for.
const ON_ONE: bool = false;

/// An image of one dot, a PNG.
pub const DOT: &[u8] = &[
    137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 1, 0, 0, 0, 1, 8, 2, 0,
    0, 0, 144, 119, 83, 222, 0, 0, 0, 12, 73, 68, 65, 84, 120, 156, 99, 248, 207, 192, 0, 0, 3, 1,
    1, 0, 201, 254, 146, 239, 0, 0, 0, 0, 73, 69, 78, 68, 174, 66, 96, 130,
];

/// Runs a scenario on the wires that are asked for, and notes each that passed.
fn on_wires(scenario: &str, everywhere: bool, run: impl Fn(&str)) {
    let asked = std::env::var("WEIRGATE_AGENTS").unwrap_or_default();
    let is_all = everywhere || asked == "all";
    let wires = MODELS.iter().filter(|model| is_all || **model == MODELS[0]);
    for model in wires {
        run(model);
        matrix::note(scenario, model);
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where the agents are installed, and what they passed is noted.
fn installed() -> PathBuf {
    root().join("target/agents")
}
