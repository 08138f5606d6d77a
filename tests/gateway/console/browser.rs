//! The console in Chromium. `make test-browser` installs it and runs these tests, which the rest of the suite leaves out.

use std::path::Path;
use std::process::Command;

use super::Browser;
use crate::models::fronts::chat_completions::{PLAIN, reply};
use crate::support::boot::Gateway;
use crate::support::upstream::Upstream;

const CHECKS: usize = 3;
/// Pages that the navigation does not name.
const PATHS: [&str; 3] = [
    "/console/models/chat",
    "/console/models/route",
    "/console/nothing",
];

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
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join("target/browser");
    let output = Command::new("node")
        .current_dir(&folder)
        .arg(root.join("tests/browser/console.mjs"))
        .env("CONSOLE", format!("http://{}/console", gateway.admin()))
        .env("PATHS", PATHS.join("\n"))
        .env("SLOWNESS", "10")
        .env("CHROMIUM", "/usr/bin/chromium")
        .env("SCREENSHOTS", &folder)
        .output()
        .unwrap_or_else(|error| panic!("running console.mjs in {}: {error}", folder.display()));
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    // A script that ran nothing would succeed, too.
    let passed = out.lines().filter(|line| line.starts_with("ok ")).count();
    assert_eq!(passed, CHECKS, "{out}");
}
