//! Makes the tables, and changes those of earlier versions.
//!
//! 22 steps made the tables before the first release; the first one makes the same now. A store that has the first 17 of them takes
//! the others, and its records are replaced by that of the one step. What is added since has steps of its own.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};
use sqlx::migrate::{Migrate, Migration, MigrationType, Migrator};
use sqlx::{AnyConnection, AnyPool, AssertSqlSafe, Connection, SqlSafeStr};

use super::{StoreError, StoreUrl};

/// The steps that make the tables, by number. `{A|B}` is A with PostgreSQL and B with SQLite.
const STEPS: [(i64, &str); 10] = [
    (1, include_str!("migrations/0001_tables.sql")),
    (2, include_str!("migrations/0002_sessions.sql")),
    (3, include_str!("migrations/0003_responses.sql")),
    (4, include_str!("migrations/0004_regions.sql")),
    (5, include_str!("migrations/0005_disabled_keys.sql")),
    (6, include_str!("migrations/0006_imports.sql")),
    (7, include_str!("migrations/0007_export_content.sql")),
    (8, include_str!("migrations/0008_audit_log.sql")),
    (9, include_str!("migrations/0009_budgets.sql")),
    (10, include_str!("migrations/0010_kept_bodies.sql")),
];
/// The number of steps that a store of an earlier version has to have.
const OLDEST: usize = 17;
/// The steps of earlier versions behind the first [`OLDEST`] ones.
const OLDER: [(i64, &str); 5] = [
    (18, include_str!("migrations/older/0018_limit_counters.sql")),
    (19, include_str!("migrations/older/0019_fleet.sql")),
    (20, include_str!("migrations/older/0020_sums.sql")),
    (21, include_str!("migrations/older/0021_limit_grants.sql")),
    (22, include_str!("migrations/older/0022_no_since.sql")),
];
/// The table in which steps are recorded.
const RECORDS: &str = "_sqlx_migrations";

static POSTGRES: LazyLock<Tables> = LazyLock::new(|| Tables {
    migrator: migrator(&STEPS, 0),
    older: migrator(&OLDER, 0),
    digest: "0ce2e89d3efae93669e1ead0a9dfb19ae9d3ebf7148dc9d4b8f0e74c287d6a89",
});
static SQLITE: LazyLock<Tables> = LazyLock::new(|| Tables {
    migrator: migrator(&STEPS, 1),
    older: migrator(&OLDER, 1),
    digest: "c07fa5f584633f3b4c519ec6e46724cbef9dba2e2f9980282e72ce4e42c8efc7",
});

/// The steps for one kind of database.
pub(super) struct Tables {
    migrator: Migrator,
    pub older: Migrator,
    /// The SHA-256 of the checksums that are recorded of the first [`OLDEST`] steps of earlier versions.
    digest: &'static str,
}

/// Migrates the tables. Two processes may do so at once: PostgreSQL serializes them, and with SQLite the caller has a lock.
pub(super) async fn migrate(pool: &AnyPool, url: &StoreUrl) -> Result<(), StoreError> {
    let tables = tables_of(url);
    let mut connection = pool.acquire().await?;
    if matches!(url, StoreUrl::Sqlite(_)) {
        // The file keeps the mode. With it, readers and the writer do not wait for each other.
        sqlx::query("PRAGMA journal_mode = WAL")
            .execute(&mut *connection)
            .await?;
    }
    connection.lock().await?;
    tables.replace_older(&mut connection).await?;
    // `run` takes a connection that lives for ever.
    let done = tables.migrator.run_direct(None, &mut *connection, false);
    done.await?;
    connection.unlock().await?;
    let known = tables.migrator.iter().map(|migration| migration.version);
    check_version(&mut connection, known.max().unwrap_or_default()).await
}

/// Returns the number of the newest step that this version knows.
pub(super) fn newest_migration() -> i64 {
    STEPS.last().map_or(0, |(number, _)| *number)
}

/// Returns the steps for a database.
pub(super) fn tables_of(url: &StoreUrl) -> &'static Tables {
    match url {
        StoreUrl::Sqlite(_) => &SQLITE,
        StoreUrl::Postgres(_) => &POSTGRES,
    }
}

impl Tables {
    /// Brings the tables of an earlier version up to date, and replaces its records.
    async fn replace_older(&self, connection: &mut AnyConnection) -> Result<(), StoreError> {
        connection.ensure_migrations_table(RECORDS).await?;
        let applied = connection.list_applied_migrations(RECORDS).await?;
        let made = applied.first().zip(self.migrator.iter().next());
        let Some((_, made)) = made.filter(|(first, made)| first.checksum != made.checksum) else {
            return Ok(());
        };
        let mut digest = Sha256::new();
        let first = applied.iter().take(OLDEST);
        first.for_each(|step| digest.update(&step.checksum));
        let digest = digest.finalize();
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        if digest != self.digest {
            return Err(StoreError::UnknownTables);
        }
        self.older.run_direct(None, connection, false).await?;
        let mut change = connection.begin().await?;
        sqlx::query("DELETE FROM _sqlx_migrations")
            .execute(&mut *change)
            .await?;
        change.skip(RECORDS, made).await?;
        change.commit().await?;
        Ok(())
    }
}

/// Returns steps in one of the two kinds of SQL. They also run on tables to which a newer version has added: see
/// [`check_version`].
fn migrator(steps: &[(i64, &str)], kind: usize) -> Migrator {
    let steps = steps.iter().map(|(number, text)| {
        let mut sql = String::with_capacity(text.len());
        for part in text.split('}') {
            let (both, choice) = part.split_once('{').unwrap_or((part, ""));
            sql.push_str(both);
            sql.push_str(choice.split('|').nth(kind).unwrap_or_default());
        }
        let sql = AssertSqlSafe(sql).into_sql_str();
        Migration::new(*number, "tables".into(), MigrationType::Simple, sql, false)
    });
    let mut migrator = Migrator::with_migrations(steps.collect());
    migrator.set_ignore_missing(true);
    migrator
}

/// Refuses tables that a newer version has changed so that this one cannot work with them.
async fn check_version(connection: &mut AnyConnection, known: i64) -> Result<(), StoreError> {
    let sql = "SELECT needs_migration FROM store_state WHERE one = 1";
    let needed: i64 = sqlx::query_scalar(sql).fetch_one(connection).await?;
    match needed > known {
        true => Err(StoreError::NewerTables { needed, known }),
        false => Ok(()),
    }
}
