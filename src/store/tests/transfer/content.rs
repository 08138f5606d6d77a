//! What a store holds comes back to the last byte.

use bytes::Bytes;
use filters::accounts::TermsFile;
use filters::ledger::{
    CallMarks, CallOwner, EntryId, ExperimentNames, Funding, LedgerEntry, SessionNames,
};

use super::super::super::ledger::{JobKind, StoredJob};
use super::super::super::{BudgetChange, NewResponse, ResponseBounds};
use super::super::ledger::{ORG, entry, usd};
use super::*;

/// A name that no database may change on its way.
pub(super) const NAME: &str = "Ärger & \"Söhne\" 🦀";
const HOUR_MS: i64 = 3_600_000;

/// A store with rows in all tables, and the file of it.
pub(super) async fn filled(desk: &Desk, calls: u32) -> (Fixture, KeyText, PathBuf) {
    let folder = TempDir::new().unwrap();
    let settings = desk.sqlite("filled");
    let fixture = Fixture::open(settings, folder).await;
    let key = fixture.fill(calls).await;
    let file = desk.export(&fixture.settings, "filled.jsonl").await;
    (fixture, key, file)
}

/// Call `n` of many: of three organizations, in some hours, of experiments and sessions.
fn call(n: u32) -> LedgerEntry {
    let mut call = entry(1, "0.000000000000000007");
    call.id.0[..4].copy_from_slice(&n.to_be_bytes());
    call.at_ms = NOW_MS + i64::from(n % 50) * HOUR_MS;
    call.owner.organization_id = ["org_1", "org_2", "org_3"][n as usize % 3].into();
    call.owner.key_id = format!("key_{}", n % 20).as_str().into();
    if n.is_multiple_of(10) {
        call.experiment = Some(Arc::new(ExperimentNames {
            flag: "modèle".into(),
            rule: "test".into(),
            variation: format!("v{}", n % 7).into(),
        }));
    }
    if n.is_multiple_of(11) {
        call.session = Some(Arc::new(SessionNames {
            session: format!("s{}", n % 100).into(),
            agent: "".into(),
            parent: "".into(),
        }));
        call.marks = Some(Arc::new(CallMarks {
            tags: [format!("t{}", n % 3).into()].into(),
            budgets: [format!("session/s{}", n % 100).into()].into(),
        }));
    }
    call
}

fn response(n: u8) -> NewResponse {
    NewResponse {
        id: EntryId([n; 16]).to_string().into(),
        organization_id: ORG.into(),
        key_id: "key_1".into(),
        status: "completed",
        is_background: false,
        created_ms: NOW_MS,
        expires_ms: NOW_MS + 1000,
        input: Bytes::from_static("[\"gefragt: 🦀\"]".as_bytes()),
        response: Bytes::from_static(b"{\"said\":1}"),
        bounds: ResponseBounds {
            responses: 100,
            bytes: 1_000_000,
        },
    }
}

fn job(n: u8, kind: JobKind) -> StoredJob {
    StoredJob {
        kind,
        id: EntryId([n; 16]),
        owner: CallOwner {
            organization_id: ORG.into(),
            key_id: "key_1".into(),
            request_id: "r".into(),
            ..CallOwner::default()
        },
        funding: Funding::Credit,
        reserved: usd("4"),
        ordered: "{}".to_owned(),
        state: "{}".to_owned(),
        secret: Some("geheim".to_owned()),
        created_ms: NOW_MS,
        is_open: true,
        ..StoredJob::default()
    }
}

impl Fixture {
    /// Writes rows into all tables. Returns the text of a key.
    async fn fill(&self, calls: u32) -> KeyText {
        let store = &self.store.by(&PROGRAM);
        self.organization(NAME).await;
        store.add_member(NAME, "ada", NOW_MS).await.unwrap();
        let terms = TermsFile {
            limit: Some("12.5".to_owned()),
            ..TermsFile::default()
        };
        let new = NewKey {
            organization: NAME,
            project: DEFAULT_PROJECT,
            label: "",
            member: Some("ada"),
            terms: &terms,
            ..NewKey::default()
        };
        let (key, _) = store.create_key(&new, NOW_MS).await.unwrap();
        let (_, revoked) = self.key(NAME).await;
        store.revoke_key(&revoked.id, NOW_MS).await.unwrap();
        store.add_credit(NAME, usd("20.25"), NOW_MS).await.unwrap();
        let grant = BudgetChange::Grant(usd("0.5"));
        let granted = store.change_budget(NAME, "session/s 1", grant, NOW_MS);
        granted.await.unwrap();
        let secret = store.add_provider_key(NAME, "openai", "main", "sk-of-the-caller", NOW_MS);
        secret.await.unwrap();
        let of_all = PromptOwner {
            organization: NAME,
            project: None,
        };
        let labels = ["production".to_owned()];
        let put = store.put_prompt(of_all, "hallo", "{\"a\":\"\u{1}\"}", &labels, NOW_MS);
        put.await.unwrap();
        self.grant("1000").await;
        self.fill_work(calls).await;
        self.fill_rows().await;
        key
    }

    /// Posts calls and begins jobs, as a server does that then ends.
    async fn fill_work(&self, calls: u32) {
        let store = &self.store;
        self.begin("p").await;
        self.take("p", 1, "1000").await;
        let entries: Vec<LedgerEntry> = (0..calls).map(call).collect();
        for batch in entries.chunks(4096) {
            store.post("p", batch, false).await.unwrap();
        }
        let video = job(1, JobKind::Video);
        store.begin_job("p", &video, NOW_MS, None).await.unwrap();
        let background = NewResponse {
            status: "queued",
            is_background: true,
            ..response(2)
        };
        let queued = job(2, JobKind::Response);
        let begun = store.begin_job("p", &queued, NOW_MS, Some(&background));
        begun.await.unwrap();
        store.add_response(&response(3)).await.unwrap();
        store.unregister_process("p").await.unwrap();
    }

    /// Writes rows that take a long way to come about.
    async fn fill_rows(&self) {
        for sql in [
            "INSERT INTO deleted_organizations (id, deleted_at) VALUES ('org_0', 1)",
            "INSERT INTO ledger_processes (owner, seen_at) VALUES ('dead', 1)",
            "INSERT INTO limit_leases (organization_id, scope, owner, amount, stored) \
             VALUES ('org_1', 'key/key_1', 'dead', '0.25', '0')",
            "INSERT INTO limit_counters (organization_id, scope, sums) \
             VALUES ('org_9', 'plan', '') ON CONFLICT DO NOTHING",
            "INSERT INTO oauth_clients (id, metadata, secret_hash, created_at, used_at) \
             VALUES ('https://a.example/ü', '{}', X'', -9223372036854775808, 9223372036854775807)",
            "INSERT INTO oauth_answers (id, expires_at) VALUES ('page', 1), ('Page', 2), ('pagé', 3)",
            "INSERT INTO oauth_codes (hash, client_id, key_id, authorization_request, expires_at, grant_id) \
             VALUES (X'00FF', 'c', 'k', '{}', 1, ''), (X'00', 'c', 'k', '\n\"\\', 1, '-')",
            "INSERT INTO oauth_grants \
             (id, client_id, key_id, scopes, resource, created_at, expires_at, generation, rotated_at) \
             VALUES ('g', 'c', 'k', 's', 'r', 1, 2, 3, 4)",
            "INSERT INTO oauth_revocations (id, revoked_at) VALUES ('g', 5)",
            "INSERT INTO ledger (id, at, organization_id, project_id, key_id, request_id, model, provider, \
             upstream_model, funding, outcome, prompt_tokens, cached_tokens, cache_write_tokens, completion_tokens, \
             reasoning_tokens, web_searches, is_estimated, is_premium, is_stream, is_priced, cost_nano, cost_rest, parts, \
             reserved, charged, shortfall, attempts, duration_ms) \
             VALUES ('old', 1, 'org_1', '', 'key_1', 'r', 'm', 'p', 'u', 'credit', 'completed', \
             1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 5, 7, '{}', '0', '0', '0', 1, 9)",
        ] {
            self.run_sql(sql).await;
        }
    }

    /// The tables that have no row.
    async fn empty_tables(&self) -> Vec<&'static str> {
        let mut empty = Vec::new();
        for table in TABLES {
            let sql = AssertSqlSafe(format!("SELECT COUNT(*) FROM {table}"));
            let count = sqlx::query_scalar::<_, i64>(sql);
            if count.fetch_one(self.store.pool.unlimited()).await.unwrap() == 0 {
                empty.push(table);
            }
        }
        empty
    }
}

/// A server begins on the target, and everything counts on.
async fn is_worked_on(target: &StoreSettings, key: &KeyText, calls: usize) {
    let fixture = Fixture::open(target.clone(), TempDir::new().unwrap()).await;
    let caller = fixture.admit(key).await.unwrap();
    assert_eq!(&*caller.organization, NAME);
    let secrets = fixture.store.byok_keys().await.unwrap();
    let text = secrets[0].secret.as_ref().expect("it decrypts");
    assert_eq!(text.expose(), "sk-of-the-caller");
    let id = response(3).id;
    let asked = fixture.store.response((&*id, "key_1"), NOW_MS, true);
    let asked = asked.await.unwrap().expect("it is kept").input;
    assert_eq!(asked, "[\"gefragt: 🦀\"]");
    let before = fixture.account().await;
    let free = before.free();
    fixture.begin("next").await;
    fixture.take("next", 1, "1").await;
    let next = LedgerEntry {
        at_ms: NOW_MS + 1000 * HOUR_MS,
        ..entry(200, "0.5")
    };
    fixture.store.post("next", &[next], true).await.unwrap();
    let after = fixture.account().await;
    assert_eq!(after.settled, before.settled.plus(usd("0.5")));
    assert_eq!(fixture.calls().await.len(), calls + 1);
    fixture.store.unregister_process("next").await.unwrap();
    let freed = fixture.account().await.free();
    assert_eq!(freed, free.minus(usd("0.5")));
}

/// The log of a store that was moved is whole, begins as the one before, and is continued.
async fn goes_on_with_the_audit_log(target: &StoreSettings, source: &Store) {
    let head = source.verify_audit_log(None).await.unwrap().unwrap();
    assert!(head.number > 5, "{head}");
    let store = Store::open(target).await.unwrap().store;
    let moved = store.verify_audit_log(Some(head)).await.unwrap();
    assert_eq!(moved, Ok(head));
    let made = store.by(&PROGRAM).add_member(NAME, "bob", NOW_MS).await;
    made.unwrap();
    let next = store.verify_audit_log(Some(head)).await.unwrap().unwrap();
    assert_eq!(next.number, head.number + 1);
    store.close().await;
}

#[tokio::test]
async fn one_hundred_thousand_calls_go_to_the_other_database_and_back() {
    const CALLS: u32 = 100_000;
    let desk = Desk::new();
    let (source, key, file) = filled(&desk, CALLS).await;
    assert_eq!(
        source.empty_tables().await,
        [""; 0],
        "each table takes part"
    );
    let postgres = postgres_settings(&desk.path("postgres")).await;
    let imported = import_file(&postgres, &file).await.unwrap();
    let totals = imported.totals;
    assert_eq!((totals.organizations, totals.keys), (2, 2));
    assert_eq!(totals.calls, u64::from(CALLS) + 1);
    assert_eq!(totals.granted, usd("1020.25"));
    assert_eq!(totals.cost, usd("0.0000000000007"));
    assert_eq!(imported.resumed_at, None);
    let second = desk.export(&postgres, "second.jsonl").await;
    let sqlite = desk.sqlite("back");
    assert_eq!(import_file(&sqlite, &second).await.unwrap().totals, totals);
    let third = desk.export(&sqlite, "third.jsonl").await;
    let bytes = std::fs::read(&file).unwrap();
    for other in [&second, &third] {
        assert!(
            std::fs::read(other).unwrap() == bytes,
            "{}",
            other.display()
        );
    }
    for target in [&postgres, &sqlite] {
        is_worked_on(target, &key, CALLS as usize).await;
        goes_on_with_the_audit_log(target, &source.store).await;
    }
}

#[tokio::test]
async fn a_file_of_an_older_version_gets_the_defaults() {
    let desk = Desk::new();
    let (_source, _, file) = filled(&desk, 10).await;
    let lines = without_column(&unsealed(&file), "organizations", "held_at");
    let lines = without_column(&lines, "api_keys", "debug");
    let lines = without_table(&lines, "oauth_answers");
    let lines = without_table(&lines, "audit_log");
    let older = desk.path("older.jsonl");
    std::fs::write(&older, sealed(&lines)).unwrap();
    for target in [
        desk.sqlite("target"),
        postgres_settings(&desk.path("target")).await,
    ] {
        import_file(&target, &older).await.unwrap();
        let store = Store::open(&target).await.unwrap().store;
        let keys = store.keys(NAME).await.unwrap();
        assert!(!keys.is_empty() && keys.iter().all(|key| !key.is_debug));
    }
}

/// Takes a column out of a table, and gives its rows their digest.
fn without_column(lines: &[String], table: &str, column: &str) -> Vec<String> {
    let mut result = Vec::new();
    let mut lines = lines.iter();
    for line in lines.by_ref() {
        if !line.starts_with(&format!("{{\"table\":\"{table}\"")) {
            result.push(line.clone());
            continue;
        }
        let mut head: serde_json::Value = serde_json::from_str(line).unwrap();
        let columns = head["columns"].as_array_mut().unwrap();
        let place = columns.iter().position(|of| of[0] == column).unwrap();
        columns.remove(place);
        result.push(head.to_string());
        break;
    }
    let place = {
        let head: serde_json::Value = serde_json::from_str(result.last().unwrap()).unwrap();
        let columns = head["columns"].as_array().unwrap();
        let behind = |of: &serde_json::Value| of[0].as_str().unwrap() > column;
        columns.iter().position(behind).unwrap_or(columns.len())
    };
    let mut rows = String::new();
    let mut count = 0;
    for line in lines.by_ref() {
        if line.starts_with('{') {
            break;
        }
        let mut row: Vec<serde_json::Value> = serde_json::from_str(line).unwrap();
        row.remove(place);
        let row = serde_json::to_string(&row).unwrap();
        rows += &format!("{row}\n");
        result.push(row);
        count += 1;
    }
    let digest = hex(rows.as_bytes());
    result.push(format!("{{\"rows\":{count},\"sha256\":\"{digest}\"}}"));
    result.extend(lines.cloned());
    result
}

fn without_table(lines: &[String], table: &str) -> Vec<String> {
    let begin = format!("{{\"table\":\"{table}\"");
    let first = lines.iter().position(|line| line.starts_with(&begin));
    let first = first.unwrap();
    let is_end = |line: &String| line.starts_with("{\"rows\"");
    let length = 1 + lines[first..].iter().position(is_end).unwrap();
    let (before, behind) = (&lines[..first], &lines[first + length..]);
    [before, behind].concat()
}
