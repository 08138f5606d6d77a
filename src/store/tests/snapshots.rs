//! Snapshots that the request path reads.

use std::time::Duration;

use filters::accounts::AllowedRegions;
use filters::money::Usd;

use super::*;

on_both![
    a_key_admits_its_caller,
    a_revoked_key_is_seen_by_the_snapshot,
    a_disabled_organization_and_an_archived_project_are_seen_by_the_snapshot,
    an_expiry_reaches_the_caller,
    keys_of_several_pages_are_read_and_those_behind_a_damaged_one_too,
    a_debug_key_is_one_in_the_snapshot_and_in_its_copy,
    the_snapshot_follows_another_process,
    byok_rows_are_published_before_their_accounts_come_into_force,
    a_change_of_what_keys_share_reaches_their_callers,
    a_gap_in_the_feed_is_noticed_and_everything_read_again,
    many_changes_are_followed_in_parts,
    a_store_that_fails_leaves_the_last_snapshot,
];

async fn a_key_admits_its_caller(fixture: Fixture) {
    fixture.organization("acme").await;
    let project = NewProject {
        name: "app",
        mode: Mode::Hybrid,
        cache_ttl_s: Some(60),
    };
    fixture
        .store
        .by(&PROGRAM)
        .create_project("acme", &project, NOW_MS)
        .await
        .unwrap();
    let new = NewKey {
        organization: "acme",
        project: "app",
        label: "laptop",
        expires_at_ms: None,
        ..NewKey::default()
    };
    let (text, issued) = fixture
        .store
        .by(&PROGRAM)
        .create_key(&new, NOW_MS)
        .await
        .unwrap();
    let caller = fixture.admit(&text).await.unwrap();
    assert_eq!(*caller.key_id, *issued.id);
    assert_eq!((&*caller.organization, &*caller.project), ("acme", "app"));
    assert_eq!((&*caller.key_label, caller.plan), ("laptop", Plan::Pro));
    assert_eq!((caller.mode, caller.cache_ttl_s), (Mode::Hybrid, Some(60)));
}

async fn a_revoked_key_is_seen_by_the_snapshot(fixture: Fixture) {
    fixture.organization("acme").await;
    let (key, issued) = fixture.key("acme").await;
    let (other, _) = fixture.key("acme").await;
    fixture
        .store
        .by(&PROGRAM)
        .revoke_key(&issued.id, NOW_MS)
        .await
        .unwrap();
    assert_eq!(fixture.admit(&key).await.err(), Some(AuthError::Revoked));
    assert!(fixture.admit(&other).await.is_ok());
}

async fn a_disabled_organization_and_an_archived_project_are_seen_by_the_snapshot(
    fixture: Fixture,
) {
    fixture.organization("acme").await;
    fixture.organization("other").await;
    let (key, _) = fixture.key("acme").await;
    let (other, _) = fixture.key("other").await;
    fixture
        .store
        .by(&PROGRAM)
        .archive_project("acme", "default")
        .await
        .unwrap();
    assert_eq!(
        fixture.admit(&key).await.err(),
        Some(AuthError::ProjectArchived)
    );
    let hold = async |since| {
        fixture
            .store
            .by(&PROGRAM)
            .hold_organization("acme", since)
            .await
    };
    hold(Some(NOW_MS)).await.unwrap();
    let held = Some(AuthError::OrganizationHeld);
    assert_eq!(fixture.admit(&key).await.err(), held);
    hold(None).await.unwrap();
    let archived = Some(AuthError::ProjectArchived);
    assert_eq!(fixture.admit(&key).await.err(), archived);
    hold(Some(NOW_MS)).await.unwrap();
    fixture
        .store
        .by(&PROGRAM)
        .disable_organization("acme")
        .await
        .unwrap();
    assert_eq!(
        fixture.admit(&key).await.err(),
        Some(AuthError::OrganizationDisabled)
    );
    assert!(hold(None).await.is_err());
    assert!(fixture.admit(&other).await.is_ok());
}

async fn an_expiry_reaches_the_caller(fixture: Fixture) {
    fixture.organization("acme").await;
    let new = NewKey {
        organization: "acme",
        project: DEFAULT_PROJECT,
        label: "",
        expires_at_ms: Some(NOW_MS),
        ..NewKey::default()
    };
    let (key, _) = fixture
        .store
        .by(&PROGRAM)
        .create_key(&new, NOW_MS - 1)
        .await
        .unwrap();
    assert_eq!(fixture.admit(&key).await.err(), Some(AuthError::Expired));
}

async fn keys_of_several_pages_are_read_and_those_behind_a_damaged_one_too(fixture: Fixture) {
    const MORE: usize = 4500;
    fixture.organization("acme").await;
    let (key, issued) = fixture.key("acme").await;
    let is_postgres = matches!(fixture.settings.url, StoreUrl::Postgres(_));
    let hash = match is_postgres {
        true => "CAST(lpad(CAST(i AS TEXT), 32, '0') AS BYTEA)",
        false => "CAST(printf('%032d', i) AS BLOB)",
    };
    let run = async |sql: String| {
        let query = sqlx::raw_sql(sqlx::AssertSqlSafe(sql));
        query.execute(fixture.store.pool.unlimited()).await.unwrap();
    };
    run(format!(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {MORE}) \
         INSERT INTO api_keys (id, project_id, label, hash, last_four, created_at) \
         SELECT 'key_' || i, project_id, label, {hash}, last_four, created_at FROM n, api_keys WHERE id = '{}'",
        issued.id
    ))
    .await;
    let loaded = fixture.store.load_accounts(|_| ()).await.unwrap();
    assert_eq!(loaded.snapshot.len(), MORE + 1);
    assert!(fixture.admit(&key).await.is_ok());
    if is_postgres {
        return;
    }
    // PostgreSQL lets no column hold a value of another type.
    run("UPDATE api_keys SET label = X'ff' WHERE id = 'key_2500'".to_owned()).await;
    let mut kept = 0;
    let keep =
        |record: &AccountRecord| kept += usize::from(matches!(record, AccountRecord::Key(_)));
    let loaded = fixture.store.load_accounts(keep).await.unwrap();
    assert_eq!((kept, loaded.unreadable.count), (MORE, 1));
    assert!(fixture.admit(&key).await.is_ok());
}

async fn a_debug_key_is_one_in_the_snapshot_and_in_its_copy(fixture: Fixture) {
    fixture.organization("acme").await;
    let store = &fixture.store.by(&PROGRAM);
    let new = NewKey {
        organization: "acme",
        is_debug: true,
        ..NewKey::default()
    };
    let (key, issued) = store.create_key(&new, NOW_MS).await.unwrap();
    let (other, _) = fixture.key("acme").await;
    let listed = store.keys("acme").await.unwrap();
    assert_eq!(listed.iter().filter(|key| key.is_debug).count(), 1);
    let mut lines = Vec::new();
    let keep = |record: &AccountRecord| lines.push(serde_json::to_string(record).unwrap());
    store.load_accounts(keep).await.unwrap();
    let accounts = |lines: &mut dyn Iterator<Item = String>| {
        let mut recorded = RecordedAccounts::default();
        lines.for_each(|line| recorded.add(serde_json::from_str(&line).unwrap()));
        accounts::AccountsHandle::fixed(recorded.load().snapshot)
    };
    let copied = accounts(&mut lines.iter().cloned());
    // A copy that was written before there were debug keys has none.
    let older = |line: &String| {
        line.replace(",\"is_debug\":true", "")
            .replace(",\"is_debug\":false", "")
    };
    let older = accounts(&mut lines.iter().map(older));
    let handle = accounts::AccountsHandle::load(store, |_| {}).await.unwrap();
    let is_debug = |handle: &accounts::AccountsHandle, key| {
        admitted(handle, store, key).map(|caller| caller.is_debug)
    };
    for (accounts, expected) in [(&handle, true), (&copied, true), (&older, false)] {
        assert_eq!(is_debug(accounts, &key), Ok(expected));
        assert_eq!(is_debug(accounts, &other), Ok(false));
    }
    let change = KeyChange {
        is_debug: Some(false),
        ..KeyChange::default()
    };
    store.update_key(&issued.id, &change).await.unwrap();
    assert!(handle.refresh(store).await.unwrap());
    assert_eq!(is_debug(&handle, &key), Ok(false));
}

async fn the_snapshot_follows_another_process(fixture: Fixture) {
    fixture.organization("acme").await;
    let accounts = accounts::AccountsHandle::load(&fixture.store, |_| {})
        .await
        .unwrap();
    assert!(accounts.current().is_empty());
    // Another process with its own store at the same location.
    let store = Store::open(&fixture.settings).await.unwrap().store;
    let settings = fixture.settings.clone();
    let other = Fixture {
        store,
        settings,
        _folder: TempDir::new().unwrap(),
    };
    let (_, issued) = other.key("acme").await;
    assert!(accounts.refresh(&fixture.store).await.unwrap());
    assert_eq!(accounts.current().len(), 1);
    assert!(!accounts.refresh(&fixture.store).await.unwrap());
    other
        .store
        .by(&PROGRAM)
        .revoke_key(&issued.id, NOW_MS)
        .await
        .unwrap();
    assert!(accounts.refresh(&fixture.store).await.unwrap());
}

async fn byok_rows_are_published_before_their_accounts_come_into_force(fixture: Fixture) {
    use std::sync::{Arc, Mutex, OnceLock};
    /// The rows of each publication, and the revision then in force.
    type Published = Vec<(usize, Option<i64>)>;
    fixture.organization("acme").await;
    let published: Arc<Mutex<Published>> = Arc::default();
    let handle: Arc<OnceLock<accounts::AccountsHandle>> = Arc::default();
    let (seen, in_force) = (Arc::clone(&published), Arc::clone(&handle));
    let accounts = accounts::AccountsHandle::load(&fixture.store, move |rows| {
        let revision = in_force.get().map(|accounts| accounts.current().revision());
        let count = match rows {
            accounts::PublishedRows::Byok(accounts::ByokRows::All(rows)) => rows.len(),
            accounts::PublishedRows::Byok(accounts::ByokRows::Of(organizations, rows)) => {
                organizations.len() * rows.len()
            }
            accounts::PublishedRows::Prompts(_) | accounts::PublishedRows::Budgets(_) => return,
        };
        seen.lock().unwrap().push((count, revision));
    });
    let accounts = accounts.await.unwrap();
    let before = accounts.current().revision();
    assert!(handle.set(accounts.clone()).is_ok());
    let text = "sk-1234567890";
    let added = fixture
        .store
        .by(&PROGRAM)
        .add_provider_key("acme", "first", "mine", text, NOW_MS);
    added.await.unwrap();
    assert!(accounts.refresh(&fixture.store).await.unwrap());
    assert_eq!(
        *published.lock().unwrap(),
        vec![(0, None), (1, Some(before))]
    );
    assert!(accounts.current().revision() > before);
}

async fn a_store_that_fails_leaves_the_last_snapshot(fixture: Fixture) {
    fixture.organization("acme").await;
    fixture.key("acme").await;
    let accounts = accounts::AccountsHandle::load(&fixture.store, |_| {})
        .await
        .unwrap();
    fixture.store.close().await;
    assert!(accounts.refresh(&fixture.store).await.is_err());
    assert_eq!(accounts.current().len(), 1);
}

/// Returns what a handle makes of a key.
pub(super) fn admitted(
    accounts: &accounts::AccountsHandle,
    store: &Store,
    key: &KeyText,
) -> Result<Arc<filters::accounts::Caller>, AuthError> {
    let mut headers = HeaderMap::new();
    headers.insert("x-api-key", HeaderValue::from_str(key.reveal()).unwrap());
    admit(
        &headers,
        &KEY_HEADER,
        &accounts.current(),
        store.pepper(),
        NOW_MS,
    )
}

async fn a_change_of_what_keys_share_reaches_their_callers(fixture: Fixture) {
    let store = &fixture.store.by(&PROGRAM);
    fixture.organization("acme").await;
    fixture.organization("other").await;
    let (key, issued) = fixture.key("acme").await;
    let (other, _) = fixture.key("other").await;
    let load = accounts::AccountsHandle::load(store, |_| {});
    let accounts = load.await.unwrap();
    let caller = || admitted(&accounts, store, &key);
    store.set_plan("acme", Plan::Max, NOW_MS).await.unwrap();
    assert!(accounts.refresh(store).await.unwrap());
    assert_eq!(caller().unwrap().plan, Plan::Max);
    store.add_member("acme", "ada", NOW_MS).await.unwrap();
    let change = KeyChange {
        member: Some(Some("ada".to_owned())),
        label: Some("renamed".to_owned()),
        ..KeyChange::default()
    };
    store.update_key(&issued.id, &change).await.unwrap();
    accounts.refresh(store).await.unwrap();
    assert_eq!(&*caller().unwrap().key_label, "renamed");
    assert_eq!(caller().unwrap().member.as_deref().unwrap().budget, None);
    let budget = Some(Usd::parse("3").unwrap());
    store.set_budget("acme", "ada", budget).await.unwrap();
    accounts.refresh(store).await.unwrap();
    assert_eq!(caller().unwrap().member.as_deref().unwrap().budget, budget);
    let change = ProjectChange {
        mode: Some(Mode::Byok),
        cache_ttl_s: Some(Some(9)),
        ..ProjectChange::default()
    };
    let changed = store.update_project("acme", "default", &change);
    changed.await.unwrap();
    accounts.refresh(store).await.unwrap();
    let now = caller().unwrap();
    assert_eq!((now.mode, now.cache_ttl_s), (Mode::Byok, Some(9)));
    let [eu, us]: [AllowedRegions; 2] = ["eu", "us"].map(|it| it.parse().unwrap());
    let bound = store.set_regions("acme", None, Some(&eu));
    bound.await.unwrap();
    accounts.refresh(store).await.unwrap();
    assert!(caller().unwrap().may_be_in(Some("eu-west-1")));
    assert!(!caller().unwrap().may_be_in(None));
    let bound = store.set_regions("acme", Some("default"), Some(&us));
    bound.await.unwrap();
    accounts.refresh(store).await.unwrap();
    assert!(!caller().unwrap().may_be_in(Some("eu-west-1")));
    store.archive_project("acme", "default").await.unwrap();
    accounts.refresh(store).await.unwrap();
    assert_eq!(caller().err(), Some(AuthError::ProjectArchived));
    store.disable_organization("acme").await.unwrap();
    accounts.refresh(store).await.unwrap();
    assert_eq!(caller().err(), Some(AuthError::OrganizationDisabled));
    assert!(admitted(&accounts, store, &other).is_ok());
}

async fn a_gap_in_the_feed_is_noticed_and_everything_read_again(fixture: Fixture) {
    let store = &fixture.store.by(&PROGRAM);
    fixture.organization("acme").await;
    let (first, issued) = fixture.key("acme").await;
    let load = accounts::AccountsHandle::load(store, |_| {});
    let accounts = load.await.unwrap();
    let (second, _) = fixture.key("acme").await;
    // As an earlier version would have made it: a revision without its changes.
    let sql = "DELETE FROM account_changes WHERE id <> $1";
    sqlx::query(sql)
        .bind(&issued.id)
        .execute(store.pool.unlimited())
        .await
        .unwrap();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let follower = tokio::spawn(accounts.clone().run_refresh(fixture.store.clone(), stopped));
    let until = std::time::Instant::now() + Duration::from_secs(10);
    while admitted(&accounts, store, &second).is_err() {
        assert!(std::time::Instant::now() < until, "nothing was read again");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    store.revoke_key(&issued.id, NOW_MS).await.unwrap();
    while admitted(&accounts, store, &first).is_ok() {
        assert!(std::time::Instant::now() < until, "it does not follow");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stop.send_replace(true);
    follower.await.unwrap();
}

async fn many_changes_are_followed_in_parts(fixture: Fixture) {
    let store = &fixture.store.by(&PROGRAM);
    fixture.organization("acme").await;
    let (key, issued) = fixture.key("acme").await;
    let load = accounts::AccountsHandle::load(store, |_| {});
    let accounts = load.await.unwrap();
    let from = store.revision().await.unwrap();
    // Two changes in each of twelve thousand revisions.
    let rows: Vec<(i64, &str)> = (from + 1..=from + 12_000)
        .flat_map(|revision| [(revision, "a"), (revision, "b")])
        .collect();
    let mut connection = store.pool.unlimited().acquire().await.unwrap();
    let sql = "INSERT INTO account_changes SELECT CAST(value ->> 0 AS BIGINT), 'credit', \
               value ->> 1 FROM {rows}";
    let rows = rows::Rows::new(&*connection, &rows).unwrap();
    rows.query(sql).execute(&mut *connection).await.unwrap();
    let sql = "UPDATE store_state SET revision = revision + 12000";
    sqlx::query(sql).execute(&mut *connection).await.unwrap();
    drop(connection);
    store.revoke_key(&issued.id, NOW_MS).await.unwrap();
    let mut rounds = 0;
    while accounts.refresh(store).await.unwrap() {
        rounds += 1;
    }
    assert_eq!(rounds, 3);
    assert_eq!(
        admitted(&accounts, store, &key).err(),
        Some(AuthError::Revoked)
    );
}

/// Everything is read for as long as a lock is held on a table; a revocation needs other tables.
#[tokio::test]
async fn a_revocation_counts_within_a_second_while_everything_is_read() {
    let fixture = on_postgres().await;
    let store = &fixture.store;
    fixture.organization("acme").await;
    let (key, issued) = fixture.key("acme").await;
    let load = accounts::AccountsHandle::load(store, |_| {});
    let accounts = load.await.unwrap();
    fixture.key("acme").await;
    let sql = "DELETE FROM account_changes";
    sqlx::query(sql)
        .execute(store.pool.unlimited())
        .await
        .unwrap();
    let mut lock = store.pool.unlimited().begin().await.unwrap();
    let sql = "LOCK TABLE members IN ACCESS EXCLUSIVE MODE";
    sqlx::query(sql).execute(&mut *lock).await.unwrap();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let follower = tokio::spawn(accounts.clone().run_refresh(store.clone(), stopped));
    fixture.until_waiting(1).await;
    let other = Store::open(&fixture.settings).await.unwrap().store;
    other
        .by(&PROGRAM)
        .revoke_key(&issued.id, NOW_MS)
        .await
        .unwrap();
    let revoked = std::time::Instant::now();
    while admitted(&accounts, store, &key).is_ok() {
        let waited = revoked.elapsed();
        assert!(waited < Duration::from_secs(1), "it still counts");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(accounts.current().len(), 1, "everything was read already");
    lock.rollback().await.unwrap();
    while accounts.current().len() < 2 {
        assert!(revoked.elapsed() < Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(
        admitted(&accounts, store, &key).err(),
        Some(AuthError::Revoked)
    );
    stop.send_replace(true);
    follower.await.unwrap();
}
