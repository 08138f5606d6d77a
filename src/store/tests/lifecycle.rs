//! What is renamed, disabled, enabled and deleted, and how those that follow the store learn it.

use std::sync::Mutex;

use bytes::Bytes;
use filters::ledger::{CallOwner, EntryId, ExperimentNames, Funding, LedgerEntry, SessionNames};

use super::super::feed::DeletedKind;
use super::super::ledger::{By, JobKind, LeaseChange, LeaseRequest, StoredJob};
use super::super::{NewResponse, ResponseBounds};
use super::ledger::{entry, usd};
use super::snapshots::admitted;
use super::*;
use crate::accounts::{AccountsHandle, PromptRows, PublishedRows};

on_both![
    a_disabled_key_is_refused_until_it_is_enabled_and_a_revoked_one_for_good,
    new_names_reach_callers_and_taken_ones_are_refused,
    a_renamed_prompt_keeps_its_versions_and_the_name_before_goes_on_counting,
    what_is_closed_is_opened_again,
    only_what_is_out_of_use_is_deleted,
    an_organization_goes_with_all_that_the_store_has_of_it,
    what_is_deleted_leaves_the_memory_of_those_that_follow,
    a_key_with_the_id_of_a_deleted_one_counts_and_the_one_before_does_not,
    a_change_of_very_many_rows_is_followed,
    a_client_is_deleted_once_it_is_revoked_and_its_tokens_stay_ended,
    usage_by_day_has_the_oldest_first,
];

const ACME: PromptOwner<'static> = PromptOwner {
    organization: "acme",
    project: None,
};

fn is_kept<T: std::fmt::Debug>(done: Result<T, StoreError>, cure: &str) {
    match done {
        Err(error @ StoreError::Kept { .. }) => {
            assert!(error.to_string().contains(cure), "{error}");
        }
        other => panic!("{other:?}"),
    }
}

async fn a_disabled_key_is_refused_until_it_is_enabled_and_a_revoked_one_for_good(
    fixture: Fixture,
) {
    fixture.organization("acme").await;
    let store = &fixture.store.by(&PROGRAM);
    let (key, issued) = fixture.key("acme").await;
    let accounts = AccountsHandle::load(store, |_| {}).await.unwrap();
    let id = issued.id.as_str();
    store.disable_key(id, Some(NOW_MS)).await.unwrap();
    store.disable_key(id, Some(NOW_MS + 5)).await.unwrap();
    let disabled_at = async || store.key(id).await.unwrap().1.disabled_at_ms;
    assert_eq!(disabled_at().await, Some(NOW_MS));
    // Read anew, followed, and from a copy of the accounts.
    assert_eq!(fixture.admit(&key).await.err(), Some(AuthError::Disabled));
    accounts.refresh(store).await.unwrap();
    let followed = admitted(&accounts, store, &key);
    assert_eq!(followed.err(), Some(AuthError::Disabled));
    let mut recorded = RecordedAccounts::default();
    let keep = |record: &AccountRecord| {
        let line = serde_json::to_string(record).unwrap();
        recorded.add(serde_json::from_str(&line).unwrap());
    };
    store.load_accounts(keep).await.unwrap();
    let copied = AccountsHandle::fixed(recorded.load().snapshot);
    let copied = admitted(&copied, store, &key);
    assert_eq!(copied.err(), Some(AuthError::Disabled));
    store.disable_key(id, None).await.unwrap();
    assert_eq!(disabled_at().await, None);
    accounts.refresh(store).await.unwrap();
    assert!(admitted(&accounts, store, &key).is_ok() && fixture.admit(&key).await.is_ok());
    store.disable_key(id, Some(NOW_MS)).await.unwrap();
    store.revoke_key(id, NOW_MS).await.unwrap();
    assert_eq!(fixture.admit(&key).await.err(), Some(AuthError::Revoked));
    for since_ms in [None, Some(NOW_MS)] {
        let refused = store.disable_key(id, since_ms).await.unwrap_err();
        assert!(refused.to_string().contains("weirgate key create"));
    }
    let absent = store.disable_key("key_none", None).await;
    assert!(matches!(absent, Err(StoreError::NotFound { .. })));
}

async fn new_names_reach_callers_and_taken_ones_are_refused(fixture: Fixture) {
    fixture.organization("acme").await;
    fixture.organization("other").await;
    let store = &fixture.store.by(&PROGRAM);
    let (key, issued) = fixture.key("acme").await;
    let accounts = AccountsHandle::load(store, |_| {}).await.unwrap();
    let project = NewProject {
        name: "taken",
        mode: Mode::Platform,
        cache_ttl_s: None,
    };
    let made = store.create_project("acme", &project, NOW_MS).await;
    made.unwrap();
    for name in ["ada", "taken"] {
        store.add_member("acme", name, NOW_MS).await.unwrap();
    }
    let mut own = Vec::new();
    for label in ["mine", "taken"] {
        let text = "sk-1234567890";
        let added = store.add_provider_key("acme", "first", label, text, NOW_MS);
        own.push(added.await.unwrap().id);
    }
    let of_default = ("acme", DEFAULT_PROJECT);
    for refused in [
        store.rename_organization("acme", "other").await,
        store.rename_project(of_default, "taken").await,
        store.rename_member(("acme", "ada"), "taken").await,
        store.rename_provider_key(&own[0], "taken").await,
    ] {
        assert!(matches!(refused, Err(StoreError::AlreadyExists { .. })));
    }
    let bad = store.rename_organization("acme", " x").await;
    assert!(matches!(bad, Err(StoreError::InvalidName { .. })));
    store.rename_project(of_default, "web").await.unwrap();
    let renamed = store.rename_member(("acme", "ada"), "ida").await;
    renamed.unwrap();
    store.rename_provider_key(&own[0], "yours").await.unwrap();
    store.rename_organization("acme", "globex").await.unwrap();
    let label = KeyChange {
        label: Some("phone".to_owned()),
        ..KeyChange::default()
    };
    store.update_key(&issued.id, &label).await.unwrap();
    accounts.refresh(store).await.unwrap();
    let caller = admitted(&accounts, store, &key).unwrap();
    let names = (&*caller.organization, &*caller.project, &*caller.key_label);
    assert_eq!(names, ("globex", "web", "phone"));
    assert!(store.organization("acme").await.is_err());
    assert_eq!(store.member("globex", "ida").await.unwrap().name, "ida");
    let (organization, own_key) = store.provider_key(&own[0]).await.unwrap();
    assert_eq!((&*organization, &*own_key.label), ("globex", "yours"));
    let texts = store.byok_keys().await.unwrap();
    assert!(texts.iter().all(|key| key.secret.is_some()));
    let (organization, shown) = store.key(&issued.id).await.unwrap();
    assert_eq!((&*organization, &*shown.project), ("globex", "web"));
}

async fn a_renamed_prompt_keeps_its_versions_and_the_name_before_goes_on_counting(
    fixture: Fixture,
) {
    fixture.organization("acme").await;
    let store = &fixture.store.by(&PROGRAM);
    let put = async |name: &str, text: &str| {
        let put = store.put_prompt(ACME, name, text, &[], NOW_MS);
        put.await.unwrap()
    };
    put("hi", "one").await;
    assert_eq!(put("hi", "two").await, 2);
    put("gone", "x").await;
    store.remove_prompt(ACME, "gone", None).await.unwrap();
    put("taken", "x").await;
    let seen: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
    let told = Arc::clone(&seen);
    let accounts = AccountsHandle::load(store, move |rows| {
        if let PublishedRows::Prompts(PromptRows::Changed(records)) = rows {
            let records = records.into_iter().map(|record| (record.id, record.name));
            told.lock().unwrap().extend(records);
        }
    });
    let accounts = accounts.await.unwrap();
    for name in ["taken", "gone"] {
        let refused = store.rename_prompt(ACME, "hi", name).await;
        assert!(matches!(refused, Err(StoreError::AlreadyExists { .. })));
    }
    store.rename_prompt(ACME, "hi", "hello").await.unwrap();
    let renamed = store.prompt(ACME, "hello").await.unwrap();
    assert_eq!(renamed.versions.len(), 2);
    assert!(store.prompt(ACME, "hi").await.is_err());
    assert!(accounts.refresh(store).await.unwrap());
    assert_eq!(
        *seen.lock().unwrap(),
        [(renamed.id.clone(), "hello".to_owned())]
    );
    assert_eq!(put("hi", "three").await, 3);
    assert_eq!(put("hello", "four").await, 3);
}

async fn what_is_closed_is_opened_again(fixture: Fixture) {
    fixture.organization("acme").await;
    let store = &fixture.store.by(&PROGRAM);
    let (key, _) = fixture.key("acme").await;
    store.archive_project("acme", "default").await.unwrap();
    store.hold_organization("acme", Some(NOW_MS)).await.unwrap();
    store.disable_organization("acme").await.unwrap();
    store.enable_organization("acme").await.unwrap();
    let held = Some(AuthError::OrganizationHeld);
    assert_eq!(fixture.admit(&key).await.err(), held);
    store.hold_organization("acme", None).await.unwrap();
    let archived = Some(AuthError::ProjectArchived);
    assert_eq!(fixture.admit(&key).await.err(), archived);
    store.enable_project("acme", "default").await.unwrap();
    assert!(fixture.admit(&key).await.is_ok());
    for absent in [
        store.enable_organization("none").await,
        store.enable_project("acme", "none").await,
    ] {
        assert!(matches!(absent, Err(StoreError::NotFound { .. })));
    }
}

fn call(n: u8, organization_id: &str, key: &IssuedKey) -> LedgerEntry {
    let names = ExperimentNames {
        flag: "f".into(),
        rule: "r".into(),
        variation: "v".into(),
    };
    let session = SessionNames {
        session: "s".into(),
        ..SessionNames::default()
    };
    LedgerEntry {
        owner: CallOwner {
            organization_id: organization_id.into(),
            key_id: key.id.as_str().into(),
            ..CallOwner::default()
        },
        funding: Funding::Credit,
        experiment: Some(Arc::new(names)),
        session: Some(Arc::new(session)),
        ..entry(n, "0.25")
    }
}

fn job(n: u8, organization_id: &str, key: &IssuedKey) -> StoredJob {
    StoredJob {
        id: EntryId([n; 16]),
        owner: CallOwner {
            organization_id: organization_id.into(),
            key_id: key.id.as_str().into(),
            ..CallOwner::default()
        },
        funding: Funding::Credit,
        reserved: usd("1"),
        ordered: "{}".to_owned(),
        state: "{}".to_owned(),
        created_ms: NOW_MS,
        is_open: true,
        ..StoredJob::default()
    }
}

impl Fixture {
    /// An organization that has something of everything, with its id and its key.
    async fn with_everything(&self, name: &'static str) -> (String, KeyText, IssuedKey) {
        self.organization(name).await;
        let store = &self.store.by(&PROGRAM);
        let id = store.organization(name).await.unwrap().id;
        store.add_member(name, "ada", NOW_MS).await.unwrap();
        let (text, key) = self.key(name).await;
        let owner = KeyChange {
            member: Some(Some("ada".to_owned())),
            ..KeyChange::default()
        };
        store.update_key(&key.id, &owner).await.unwrap();
        let own = store.add_provider_key(name, "first", "mine", "sk-1234567890", NOW_MS);
        own.await.unwrap();
        for project in [None, Some(DEFAULT_PROJECT)] {
            let owner = PromptOwner {
                organization: name,
                project,
            };
            let put = store.put_prompt(owner, "hi", "{}", &[], NOW_MS).await;
            put.unwrap();
        }
        store.add_credit(name, usd("10"), NOW_MS).await.unwrap();
        let number = 100 + u8::try_from(name.len()).unwrap();
        self.post("p0", vec![call(number, &id, &key)]).await;
        let response = NewResponse {
            id: format!("{:032x}", key.id.len() + name.len()).into(),
            organization_id: id.as_str().into(),
            key_id: key.id.as_str().into(),
            status: "completed",
            is_background: false,
            created_ms: NOW_MS,
            expires_ms: NOW_MS + 1000,
            input: Bytes::from_static(b"[]"),
            response: Bytes::from_static(b"{}"),
            bounds: ResponseBounds {
                responses: 3,
                bytes: 10_000,
            },
        };
        store.add_response(&response).await.unwrap();
        let expires = NOW_MS + 1_000_000;
        let sql = "INSERT INTO oauth_grants (id, client_id, key_id, scopes, resource, created_at, \
                   expires_at, generation, rotated_at) VALUES ($1, 'client_1', $2, '', '', 1, $3, 1, 1)";
        let grant = sqlx::query(sql).bind(format!("grant of {name}"));
        let grant = grant.bind(key.id.clone()).bind(expires);
        grant.execute(store.pool.unlimited()).await.unwrap();
        (id, text, key)
    }

    /// The tables that have a row of an organization.
    async fn tables_of(&self, organization_id: &str) -> Vec<String> {
        let pool = self.store.pool.unlimited();
        let sql = match &self.settings.url {
            StoreUrl::Postgres(_) => {
                "SELECT CAST(table_name AS TEXT) FROM information_schema.columns \
                 WHERE table_schema = 'public' AND column_name = 'organization_id' ORDER BY 1"
            }
            StoreUrl::Sqlite(_) => {
                "SELECT m.name FROM sqlite_master m, pragma_table_info(m.name) c \
                 WHERE m.type = 'table' AND c.name = 'organization_id' ORDER BY 1"
            }
        };
        let mut tables: Vec<String> = sqlx::query_scalar(sql).fetch_all(pool).await.unwrap();
        assert!(tables.len() > 15, "{tables:?}");
        // What was done to an organization is told after its end, too.
        tables.retain(|table| table != "audit_log");
        let mut with_rows = Vec::new();
        for table in tables {
            let sql = format!("SELECT COUNT(*) FROM {table} WHERE organization_id = $1");
            let query = sqlx::query_scalar(sqlx::AssertSqlSafe(sql));
            let query = query.bind(organization_id.to_owned());
            let count: i64 = query.fetch_one(pool).await.unwrap();
            with_rows.extend((count > 0).then_some(table));
        }
        with_rows
    }
}

async fn only_what_is_out_of_use_is_deleted(fixture: Fixture) {
    let (id, _, key) = fixture.with_everything("acme").await;
    let store = &fixture.store.by(&PROGRAM);
    let of_default = ("acme", DEFAULT_PROJECT);
    is_kept(
        store.delete_organization("acme", true, NOW_MS).await,
        "`weirgate org disable acme`",
    );
    is_kept(
        store.delete_project(of_default, true, NOW_MS).await,
        "`weirgate project archive --org acme default`",
    );
    let disable = format!("`weirgate key disable {}`", key.id);
    is_kept(store.delete_key(&key.id, true, NOW_MS).await, &disable);
    is_kept(
        store.delete_member(("acme", "ada"), true).await,
        "1 keys belong to it",
    );
    // A job that runs, and credit that a server holds.
    store.register_process("p1").await.unwrap();
    let lease = LeaseRequest {
        organization_id: id.clone(),
        number: 1,
        change: LeaseChange::Take(usd("1")),
    };
    store.change_leases("p1", &[lease], &[]).await.unwrap();
    let running = job(9, &id, &key);
    let begun = store.begin_job("p1", &running, NOW_MS, None);
    begun.await.unwrap();
    store.disable_key(&key.id, Some(NOW_MS)).await.unwrap();
    store.archive_project("acme", "default").await.unwrap();
    store.disable_organization("acme").await.unwrap();
    let jobs = "1 of its jobs still run";
    is_kept(store.delete_key(&key.id, true, NOW_MS).await, jobs);
    is_kept(store.delete_project(of_default, true, NOW_MS).await, jobs);
    is_kept(store.delete_organization("acme", true, NOW_MS).await, jobs);
    let ended = store.end_job((JobKind::Video, &EntryId([9; 16])), ("{}", 0), None, None);
    ended.await.unwrap();
    let held = store.delete_organization("acme", true, NOW_MS).await;
    is_kept(held, "servers hold back 8.75 USD");
    let before = fixture.tables_of(&id).await;
    // A process that died holds nothing.
    fixture.silence("p1").await;
    let revision = store.revision().await.unwrap();
    let plan = store.delete_organization("acme", false, NOW_MS).await;
    let plan = plan.unwrap();
    let count = |what| plan.parts.iter().find(|part| part.0 == what).unwrap().1;
    let counts = ["projects", "members", "keys", "provider keys", "prompts"].map(count);
    assert_eq!(counts, [1, 1, 1, 1, 2]);
    assert_eq!(count("kept responses"), 1);
    assert_eq!(plan.balance, usd("9.75"));
    assert_eq!(store.revision().await.unwrap(), revision);
    assert_eq!(fixture.tables_of(&id).await, before);
    let key_plan = store.delete_key(&key.id, false, NOW_MS).await.unwrap();
    assert!(key_plan.parts.contains(&("grants of MCP clients", 1)));
    store.delete_key(&key.id, true, NOW_MS).await.unwrap();
    store.delete_member(("acme", "ada"), true).await.unwrap();
    let plan = store.delete_project(of_default, true, NOW_MS).await;
    assert!(plan.unwrap().parts.contains(&("prompts", 1)));
    let usage = store.usage("acme", 0, Some(By::Key)).await.unwrap();
    assert_eq!((&usage[0].name, usage[0].requests), (&key.id, 1));
    let totals = store.response_totals(&id).await.unwrap();
    assert_eq!((totals.responses, totals.bytes), (0, 0));
    for absent in [
        store.delete_key(&key.id, true, NOW_MS).await,
        store.delete_project(of_default, true, NOW_MS).await,
        store.delete_member(("acme", "ada"), true).await,
        store.delete_organization("none", true, NOW_MS).await,
    ] {
        assert!(matches!(absent, Err(StoreError::NotFound { .. })));
    }
}

async fn an_organization_goes_with_all_that_the_store_has_of_it(fixture: Fixture) {
    let (id, _, key) = fixture.with_everything("acme").await;
    let (other, other_text, other_key) = fixture.with_everything("other1").await;
    let store = &fixture.store.by(&PROGRAM);
    let of_other = fixture.tables_of(&other).await;
    assert!(fixture.tables_of(&id).await.len() > 12);
    // What processes of an earlier version have added is counted by nobody any more.
    let sql = "UPDATE spent SET cost_nano = cost_nano + 5";
    sqlx::query(sql)
        .execute(store.pool.unlimited())
        .await
        .unwrap();
    store.disable_organization("acme").await.unwrap();
    let deleted = store.delete_organization("acme", true, NOW_MS).await;
    assert_eq!(deleted.unwrap().id, id);
    assert_eq!(fixture.tables_of(&id).await, Vec::<String>::new());
    assert_eq!(fixture.tables_of(&other).await, of_other);
    assert!(fixture.admit(&other_text).await.is_ok());
    for table in [
        "organizations",
        "prompt_versions",
        "api_keys",
        "oauth_grants",
    ] {
        let sql = format!("SELECT COUNT(*) FROM {table}");
        let query = sqlx::query_scalar(sqlx::AssertSqlSafe(sql));
        let count: i64 = query.fetch_one(store.pool.unlimited()).await.unwrap();
        let expected = if table == "prompt_versions" { 2 } else { 1 };
        assert_eq!(count, expected, "{table}");
    }
    // A late call of it is refused, and nothing of it or of the call beside it is stored.
    let late = [call(3, &other, &other_key), call(2, &id, &key)];
    let refused = store.post("p0", &late, false).await.unwrap_err();
    assert!(matches!(&refused, StoreError::DeletedOrganizations(of) if of.contains(&id)));
    assert!(refused.is_about_rows());
    assert_eq!(fixture.tables_of(&id).await, Vec::<String>::new());
    store.post("p0", &late[..1], true).await.unwrap();
    let usage = store.usage("other1", 0, None).await.unwrap();
    assert_eq!(usage[0].requests, 2);
    // Its name is free again, and what is made under it is another organization.
    fixture.organization("acme").await;
    assert_ne!(store.organization("acme").await.unwrap().id, id);
}

async fn what_is_deleted_leaves_the_memory_of_those_that_follow(fixture: Fixture) {
    let store = &fixture.store.by(&PROGRAM);
    let (_, first, issued) = fixture.with_everything("acme").await;
    let (second, _) = fixture.key("acme").await;
    let (_, of_other, _) = fixture.with_everything("other1").await;
    let removed: Arc<Mutex<Vec<String>>> = Arc::default();
    let told = Arc::clone(&removed);
    let accounts = AccountsHandle::load(store, move |rows| {
        if let PublishedRows::Prompts(PromptRows::Changed(records)) = rows {
            let gone = records.into_iter().filter(|it| it.versions.is_empty());
            told.lock().unwrap().extend(gone.map(|record| record.id));
        }
    });
    let accounts = accounts.await.unwrap();
    let mut recorded = RecordedAccounts::default();
    let keep = |record: &AccountRecord| recorded.add(record.clone());
    let mut loaded = store.load_accounts(keep).await.unwrap();
    assert_eq!(accounts.current().len(), 3);
    store.disable_key(&issued.id, Some(1)).await.unwrap();
    store.delete_key(&issued.id, true, NOW_MS).await.unwrap();
    accounts.refresh(store).await.unwrap();
    assert_eq!(accounts.current().len(), 2);
    let unknown = Some(AuthError::Unknown);
    assert_eq!(admitted(&accounts, store, &first).err(), unknown);
    assert!(accounts.current().is_revoked("grant of acme"));
    store.disable_organization("acme").await.unwrap();
    let deleted = store.delete_organization("acme", true, NOW_MS).await;
    deleted.unwrap();
    accounts.refresh(store).await.unwrap();
    assert_eq!(accounts.current().len(), 1);
    assert_eq!(admitted(&accounts, store, &second).err(), unknown);
    assert!(admitted(&accounts, store, &of_other).is_ok());
    assert_eq!(removed.lock().unwrap().len(), 2);
    // The copy on disk follows with the same rows.
    let followed = store.follow_accounts(&loaded.snapshot, &mut loaded.shared);
    let followed = followed.await.unwrap().unwrap();
    for record in followed.records {
        let line = serde_json::to_string(&record).unwrap();
        recorded.add(serde_json::from_str(&line).unwrap());
    }
    let copied = recorded.load();
    assert_eq!(copied.snapshot.len(), 1);
    let copied = AccountsHandle::fixed(copied.snapshot);
    assert!(admitted(&copied, store, &of_other).is_ok());
}

async fn a_key_with_the_id_of_a_deleted_one_counts_and_the_one_before_does_not(fixture: Fixture) {
    let store = &fixture.store.by(&PROGRAM);
    fixture.organization("acme").await;
    let (before, issued) = fixture.key("acme").await;
    let (after, other) = fixture.key("acme").await;
    let accounts = AccountsHandle::load(store, |_| {}).await.unwrap();
    store.revoke_key(&issued.id, NOW_MS).await.unwrap();
    store.delete_key(&issued.id, true, NOW_MS).await.unwrap();
    let mut change = store.change_without_entry().await.unwrap();
    let sql = "UPDATE api_keys SET id = $1 WHERE id = $2";
    let query = sqlx::query(sql).bind(&issued.id).bind(&other.id);
    query.execute(&mut *change).await.unwrap();
    let changed = [
        Changed::Deleted(DeletedKind::Key, &other.id),
        Changed::Key(&issued.id),
    ];
    change.commit(&changed).await.unwrap();
    accounts.refresh(store).await.unwrap();
    let unknown = Some(AuthError::Unknown);
    assert_eq!(admitted(&accounts, store, &before).err(), unknown);
    let caller = admitted(&accounts, store, &after).unwrap();
    assert_eq!(*caller.key_id, *issued.id);
}

async fn a_change_of_very_many_rows_is_followed(fixture: Fixture) {
    let store = &fixture.store.by(&PROGRAM);
    fixture.organization("acme").await;
    let (key, issued) = fixture.key("acme").await;
    let accounts = AccountsHandle::load(store, |_| {}).await.unwrap();
    let ids: Vec<String> = (0..23_000).map(|n| format!("mem_{n}")).collect();
    let changed: Vec<_> = ids.iter().map(|id| Changed::Member(id)).collect();
    let change = store.change_without_entry().await.unwrap();
    change.commit(&changed).await.unwrap();
    store.revoke_key(&issued.id, NOW_MS).await.unwrap();
    let mut rounds = 0;
    while accounts.refresh(store).await.unwrap() {
        rounds += 1;
        assert!(rounds < 50);
    }
    let revision = store.revision().await.unwrap();
    assert_eq!(accounts.current().revision(), revision);
    let refused = admitted(&accounts, store, &key).err();
    assert_eq!(refused, Some(AuthError::Revoked));
}

async fn a_client_is_deleted_once_it_is_revoked_and_its_tokens_stay_ended(fixture: Fixture) {
    let store = &fixture.store.by(&PROGRAM);
    let made = store.register_oauth_client("{}", &[], NOW_MS).await;
    let id = made.unwrap();
    is_kept(
        store.delete_oauth_client(&id, true).await,
        "`weirgate mcp clients revoke",
    );
    store.revoke_oauth_client(&id, NOW_MS).await.unwrap();
    store.delete_oauth_client(&id, false).await.unwrap();
    assert!(store.oauth_client(&id).await.unwrap().is_some());
    store.delete_oauth_client(&id, true).await.unwrap();
    assert_eq!(store.oauth_client(&id).await.unwrap(), None);
    assert!(store.accounts().await.unwrap().is_revoked(&id));
    let absent = store.delete_oauth_client(&id, true).await;
    assert!(matches!(absent, Err(StoreError::NotFound { .. })));
}

async fn usage_by_day_has_the_oldest_first(fixture: Fixture) {
    const DAY_MS: i64 = 86_400_000;
    let store = &fixture.store;
    let (id, _, key) = fixture.with_everything("acme").await;
    // 2027-01-15T08:00:00Z and later; one before 2001-09-09, whose day has fewer digits than ten thousand.
    let times = [
        NOW_MS + DAY_MS,
        NOW_MS + 15 * 3_600_000,
        NOW_MS + 16 * 3_600_000,
        3 * DAY_MS,
    ];
    let calls = (2..).zip(times).map(|(n, at_ms)| LedgerEntry {
        at_ms,
        ..call(n, &id, &key)
    });
    fixture.post("p0", calls.collect()).await;
    let days = async |since_ms| -> Vec<(String, i64)> {
        let usage = store.usage("acme", since_ms, Some(By::Day)).await.unwrap();
        let usage = usage.into_iter();
        usage.map(|day| (day.name, day.requests)).collect()
    };
    let day = |day: &str, requests| (day.to_owned(), requests);
    let last = [day("2027-01-15", 2), day("2027-01-16", 2)];
    assert_eq!(days(0).await[0], day("1970-01-04", 1));
    assert_eq!(days(0).await[1..], last);
    // Of the hour in which a time falls its single calls count.
    let later = [day("2027-01-15", 1), day("2027-01-16", 2)];
    assert_eq!(days(NOW_MS + 1).await, later);
}
