//! Coding agents as their makers publish them, headless, in front of models on every wire. `make test-agents` installs them and
//! runs these tests, which the rest of the suite leaves out.
//!
//! An agent runs in an empty environment with a home of its own. What it asks of other hosts goes to a proxy that refuses all.
//! `WEIRGATE_AGENTS=all` runs each scenario on every wire; otherwise all run on one, and the first two on each. What passed is
//! noted, and [`matrix`] makes the published table of it.

mod claude_code;
mod codex;
mod machine;
mod matrix;
mod program;

use std::path::{Path, PathBuf};

use crate::support::scripted::MODELS;

/// A scenario that every run tries on every wire.
const ON_ALL: bool = true;
/// A scenario of which one wire is enough, where not all are asked for.
const ON_ONE: bool = false;

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
