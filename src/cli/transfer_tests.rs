//! `weirgate export` and `import` from the command line.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use serde_json::{Value, json};

use super::super::tests::Desk;
use super::*;

/// A desk with an organization, a key and credit, and the file of its store.
fn exported() -> (Desk, String) {
    let desk = Desk::with_acme();
    desk.done(&["key", "create", "--org", "acme"]);
    desk.done(&["credit", "add", "--org", "acme", "12.5"]);
    let file = desk.folder.path().join("weirgate.jsonl");
    let file = file.display().to_string();
    let sums = desk.json(&["export", &file]);
    let expected = json!({
        "file": file, "organizations": 1, "keys": 1, "calls": 0, "granted": "12.5", "used": "0", "cost": "0",
    });
    assert_eq!(sums, expected);
    (desk, file)
}

#[test]
fn a_store_is_moved_to_another_machine_with_its_secret() {
    let (desk, file) = exported();
    let other = Desk::new();
    let refused = other.run(&["import", &file]);
    assert_eq!(refused.code, Exit::Configuration.into());
    assert!(refused.err.contains("copy secret.key"), "{}", refused.err);
    let secret = |desk: &Desk| desk.folder.path().join("secret.key");
    std::fs::copy(secret(&desk), secret(&other)).unwrap();
    let sums = other.json(&["import", &file]);
    assert_eq!(
        (&sums["keys"], &sums["granted"]),
        (&json!(1), &json!("12.5"))
    );
    let keys = |desk: &Desk| desk.json(&["key", "list", "--org", "acme"]);
    assert_eq!(keys(&other), keys(&desk));
    let again = other.run(&["import", &file]);
    assert_eq!(again.code, Exit::Failed.into());
    assert!(again.err.contains("imported already"), "{}", again.err);
}

#[test]
fn stdout_has_the_file_alone() {
    let (desk, file) = exported();
    let answer = desk.run(&["export", "-"]);
    assert_eq!(answer.out, std::fs::read_to_string(&file).unwrap());
    let first: Value = serde_json::from_str(answer.out.lines().next().unwrap()).unwrap();
    assert_eq!(first["weirgate_export"], 1);
    assert!(
        answer.err.contains("organizations 1, keys 1"),
        "{}",
        answer.err
    );
    assert!(answer.err.contains("keep secret.key"), "{}", answer.err);
}

#[test]
fn a_file_that_exists_is_not_replaced_and_a_pipe_is_not_imported() {
    let (desk, file) = exported();
    let before = std::fs::read(&file).unwrap();
    let answer = desk.run(&["export", &file]);
    assert_eq!(answer.code, Exit::Failed.into());
    assert!(answer.err.contains("exists"), "{}", answer.err);
    assert_eq!(std::fs::read(&file).unwrap(), before);
    let answer = Desk::new().run(&["import", "/dev/null"]);
    assert_eq!(answer.code, Exit::Failed.into());
    assert!(answer.err.contains("is no file"), "{}", answer.err);
}
