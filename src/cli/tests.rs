#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]

use clap::Command as Words;
use filters::accounts::ApiKey;
use serde_json::Value;
use tempfile::TempDir;

use super::*;

#[path = "apply_tests.rs"]
mod apply_files;
#[path = "audit_tests.rs"]
mod audit_log;
#[path = "errors_tests.rs"]
mod errors;
#[path = "model_life_tests.rs"]
mod model_life;
#[path = "money_tests.rs"]
mod money;
#[path = "reconcile_tests.rs"]
mod reconciled;
#[path = "symmetry_tests.rs"]
mod symmetry;

/// A configuration of its own with a store of its own.
pub(super) struct Desk {
    pub(super) folder: TempDir,
}

/// The output of a command.
pub(super) struct Answer {
    pub(super) code: ExitCode,
    pub(super) out: String,
    pub(super) err: String,
}

impl Desk {
    pub(super) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().display();
        let text =
            format!("[store]\nurl = \"sqlite:{path}/weirgate.db\"\nstate_dir = \"{path}\"\n");
        std::fs::write(folder.path().join("weirgate.toml"), text).unwrap();
        Self { folder }
    }

    /// `-c FILE` before or after the words.
    fn run_with(&self, is_first: bool, words: &[&str]) -> Answer {
        let file = self.folder.path().join("weirgate.toml");
        let option = [OsString::from("-c"), file.into_os_string()];
        let words = words.iter().map(OsString::from);
        let args: Vec<OsString> = if is_first {
            option.into_iter().chain(words).collect()
        } else {
            words.chain(option).collect()
        };
        let (mut out, captured) = Output::captured();
        let code = run(
            [OsString::from("weirgate")].into_iter().chain(args),
            &mut out,
        );
        Answer {
            code,
            out: captured.out(),
            err: captured.err(),
        }
    }

    pub(super) fn run(&self, words: &[&str]) -> Answer {
        self.run_with(true, words)
    }

    pub(super) fn done(&self, words: &[&str]) -> String {
        let answer = self.run(words);
        assert_eq!(answer.code, Exit::Done.into(), "{words:?}: {}", answer.err);
        answer.out
    }

    pub(super) fn json(&self, words: &[&str]) -> Value {
        let words: Vec<_> = words.iter().copied().chain(["--format", "json"]).collect();
        serde_json::from_str(&self.done(&words)).unwrap()
    }

    pub(super) fn with_acme() -> Self {
        let desk = Self::new();
        desk.done(&["org", "create", "acme", "--plan", "lite"]);
        desk
    }
}

#[test]
fn the_arguments_are_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn an_organization_is_made_listed_held_released_and_disabled() {
    let desk = Desk::with_acme();
    let list = desk.json(&["org", "list"]);
    assert_eq!(
        (&list[0]["name"], &list[0]["plan"]),
        (&"acme".into(), &"lite".into())
    );
    assert_eq!(list[0]["status"], "active");
    for (command, status) in [
        ("hold", "held"),
        ("release", "active"),
        ("disable", "disabled"),
    ] {
        desk.done(&["org", command, "acme"]);
        assert_eq!(desk.json(&["org", "list"])[0]["status"], status);
    }
}

#[test]
fn the_table_and_the_json_have_the_same_field_names() {
    let desk = Desk::with_acme();
    desk.done(&["key", "create", "--org", "acme"]);
    for words in [&["org", "list"][..], &["key", "list", "--org", "acme"]] {
        let table = desk.done(words);
        let head: Vec<_> = table.lines().next().unwrap().split_whitespace().collect();
        let json = desk.json(words);
        let fields: Vec<_> = json[0].as_object().unwrap().keys().collect();
        assert_eq!(head, fields);
    }
}

#[test]
fn a_new_key_is_alone_on_the_last_line_of_stdout_and_never_shown_again() {
    let desk = Desk::with_acme();
    let answer = desk.run(&["key", "create", "--org", "acme", "--label", "ci"]);
    let key = answer.out.lines().last().unwrap();
    assert!(ApiKey::parse(key.as_bytes()).is_ok(), "{key}");
    assert!(!answer.err.contains(key));
    let list = desk.json(&["key", "list", "--org", "acme"]);
    assert!(!list.to_string().contains(key));
    assert_eq!(
        (&list[0]["label"], &list[0]["project"]),
        (&"ci".into(), &"default".into())
    );
    assert!(key.ends_with(list[0]["last_four"].as_str().unwrap()));
}

#[test]
fn a_key_is_revoked_by_its_id() {
    let desk = Desk::with_acme();
    desk.done(&["key", "create", "--org", "acme"]);
    let list = desk.json(&["key", "list", "--org", "acme"]);
    assert_eq!(list[0]["status"], "active");
    desk.done(&["key", "revoke", list[0]["id"].as_str().unwrap()]);
    let list = desk.json(&["key", "list", "--org", "acme"]);
    assert_eq!(list[0]["status"], "revoked");
    assert!(list[0]["revoked_at"].is_string());
}

#[test]
fn a_project_is_made_used_and_archived() {
    let desk = Desk::with_acme();
    let words = [
        "project",
        "create",
        "--org",
        "acme",
        "app",
        "--mode",
        "hybrid",
        "--cache-ttl",
        "60",
    ];
    let answer = desk.run(&words);
    assert_eq!(answer.code, Exit::Done.into());
    let ttl =
        |desk: &Desk| desk.json(&["project", "list", "--org", "acme"])[0]["cache_ttl_s"].clone();
    assert_eq!(ttl(&desk), 60);
    let update = ["project", "update", "--org", "acme", "app", "--cache-ttl"];
    desk.done(&[&update[..], &["0"]].concat());
    assert!(ttl(&desk).is_null());
    desk.done(&["key", "create", "--org", "acme", "--project", "app"]);
    desk.done(&["project", "archive", "--org", "acme", "app"]);
    let refused = desk.run(&["key", "create", "--org", "acme", "--project", "app"]);
    assert_eq!(refused.code, Exit::Failed.into());
    assert!(refused.err.contains("`app` is closed"));
}

#[test]
fn the_content_of_calls_is_exported_where_the_organization_says_so() {
    let desk = Desk::with_acme();
    let shown = |name: &str| {
        let shown = desk.json(&["org", "show", name]);
        shown["export_content"].clone()
    };
    assert_eq!(shown("acme"), false);
    desk.done(&["org", "update", "acme", "--export-content", "on"]);
    desk.done(&["org", "create", "beta", "--export-content", "on"]);
    assert_eq!((shown("acme"), shown("beta")), (true.into(), true.into()));
    desk.done(&["org", "update", "acme", "--export-content", "off"]);
    assert_eq!(shown("acme"), false);
    let listed = desk.json(&["org", "list"]);
    assert_eq!(listed[0]["export_content"], false);
    let refused = desk.run(&["org", "update", "acme", "--export-content", "yes"]);
    assert_eq!(refused.code, Exit::Usage.into());
    assert!(
        refused.err.contains("accepted are on, off"),
        "{}",
        refused.err
    );
}

#[test]
fn regions_are_kept_listed_and_taken_away() {
    let desk = Desk::with_acme();
    desk.done(&[
        "project",
        "create",
        "--org",
        "acme",
        "app",
        "--regions",
        "eu-west-1",
    ]);
    let regions = |words: &[&str]| desk.json(words)[0]["regions"].clone();
    let (orgs, projects) = (["org", "list"], ["project", "list", "--org", "acme"]);
    assert_eq!(regions(&projects), "eu-west-1");
    assert!(regions(&orgs).is_null());
    desk.done(&["org", "update", "acme", "--regions", "eu, us-east-1"]);
    assert_eq!(regions(&orgs), "eu,us-east-1");
    desk.done(&["project", "update", "--org", "acme", "app", "--regions", ""]);
    assert!(regions(&projects).is_null());
    for regions in ["EU", "eu west", ","] {
        let refused = desk.run(&["org", "update", "acme", "--regions", regions]);
        assert_eq!(refused.code, Exit::Usage.into(), "{regions}");
        assert!(
            refused.err.contains("as in eu,us-east-1"),
            "{}",
            refused.err
        );
    }
    assert_eq!(
        desk.run(&["org", "update", "acme"]).code,
        Exit::Usage.into()
    );
    assert_eq!(regions(&orgs), "eu,us-east-1");
}

#[test]
fn an_expiry_is_kept_and_must_lie_in_the_future() {
    let desk = Desk::with_acme();
    let words = ["key", "create", "--org", "acme", "--expires"];
    let create = |time: &str| desk.run(&words.iter().copied().chain([time]).collect::<Vec<_>>());
    assert_eq!(create("2999-01-01T02:00:00+02:00").code, Exit::Done.into());
    let list = desk.json(&["key", "list", "--org", "acme"]);
    assert_eq!(list[0]["expires_at"], "2999-01-01T00:00:00Z");
    for time in ["2001-01-01T00:00:00Z", "tomorrow", "2999-01-01", ""] {
        assert_eq!(create(time).code, Exit::Usage.into(), "{time}");
    }
}

#[test]
fn the_configuration_may_be_named_before_or_after_the_command() {
    let desk = Desk::with_acme();
    for is_first in [true, false] {
        let answer = desk.run_with(is_first, &["org", "list"]);
        assert!(answer.out.contains("acme"), "{}", answer.err);
    }
}

#[test]
fn no_help_tells_of_what_is_not_built() {
    fn walk(command: &mut Words, seen: &mut usize) {
        let help = command.render_long_help().to_string();
        for word in ["--upgrade", "not supported", "not built", "not in force"] {
            assert!(!help.contains(word), "{word}: {help}");
        }
        *seen += 1;
        for inner in command.get_subcommands_mut() {
            walk(inner, seen);
        }
    }
    let mut seen = 0;
    walk(&mut Cli::command(), &mut seen);
    assert!(seen > 40, "{seen}");
}

#[test]
fn wrong_words_are_wrong_usage() {
    let desk = Desk::new();
    let commands: [&[&str]; 10] = [
        &["--upgrade"],
        &["serve", "--upgrade"],
        &["org"],
        &["org", "create"],
        &["org", "create", "acme", "--plan", "huge"],
        &["org", "create", ""],
        &[
            "project",
            "create",
            "--org",
            "acme",
            "app",
            "--cache-ttl",
            "-1",
        ],
        &[
            "project",
            "update",
            "--org",
            "acme",
            "app",
            "--cache-ttl",
            "31536001",
        ],
        &["org", "list", "--format", "xml"],
        &["nonsense"],
    ];
    for words in commands {
        assert_eq!(desk.run(words).code, Exit::Usage.into(), "{words:?}");
    }
}

#[test]
fn what_cannot_be_done_is_said_with_its_name_and_fails() {
    let desk = Desk::with_acme();
    let commands: [(&[&str], &str); 5] = [
        (&["org", "create", "acme"], "acme"),
        (&["org", "disable", "other"], "other"),
        (&["key", "list", "--org", "other"], "other"),
        (
            &["key", "create", "--org", "acme", "--project", "none"],
            "none",
        ),
        (&["key", "revoke", "key_1"], "key_1"),
    ];
    for (words, name) in commands {
        let answer = desk.run(words);
        assert_eq!(answer.code, Exit::Failed.into(), "{words:?}");
        assert!(answer.err.contains(&format!("`{name}`")), "{}", answer.err);
        assert_eq!(answer.out, "");
    }
}

#[test]
fn a_lost_secret_is_a_problem_of_the_configuration() {
    let desk = Desk::with_acme();
    desk.done(&["key", "create", "--org", "acme"]);
    std::fs::remove_file(desk.folder.path().join("secret.key")).unwrap();
    let answer = desk.run(&["key", "list", "--org", "acme"]);
    assert_eq!(answer.code, Exit::Configuration.into());
    assert!(answer.err.contains("secret.key"));
}

#[test]
fn a_manual_page_and_completions_are_made_for_every_command() {
    let desk = Desk::new();
    assert!(desk.done(&["man"]).contains(".TH weirgate"));
    let folder = desk.folder.path().join("man");
    desk.done(&["man", folder.to_str().unwrap()]);
    assert!(folder.join("weirgate-key-create.1").exists());
    for shell in ["bash", "zsh", "fish"] {
        assert!(desk.done(&["completions", shell]).contains("weirgate"));
    }
}

#[test]
fn help_and_version_go_to_stdout() {
    let desk = Desk::new();
    assert!(desk.done(&["--help"]).contains("Usage: weirgate"));
    assert!(desk.done(&["--version"]).starts_with("weirgate "));
    let wrong = desk.run(&["nonsense"]);
    assert!(wrong.out.is_empty() && wrong.err.contains("nonsense"));
}

#[test]
fn help_shows_examples() {
    let mut command = Cli::command();
    assert!(command.render_long_help().to_string().contains("Examples:"));
    for name in ["org", "project", "key", "member", "credit", "provider-key"] {
        let command = command.find_subcommand_mut(name).unwrap();
        assert!(
            command.render_long_help().to_string().contains("Examples:"),
            "{name}"
        );
    }
}

#[test]
fn explain_tells_the_order_the_scores_and_the_reasons() {
    let desk = Desk::new();
    let folder = desk.folder.path();
    let catalog = folder.join("models.toml");
    let mapping = |provider: &str, price: &str, more: &str| {
        format!(
            "[[models.providers]]\nprovider = \"{provider}\"\nname = \"up\"\ninput_price = \"{price}\"\noutput_price = \"{price}\"\n{more}\n"
        )
    };
    let models = format!(
        "[[models]]\nid = \"m\"\n{}{}{}",
        mapping("one", "3", ""),
        mapping("two", "2", ""),
        mapping("three", "1", "max_output = 10"),
    );
    std::fs::write(&catalog, models).unwrap();
    let provider = |name: &str| {
        format!(
            "[providers.{name}]\nkind = \"openai-compatible\"\nbase_url = \"http://127.0.0.1:9\"\nkeys = []\n"
        )
    };
    let file = folder.join("weirgate.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let providers: String = ["one", "two", "three"].map(provider).concat();
    let models = format!("[models]\nfile = \"{}\"\n", catalog.display());
    std::fs::write(&file, format!("{text}{models}{providers}")).unwrap();
    let request = folder.join("request.json");
    let body = |model: &str| {
        format!(
            r#"{{"model":"{model}","max_tokens":50,"messages":[{{"role":"user","content":"Hi"}}]}}"#
        )
    };
    std::fs::write(&request, body("m")).unwrap();
    let path = request.to_str().unwrap();
    let done = desk.run_with(true, &["explain", path, "--format", "json"]);
    assert_eq!(done.code, ExitCode::SUCCESS, "{}", done.err);
    let read: Value = serde_json::from_str(&done.out).unwrap();
    let order: Vec<&str> = read["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["provider"].as_str().unwrap())
        .collect();
    assert_eq!(order, ["two", "one"]);
    assert_eq!(read["candidates"][0]["price"], 2);
    assert_eq!(read["left_out"][0]["reason"], "answers at most 10 tokens");
    assert_eq!(read["candidates"][1]["score_parts"]["price"], 0.5);
    assert_eq!(
        (&read["strategy"], &read["first_by"]),
        (&"auto".into(), &"score".into())
    );
    let table = desk.run_with(true, &["explain", path]);
    assert!(
        table.out.contains("answers at most 10 tokens"),
        "{}",
        table.out
    );
    let made = desk.run_with(true, &["org", "create", "acme"]);
    assert_eq!(made.code, ExitCode::SUCCESS, "{}", made.err);
    let key = ["key", "create", "--org", "acme", "--deny-provider", "two"];
    assert_eq!(desk.run_with(true, &key).code, ExitCode::SUCCESS);
    let keys = desk.run_with(true, &["key", "list", "--org", "acme", "--format", "json"]);
    let keys: Value = serde_json::from_str(&keys.out).unwrap();
    let id = keys[0]["id"].as_str().unwrap();
    let ruled = [
        "explain", path, "--org", "acme", "--key", id, "--format", "json",
    ];
    let read: Value = serde_json::from_str(&desk.run_with(true, &ruled).out).unwrap();
    assert_eq!(read["candidates"][0]["provider"], "one");
    assert_eq!(read["left_out"][0]["provider"], "two");
    // A key that is out of use is refused as a request with it would be.
    for (command, said) in [("disable", "is disabled"), ("revoke", "was revoked")] {
        let done = desk.run_with(true, &["key", command, id]);
        assert_eq!(done.code, ExitCode::SUCCESS, "{}", done.err);
        let refused = desk.run_with(true, &ruled);
        assert_eq!(refused.code, ExitCode::from(1));
        let read: Value = serde_json::from_str(&refused.out).unwrap();
        assert_eq!(read["error"]["status"], 401);
        assert!(read["error"]["message"].as_str().unwrap().contains(said));
    }
    std::fs::write(&request, body("unknown")).unwrap();
    let refused = desk.run_with(true, &["explain", path, "--format", "json"]);
    let read: Value = serde_json::from_str(&refused.out).unwrap();
    assert_eq!(
        (refused.code, &read["error"]["status"]),
        (ExitCode::from(1), &Value::from(404))
    );
}
