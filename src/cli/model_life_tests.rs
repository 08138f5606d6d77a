//! What ends, who calls it, and aliases that move.

use filters::ledger::{CallOwner, CostParts, EntryId, LedgerEntry, UsageRecord};
use filters::money::Usd;
use serde_json::json;

use super::*;
use crate::cli::accounts::now_ms;

const DAY_MS: i64 = 86_400_000;

/// Returns the day so many days from now, in UTC.
fn day(days: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(now_ms() + days * DAY_MS).unwrap();
    time.to_string().split('T').next().unwrap().to_owned()
}

impl Desk {
    /// A desk whose catalogue has models that end, and whose ledger has calls of two of them.
    fn with_models() -> Self {
        let desk = Self::with_acme();
        let folder = desk.folder.path().display().to_string();
        let catalog = format!(
            "# kept\n[[models]]\nid = \"old\"\naliases = [\"nick\"]\nsuccessor = \"new\"\n\
             [[models.providers]]\nprovider = \"first\"\nname = \"old-1\"\ndeactivated_at = \"{}\"\n\
             input_price = \"1\"\noutput_price = \"2\"\n\
             [[models.providers]]\nprovider = \"off\"\nname = \"old-1\"\ndeactivated_at = \"{}\"\n\
             [[models]]\nid = \"new\"\n[[models.providers]]\nprovider = \"first\"\nname = \"new-1\"\n\
             input_price = \"2\"\noutput_price = \"2\"\n\
             [[models]]\nid = \"idle\"\n[[models.providers]]\nprovider = \"first\"\nname = \"i\"\ndeactivated_at = \"{}\"\n",
            day(20),
            day(5),
            day(10),
        );
        std::fs::write(desk.folder.path().join("models.toml"), catalog).unwrap();
        let file = desk.folder.path().join("weirgate.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        let text = format!(
            "{text}[models]\nfile = \"{folder}/models.toml\"\n[providers.first]\nkind = \"openai-compatible\"\n\
             base_url = \"http://127.0.0.1:1\"\n[providers.off]\nkind = \"openai-compatible\"\n\
             base_url = \"http://127.0.0.1:1\"\nkeys = [{{ env = \"A_VARIABLE_THAT_IS_NOT_SET\" }}]\n"
        );
        std::fs::write(&file, text).unwrap();
        desk.done(&["key", "create", "--org", "acme", "--label", "ci"]);
        let key = desk.json(&["key", "list", "--org", "acme"])[0]["id"].clone();
        let key = key.as_str().unwrap().to_owned();
        desk.on_store(async |store| {
            let organization = store.organization("acme").await.unwrap().id;
            let call = |number: u8, key: &str, days: i64| LedgerEntry {
                id: EntryId([number; 16]),
                at_ms: now_ms() - days * DAY_MS,
                owner: CallOwner {
                    organization_id: organization.as_str().into(),
                    key_id: key.into(),
                    ..CallOwner::default()
                },
                usage: UsageRecord {
                    model: "old".into(),
                    provider: "first".into(),
                    prompt_tokens: 1_000_000,
                    completion_tokens: 500_000,
                    cost: Some(CostParts {
                        total: Usd::parse("2").unwrap(),
                        ..CostParts::default()
                    }),
                    ..UsageRecord::default()
                },
                ..LedgerEntry::default()
            };
            let calls = [
                call(1, &key, 1),
                call(2, &key, 2),
                call(3, "key_deleted", 3),
                call(4, &key, 60),
            ];
            store.post("x", &calls, false).await.unwrap();
        });
        desk
    }
}

#[test]
fn what_ends_is_told_with_who_has_called_it() {
    let desk = Desk::with_models();
    let told = desk.json(&["models", "retiring"]);
    let told = told.as_array().unwrap();
    let names = [
        "model",
        "provider",
        "days_left",
        "label",
        "requests",
        "cost",
    ];
    let rows: Vec<Value> = told
        .iter()
        .map(|row| names.map(|name| row[name].clone()).to_vec().into())
        .collect();
    let expected = json!([
        ["idle", "first", 10, null, 0, "0"],
        ["old", "first", 20, "ci", 2, "4"],
        ["old", "first", 20, null, 1, "2"],
    ]);
    assert_eq!(json!(rows), expected);
    assert_eq!(told[1]["successor"], "new");
    assert_eq!(
        (&told[1]["organization"], &told[2]["key"]),
        (&json!("acme"), &json!("key_deleted"))
    );
    assert!(
        told[1]["last_call_at"]
            .as_str()
            .unwrap()
            .starts_with(&day(-1))
    );
    let all = desk.json(&["models", "retiring", "--all", "--since", "90d"]);
    let all = all.as_array().unwrap();
    assert_eq!((all.len(), &all[0]["provider"]), (4, &json!("off")));
    assert_eq!(all[2]["requests"], 3);
    let table = desk.done(&["models", "retiring"]);
    let head: Vec<_> = table.lines().next().unwrap().split_whitespace().collect();
    let fields: Vec<_> = told[0].as_object().unwrap().keys().collect();
    assert_eq!(head, fields);
}

#[test]
fn a_model_in_use_that_ends_soon_fails_the_check() {
    let desk = Desk::with_models();
    let check = |words: &[&str]| desk.run(&[&["models", "retiring"], words].concat());
    // Of the first ten days only a model ends that nobody calls.
    let quiet = check(&["--within", "10d"]);
    assert_eq!(quiet.code, Exit::Done.into(), "{}", quiet.err);
    assert!(
        quiet.out.contains("idle") && !quiet.out.contains("old"),
        "{}",
        quiet.out
    );
    let soon = check(&["--within", "3w"]);
    assert_eq!(soon.code, Exit::Failed.into());
    assert!(
        soon.err
            .contains("within 21 days providers end 1 of the models"),
        "{}",
        soon.err
    );
    let unused = check(&["--within", "3w", "--since", "10m"]);
    assert_eq!(unused.code, Exit::Done.into(), "{}", unused.err);
    for words in [
        ["--within", "3h"],
        ["--within", "2026-12-01T00:00:00Z"],
        ["--within", "d"],
        ["--since", "soon"],
    ] {
        let wrong = check(&words);
        assert_eq!(wrong.code, Exit::Usage.into(), "{words:?}");
        assert!(
            wrong.err.contains(words[0]) && wrong.err.contains(words[1]),
            "{}",
            wrong.err
        );
    }
    std::fs::write(desk.folder.path().join("weirgate.db"), "no store").unwrap();
    let away = check(&["--within", "3w"]);
    assert_eq!(away.code, Exit::NoVerdict.into(), "{}", away.err);
}

#[test]
fn an_alias_moves_after_a_dry_run_that_changes_nothing() {
    let desk = Desk::with_models();
    let file = desk.folder.path().join("models.toml");
    let before = std::fs::read_to_string(&file).unwrap();
    let words = ["models", "move-alias", "nick", "--to", "new"];
    let dry = desk.json(&[&words[..], &["--dry-run"]].concat());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
    assert_eq!(
        (&dry["done"], &dry["from"], &dry["to"]),
        (&json!("nothing"), &json!("old"), &json!("new"))
    );
    let price = json!({"property": "input_price", "from": "1", "to": "2"});
    assert_eq!(dry["differences"], json!([price]));
    // Three calls of a million tokens at 1 and half a million at 2, and then at 2 and 2.
    assert_eq!(
        (&dry["cost"], &dry["cost_then"]),
        (&json!("6"), &json!("9"))
    );
    let callers = dry["callers"].as_array().unwrap();
    assert_eq!(callers.len(), 2);
    let ci = callers
        .iter()
        .find(|caller| caller["label"] == "ci")
        .unwrap();
    assert_eq!(
        (&ci["requests"], &ci["cost"], &ci["cost_then"]),
        (&json!(2), &json!("4"), &json!("6"))
    );
    let said = desk.run(&[&words[..], &["--dry-run"]].concat());
    assert!(
        said.err.contains("nothing was done") && said.err.contains("by any of its names"),
        "{}",
        said.err
    );
    assert_eq!(desk.json(&words)["done"], "moved");
    let after = std::fs::read_to_string(&file).unwrap();
    assert!(
        after.starts_with("# kept") && after.contains("aliases = [\"nick\"]"),
        "{after}"
    );
    assert_eq!(desk.run(&["check"]).code, Exit::Done.into());
    let again = desk.run(&words);
    assert_eq!(again.code, Exit::Usage.into());
    assert!(
        again.err.contains("is an alias of that model already"),
        "{}",
        again.err
    );
    for (alias, to, said) in [
        ("nik", "old", "did you mean \"nick\"?"),
        ("nick", "olt", "did you mean \"old\"?"),
        ("old", "new", "is the id of a model"),
    ] {
        let wrong = desk.run(&["models", "move-alias", alias, "--to", to]);
        assert_eq!(wrong.code, Exit::Usage.into());
        assert!(wrong.err.contains(said), "{}", wrong.err);
    }
}
