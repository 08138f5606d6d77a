//! What one large organization, and rows that cannot be read, do to those who follow the feed: nothing.

use std::time::{Duration, Instant};

use filters::accounts::KeyHash;

use super::snapshots::admitted;
use super::*;

on_both![
    a_hold_of_very_many_keys_delays_no_later_revocation,
    keys_of_many_projects_and_of_one_large_one_are_read_in_pages,
    a_row_of_a_newer_version_refuses_its_keys_and_nobody_else,
    a_slow_store_is_followed_in_smaller_steps_to_the_same_end,
];

impl Fixture {
    /// Adds keys, by their numbers, to the default project of an organization.
    async fn add_keys(&self, organization: &str, from: i64, count: i64) {
        let decode = match &self.settings.url {
            StoreUrl::Postgres(_) => "decode(value ->> 1, 'hex')",
            StoreUrl::Sqlite(_) => "unhex(value ->> 1)",
        };
        let sql = format!(
            "INSERT INTO api_keys (id, project_id, label, hash, last_four, created_at) \
             SELECT 'key_' || (value ->> 0), p.id, '', {decode}, '', 0 FROM {{rows}} \
             CROSS JOIN projects p JOIN organizations o ON o.id = p.organization_id \
             WHERE o.name = $2"
        );
        let mut connection = self.store.pool.unlimited().acquire().await.unwrap();
        let numbers: Vec<i64> = (from..from + count).collect();
        for numbers in numbers.chunks(10_000) {
            let hex = |number: &i64| hash(*number).map(|byte| format!("{byte:02x}")).concat();
            let keys = numbers
                .iter()
                .map(|number| (number.to_string(), hex(number)));
            let keys: Vec<_> = keys.collect();
            let keys = rows::Rows::new(&*connection, &keys).unwrap();
            let query = keys.query(&sql).bind(organization.to_owned());
            query.execute(&mut *connection).await.unwrap();
        }
    }

    /// Writes a value that no check of this version lets pass, and tells the feed.
    async fn write_newer(&self, sql: &str, changed: Changed<'_>) {
        let mut change = self.store.change_without_entry().await.unwrap();
        if let StoreUrl::Sqlite(_) = &self.settings.url {
            let off = sqlx::query("PRAGMA ignore_check_constraints = ON");
            off.execute(&mut *change).await.unwrap();
        }
        let query = sqlx::query(sqlx::AssertSqlSafe(sql.to_owned()));
        query.execute(&mut *change).await.unwrap();
        change.commit(&[changed]).await.unwrap();
    }
}

/// Returns the hash of the key with this number: bytes that are as uniform as those of real ones.
fn hash(number: i64) -> [u8; 32] {
    let number = u128::from(number.unsigned_abs() + 1);
    let first = number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    let first = (first ^ (first >> 64)).wrapping_mul(0xbf58_476d_1ce4_e5b9_94d0_49bb_1331_11eb);
    let second = first.rotate_left(64);
    let mut bytes = [0; 32];
    bytes[..16].copy_from_slice(&first.to_be_bytes());
    bytes[16..].copy_from_slice(&second.to_be_bytes());
    bytes
}

/// Returns how many of the keys with these numbers are refused because their organization is held.
fn held(accounts: &accounts::AccountsHandle, from: i64, count: i64) -> usize {
    let snapshot = accounts.current();
    let is_held = |number: &i64| {
        let row = snapshot.find(&KeyHash::from_bytes(hash(*number))).unwrap();
        row.organization_status == filters::accounts::OrganizationStatus::Held
    };
    (from..from + count).filter(is_held).count()
}

async fn a_hold_of_very_many_keys_delays_no_later_revocation(fixture: Fixture) {
    const COUNT: i64 = 150_000;
    let store = &fixture.store.by(&PROGRAM);
    fixture.organization("large").await;
    fixture.organization("small").await;
    fixture.add_keys("large", 0, COUNT).await;
    let (key, issued) = fixture.key("small").await;
    let load = accounts::AccountsHandle::load(store, |_| {});
    let accounts = load.await.unwrap();
    store
        .hold_organization("large", Some(NOW_MS))
        .await
        .unwrap();
    let began = Instant::now();
    assert!(accounts.refresh(store).await.unwrap());
    let first = held(&accounts, 0, COUNT);
    assert!(first > 0, "nothing was read");
    assert!(first < COUNT as usize, "all were read at once");
    store.revoke_key(&issued.id, NOW_MS).await.unwrap();
    assert!(accounts.refresh(store).await.unwrap());
    let refused = admitted(&accounts, store, &key).err();
    assert_eq!(refused, Some(AuthError::Revoked));
    assert!(
        held(&accounts, 0, COUNT) < COUNT as usize,
        "it waited for the large one"
    );
    while accounts.refresh(store).await.unwrap() {}
    assert_eq!(held(&accounts, 0, COUNT), COUNT as usize);
    assert!(began.elapsed() < Duration::from_secs(60));
}

async fn keys_of_many_projects_and_of_one_large_one_are_read_in_pages(fixture: Fixture) {
    const LARGE: i64 = 9_000;
    let store = &fixture.store.by(&PROGRAM);
    fixture.organization("acme").await;
    fixture.add_keys("acme", 0, LARGE).await;
    for n in 0..40 {
        let name = format!("project {n}");
        let project = NewProject {
            name: &name,
            mode: Mode::Platform,
            cache_ttl_s: None,
        };
        store
            .create_project("acme", &project, NOW_MS)
            .await
            .unwrap();
    }
    let sql = "UPDATE api_keys SET project_id = (SELECT id FROM projects WHERE name = 'project 7') \
               WHERE id IN ('key_3', 'key_5')";
    sqlx::query(sql)
        .execute(store.pool.unlimited())
        .await
        .unwrap();
    let load = accounts::AccountsHandle::load(store, |_| {});
    let accounts = load.await.unwrap();
    store.hold_organization("acme", Some(NOW_MS)).await.unwrap();
    while accounts.refresh(store).await.unwrap() {}
    assert_eq!(held(&accounts, 0, LARGE), LARGE as usize);
}

async fn a_slow_store_is_followed_in_smaller_steps_to_the_same_end(fixture: Fixture) {
    let store = &fixture.store.by(&PROGRAM);
    fixture.organization("acme").await;
    fixture.add_keys("acme", 0, 100).await;
    let mut loaded = store.load_accounts(|_| ()).await.unwrap();
    (0..99).for_each(|_| loaded.shared.slow_down());
    store.hold_organization("acme", Some(NOW_MS)).await.unwrap();
    store.set_plan("acme", Plan::Max, NOW_MS).await.unwrap();
    let (mut revisions, mut pages) = (0, 0);
    while let Some(followed) = store
        .follow_accounts(&loaded.snapshot, &mut loaded.shared)
        .await
        .unwrap()
    {
        assert!(followed.is_complete);
        loaded.snapshot = followed.snapshot;
        revisions += 1;
    }
    while let Some((snapshot, unreadable)) = store
        .follow_keys(&loaded.snapshot, &mut loaded.shared)
        .await
        .unwrap()
    {
        assert_eq!(unreadable.count, 0);
        loaded.snapshot = snapshot;
        pages += 1;
    }
    assert_eq!(revisions, 2);
    assert!((50..=101).contains(&pages), "{pages}");
    let accounts = accounts::AccountsHandle::fixed(loaded.snapshot);
    assert_eq!(held(&accounts, 0, 100), 100);
}

async fn a_row_of_a_newer_version_refuses_its_keys_and_nobody_else(fixture: Fixture) {
    let store = &fixture.store.by(&PROGRAM);
    fixture.organization("acme").await;
    fixture.organization("other").await;
    store.add_member("acme", "ada", NOW_MS).await.unwrap();
    let (key, issued) = fixture.key("acme").await;
    let (other, _) = fixture.key("other").await;
    let change = KeyChange {
        member: Some(Some("ada".to_owned())),
        ..KeyChange::default()
    };
    store.update_key(&issued.id, &change).await.unwrap();
    if let StoreUrl::Postgres(_) = &fixture.settings.url {
        let sql = "ALTER TABLE organizations DROP CONSTRAINT organizations_plan_check; \
                   ALTER TABLE projects DROP CONSTRAINT projects_mode_check";
        sqlx::raw_sql(sql)
            .execute(store.pool.unlimited())
            .await
            .unwrap();
    }
    let id = async |sql: &'static str| -> String {
        sqlx::query_scalar(sql)
            .fetch_one(store.pool.unlimited())
            .await
            .unwrap()
    };
    let organization = id("SELECT id FROM organizations WHERE name = 'acme'").await;
    let project = id("SELECT p.id FROM projects p JOIN organizations o \
                      ON o.id = p.organization_id WHERE o.name = 'acme'")
    .await;
    let member = id("SELECT id FROM members").await;
    let counter = prometheus::IntCounter::new("unreadable", "rows").unwrap();
    let counted = Some(counter.clone());
    let accounts = accounts::AccountsHandle::empty(None, counted, |_| {});
    accounts.read_again(store).await.unwrap();
    let in_table = |table: &str, column: &str, value: &str, id: &str| {
        format!("UPDATE {table} SET {column} = {value} WHERE id = '{id}'")
    };
    let newer = [
        (
            "api_keys",
            "terms",
            "'{\"newer\":1}'",
            "NULL",
            Changed::Key(&issued.id),
        ),
        (
            "organizations",
            "plan",
            "'ultra'",
            "'pro'",
            Changed::Organization(&organization),
        ),
        (
            "projects",
            "mode",
            "'quantum'",
            "'platform'",
            Changed::Project(&project),
        ),
        (
            "members",
            "budget",
            "'plenty'",
            "NULL",
            Changed::Member(&member),
        ),
    ];
    for (table, column, unknown, known, changed) in newer {
        let id = match changed {
            Changed::Key(id)
            | Changed::Organization(id)
            | Changed::Project(id)
            | Changed::Member(id) => id,
            _ => unreachable!(),
        };
        let before = counter.get();
        fixture
            .write_newer(&in_table(table, column, unknown, id), changed)
            .await;
        let (later, revoked) = fixture.key("other").await;
        store.revoke_key(&revoked.id, NOW_MS).await.unwrap();
        while accounts.refresh(store).await.unwrap() {}
        assert_eq!(counter.get(), before + 1, "{table}");
        let again = accounts::AccountsHandle::load(store, |_| {}).await.unwrap();
        for accounts in [&accounts, &again] {
            let of = |key| admitted(accounts, store, key);
            assert_eq!(of(&key).err(), Some(AuthError::Unreadable), "{table}");
            assert_eq!(of(&later).err(), Some(AuthError::Revoked), "{table}");
            assert!(of(&other).is_ok(), "{table}");
        }
        fixture
            .write_newer(&in_table(table, column, known, id), changed)
            .await;
        while accounts.refresh(store).await.unwrap() {}
        assert!(admitted(&accounts, store, &key).is_ok(), "{table}");
    }
}
