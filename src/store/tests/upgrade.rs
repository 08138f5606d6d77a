//! Tables of earlier versions, and of newer ones.

use filters::accounts::OrganizationStatus;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{AssertSqlSafe, SqlStr};

use super::super::migrate::tables_of;
use super::ledger::usd;
use super::*;

on_both![
    tables_of_earlier_versions_become_those_of_a_new_store_and_keep_their_rows,
    tables_that_are_too_old_are_refused_and_stay_as_they_are,
    an_earlier_version_refuses_the_tables_of_this_one,
    a_version_starts_on_tables_to_which_a_newer_one_has_added_and_refuses_what_it_cannot_know,
];

const SQLITE_SCHEMA: &str = include_str!("../../../tests/gateway/store/upgrade/sqlite/schema.sql");
const POSTGRES_SCHEMA: &str =
    include_str!("../../../tests/gateway/store/upgrade/postgres/schema.sql");
/// Rows of a version that made 17 steps.
const ROWS: &str = "\
UPDATE store_state SET revision = 7;
INSERT INTO organizations (id, name, plan, status, created_at, plan_since)
VALUES ('org_1', 'acme', 'pro', 'active', 1, 1);
INSERT INTO projects (id, organization_id, name, mode, status, created_at)
VALUES ('prj_1', 'org_1', 'default', 'platform', 'active', 1);
INSERT INTO members (id, organization_id, name, created_at) VALUES ('mem_1', 'org_1', 'ann', 1);
INSERT INTO api_keys (id, project_id, label, hash, last_four, created_at, member_id)
VALUES ('key_1', 'prj_1', 'ci', 'hash', '1234', 1, 'mem_1');
INSERT INTO credit_grants (id, organization_id, amount, created_at) VALUES ('g_1', 'org_1', '2', 1);
INSERT INTO balances (organization_id, version, settled, shortfall) VALUES ('org_1', 1, '0.5', '0');
INSERT INTO ledger_processes (owner, seen_at) VALUES ('old', 1);
INSERT INTO limit_leases (organization_id, scope, owner, amount, stored)
VALUES ('org_1', 'key/key_1', 'old', '0.25', '0');
INSERT INTO spent (organization_id, key_id, hour, funding, is_premium, member_id, first_at, last_at, cost_nano, cost_rest)
VALUES ('org_1', 'key_1', -1, 'credit', 0, 'mem_1', 1, 2, 200000000, 0),
    ('org_1', 'key_1', 500000, 'credit', 0, 'mem_1', 1800000000000, 1800000000000, 300000000, 7);";
/// Everything that the tables of PostgreSQL consist of, as text.
const POSTGRES_PARTS: &str = "\
SELECT format('%s.%s %s %s %s %s %s', relname, attname, format_type(atttypid, atttypmod), attnotnull, \
    attidentity, attstorage, pg_get_expr(adbin, adrelid)) \
FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid \
LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum \
WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND attnum > 0 AND NOT attisdropped \
UNION ALL SELECT format('%s %s', conname, pg_get_constraintdef(oid)) FROM pg_constraint \
WHERE connamespace = 'public'::regnamespace \
UNION ALL SELECT pg_get_indexdef(indexrelid) FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid \
WHERE relnamespace = 'public'::regnamespace \
UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal \
UNION ALL SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace";

/// A store as an earlier version left it after so many steps.
async fn earlier(like: &Fixture, steps: i64) -> (Store, StoreSettings, TempDir) {
    let folder = TempDir::new().unwrap();
    let (settings, schema) = match like.settings.url {
        StoreUrl::Sqlite(_) => (sqlite_settings(folder.path()), SQLITE_SCHEMA),
        StoreUrl::Postgres(_) => (postgres_settings(folder.path()).await, POSTGRES_SCHEMA),
    };
    let store = Store::prepare(&settings).await.unwrap().store;
    let pool = store.pool.unlimited();
    for sql in [schema, ROWS] {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql));
        sql.execute(pool).await.unwrap();
    }
    let sql = "UPDATE store_state SET pepper_mark = $1";
    let mark = sqlx::query(sql).bind(store.pepper().fingerprint().to_vec());
    mark.execute(pool).await.unwrap();
    let older = &tables_of(&settings.url).older;
    older.run_to(steps, pool).await.unwrap();
    (store, settings, folder)
}

impl Store {
    /// What the tables consist of, in no order of columns.
    async fn tables(&self) -> Vec<String> {
        let pool = self.pool.unlimited();
        let mut parts: Vec<String> = match self.url.starts_with("sqlite") {
            false => sqlx::query_scalar(POSTGRES_PARTS).fetch_all(pool).await,
            true => {
                let sql = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL";
                sqlx::query_scalar(sql).fetch_all(pool).await
            }
        }
        .unwrap();
        if self.url.starts_with("sqlite") {
            parts = parts.iter().map(|sql| in_order(sql)).collect();
        }
        parts.sort();
        parts
    }

    async fn records(&self) -> Vec<(i64, Vec<u8>)> {
        let sql = "SELECT version, checksum FROM _sqlx_migrations ORDER BY version";
        let rows = sqlx::query_as(sql).fetch_all(self.pool.unlimited());
        rows.await.unwrap()
    }
}

/// Returns a definition of SQLite without comments, quotes and the order of columns, which `ALTER TABLE` puts last.
fn in_order(sql: &str) -> String {
    let lines = sql.lines().map(|line| line.split("--").next().unwrap());
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    let sql = words.join(" ").replace('"', "");
    if !sql.starts_with("CREATE TABLE") {
        return sql;
    }
    let mut depth = 0;
    let mut parts: Vec<&str> = sql
        .split(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            (depth == 1 && matches!(c, '(' | ',')) || (depth == 0 && c == ')')
        })
        .map(str::trim)
        .collect();
    parts.sort_unstable();
    parts.join("\n")
}

async fn tables_of_earlier_versions_become_those_of_a_new_store_and_keep_their_rows(new: Fixture) {
    let (tables, records) = (new.store.tables().await, new.store.records().await);
    assert_eq!(records.len(), 10);
    for steps in [17, 18, 20, 21, 22] {
        let (store, settings, _folder) = earlier(&new, steps).await;
        assert_eq!(store.records().await.len() as i64, steps);
        // Twice, as processes do that start together or one after the other.
        for _ in 0..2 {
            store.make_ready(&settings).await.unwrap();
        }
        assert_eq!(store.tables().await, tables, "after {steps} steps");
        assert_eq!(store.records().await, records);
        let organizations = store.organizations().await.unwrap();
        let of = &organizations[0];
        assert_eq!((&*of.name, of.status), ("acme", OrganizationStatus::Active));
        let keys = store.keys("acme").await.unwrap();
        assert_eq!(keys[0].id, "key_1");
        let account = store.account("org_1").await.unwrap();
        assert_eq!((account.granted, account.settled), (usd("2"), usd("0.5")));
        let scopes = ["key/key_1", "member/mem_1"].map(|scope| scope.parse().unwrap());
        let (spent, _) = store.spent("a", "org_1", &scopes).await.unwrap();
        for spent in spent {
            let total = spent.so_far(NOW_MS, 0).key.total;
            assert_eq!(total, usd("0.500000000000000007"));
        }
        let held = "SELECT amount FROM limit_leases WHERE owner = 'old'";
        let held: String = sqlx::query_scalar(held)
            .fetch_one(store.pool.unlimited())
            .await
            .unwrap();
        assert_eq!(held, "0.25");
    }
}

async fn tables_that_are_too_old_are_refused_and_stay_as_they_are(new: Fixture) {
    let (store, settings, _folder) = earlier(&new, 17).await;
    let changed_or_older = [
        "UPDATE _sqlx_migrations SET checksum = (SELECT checksum FROM _sqlx_migrations \
         WHERE version = 4) WHERE version = 5",
        "DELETE FROM _sqlx_migrations WHERE version > 16",
        "DELETE FROM _sqlx_migrations WHERE version > 1",
    ];
    for sql in changed_or_older {
        let query = sqlx::query(sql).execute(store.pool.unlimited());
        query.await.unwrap();
        let before = (store.tables().await, store.records().await);
        let refused = store.make_ready(&settings).await.unwrap_err();
        assert!(!refused.is_unavailable(), "{refused}");
        let said = refused.to_string();
        assert!(
            said.contains("too old") && said.contains("docs/upgrade.md"),
            "{said}"
        );
        assert_eq!((store.tables().await, store.records().await), before);
    }
}

async fn an_earlier_version_refuses_the_tables_of_this_one(new: Fixture) {
    let sql = SqlStr::from_static("DROP TABLE ledger");
    let first = Migration::new(1, "accounts".into(), MigrationType::Simple, sql, false);
    for (ignore_missing, said) in [
        (
            false,
            "migration 2 was previously applied but is missing in the resolved migrations",
        ),
        (
            true,
            "migration 1 was previously applied but has been modified",
        ),
    ] {
        let mut earlier = Migrator::with_migrations(vec![first.clone()]);
        earlier.set_ignore_missing(ignore_missing);
        // A connection keeps the lock after an error, and would go back to the pool with it.
        earlier.set_locking(false);
        let refused = earlier.run(new.store.pool.unlimited()).await.unwrap_err();
        assert_eq!(refused.to_string(), said);
    }
}

async fn a_version_starts_on_tables_to_which_a_newer_one_has_added_and_refuses_what_it_cannot_know(
    fixture: Fixture,
) {
    let sql = "INSERT INTO _sqlx_migrations \
               (version, description, success, checksum, execution_time) \
               SELECT 9999, 'of a newer version', success, checksum, 0 \
               FROM _sqlx_migrations WHERE version = 1";
    let pool = fixture.store.pool.unlimited();
    sqlx::query(sql).execute(pool).await.unwrap();
    Store::open(&fixture.settings)
        .await
        .unwrap()
        .store
        .close()
        .await;
    let sql = "UPDATE store_state SET needs_migration = 9999";
    sqlx::query(sql).execute(pool).await.unwrap();
    let refused = Store::open(&fixture.settings).await.err().unwrap();
    assert!(!refused.is_unavailable(), "{refused}");
    let said = refused.to_string();
    for part in [
        "need migration 9999",
        "this version knows",
        "Start the newer version",
        "docs/upgrade.md",
    ] {
        assert!(said.contains(part), "{said}");
    }
}
