//! The SQLite file of a server: who may use it, and copies of it.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::support::process::{Process, serve_in, weirgate};
use crate::support::{POLL, WAIT_TIMEOUT, every};

/// The names of the organizations in a SQLite file that is copied to a folder of its own, with its secret.
fn organizations(database: &Path, secret: &Path) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("var")).unwrap();
    std::fs::copy(database, folder.path().join("var/weirgate.db")).unwrap();
    std::fs::copy(secret, folder.path().join("var/secret.key")).unwrap();
    std::fs::write(folder.path().join("weirgate.toml"), "").unwrap();
    let output = weirgate(folder.path(), &["org", "list", "--format", "json"]);
    assert!(output.status.success(), "{output:?}");
    let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names = rows.as_array().unwrap().iter();
    names
        .map(|row| row["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_second_server_on_the_same_file_is_refused_with_the_first_ones_pid() {
    let first = Process::start("");
    let database = first.folder.path().join("var/weirgate.db");
    let database = database.canonicalize().unwrap();
    // The name of the file does not matter.
    let link = first.folder.path().join("link.db");
    std::os::unix::fs::symlink(&database, &link).unwrap();
    for name in [&database, &link] {
        let mut second = serve_in(first.folder.path())
            .env("WEIRGATE_STORE__URL", format!("sqlite:{}", name.display()))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let ended = every(POLL, WAIT_TIMEOUT).find_map(|_| second.try_wait().unwrap());
        if ended.is_none() {
            second.kill().unwrap();
        }
        let status = second.wait().unwrap();
        let mut said = String::new();
        second
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        assert_eq!(status.code(), Some(1), "{said}");
        let holder = format!("in use by the process {}", first.child.id());
        assert!(said.contains(&holder), "{said}");
        assert!(said.contains(&*database.to_string_lossy()), "{said}");
    }
    // Commands work beside the server.
    let output = weirgate(first.folder.path(), &["org", "create", "acme"]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_killed_server_leaves_no_lock() {
    let mut first = Process::start("");
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    let output = Command::new("timeout")
        .args(["--preserve-status", "-s", "TERM", "2"])
        .arg(crate::support::program_path())
        .args(["serve", "-c", "weirgate.toml"])
        .current_dir(first.folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("listens on"), "{said}");
    assert_eq!(output.status.code(), Some(0), "{said}");
}

#[test]
fn after_a_clean_stop_a_copy_of_the_file_alone_is_whole() {
    for signal in ["-TERM", "-INT"] {
        let mut process = Process::start("");
        let output = weirgate(process.folder.path(), &["org", "create", "acme"]);
        assert!(output.status.success(), "{output:?}");
        process.signal(signal);
        assert!(process.wait(Duration::from_secs(5)).is_some(), "{signal}");
        let var = process.folder.path().join("var");
        let names = organizations(&var.join("weirgate.db"), &var.join("secret.key"));
        assert_eq!(names, ["acme", "default"], "{signal}");
    }
}

#[test]
fn a_backup_beside_a_running_server_is_whole_private_and_never_replaces_a_file() {
    let process = Process::start("");
    let folder = process.folder.path();
    assert!(
        weirgate(folder, &["org", "create", "acme"])
            .status
            .success()
    );
    let output = weirgate(folder, &["backup", "copy.db"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "copy.db\n");
    let copy = folder.join("copy.db");
    assert_eq!(copy.metadata().unwrap().mode() & 0o777, 0o600);
    let names = organizations(&copy, &folder.join("var/secret.key"));
    assert_eq!(names, ["acme", "default"]);
    let before = std::fs::read(&copy).unwrap();
    assert!(
        weirgate(folder, &["org", "create", "later"])
            .status
            .success()
    );
    let again = weirgate(folder, &["backup", "copy.db"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&again.stderr).contains("copy.db"));
    assert_eq!(std::fs::read(&copy).unwrap(), before);
    let names = std::fs::read_dir(folder).unwrap();
    let names = names.map(|file| file.unwrap().file_name().into_string().unwrap());
    let left: Vec<_> = names.filter(|name| name.starts_with("copy.db")).collect();
    assert_eq!(left, ["copy.db"]);
}

#[test]
fn a_backup_of_no_store_makes_none() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("weirgate.toml"), "").unwrap();
    let output = weirgate(folder.path(), &["backup", "copy.db"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("var/weirgate.db"));
    assert!(!folder.path().join("var").exists() && !folder.path().join("copy.db").exists());
}

#[test]
fn a_command_without_a_configuration_makes_no_store() {
    let folder = tempfile::tempdir().unwrap();
    let run = |words: &[&str], url: Option<&str>| {
        let mut command = crate::support::program();
        command.args(words).current_dir(folder.path());
        if let Some(url) = url {
            command.env("WEIRGATE_STORE__URL", url);
        }
        command.output().unwrap()
    };
    for words in [
        &["org", "create", "acme"][..],
        &["key", "list", "--org", "acme"],
        &["usage", "--org", "acme"],
        &["backup", "copy.db"],
    ] {
        let output = run(words, None);
        assert_eq!(output.status.code(), Some(78), "{words:?}: {output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("-c FILE"), "{words:?}: {said}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    // A store that is named is made, and that is said.
    let output = run(&["org", "create", "acme"], Some("sqlite:named.db"));
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("made a new store: sqlite:named.db"));
}
