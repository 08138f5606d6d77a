//! `weirgate console`: the way from the command line into the console.

use std::path::Path;
use std::process::Command;

use crate::support::ask::Ask;
use crate::support::client::ask;
use crate::support::process::{MODELS, Process, serve_in, weirgate};

/// The link that the command prints, as a path with its query.
fn link(process: &Process) -> String {
    let output = weirgate(process.folder.path(), &["console"]);
    assert!(output.status.success(), "{output:?}");
    let link = String::from_utf8(output.stdout).unwrap();
    let base = format!("http://{}", process.admin);
    let path = link.trim_end().strip_prefix(&base);
    path.unwrap_or_else(|| panic!("{link}")).to_owned()
}

/// Starts the server with a token.
fn with_token(folder: &Path) -> Command {
    let path = folder.join("weirgate.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let file = folder.join("admin.token");
    let token = format!("[admin]\ntoken = {{ file = \"{}\" }}\n", file.display());
    std::fs::write(path, text.replacen("[admin]\n", &token, 1)).unwrap();
    std::fs::write(file, "a-long-admin-token").unwrap();
    serve_in(folder)
}

#[test]
fn without_a_token_it_is_the_address() {
    let process = Process::start("");
    assert_eq!(link(&process), "/console");
    let output = weirgate(process.folder.path(), &["console", "--format", "json"]);
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["link"], format!("http://{}/console", process.admin));
    process.terminate();
}

#[test]
fn with_a_token_it_signs_in_once_and_the_session_lives_on_in_another_process() {
    let process = Process::start_by(with_token, "", MODELS);
    let path = link(&process);
    let entered = ask(process.admin, &Ask::get(&path));
    assert_eq!(
        (entered.status(), entered.header("location")),
        (303, Some("/console"))
    );
    let cookie = entered.header("set-cookie").unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let page = |process: &Process| {
        let request = Ask::get("/console").header("Cookie", &cookie);
        ask(process.admin, &request)
    };
    assert_eq!(page(&process).status(), 200, "{}", page(&process).text());
    let again = ask(process.admin, &Ask::get(&path));
    assert_eq!(again.status(), 403);
    assert!(again.text().contains("was used"), "{}", again.text());
    let next = process.another();
    assert_eq!(page(&next).status(), 200);
    next.terminate();
    process.terminate();
}

#[test]
fn without_a_server_it_says_how_to_start_one() {
    let mut process = Process::start("");
    process.terminate();
    process
        .wait(std::time::Duration::from_secs(20))
        .expect("it ends");
    let output = weirgate(process.folder.path(), &["console"]);
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("weirgate serve"), "{said}");
}
