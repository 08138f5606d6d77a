//! The ledger against bills: what agrees, what does not, and what cannot be compared.

use filters::ledger::{
    CallOutcome, CallOwner, CostParts, EntryId, Funding, LedgerEntry, UsageRecord,
};
use filters::money::Usd;
use serde_json::json;

use super::*;

/// 2026-11-01T12:00:00Z.
const NOON_MS: i64 = 1_793_534_400_000;

impl Desk {
    /// A desk with four calls of a day: two on the platform's keys, one on a caller's own, one that failed.
    fn with_calls() -> Self {
        let desk = Self::with_acme();
        let folder = desk.folder.path().display().to_string();
        let catalog =
            "[[models]]\nid = \"m\"\n[[models.providers]]\nprovider = \"first\"\nname = \"m-1\"\n";
        std::fs::write(desk.folder.path().join("models.toml"), catalog).unwrap();
        let file = desk.folder.path().join("weirgate.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        let text = format!(
            "{text}[models]\nfile = \"{folder}/models.toml\"\n[providers.first]\nkind = \"openai-compatible\"\n\
             base_url = \"http://127.0.0.1:1\"\n[providers.openai]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:1\"\n\
             keys = [{{ file = \"{folder}/key\" }}]\n"
        );
        std::fs::write(&file, text).unwrap();
        std::fs::write(desk.folder.path().join("key"), "sk-1").unwrap();
        desk.on_store(async |store| {
            let organization = store.organization("acme").await.unwrap().id;
            let call = |number: u8, funding, outcome| LedgerEntry {
                id: EntryId([number; 16]),
                at_ms: NOON_MS,
                funding,
                outcome,
                owner: CallOwner {
                    organization_id: organization.as_str().into(),
                    key_id: "key_1".into(),
                    ..CallOwner::default()
                },
                usage: UsageRecord {
                    model: "m".into(),
                    provider: "first".into(),
                    prompt_tokens: 100,
                    completion_tokens: 10,
                    cost: Some(CostParts {
                        total: Usd::parse("0.5").unwrap(),
                        ..CostParts::default()
                    }),
                    ..UsageRecord::default()
                },
                ..LedgerEntry::default()
            };
            let calls = [
                call(1, Funding::Unbilled, CallOutcome::Completed),
                call(2, Funding::Unbilled, CallOutcome::Broken),
                call(3, Funding::Byok, CallOutcome::Completed),
                call(4, Funding::Unbilled, CallOutcome::Failed),
            ];
            store.post("x", &calls, false).await.unwrap();
        });
        desk
    }

    /// Compares with a table.
    fn against(&self, table: &str, more: &[&str]) -> Answer {
        let file = self.folder.path().join("bill.csv");
        std::fs::write(&file, table).unwrap();
        let words = [
            "reconcile",
            "--provider",
            "first",
            "--file",
            file.to_str().unwrap(),
        ];
        self.run(&[&words[..], more].concat())
    }
}

const AGREEING: &str = "day,model,requests,input_tokens,output_tokens,cost\n2026-11-01,m-1-2026-05-01,2,200,20,1.005\n";

#[test]
fn a_bill_that_agrees_exits_0_and_leaves_own_keys_out() {
    let desk = Desk::with_calls();
    let agreeing = desk.against(AGREEING, &["--format", "json"]);
    assert_eq!(
        agreeing.code,
        Exit::Done.into(),
        "{}{}",
        agreeing.out,
        agreeing.err
    );
    let rows: Value = serde_json::from_str(&agreeing.out).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 1);
    let row = &rows[0];
    assert_eq!(
        (&row["day"], &row["model"]),
        (&json!("2026-11-01"), &json!("m"))
    );
    assert_eq!(
        (&row["cost"], &row["billed_cost"]),
        (&json!("1"), &json!("1.005"))
    );
    assert_eq!((&row["agrees"], &row["causes"]), (&json!(true), &json!([])));
    assert_eq!(row["difference"], "0.4976%");
    assert!(
        agreeing
            .err
            .contains("1 calls with callers' own keys are left out"),
        "{}",
        agreeing.err
    );
    assert!(
        agreeing
            .err
            .contains("the ledger has 1 USD of what was compared, the bill 1.005 USD"),
        "{}",
        agreeing.err
    );
    let table = desk.against(AGREEING, &[]);
    let head: Vec<_> = table
        .out
        .lines()
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let fields: Vec<_> = row.as_object().unwrap().keys().collect();
    assert_eq!(head, fields);
}

#[test]
fn a_difference_exits_1_with_its_cause() {
    let desk = Desk::with_calls();
    let strict = desk.against(AGREEING, &["--tolerance", "0.1%"]);
    assert_eq!(strict.code, Exit::Failed.into());
    assert!(
        strict.err.contains("1 of 1 rows differ by more than 0.1 %"),
        "{}",
        strict.err
    );
    assert!(strict.out.contains("price"), "{}", strict.out);
    let past = desk.against(&AGREEING.replace(",2,200,", ",9,900,"), &[]);
    assert_eq!(past.code, Exit::Failed.into());
    assert!(past.out.contains("past_gateway"), "{}", past.out);
    let stranger = desk.against(
        "day,model,cost\n2026-11-01,m-1,1\n2026-11-02,stranger,3\n",
        &[],
    );
    assert_eq!(stranger.code, Exit::Failed.into());
    assert!(stranger.out.contains("unknown_model"), "{}", stranger.out);
    // Only the days that are asked for count.
    let of_day = ["--until", "2026-11-01"];
    let of_day = desk.against(
        "day,model,cost\n2026-11-01,m-1,1\n2026-11-02,stranger,3\n",
        &of_day,
    );
    assert_eq!(of_day.code, Exit::Done.into(), "{}", of_day.out);
}

#[test]
fn of_days_without_single_calls_the_sums_count_and_say_so() {
    let desk = Desk::with_calls();
    desk.on_store(async |store| {
        let old = crate::store::ledger::OldCalls {
            before_ms: i64::MAX,
            owner: "x",
            own_before_ms: i64::MAX,
        };
        while store.delete_old_calls(&old).await.unwrap() {}
    });
    let answer = desk.against(AGREEING, &["--format", "json"]);
    assert_eq!(answer.code, Exit::Failed.into());
    let rows: Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!(
        (&rows[0]["requests"], &rows[0]["cost"]),
        (&json!(3), &json!("1.5"))
    );
    assert_eq!(rows[0]["causes"], json!(["fewer_calls", "own_keys"]));
    assert!(
        answer
            .err
            .contains("from 2026-11-01 to 2026-11-01 are not kept any more"),
        "{}",
        answer.err
    );
}

#[test]
fn what_cannot_be_compared_exits_2_and_says_why() {
    let desk = Desk::with_calls();
    let of = |words: &[&str]| desk.run(&[&["reconcile"], words].concat());
    let key = format!("file:{}/key", desk.folder.path().display());
    for (words, said) in [
        (
            vec!["--provider", "first"],
            "give a table of it with --file",
        ),
        (
            vec!["--provider", "frist", "--tolerance", "1%"],
            "did you mean \"first\"?",
        ),
        (
            vec![
                "--provider",
                "openai",
                "--admin-key",
                "env:AN_UNSET_VARIABLE",
            ],
            "--admin-key: AN_UNSET_VARIABLE is not set",
        ),
        (
            vec!["--provider", "openai", "--admin-key", "sk-secret"],
            "never the secret itself",
        ),
        (
            vec!["--provider", "openai", "--admin-key", &key],
            "openai: the report on usage of completions",
        ),
        (
            vec!["--provider", "openai", "--tolerance", "1"],
            "--tolerance: \"1\" is no share",
        ),
        (
            vec!["--provider", "openai", "--since", "soon"],
            "--since: \"soon\" is neither",
        ),
        (
            vec![
                "--provider",
                "openai",
                "--since",
                "2026-11-02",
                "--until",
                "2026-11-01",
            ],
            "is no time of one to 366 days",
        ),
        (
            vec!["--provider", "openai", "--since", "2020-01-01"],
            "is no time of one to 366 days",
        ),
        (
            vec!["--provider", "first", "--file", "/absent/bill.csv"],
            "/absent/bill.csv: ",
        ),
    ] {
        let answer = of(&words);
        assert_eq!(
            answer.code,
            Exit::NoVerdict.into(),
            "{words:?}: {}",
            answer.err
        );
        assert!(answer.err.contains(said), "{words:?}: {}", answer.err);
        assert!(!answer.err.contains("sk-secret"), "{}", answer.err);
    }
    let broken = desk.against("day,model,cost\n2026-11-01,m-1,much\n", &[]);
    assert_eq!(broken.code, Exit::NoVerdict.into());
    assert!(
        broken.err.contains("bill.csv: row 1: `cost` is \"much\""),
        "{}",
        broken.err
    );
}
