//! The arguments, refusals and output of the commands about money.

use std::sync::Arc;

use filters::ledger::{
    CallOutcome, CallOwner, EntryId, ExperimentNames, Funding, LedgerEntry, SessionNames,
};
use serde_json::json;

use super::*;
use crate::cli::arguments::FormatArgs;
use crate::cli::provider_key::{self, AddArgs};
use crate::store::{Store, StoreSettings, StoreUrl};

const THIRTY_DIGITS: &str = "123456789012345678901234567890";

impl Desk {
    /// Makes a key with these bounds and returns its row.
    fn key(&self, bounds: &[&str]) -> Value {
        let words = ["key", "create", "--org", "acme"];
        self.done(&words.iter().chain(bounds).copied().collect::<Vec<_>>());
        self.keys().last().unwrap().clone()
    }

    fn keys(&self) -> Vec<Value> {
        let list = self.json(&["key", "list", "--org", "acme"]);
        list.as_array().unwrap().clone()
    }
}

#[test]
fn a_key_shows_the_bounds_it_was_made_with() {
    let desk = Desk::with_acme();
    desk.done(&["member", "add", "--org", "acme", "ada"]);
    let bounds = [
        "--limit 50 --limit-per day=5 --limit-per month=20.50 --member ada --allow-model a",
        "--allow-model b --deny-provider p --max-input-price 5 --max-output-price 15",
        "--allow-ip 10.0.0.0/8 --deny-ip 10.1.0.0/16 --allow-passthrough anthropic,openai",
    ];
    let bounds = bounds.join(" ");
    let key = desk.key(&bounds.split(' ').collect::<Vec<_>>());
    assert_eq!(
        (&key["limit"], &key["member"]),
        (&json!("50"), &json!("ada"))
    );
    assert_eq!(key["limit_per"], json!({"day": "5", "month": "20.50"}));
    let rules = json!({
        "allow_models": ["a", "b"], "deny_providers": ["p"], "max_input_price": "5",
        "max_output_price": "15", "allow_ips": ["10.0.0.0/8"], "deny_ips": ["10.1.0.0/16"],
        "allow_passthrough": ["anthropic", "openai"],
    });
    assert_eq!(key["rules"], rules);
    let free = desk.key(&[]);
    assert!(free["limit"].is_null() && free["limit_per"].is_null() && free["rules"].is_null());
}

#[test]
fn a_rule_about_what_nobody_knows_is_made_and_warned_of() {
    let desk = Desk::with_acme();
    let words = [
        "key",
        "create",
        "--org",
        "acme",
        "--deny-model",
        "gpt-5-mimi",
    ];
    let more = ["--allow-provider", "frist"];
    let answer = desk.run(&[&words[..], &more[..]].concat());
    assert_eq!(answer.code, Exit::Done.into());
    assert!(
        answer.err.contains("`gpt-5-mimi`") && answer.err.contains("`frist`"),
        "{}",
        answer.err
    );
    assert_eq!(desk.keys().len(), 1);
}

#[test]
fn an_update_changes_what_it_names_and_clears_what_it_is_told_to() {
    let desk = Desk::with_acme();
    let key = desk.key(&["--limit", "5", "--limit-per", "day=1", "--deny-model", "a"]);
    let id = key["id"].as_str().unwrap();
    desk.done(&[
        "key",
        "update",
        id,
        "--limit",
        "7",
        "--limit-per",
        "hour=0",
        "--label",
        "new",
    ]);
    let changed = &desk.keys()[0];
    assert_eq!(
        (&changed["limit"], &changed["label"]),
        (&json!("7"), &json!("new"))
    );
    assert_eq!(changed["limit_per"], json!({"day": "1", "hour": "0"}));
    assert_eq!(changed["rules"], json!({"deny_models": ["a"]}));
    desk.done(&["key", "update", id, "--clear", "limit", "--clear", "models"]);
    let cleared = &desk.keys()[0];
    assert!(cleared["limit"].is_null() && cleared["rules"].is_null());
    assert_eq!(cleared["limit_per"], json!({"day": "1", "hour": "0"}));
    let absent = desk.run(&["key", "update", "key_1", "--limit", "1"]);
    assert_eq!(absent.code, Exit::Failed.into());
}

#[test]
fn a_debug_key_is_made_listed_and_becomes_a_usual_one() {
    let desk = Desk::with_acme();
    assert_eq!(desk.key(&[])["debug"], false);
    let made = desk.key(&["--debug", "--limit", "5"]);
    assert_eq!(made["debug"], true);
    let id = made["id"].as_str().unwrap();
    let debug = || {
        let keys = desk.keys();
        let key = keys.iter().find(|key| key["id"] == id).unwrap();
        (key["debug"].clone(), key["limit"].clone())
    };
    desk.done(&["key", "update", id, "--label", "why"]);
    assert_eq!(debug(), (json!(true), json!("5")));
    desk.done(&["key", "update", id, "--clear", "debug"]);
    assert_eq!(debug(), (json!(false), json!("5")));
    desk.done(&["key", "update", id, "--debug"]);
    assert_eq!(debug(), (json!(true), json!("5")));
    let table = desk.done(&["key", "list", "--org", "acme"]);
    assert!(table.lines().next().unwrap().contains("debug"), "{table}");
    let valued = desk.run(&["key", "create", "--org", "acme", "--debug=yes"]);
    assert_eq!(valued.code, Exit::Usage.into());
}

#[test]
fn a_vendor_whose_credentials_a_key_may_bring_is_added_and_taken_away() {
    let desk = Desk::with_acme();
    let key = desk.key(&["--limit", "5"]);
    let id = key["id"].as_str().unwrap();
    let rules = || desk.keys()[0]["rules"].clone();
    assert!(rules().is_null());
    desk.done(&["key", "update", id, "--allow-passthrough", "anthropic"]);
    assert_eq!(rules(), json!({"allow_passthrough": ["anthropic"]}));
    let shown = desk.json(&["key", "show", id]);
    assert_eq!(shown["rules"], rules());
    desk.done(&["key", "update", id, "--clear", "passthrough"]);
    assert!(rules().is_null());
    assert_eq!(desk.keys()[0]["limit"], "5");
}

#[test]
fn a_bound_that_cannot_be_one_is_named_and_nothing_is_made() {
    let desk = Desk::with_acme();
    let bad = [
        ("--limit", "-1"),
        ("--limit", THIRTY_DIGITS),
        ("--limit", "1e3"),
        ("--limit", "0.0000000000000000001"),
        ("--limit-per", "day"),
        ("--limit-per", "year=1"),
        ("--limit-per", "day=-1"),
        ("--max-input-price", "-0.1"),
        ("--max-output-price", "cheap"),
        ("--allow-model", ""),
        ("--allow-ip", "10.0.0.1/8"),
        ("--deny-ip", "example.com"),
        ("--allow-passthrough", "claude"),
        ("--allow-passthrough", "anthropic,"),
    ];
    for (flag, value) in bad {
        let answer = desk.run(&["key", "create", "--org", "acme", flag, value]);
        assert_eq!(answer.code, Exit::Usage.into(), "{flag} {value}");
        assert!(answer.err.contains(flag), "{flag} {value}: {}", answer.err);
    }
    assert!(desk.keys().is_empty());
}

#[test]
fn credit_is_given_and_shown_to_the_last_digit() {
    let desk = Desk::with_acme();
    for amount in ["0.10", "0.2", "0.000000000000000001"] {
        desk.done(&["credit", "add", "--org", "acme", amount]);
    }
    let shown = desk.json(&["credit", "show", "--org", "acme"]);
    let sum = "0.300000000000000001";
    let expected = json!({
        "organization": "acme", "balance": sum, "reserved": "0", "granted": sum, "used": "0",
    });
    assert_eq!(shown, expected);
    for amount in ["-5", "0", THIRTY_DIGITS, "1,5", "NaN", ""] {
        let answer = desk.run(&["credit", "add", "--org", "acme", amount]);
        assert_eq!(answer.code, Exit::Usage.into(), "{amount}");
    }
    assert_eq!(desk.json(&["credit", "show", "--org", "acme"]), expected);
    let absent = desk.run(&["credit", "show", "--org", "other"]);
    assert_eq!(absent.code, Exit::Failed.into());
}

#[test]
fn a_member_has_a_budget_that_can_be_lifted() {
    let desk = Desk::with_acme();
    desk.done(&["member", "add", "--org", "acme", "ada"]);
    let budget = |amount: &str| desk.run(&["member", "budget", "--org", "acme", "ada", amount]);
    let shown = || desk.json(&["member", "list", "--org", "acme"])[0]["budget"].clone();
    assert!(shown().is_null());
    assert_eq!(budget("0").code, Exit::Done.into());
    assert_eq!(shown(), "0");
    for amount in ["-1", THIRTY_DIGITS] {
        assert_eq!(budget(amount).code, Exit::Usage.into(), "{amount}");
    }
    assert_eq!(budget("none").code, Exit::Done.into());
    assert!(shown().is_null());
}

#[test]
fn a_plan_and_a_mode_are_changed() {
    let desk = Desk::with_acme();
    desk.done(&["org", "update", "acme", "--plan", "max"]);
    assert_eq!(desk.json(&["org", "list"])[0]["plan"], "max");
    desk.done(&[
        "project", "update", "--org", "acme", "default", "--mode", "byok",
    ]);
    let listed = desk.json(&["project", "list", "--org", "acme"]);
    assert_eq!(
        (&listed[0]["name"], &listed[0]["mode"]),
        (&json!("default"), &json!("byok"))
    );
    assert_eq!(listed[0]["status"], "active");
}

#[test]
fn an_own_key_is_read_from_stdin_and_never_shown() {
    const TEXT: &str = "sk-own-0123456789abcdef";
    let desk = Desk::with_acme();
    let file = desk.folder.path().join("weirgate.toml");
    let mut toml = std::fs::read_to_string(&file).unwrap();
    toml.push_str(
        "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"http://127.0.0.1:1\"\nkeys = []\n\
         [providers.cloud]\nkind = \"bedrock\"\nregion = \"eu-west-1\"\nkeys = [{ env = \"NONE\" }]\n\
         [providers.nowhere]\nkind = \"vertex\"\nkeys = [{ env = \"NONE\" }]\n",
    );
    std::fs::write(&file, toml).unwrap();
    let (mut out, captured) = Output::captured();
    let mut add = |provider: &str, text: &str| {
        let args = AddArgs {
            org: "acme".to_owned(),
            provider: provider.to_owned(),
            label: "team".to_owned(),
            output: FormatArgs {
                format: OutputFormat::Table,
            },
        };
        let source = Source::find(Some(&file));
        provider_key::add(&args, &mut text.as_bytes(), &source, &mut out)
    };
    let pair = "{\n \"access_key_id\": \"AKIAOWN0123456789\",\n \"secret_access_key\": \"own-s3cr3t\"\n}\n";
    assert_eq!(add("first", pair), Err(Exit::Usage));
    assert_eq!(
        add("cloud", &pair.replace("secret_", "s_")),
        Err(Exit::Usage)
    );
    assert_eq!(add("nowhere", TEXT), Err(Exit::Usage));
    assert!(add("cloud", pair).is_ok());
    assert!(add("first", &format!("  {TEXT}\n")).is_ok());
    assert_eq!(add("first", "two words"), Err(Exit::Usage));
    assert_eq!(add("unknown", TEXT), Err(Exit::Usage));
    assert_eq!(add("first", TEXT), Err(Exit::Failed));
    let said = format!("{}{}", captured.out(), captured.err());
    assert!(
        !said.contains(TEXT) && !said.contains("two words") && !said.contains("own-s3cr3t"),
        "{said}"
    );
    for expected in [
        "the provider key: it is JSON, but this provider takes a text; give the bare key",
        "the provider key: its s_access_key is not known; accepted are access_key_id, secret_access_key, session_token",
        "--provider: `nowhere` has no address: no project is named; set providers.nowhere.project",
    ] {
        assert!(said.contains(expected), "{said}");
    }
    let listed = desk.json(&["provider-key", "list", "--org", "acme"]);
    assert_eq!(
        (&listed[0]["provider"], &listed[0]["last_four"]),
        (&json!("cloud"), &json!("6789"))
    );
    desk.done(&["provider-key", "remove", listed[0]["id"].as_str().unwrap()]);
    let listed = desk.json(&["provider-key", "list", "--org", "acme"]);
    assert_eq!(
        (&listed[0]["label"], &listed[0]["last_four"]),
        (&json!("team"), &json!("cdef"))
    );
    assert!(!listed.to_string().contains(TEXT));
    desk.done(&["provider-key", "remove", listed[0]["id"].as_str().unwrap()]);
    assert_eq!(
        desk.json(&["provider-key", "list", "--org", "acme"]),
        json!([])
    );
}

#[test]
fn usage_by_variation_session_and_agent_has_a_row_for_each() {
    let desk = Desk::with_acme();
    let words = ["usage", "--org", "acme", "--by", "variation"];
    assert_eq!(desk.json(&words), json!([]));
    let path = desk.folder.path();
    let settings = StoreSettings {
        url: StoreUrl::parse(&format!("sqlite:{}/weirgate.db", path.display())).unwrap(),
        state_dir: path.to_owned(),
        secret: None,
    };
    let post = async {
        let store = Store::open(&settings).await.unwrap().store;
        let organization = store.organization("acme").await.unwrap().id;
        let project = store.projects("acme").await.unwrap().remove(0).id;
        let call = |n: u8, outcome, duration_ms| LedgerEntry {
            id: EntryId([n; 16]),
            at_ms: 1_800_000_000_000,
            owner: CallOwner {
                organization_id: organization.as_str().into(),
                project_id: project.as_str().into(),
                ..CallOwner::default()
            },
            funding: Funding::Unbilled,
            experiment: Some(Arc::new(ExperimentNames {
                flag: "models".into(),
                rule: "test".into(),
                variation: "b".into(),
            })),
            session: Some(Arc::new(SessionNames {
                session: "s".into(),
                agent: "b".into(),
                parent: "a".into(),
            })),
            outcome,
            duration_ms,
            ..LedgerEntry::default()
        };
        let calls = [
            call(1, CallOutcome::Completed, 120),
            call(2, CallOutcome::Failed, 5000),
        ];
        store.post("x", &calls, false).await.unwrap();
        store.close().await;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(post);
    let row = json!({"project": "default", "flag": "models", "rule": "test", "variation": "b", "requests": 2,
        "failures": 1, "prompt_tokens": 0, "cached_tokens": 0, "completion_tokens": 0, "cost": "0",
        "duration_p50_ms": 124, "duration_p95_ms": 124});
    assert_eq!(desk.json(&words), json!([row]));
    let table = desk.done(&words);
    let head: Vec<_> = table.lines().next().unwrap().split_whitespace().collect();
    let columns = row.as_object().unwrap();
    assert!(head.len() == columns.len() && head.iter().all(|name| columns.contains_key(*name)));
    assert_eq!(
        head[..5],
        ["project", "flag", "rule", "variation", "requests"]
    );
    let by = |name| desk.json(&["usage", "--org", "acme", "--by", name]);
    let sums = json!({"requests": 1, "prompt_tokens": 0, "cached_tokens": 0, "completion_tokens": 0,
        "cost": "0"});
    let mut session = json!({"session": "s"});
    let mut agent = json!({"session": "s", "agent": "b", "parent": "a"});
    for row in [&mut session, &mut agent] {
        let sums = sums.as_object().unwrap().clone();
        row.as_object_mut().unwrap().extend(sums);
    }
    assert_eq!(by("session"), json!([session]));
    assert_eq!(by("agent"), json!([agent]));
    let table = desk.done(&["usage", "--org", "acme", "--by", "agent"]);
    let head = table.lines().next().unwrap().split_whitespace();
    let head: Vec<_> = head.take(4).collect();
    assert_eq!(head, ["session", "agent", "parent", "requests"]);
}

#[test]
fn a_journal_is_forgotten_only_on_confirmation_and_says_what_that_gives_up() {
    let desk = Desk::with_acme();
    let folder = desk.folder.path();
    let settings = StoreSettings {
        url: StoreUrl::Sqlite(folder.join("weirgate.db")),
        state_dir: folder.to_owned(),
        secret: None,
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = Store::open(&settings).await.unwrap().store;
        store
            .post("gone", &[LedgerEntry::default()], false)
            .await
            .unwrap();
        let other = LedgerEntry {
            id: EntryId([2; 16]),
            ..LedgerEntry::default()
        };
        store.post("runs", &[other], false).await.unwrap();
        store.register_process("runs").await.unwrap();
        store.close().await;
    });
    let list = desk.json(&["journal", "list"]);
    let status = |owner: &str| {
        let journals = list.as_array().unwrap().iter();
        let found = journals.clone().find(|journal| journal["owner"] == owner);
        found.map(|journal| (journal["status"].clone(), journal["calls"].clone()))
    };
    assert_eq!(status("gone"), Some((json!("gone"), json!(1))));
    assert_eq!(status("runs"), Some((json!("running"), json!(1))));
    for (words, problem) in [
        (&["gone"][..], "nothing was done"),
        (&["runs", "--yes"], "the process `runs` runs"),
        (&["other", "--yes"], "no journal `other` is waited for"),
    ] {
        let answer = desk.run(&[&["journal", "forget"], words].concat());
        assert_eq!(answer.code, Exit::Failed.into());
        assert!(answer.err.contains(problem), "{}", answer.err);
    }
    let warning = desk.run(&["journal", "forget", "gone"]).err;
    assert!(warning.contains("charged a second time"), "{warning}");
    assert!(warning.contains("the store has 1 of them"), "{warning}");
    desk.done(&["journal", "forget", "gone", "--yes"]);
    let left = desk.json(&["journal", "list"]);
    assert_eq!(left.as_array().unwrap().len(), 1);
}
