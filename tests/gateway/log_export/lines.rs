//! What a line has, and which calls have one.

use serde_json::{Value, json};
use weirgate::log_export::columns::COLUMNS;

use super::*;

/// The object has the line of the log, under a name that tools read as partitions.
#[test]
fn a_call_arrives_as_the_line_of_the_log() {
    let (provider, storage) = (provider(), Upstream::always(is_ok()));
    let gateway = gateway(&provider, &bucket(&storage.url(), ""));
    let answer = gateway.chat(CHAT);
    let put = &storage.wait_requests(1)[0];
    assert_eq!(put.method, "PUT");
    let (date, rest) = put
        .path
        .strip_prefix("/calls/a/b/date%3D")
        .and_then(|rest| rest.split_once("/hour%3D"))
        .expect(&put.path);
    assert_eq!((date.len(), &rest[2..3]), (10, "/"), "{}", put.path);
    assert!(rest.ends_with(".jsonl.gz"), "{}", put.path);
    let line = gateway.log_line(&id_of(&answer));
    assert_eq!(lines(&put.body), std::slice::from_ref(&line));
    for (member, value) in [
        ("route", json!("chat_completions")),
        ("model", json!("chat")),
        ("provider", json!("first")),
        ("status", json!(200)),
        ("cost", json!("0.01")),
    ] {
        assert_eq!(line[member], value, "{member}");
    }
    assert!(line["attempts"].is_array() && line["key_id"].is_string());
    let text = String::from_utf8_lossy(&put.body).into_owned() + &line.to_string();
    assert!(!text.contains(&gateway.key) && !text.contains("hunter2secret"));
}

/// Requests of the gateway's own lists are no calls.
#[test]
fn refused_calls_are_exported_and_other_requests_are_not() {
    let (provider, storage) = (provider(), Upstream::always(is_ok()));
    let gateway = gateway(&provider, &bucket(&storage.url(), ""));
    let address = gateway.address();
    let models = ask(address, &Ask::get("/v1/models").key(&gateway.key));
    assert_eq!(models.status(), 200);
    let unknown = ask(
        address,
        &Ask::post("/v1/chat/completions", CHAT).key("wg_x"),
    );
    let no_model = gateway.chat(r#"{"model":"none","messages":[{"role":"user","content":"Hi"}]}"#);
    let bad = gateway.chat("{");
    let refused = [unknown, no_model, bad];
    assert!(refused.iter().all(|it| it.status() >= 400));
    wait_lines(&gateway, "exported", 3);
    let lines = objects(&storage.requests());
    let mut expected: Vec<String> = refused.iter().map(id_of).collect();
    expected.sort_unstable();
    assert_eq!(ids(&lines), expected);
    assert!(lines.iter().all(|line| line["outcome"] == "refused"));
    assert!(lines.iter().all(|line| line["error"]["type"].is_string()));
}

/// Otherwise ClickHouse would leave a member out.
#[test]
fn each_member_of_a_line_has_a_column() {
    let (provider, storage) = (provider(), Upstream::always(is_ok()));
    let gateway = gateway(&provider, &bucket(&storage.url(), ""));
    allow(&gateway, true);
    let stream = CHAT.replace("{\"model\"", "{\"stream\":true,\"model\"");
    gateway.chat(CHAT);
    gateway.chat(&stream);
    gateway.chat("{");
    let session = gateway
        .chat_ask(CHAT)
        .header("x-claude-code-session-id", "s1");
    ask(gateway.address(), &session);
    wait_lines(&gateway, "exported", 4);
    let known: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
    let lines = objects(&storage.requests());
    assert!(lines.iter().any(|line| line["answer"] != Value::Null));
    for line in &lines {
        for member in line.as_object().unwrap().keys() {
            assert!(known.contains(&member.as_str()), "{member}: {line}");
        }
    }
}

/// All kinds of compression, in a folder.
#[test]
fn a_folder_has_files_that_are_whole_under_the_same_names() {
    for (compression, end) in [
        ("gzip", ".jsonl.gz"),
        ("zstd", ".jsonl.zst"),
        ("none", ".jsonl"),
    ] {
        let (provider, folder) = (provider(), tempfile::tempdir().unwrap());
        let out = folder.path().join("deep/out");
        let section = format!(
            "[log_export]\nkind = \"file\"\nfolder = \"{}\"\ncompression = \"{compression}\"\n\
             batch_interval_s = 1\n",
            out.display()
        );
        let gateway = gateway(&provider, &section);
        let asked = call(gateway.address(), &gateway.key, CHAT, 3);
        until("all lines", || folder_lines(&out).len() == 3);
        assert_eq!(ids(&folder_lines(&out)), asked);
        for file in files(&out) {
            let name = file.strip_prefix(&out).unwrap().display().to_string();
            assert!(name.starts_with("date=2") && name.ends_with(end), "{name}");
        }
        until("nothing waits", || {
            segments(gateway.folder.path()).is_empty()
        });
    }
}
