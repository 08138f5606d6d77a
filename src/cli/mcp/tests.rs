#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::process::ExitCode;

use serde_json::Value;

use crate::cli::Exit;
use crate::cli::tests::{Answer, Desk};
use crate::store::{Store, StoreSettings, StoreUrl};

/// Runs `weirgate mcp` with this configuration.
fn mcp(config: &str, words: &[&str]) -> Answer {
    let desk = Desk::with_acme();
    std::fs::write(desk.folder.path().join("weirgate.toml"), config).unwrap();
    desk.run(&[&["mcp"], words].concat())
}

fn json(config: &str) -> Value {
    let answer = mcp(config, &["--format", "json"]);
    assert_eq!(answer.code, ExitCode::SUCCESS, "{}", answer.err);
    serde_json::from_str(&answer.out).unwrap()
}

fn text<'a>(read: &'a Value, client: &str, credentials: &str) -> &'a str {
    let mut clients = read["clients"].as_array().unwrap().iter();
    let found = clients.find(|it| it["client"] == client && it["credentials"] == credentials);
    found.unwrap()["text"].as_str().unwrap()
}

#[test]
fn each_client_gets_its_own_form_with_and_without_a_key() {
    let read = json("[mcp]\npublic_url = \"https://gateway.example.com\"\n");
    let url = "https://gateway.example.com/mcp";
    assert_eq!(read["url"], url);
    assert_eq!(read["clients"].as_array().unwrap().len(), 8);
    assert_eq!(
        text(&read, "Claude Code", "oauth"),
        format!("claude mcp add --transport http weirgate {url}")
    );
    let codex: toml::Table = text(&read, "Codex", "oauth").parse().unwrap();
    let codex = &codex["mcp_servers"]["weirgate"];
    assert_eq!(codex["url"].as_str(), Some(url));
    assert!(codex.get("bearer_token_env_var").is_none());
    let codex: toml::Table = text(&read, "Codex", "key").parse().unwrap();
    let codex = &codex["mcp_servers"]["weirgate"];
    assert_eq!(codex["url"].as_str(), Some(url));
    assert_eq!(
        codex["bearer_token_env_var"].as_str(),
        Some("WEIRGATE_API_KEY")
    );
    for (client, credentials, member, header) in [
        (
            "Claude Code",
            "key",
            "mcpServers",
            "Bearer ${WEIRGATE_API_KEY}",
        ),
        ("Cursor", "oauth", "mcpServers", ""),
        (
            "Cursor",
            "key",
            "mcpServers",
            "Bearer ${env:WEIRGATE_API_KEY}",
        ),
        ("VS Code", "oauth", "servers", ""),
        ("VS Code", "key", "servers", "Bearer ${input:weirgate-key}"),
    ] {
        let file: Value = serde_json::from_str(text(&read, client, credentials)).unwrap();
        let server = &file[member]["weirgate"];
        assert_eq!(server["url"], url, "{client}");
        let sent = server["headers"]["Authorization"].as_str();
        assert_eq!(sent.unwrap_or_default(), header, "{client}");
    }
    let file: Value = serde_json::from_str(text(&read, "VS Code", "key")).unwrap();
    assert_eq!(file["inputs"][0]["id"], "weirgate-key");
    assert_eq!(file["inputs"][0]["password"], true);
}

#[test]
fn people_read_the_same_texts() {
    let config = "[listen]\naddress = \"127.0.0.1:8123\"\n";
    let shown = mcp(config, &[]);
    assert_eq!((shown.code, shown.err.as_str()), (ExitCode::SUCCESS, ""));
    assert!(
        shown
            .out
            .starts_with("MCP server: http://127.0.0.1:8123/mcp\n\nWithout a key")
    );
    let read = json(config);
    for paste in read["clients"].as_array().unwrap() {
        let indented = paste["text"].as_str().unwrap().replace('\n', "\n  ");
        assert!(
            shown.out.contains(&format!(":\n  {indented}\n")),
            "{indented}"
        );
        assert!(shown.out.contains(paste["place"].as_str().unwrap()));
    }
    assert_eq!(shown.out.matches("WEIRGATE_API_KEY=wg_…").count(), 1);
}

#[test]
fn the_address_is_one_that_clients_can_use() {
    for (config, url, clients, note) in [
        ("", "http://127.0.0.1:8080/mcp", 8, ""),
        (
            "[listen]\naddress = \"0.0.0.0:9000\"\n",
            "http://127.0.0.1:9000/mcp",
            8,
            "for others, set mcp.public_url",
        ),
        (
            "[listen]\naddress = \"[::1]:9000\"\n",
            "http://[::1]:9000/mcp",
            8,
            "",
        ),
        (
            "[listen]\naddress = \"10.0.0.5:9000\"\n",
            "http://10.0.0.5:9000/mcp",
            4,
            "needs mcp.public_url",
        ),
        (
            "[mcp]\npublic_url = \"http://gateway.example.com\"\n",
            "http://gateway.example.com/mcp",
            4,
            "needs an https address",
        ),
    ] {
        let shown = mcp(config, &["--format", "json"]);
        let read: Value = serde_json::from_str(&shown.out).unwrap();
        assert_eq!(read["url"], url);
        assert_eq!(read["clients"].as_array().unwrap().len(), clients, "{url}");
        assert!(shown.err.contains(note), "{}", shown.err);
        assert_eq!(shown.err.is_empty(), note.is_empty(), "{}", shown.err);
    }
    for (config, problem) in [
        ("[mcp]\nenabled = false\n", "the MCP server is off"),
        (
            "[listen]\naddress = \"127.0.0.1:0\"\n",
            "set mcp.public_url",
        ),
    ] {
        let refused = mcp(config, &[]);
        assert_eq!(
            (refused.code, refused.out.as_str()),
            (Exit::Failed.into(), "")
        );
        assert!(refused.err.contains(problem), "{}", refused.err);
    }
}

#[test]
fn clients_are_listed_and_revoked() {
    let desk = Desk::with_acme();
    assert_eq!(
        desk.json(&["mcp", "clients", "list"]),
        Value::Array(Vec::new())
    );
    let url = StoreUrl::parse(&format!(
        "sqlite:{}/weirgate.db",
        desk.folder.path().display()
    ));
    let metadata = r#"{"client_name": "Editor", "redirect_uris": ["http://127.0.0.1/"]}"#;
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let id = runtime.block_on(async {
        let settings = StoreSettings {
            url: url.unwrap(),
            state_dir: desk.folder.path().to_owned(),
            secret: None,
        };
        let store = Store::open(&settings).await.unwrap().store;
        let id = store.register_oauth_client(metadata, &[], 1_000).await;
        store.close().await;
        id.unwrap()
    });
    let listed = &desk.json(&["mcp", "clients", "list"])[0];
    assert_eq!(
        (&listed["id"], &listed["name"]),
        (&id.as_str().into(), &"Editor".into())
    );
    assert_eq!(
        (&listed["kind"], &listed["status"]),
        (&"registered".into(), &"active".into())
    );
    assert_eq!(
        (&listed["grants"], &listed["used_at"]),
        (&0.into(), &Value::Null)
    );
    assert_eq!(listed["created_at"], "1970-01-01T00:00:01Z");
    desk.done(&["mcp", "clients", "revoke", &id]);
    assert_eq!(
        desk.json(&["mcp", "clients", "list"])[0]["status"],
        "revoked"
    );
    let unknown = desk.run(&["mcp", "clients", "revoke", "client_none"]);
    assert_eq!(unknown.code, Exit::Failed.into());
    assert!(unknown.err.contains("client_none"), "{}", unknown.err);
}
