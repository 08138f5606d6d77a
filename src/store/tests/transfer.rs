//! Exports and imports: a store comes out of the other database as it was, or not at all.

use std::path::PathBuf;

use sha2::{Digest, Sha256};
use sqlx::AssertSqlSafe;

use super::super::error::TransferError;
use super::super::transfer::tables::{KEPT_TABLES, TABLES};
use super::*;

mod content;
mod damage;
mod guards;
mod interrupted;

on_both![
    every_table_is_moved_or_named_as_one_that_stays,
    a_store_without_anything_is_moved_too,
];

/// The secret of all stores that take part.
const SECRET: [u8; 32] = [7; 32];

/// A folder with a file, and stores beside it.
struct Desk {
    folder: TempDir,
}

impl Desk {
    fn new() -> Self {
        Self {
            folder: TempDir::new().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Settings of a SQLite file that does not exist yet.
    fn sqlite(&self, name: &str) -> StoreSettings {
        StoreSettings {
            secret: Some(SECRET.to_vec()),
            ..sqlite_settings(&self.path(name))
        }
    }

    /// Settings of an empty database of the same kind as that of a fixture.
    async fn like(&self, fixture: &Fixture, name: &str) -> StoreSettings {
        match fixture.settings.url {
            StoreUrl::Sqlite(_) => self.sqlite(name),
            StoreUrl::Postgres(_) => postgres_settings(&self.path(name)).await,
        }
    }

    /// Exports a store and returns the file.
    async fn export(&self, settings: &StoreSettings, name: &str) -> PathBuf {
        let path = self.path(name);
        export_to_file(settings, false, &path, &mut |_| {})
            .await
            .unwrap();
        path
    }
}

async fn import_file(settings: &StoreSettings, path: &Path) -> Result<ImportedStore, StoreError> {
    import(settings, path, NOW_MS, &mut |_| {}).await
}

/// Returns why an import was refused.
async fn refused(settings: &StoreSettings, path: &Path) -> TransferError {
    match import_file(settings, path).await {
        Err(StoreError::Transfer(error)) => error,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was imported"),
    }
}

impl Fixture {
    async fn run_sql(&self, sql: &str) {
        let query = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        query.execute(self.store.pool.unlimited()).await.unwrap();
    }

    /// The number of rows in all tables that are moved, but for the one that every store has.
    async fn rows(&self) -> i64 {
        let mut rows = 0;
        for table in TABLES.into_iter().filter(|table| *table != "store_state") {
            let sql = AssertSqlSafe(format!("SELECT COUNT(*) FROM {table}"));
            let count = sqlx::query_scalar::<_, i64>(sql);
            rows += count.fetch_one(self.store.pool.unlimited()).await.unwrap();
        }
        rows
    }
}

/// Gives lines the digest that belongs to them: they then look whole.
fn sealed(lines: &[String]) -> String {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    format!("{text}{{\"sha256\":\"{}\"}}\n", hex(text.as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The lines of a file but for the last one.
fn unsealed(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.pop();
    lines
}

/// An import that was stopped in the middle, and still holds all that it holds.
struct Frozen<I> {
    import: I,
}

/// Begins an import and stops after so many portions; `None`: it came to its end.
async fn freeze<'a>(
    settings: &'a StoreSettings,
    path: &'a Path,
    portions: usize,
) -> Option<Frozen<impl Future<Output = Result<ImportedStore, StoreError>> + 'a>> {
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let mut import = Box::pin(async move {
        let mut stop = Some(stop);
        let mut count = 0;
        let mut on_progress = move |step: TransferProgress<'_>| {
            count += usize::from(step.phase == TransferPhase::Write);
            if count == portions
                && let Some(stop) = stop.take()
            {
                _ = stop.send(());
            }
        };
        import(settings, path, NOW_MS, &mut on_progress).await
    });
    tokio::select! {
        biased;
        Ok(()) = stopped => Some(Frozen { import }),
        done = &mut import => {
            done.unwrap();
            None
        }
    }
}

async fn every_table_is_moved_or_named_as_one_that_stays(fixture: Fixture) {
    let sql = match fixture.settings.url {
        StoreUrl::Sqlite(_) => {
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        }
        StoreUrl::Postgres(_) => {
            "SELECT CAST(tablename AS TEXT) FROM pg_tables WHERE schemaname = 'public'"
        }
    };
    let pool = fixture.store.pool.unlimited();
    let mut found: Vec<String> = sqlx::query_scalar(sql).fetch_all(pool).await.unwrap();
    found.retain(|table| !KEPT_TABLES.contains(&table.as_str()));
    let mut expected = TABLES.to_vec();
    found.sort();
    expected.sort_unstable();
    assert_eq!(found, expected, "a new table has a place in TABLES");
}

async fn a_store_without_anything_is_moved_too(fixture: Fixture) {
    let desk = Desk::new();
    let source = desk.like(&fixture, "source").await;
    Store::open(&source).await.unwrap();
    let file = desk.export(&source, "file").await;
    let target = desk.like(&fixture, "target").await;
    let imported = import_file(&target, &file).await.unwrap();
    assert_eq!(imported.totals, TransferTotals::default());
    let again = desk.export(&target, "again").await;
    assert_eq!(
        std::fs::read(&again).unwrap(),
        std::fs::read(&file).unwrap()
    );
}
