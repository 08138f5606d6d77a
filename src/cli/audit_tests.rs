//! The audit log, as a user sees it: each command that changes accounts leaves its entries.

use std::collections::BTreeSet;

use serde_json::json;

use super::*;
use crate::cli::arguments::FormatArgs;
use crate::cli::provider_key::{self, AddArgs};
use crate::store::AuditFilter;

/// Commands that change no accounts.
const READING: [&str; 47] = [
    "serve",
    "init",
    "check",
    "config show",
    "config schema",
    "config diff",
    "reload",
    "upgrade",
    "status",
    "org list",
    "org show",
    "project list",
    "project show",
    "key list",
    "key show",
    "member list",
    "member show",
    "credit show",
    "session show",
    "usage",
    "audit",
    "provider-key list",
    "provider-key show",
    "prompt list",
    "prompt show",
    "prompt diff",
    "explain",
    "backup",
    "export",
    // The log of a store comes with it, as it is.
    "import",
    "journal list",
    "models list",
    "models import",
    "models move-alias",
    "models retiring",
    "reconcile",
    "examples",
    "clients claude-code",
    "clients codex",
    "mcp",
    "mcp clients list",
    "mcp clients show",
    "decisions client-secret",
    "log-export schema",
    "man",
    "completions",
    "console",
];

/// Commands that change accounts, in an order in which each of them does, and the actions that they leave. `{KEY}` and so on are
/// ids that were made before.
const CHANGING: [(&str, &[&str]); 46] = [
    (
        "org create acme --regions eu --export-content on",
        &[
            "organization.create",
            "project.create",
            "organization.update",
            "organization.update",
        ],
    ),
    (
        "org update acme --plan max --regions us --export-content off",
        &[
            "organization.update",
            "organization.update",
            "organization.update",
        ],
    ),
    ("org update acme --keep-bodies 4h", &["organization.update"]),
    ("org rename acme globex", &["organization.rename"]),
    ("org hold globex", &["organization.hold"]),
    ("org release globex", &["organization.release"]),
    (
        "project create --org globex app --mode byok",
        &["project.create"],
    ),
    (
        "project update --org globex app --cache-ttl 60 --regions us-east-1",
        &["project.update", "project.update"],
    ),
    ("project rename --org globex app web", &["project.rename"]),
    ("project archive --org globex web", &["project.archive"]),
    ("project enable --org globex web", &["project.enable"]),
    ("member add --org globex ada", &["member.create"]),
    ("member rename --org globex ada ida", &["member.rename"]),
    ("member budget --org globex ida 5", &["member.update"]),
    ("member delete --org globex ida --yes", &["member.delete"]),
    ("credit add --org globex 10", &["credit.add"]),
    ("credit take --org globex 2.5", &["credit.take"]),
    (
        "key create --org globex --label ci --limit 5",
        &["key.create"],
    ),
    ("session grant --org globex s-1 5", &["budget.add"]),
    ("session pause --org globex s-1", &["budget.disable"]),
    ("session resume --org globex s-1", &["budget.enable"]),
    ("key update {KEY} --limit 7 --debug", &["key.update"]),
    ("key rename {KEY} laptop", &["key.update"]),
    ("key disable {KEY}", &["key.disable"]),
    ("key enable {KEY}", &["key.enable"]),
    ("key revoke {KEY}", &["key.revoke"]),
    ("key delete {KEY} --yes", &["key.delete"]),
    ("provider-key add", &["provider_key.create"]),
    (
        "provider-key rename {PROVIDER_KEY} staging",
        &["provider_key.rename"],
    ),
    (
        "provider-key remove {PROVIDER_KEY}",
        &["provider_key.delete"],
    ),
    (
        "prompt put --org globex hi {FOLDER}/hi.json",
        &["prompt.put"],
    ),
    (
        "prompt put --org globex hi {FOLDER}/hi.json --label next",
        &["prompt.put"],
    ),
    (
        "prompt label --org globex hi 2 production",
        &["prompt.label"],
    ),
    ("prompt rename --org globex hi hello", &["prompt.rename"]),
    (
        "prompt remove --org globex hello --label next",
        &["prompt.label"],
    ),
    ("prompt remove --org globex hello", &["prompt.delete"]),
    ("mcp clients revoke {CLIENT}", &["oauth_client.revoke"]),
    (
        "mcp clients delete {CLIENT} --yes",
        &["oauth_client.delete"],
    ),
    ("journal forget gone --yes", &["journal.forget"]),
    (
        "apply -f {FOLDER}/accounts.toml",
        &["organization.create", "project.create", "key.create"],
    ),
    (
        "apply -f {FOLDER}/fewer.toml --prune",
        &["key.revoke", "organization.update"],
    ),
    ("project archive --org globex web", &["project.archive"]),
    ("project delete --org globex web --yes", &["project.delete"]),
    ("org enable globex", &["organization.enable"]),
    ("org disable globex", &["organization.disable"]),
    ("org delete globex --yes", &["organization.delete"]),
];

/// What no entry may hold: texts that stand for secrets.
const CANARIES: [&str; 3] = [
    "canary-of-a-provider",
    "canary-of-a-client",
    "canary-of-a-prompt",
];

impl Desk {
    /// A desk whose files and rows the commands take for granted.
    fn for_changes() -> (Self, String) {
        let desk = Self::new();
        let file = desk.folder.path().join("weirgate.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        let provider = "[providers.first]\nkind = \"sandbox\"\nkeys = [\"sandbox\"]\n";
        std::fs::write(&file, format!("{text}{provider}")).unwrap();
        desk.write(
            "hi.json",
            r#"{"messages":[{"role":"user","content":"canary-of-a-prompt"}]}"#,
        );
        let whole = "[[organizations]]\nname = \"file\"\n";
        let key = "[[organizations.keys]]\nid = \"key_of_file\"\nlabel = \"ci\"\n";
        desk.write("accounts.toml", &format!("{whole}{key}"));
        desk.write("fewer.toml", whole);
        let metadata = r#"{"client_name":"Editor","client_secret":"canary-of-a-client"}"#;
        let client = desk.on_store(async |store| {
            let calls = [filters::ledger::LedgerEntry::default()];
            store.post("gone", &calls, false).await.unwrap();
            store
                .register_oauth_client(metadata, b"canary-of-a-client", 1)
                .await
                .unwrap()
        });
        (desk, client)
    }

    fn entries(&self) -> Vec<Value> {
        let list = self.json(&["audit", "--limit", "1000"]);
        list.as_array().unwrap().iter().rev().cloned().collect()
    }

    /// Adds a provider's key, whose text is read from stdin. Returns its id.
    fn add_provider_key(&self) -> String {
        let args = AddArgs {
            org: "globex".to_owned(),
            provider: "first".to_owned(),
            label: "team".to_owned(),
            output: FormatArgs {
                format: OutputFormat::Table,
            },
        };
        let file = self.folder.path().join("weirgate.toml");
        let (mut out, captured) = Output::captured();
        let source = Source::find(Some(&file));
        let mut text = "sk-canary-of-a-provider-0123456789".as_bytes();
        provider_key::add(&args, &mut text, &source, &mut out).unwrap();
        captured.out().trim().to_owned()
    }
}

/// The paths of all commands that can be given.
fn leaves(command: &Words, path: &str, found: &mut BTreeSet<String>) {
    let is_group = command.has_subcommands() && command.is_subcommand_required_set();
    if !is_group && !path.is_empty() {
        found.insert(path.to_owned());
    }
    for inner in command.get_subcommands() {
        leaves(inner, format!("{path} {}", inner.get_name()).trim(), found);
    }
}

#[test]
fn each_command_either_changes_no_accounts_or_is_run_here() {
    let mut all = BTreeSet::new();
    leaves(&Cli::command(), "", &mut all);
    let path = |words: &str| {
        let begun = all
            .iter()
            .filter(|path| words == *path || words.starts_with(&format!("{path} ")));
        begun
            .map(String::as_str)
            .max_by_key(|path| path.len())
            .unwrap()
    };
    let changing: BTreeSet<&str> = CHANGING.iter().map(|(words, _)| path(words)).collect();
    let reading: BTreeSet<&str> = READING.into();
    assert!(changing.is_disjoint(&reading), "{changing:?}");
    let told: BTreeSet<&str> = changing.union(&reading).copied().collect();
    assert_eq!(told, all.iter().map(String::as_str).collect());
}

#[test]
fn each_command_that_changes_accounts_leaves_its_entries_and_no_secret() {
    let (desk, client) = Desk::for_changes();
    let folder = desk.folder.path().display().to_string();
    let (mut key, mut own, mut text) = (String::new(), String::new(), String::new());
    let mut seen = 0;
    for (words, actions) in CHANGING {
        match words {
            "provider-key add" => own = desk.add_provider_key(),
            words => {
                let words = words.replace("{KEY}", &key).replace("{PROVIDER_KEY}", &own);
                let words = words
                    .replace("{CLIENT}", &client)
                    .replace("{FOLDER}", &folder);
                let words: Vec<&str> = words.split(' ').collect();
                let done = desk.json(&words);
                if words.starts_with(&["key", "create"]) {
                    key = done["id"].as_str().unwrap().to_owned();
                    text = done["key"].as_str().unwrap().to_owned();
                }
            }
        }
        let entries = desk.entries();
        let new: Vec<&str> = entries[seen..]
            .iter()
            .map(|it| it["action"].as_str().unwrap())
            .collect();
        assert_eq!(new, actions, "{words}");
        seen = entries.len();
    }
    let all = desk.json(&["audit", "--limit", "1000"]).to_string();
    let rows = desk.on_store(async |store| {
        let page = store
            .audit_entries(&AuditFilter::default(), 1000)
            .await
            .unwrap();
        format!("{page:?}")
    });
    for secret in CANARIES.into_iter().chain([text.as_str()]) {
        assert!(!all.contains(secret) && !rows.contains(secret), "{secret}");
    }
    let verified = desk.json(&["audit", "--verify"]);
    assert_eq!(
        (&verified["done"], &verified["entries"]),
        (&json!("verified"), &json!(seen))
    );
}

#[test]
fn what_only_says_what_it_would_do_leaves_no_entry() {
    let desk = Desk::with_acme();
    desk.write("accounts.toml", "[[organizations]]\nname = \"other\"\n");
    let before = desk.entries();
    let file = desk.folder.path().join("accounts.toml");
    desk.done(&["apply", "-f", file.to_str().unwrap(), "--plan"]);
    desk.done(&["org", "disable", "acme"]);
    desk.run(&["org", "delete", "acme"]);
    let disabled = desk.entries();
    assert_eq!(disabled.len(), before.len() + 1);
    desk.done(&["org", "disable", "acme"]);
    desk.run(&["org", "create", "acme"]);
    desk.run(&["org", "rename", "acme", " "]);
    assert_eq!(desk.entries(), disabled);
}

#[test]
fn entries_are_found_by_what_they_have_page_by_page() {
    let desk = Desk::with_acme();
    desk.done(&["org", "create", "other"]);
    let made = desk.json(&["key", "create", "--org", "acme", "--label", "ci"]);
    let id = made["id"].as_str().unwrap();
    desk.done(&["key", "rename", id, "laptop"]);
    desk.done(&["org", "rename", "acme", "globex"]);
    let count = |words: &[&str]| {
        let words: Vec<&str> = ["audit"].iter().chain(words).copied().collect();
        desk.json(&words).as_array().unwrap().len()
    };
    assert_eq!(
        (
            count(&[]),
            count(&["--org", "acme"]),
            count(&["--org", "globex"])
        ),
        (7, 5, 5)
    );
    assert_eq!(
        (
            count(&["--action", "key"]),
            count(&["--action", "key.create"])
        ),
        (2, 1)
    );
    assert_eq!(
        (
            count(&["--since", "1h"]),
            count(&["--since", "2030-01-01T00:00:00Z"])
        ),
        (7, 0)
    );
    let all = desk.entries();
    let actor = all[0]["actor"].as_str().unwrap();
    assert_eq!(
        (count(&["--actor", actor]), count(&["--actor", "nobody"])),
        (7, 0)
    );
    assert!(
        all[0]["origin"]
            .as_str()
            .unwrap()
            .starts_with("command line at ")
    );
    let page = desk.run(&["audit", "--limit", "3", "--format", "json"]);
    assert!(page.err.contains("--before 5 lists them"), "{}", page.err);
    assert_eq!(count(&["--before", "5"]), 4);
    let renamed = &all[6];
    assert_eq!(
        (&renamed["before"], &renamed["after"], &renamed["number"]),
        (
            &json!({"name": "acme"}),
            &json!({"name": "globex"}),
            &json!(7)
        )
    );
    let table = desk.done(&["audit", "--action", "key.update"]);
    assert!(table.contains("label ci → laptop"), "{table}");
    let said = desk.run(&["audit", "--org", "glob"]);
    assert!(said.err.contains("no organization `glob`"), "{}", said.err);
    for wrong in [
        &["--limit", "0"][..],
        &["--limit", "1001"],
        &["--before", "0"],
        &["--since", "yesterday"],
        &["--action", "key.explode"],
        &["--action", "keys"],
        &["--expect", "1:ab", "--verify"],
        &["--verify", "--org", "acme"],
    ] {
        let words: Vec<&str> = ["audit"].iter().chain(wrong).copied().collect();
        assert_eq!(desk.run(&words).code, Exit::Usage.into(), "{wrong:?}");
    }
}

#[test]
fn a_log_that_was_changed_or_cut_fails_the_check() {
    let desk = Desk::with_acme();
    let empty = format!("0:{}", "0".repeat(64));
    let head = desk.done(&["audit", "--verify"]).trim().to_owned();
    assert!(head.starts_with("2:"), "{head}");
    desk.done(&["org", "create", "other"]);
    for expected in [&empty, &head] {
        let again = desk.json(&["audit", "--verify", "--expect", expected.as_str()]);
        assert_eq!(
            (&again["entries"], &again["expected"]),
            (&json!(4), &json!(expected))
        );
    }
    let other = Desk::with_acme();
    let foreign = other.run(&["audit", "--verify", "--expect", &head]);
    assert!(
        foreign.code == Exit::Failed.into() && foreign.err.contains("was written anew"),
        "{}",
        foreign.err
    );
    let last = desk.done(&["audit", "--verify"]).trim().to_owned();
    let cut = other.run(&["audit", "--verify", "--expect", &last, "--format", "json"]);
    assert_eq!(cut.code, Exit::Failed.into());
    let cut: Value = serde_json::from_str(&cut.out).unwrap();
    assert_eq!(
        (&cut["done"], &cut["number"]),
        (&json!("broken"), &json!(3))
    );
    let new = Desk::new();
    assert_eq!(new.done(&["audit", "--verify"]).trim(), empty);
}
