//! The console in Chromium. `make test-browser` installs it and runs these tests, which the rest of the suite leaves out.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::Browser;
use crate::models::fronts::chat_completions::{PLAIN, reply};
use crate::support::boot::Gateway;
use crate::support::process::{MODELS, Process, serve_in};
use crate::support::program_path;
use crate::support::upstream::Upstream;

/// Pages that the navigation does not name.
const PATHS: [&str; 3] = [
    "/console/models/chat",
    "/console/models/route",
    "/console/nothing",
];
/// Looks at the views.
const LOOKS: [&str; 3] = [
    "every_view_pleases_in_both_themes_and_widths",
    "every_view_is_reached_by_keyboard",
    "every_view_answers_in_time",
];

/// Runs checks of the script, which has to pass them all.
fn run(checks: &[&str], address: &str, env: &[(&str, &str)]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join("target/browser");
    let output = Command::new("node")
        .current_dir(&folder)
        .arg(root.join("tests/browser/console.mjs"))
        .args(checks)
        .env("CONSOLE", address)
        .env("SLOWNESS", "10")
        .env("CHROMIUM", "/usr/bin/chromium")
        .env("SCREENSHOTS", &folder)
        .envs(env.iter().copied())
        .output()
        .unwrap_or_else(|error| panic!("running console.mjs in {}: {error}", folder.display()));
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    // A script that ran nothing would succeed, too.
    let passed = out.lines().filter(|line| line.starts_with("ok ")).count();
    assert_eq!(passed, checks.len(), "{out}");
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_person_looks_at_every_view() {
    let upstream = Upstream::always(reply());
    let gateway = Gateway::between(&upstream.url(), &upstream.url());
    for _ in 0..5 {
        assert_eq!(gateway.chat(PLAIN).status(), 200);
    }
    // The first visit makes the session of this machine.
    Browser::new(&gateway).page("/console");
    let address = format!("http://{}/console", gateway.admin());
    run(&LOOKS, &address, &[("PATHS", &PATHS.join("\n"))]);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn an_open_page_outlives_the_process() {
    // The next process has to be found at the same address.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let admin = free.local_addr().unwrap();
    drop(free);
    let with_address = |folder: &Path| {
        let path = folder.join("weirgate.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        let (before, rest) = text.split_once("[admin]\n").unwrap();
        let (_, rest) = rest.split_once('\n').unwrap();
        let text = format!("{before}[admin]\naddress = \"{admin}\"\n{rest}");
        std::fs::write(path, text).unwrap();
        serve_in(folder)
    };
    let process = Process::start_by(with_address, "", MODELS);
    let server = json!({
        "pid": process.child.id(),
        "program": program_path(),
        "args": ["serve", "-c", "weirgate.toml"],
        "cwd": process.folder.path(),
        "path": "/console/live",
    });
    let address = format!("http://{admin}/console");
    let check = ["an_open_page_outlives_the_process"];
    run(&check, &address, &[("SERVER", &server.to_string())]);
}
