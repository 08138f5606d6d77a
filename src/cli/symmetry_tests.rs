//! What each kind of account can be told: show, rename, enable, delete; and the shape of what commands say.

use std::collections::BTreeSet;

use filters::audit::PROGRAM;
use serde_json::json;

use super::*;
use crate::store::{Store, StoreSettings, StoreUrl};

/// The commands that take no `--format`, and why.
const WITHOUT_FORMAT: [(&str, &str); 6] = [
    ("weirgate", "serves"),
    ("weirgate serve", "serves"),
    ("weirgate config schema", "is JSON always"),
    ("weirgate models import", "writes a file of TOML"),
    ("weirgate man", "writes pages"),
    ("weirgate completions", "writes a script"),
];

#[test]
fn every_command_that_prints_a_result_takes_a_format() {
    fn walk(command: &Words, path: &str, without: &mut BTreeSet<String>) {
        let is_group = command.has_subcommands() && command.is_subcommand_required_set();
        let has_format = command
            .get_arguments()
            .any(|argument| argument.get_long() == Some("format"));
        if !is_group && !has_format {
            without.insert(path.to_owned());
        }
        for inner in command.get_subcommands() {
            walk(inner, &format!("{path} {}", inner.get_name()), without);
        }
    }
    let mut without = BTreeSet::new();
    walk(&Cli::command(), "weirgate", &mut without);
    let listed: BTreeSet<String> = WITHOUT_FORMAT.map(|(path, _)| path.to_owned()).into();
    assert_eq!(without, listed);
}

/// Runs a command that is refused, and returns what it says.
fn refused(desk: &Desk, words: &[&str]) -> String {
    let answer = desk.run(words);
    assert_eq!(
        answer.code,
        Exit::Failed.into(),
        "{words:?}: {}",
        answer.out
    );
    answer.err
}

fn words<'a>(of: &'a [&'a str], more: &[&'a str]) -> Vec<&'a str> {
    of.iter().chain(more).copied().collect()
}

#[test]
fn an_organization_is_shown_renamed_enabled_and_deleted() {
    let desk = Desk::with_acme();
    let show = || desk.json(&["org", "show", "acme"]);
    assert_eq!(show(), desk.json(&["org", "list"])[0]);
    desk.done(&["org", "disable", "acme"]);
    assert_eq!(desk.done(&["org", "enable", "acme"]), "");
    assert_eq!(show()["status"], "active");
    let id = show()["id"].clone();
    desk.done(&["org", "create", "other"]);
    let said = refused(&desk, &["org", "rename", "acme", "other"]);
    assert!(said.contains("`other` exists already"), "{said}");
    let renamed = desk.json(&["org", "rename", "acme", "globex"]);
    let expected = json!({"done": "renamed", "id": id, "name": "globex"});
    assert_eq!(renamed, expected);
    let said = refused(&desk, &["org", "delete", "globex", "--yes"]);
    assert!(said.contains("`weirgate org disable globex`"), "{said}");
    desk.done(&["org", "disable", "globex"]);
    desk.done(&["credit", "show", "--org", "globex"]);
    let said = refused(&desk, &["org", "delete", "globex"]);
    assert!(
        said.contains("nothing was done: --yes deletes") && said.contains("1 projects"),
        "{said}"
    );
    let unconfirmed = desk.run(&["org", "delete", "globex", "--format", "json"]);
    assert_eq!(unconfirmed.code, Exit::Failed.into());
    let unconfirmed: Value = serde_json::from_str(&unconfirmed.out).unwrap();
    assert_eq!(
        (&unconfirmed["done"], &unconfirmed["with"]["projects"]),
        (&json!("nothing"), &json!(1))
    );
    assert_eq!(desk.json(&["org", "show", "globex"])["id"], id);
    let deleted = desk.json(&["org", "delete", "globex", "--yes"]);
    assert_eq!((&deleted["done"], &deleted["id"]), (&json!("deleted"), &id));
    let left = desk.json(&["org", "list"]);
    assert_eq!(left.as_array().unwrap().len(), 1);
}

#[test]
fn a_project_and_a_member_are_shown_renamed_and_deleted() {
    let desk = Desk::with_acme();
    let of = ["--org", "acme"];
    desk.done(&words(&["project", "create", "app"], &of));
    desk.done(&words(&["member", "add", "ada"], &of));
    for (kind, name, new_name) in [("project", "app", "web"), ("member", "ada", "ida")] {
        let shown = desk.json(&words(&[kind, "show", name], &of));
        assert_eq!(shown["name"], name);
        let renamed = desk.json(&words(&[kind, "rename", name, new_name], &of));
        let expected = json!({"done": "renamed", "id": shown["id"], "name": new_name});
        assert_eq!(renamed, expected);
        refused(&desk, &words(&[kind, "show", name], &of));
        let table = desk.done(&words(&[kind, "show", new_name], &of));
        assert!(
            table.lines().count() == 2 && table.contains(new_name),
            "{table}"
        );
    }
    let key = ["key", "create", "--project", "web", "--member", "ida"];
    let key = desk.json(&words(&key, &of));
    assert!(ApiKey::parse(key["key"].as_str().unwrap().as_bytes()).is_ok());
    let id = key["id"].as_str().unwrap();
    desk.done(&words(&["project", "archive", "web"], &of));
    let closed = words(&["key", "create", "--project", "web"], &of);
    let said = refused(&desk, &closed);
    assert!(
        said.contains("`weirgate project enable --org ORG web`"),
        "{said}"
    );
    desk.done(&words(&["project", "enable", "web"], &of));
    let said = refused(&desk, &words(&["project", "delete", "web", "--yes"], &of));
    assert!(
        said.contains("`weirgate project archive --org acme web`"),
        "{said}"
    );
    let said = refused(&desk, &words(&["member", "delete", "ida", "--yes"], &of));
    assert!(said.contains("1 keys belong to it"), "{said}");
    desk.done(&["key", "update", id, "--clear", "member"]);
    refused(&desk, &words(&["member", "delete", "ida"], &of));
    desk.done(&words(&["member", "delete", "ida", "--yes"], &of));
    assert_eq!(desk.json(&words(&["member", "list"], &of)), json!([]));
    desk.done(&words(&["project", "archive", "web"], &of));
    let deleted = desk.json(&words(&["project", "delete", "web", "--yes"], &of));
    assert_eq!(deleted["with"]["keys"], 1);
    refused(&desk, &["key", "show", id]);
}

#[test]
fn a_key_is_shown_renamed_disabled_enabled_and_deleted() {
    let desk = Desk::with_acme();
    let made = desk.json(&["key", "create", "--org", "acme", "--label", "ci"]);
    let id = made["id"].as_str().unwrap();
    let show = || desk.json(&["key", "show", id]);
    let listed = desk.json(&["key", "list", "--org", "acme"])[0].clone();
    let mut shown = show();
    let organization = shown.as_object_mut().unwrap().remove("organization");
    assert_eq!((shown, organization), (listed, Some(json!("acme"))));
    assert_eq!(desk.done(&["key", "rename", id, "laptop"]), "");
    assert_eq!(show()["label"], "laptop");
    for (command, status) in [("disable", "disabled"), ("enable", "active")] {
        let done = desk.json(&["key", command, id]);
        assert_eq!(done, json!({"done": format!("{command}d"), "id": id}));
        assert_eq!(show()["status"], status);
    }
    let said = refused(&desk, &["key", "delete", id, "--yes"]);
    assert!(
        said.contains(&format!("`weirgate key disable {id}`")),
        "{said}"
    );
    desk.done(&["key", "revoke", id]);
    let said = refused(&desk, &["key", "enable", id]);
    assert!(said.contains("`weirgate key create`"), "{said}");
    refused(&desk, &["key", "delete", id]);
    assert_eq!(show()["status"], "revoked");
    desk.done(&["key", "delete", id, "--yes"]);
    refused(&desk, &["key", "show", id]);
}

#[test]
fn a_prompt_is_renamed_and_told_as_json() {
    let desk = Desk::with_acme();
    let file = desk.folder.path().join("hi.json");
    std::fs::write(&file, r#"{"messages":[{"role":"user","content":"Hi"}]}"#).unwrap();
    let of = ["--org", "acme"];
    let put = ["prompt", "put", "hi", file.to_str().unwrap()];
    let put = desk.json(&words(&put, &of));
    assert_eq!(
        (&put["version"], &put["done"]),
        (&json!(1), &json!("stored"))
    );
    desk.done(&words(&["prompt", "rename", "hi", "hello"], &of));
    let said = refused(&desk, &words(&["prompt", "show", "helo"], &of));
    assert!(said.contains("did you mean `hello`?"), "{said}");
    let wrong = desk.run(&words(&["prompt", "rename", "hello", "a b"], &of));
    assert_eq!(wrong.code, Exit::Usage.into());
    let diff = desk.json(&words(&["prompt", "diff", "hello"], &of));
    assert_eq!((&diff["from"], &diff["changes"]), (&json!(1), &json!([])));
    desk.done(&words(&["prompt", "delete", "hello"], &of));
    assert_eq!(desk.json(&words(&["prompt", "list"], &of)), json!([]));
}

impl Desk {
    /// Runs work on the store of this desk.
    pub(super) fn on_store<T>(&self, work: impl AsyncFnOnce(&Store) -> T) -> T {
        let folder = self.folder.path();
        let settings = StoreSettings {
            url: StoreUrl::Sqlite(folder.join("weirgate.db")),
            state_dir: folder.to_owned(),
            secret: None,
        };
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let store = Store::open(&settings).await.unwrap().store;
            let done = work(&store).await;
            store.close().await;
            done
        })
    }
}

#[test]
fn provider_keys_and_mcp_clients_are_shown_and_their_names_change() {
    let desk = Desk::with_acme();
    let (own, client) = desk.on_store(async |store| {
        let text = "sk-own-0123456789abcdef";
        let own = store
            .by(&PROGRAM)
            .add_provider_key("acme", "first", "team", text, 1);
        let client = store.register_oauth_client("{}", &[], 1).await;
        (own.await.unwrap().id, client.unwrap())
    });
    let shown = desk.json(&["provider-key", "show", &own]);
    assert_eq!(
        (&shown["organization"], &shown["label"], &shown["last_four"]),
        (&json!("acme"), &json!("team"), &json!("cdef"))
    );
    desk.done(&["provider-key", "rename", &own, "staging"]);
    let shown = desk.json(&["provider-key", "show", &own]);
    assert_eq!(shown["label"], "staging");
    let absent = [
        "provider-key",
        "delete",
        "--org",
        "acme",
        "--provider",
        "first",
        "--label",
        "team",
    ];
    let said = refused(&desk, &absent);
    assert!(said.contains("no provider key `team`"), "{said}");
    let deleted = desk.json(&["provider-key", "delete", &own]);
    assert_eq!(deleted, json!({"done": "removed", "id": own}));
    let shown = desk.json(&["mcp", "clients", "show", &client]);
    assert_eq!(shown["status"], "active");
    let said = refused(&desk, &["mcp", "clients", "delete", &client, "--yes"]);
    assert!(said.contains("`weirgate mcp clients revoke"), "{said}");
    desk.done(&["mcp", "clients", "revoke", &client]);
    refused(&desk, &["mcp", "clients", "delete", &client]);
    desk.done(&["mcp", "clients", "delete", &client, "--yes"]);
    assert_eq!(desk.json(&["mcp", "clients", "list"]), json!([]));
}

#[test]
fn credit_is_taken_back_as_far_as_there_is_some() {
    let desk = Desk::with_acme();
    desk.done(&["credit", "add", "--org", "acme", "10"]);
    let taken = desk.json(&["credit", "take", "--org", "acme", "2.5"]);
    assert_eq!(
        (&taken["done"], &taken["amount"]),
        (&json!("taken"), &json!("2.5"))
    );
    let plain = desk.run(&["credit", "take", "--org", "acme", "0.5"]);
    assert!(plain.out.starts_with("grant_"), "{}", plain.out);
    assert!(
        plain.err.contains("took 0.5 USD from `acme`"),
        "{}",
        plain.err
    );
    let shown = desk.json(&["credit", "show", "--org", "acme"]);
    assert_eq!(
        (&shown["balance"], &shown["granted"]),
        (&json!("7"), &json!("7"))
    );
    let said = refused(&desk, &["credit", "take", "--org", "acme", "7.01"]);
    assert!(said.contains("at most 7 USD can be taken"), "{said}");
    for amount in ["0", "-1", "x"] {
        let wrong = desk.run(&["credit", "take", "--org", "acme", amount]);
        assert_eq!(wrong.code, Exit::Usage.into(), "{amount}");
    }
}

#[test]
fn what_is_done_is_told_as_one_object_and_plain_output_is_as_before() {
    let desk = Desk::with_acme();
    let plain = desk.run(&["org", "create", "plain"]);
    assert!(plain.out.starts_with("org_") && plain.out.lines().count() == 1);
    let made = desk.json(&["org", "create", "other"]);
    assert_eq!(
        (&made["done"], &made["name"]),
        (&json!("created"), &json!("other"))
    );
    for state in ["hold", "release", "disable"] {
        assert_eq!(desk.done(&["org", state, "plain"]), "");
    }
    let updated = desk.json(&["org", "update", "acme", "--plan", "max", "--regions", "eu"]);
    assert_eq!(
        (&updated["plan"], &updated["regions"]),
        (&json!("max"), &json!("eu"))
    );
    let secret = desk.json(&["decisions", "client-secret"]);
    assert!(
        secret["secret_hash"]
            .as_str()
            .unwrap()
            .starts_with("$argon2")
    );
    let copy = desk.folder.path().join("copy.db");
    let copied = desk.json(&["backup", copy.to_str().unwrap()]);
    assert!(copied["bytes"].as_u64().unwrap() > 0);
    let key = desk.json(&["key", "create", "--org", "acme"]);
    let updated = desk.json(&["key", "update", key["id"].as_str().unwrap(), "--label", "x"]);
    assert_eq!(updated, json!({"done": "updated", "id": key["id"]}));
    let budget = desk.run(&["member", "budget", "--org", "acme", "ada", "5"]);
    assert!(
        budget.err.contains("`weirgate member list --org ORG`"),
        "{}",
        budget.err
    );
}

#[test]
fn a_name_that_is_not_there_is_said_with_the_one_that_was_meant() {
    let desk = Desk::with_acme();
    let of = ["--org", "acme"];
    desk.done(&words(&["project", "create", "billing"], &of));
    desk.done(&words(&["member", "add", "ada.lovelace"], &of));
    desk.done(&["org", "create", "elsewhere"]);
    desk.done(&["project", "create", "--org", "elsewhere", "frontend"]);
    let misspelt: [(&[&str], &str, Option<&str>); 5] = [
        (&["org", "show", "acm"], "weirgate org list", Some("acme")),
        (
            &["project", "archive", "--org", "acme", "biling"],
            "weirgate project list",
            Some("billing"),
        ),
        (
            &["member", "show", "--org", "acme", "ada.lovelac"],
            "weirgate member list",
            Some("ada.lovelace"),
        ),
        // Names of another organization are none of this one.
        (
            &["project", "show", "--org", "acme", "frontent"],
            "weirgate project list",
            None,
        ),
        (&["key", "show", "key_1"], "weirgate key list", None),
    ];
    for (command, list, meant) in misspelt {
        let said = refused(&desk, command);
        assert!(said.contains(list), "{said}");
        match meant {
            Some(meant) => assert!(said.contains(&format!("did you mean `{meant}`?")), "{said}"),
            None => assert!(!said.contains("did you mean"), "{said}"),
        }
    }
}

#[test]
fn usage_by_day_has_a_row_for_each_day() {
    let desk = Desk::with_acme();
    desk.on_store(async |store| {
        let organization = store.organization("acme").await.unwrap().id;
        let call = |n: u8, at_ms| {
            let mut call = filters::ledger::LedgerEntry {
                id: filters::ledger::EntryId([n; 16]),
                at_ms,
                funding: filters::ledger::Funding::Unbilled,
                ..filters::ledger::LedgerEntry::default()
            };
            call.owner.organization_id = organization.as_str().into();
            call
        };
        let calls = [
            call(1, 1_800_100_000_000),
            call(2, 1_800_000_000_000),
            call(3, 1_800_000_000_001),
        ];
        store.post("x", &calls, false).await.unwrap();
    });
    let by_day = desk.json(&["usage", "--org", "acme", "--by", "day"]);
    let days: Vec<_> = by_day.as_array().unwrap().iter().collect();
    assert_eq!(days.len(), 2);
    assert_eq!(
        (&days[0]["day"], &days[0]["requests"]),
        (&json!("2027-01-15"), &json!(2))
    );
    assert_eq!(
        (&days[1]["day"], &days[1]["requests"]),
        (&json!("2027-01-16"), &json!(1))
    );
}
