//! Writes a file to an empty store, in portions. A cut import goes on with the same file.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use sqlx::{AnyConnection, AssertSqlSafe, Connection};

use super::super::connections::Dialect;
use super::super::error::{ImportPlace, TransferError};
use super::super::migrate::newest_migration;
use super::super::secret::{self, file_error};
use super::super::{Store, StoreError, StoreLock, StoreSettings, StoreUrl};
use super::batch::Batch;
use super::check::{CheckedFile, CheckedTable, check, read_header};
use super::format::{Header, bytes_to_hex, parse_row};
use super::import_record::ImportRecord;
use super::lines::FileLines;
use super::progress::{OnProgress, ROWS_BETWEEN, TransferPhase, TransferProgress};
use super::shape::Shape;
use super::table_rows::{VisitedRow, begin_reading, connect, end_reading, read_shapes, visit_rows};
use super::tables;
use super::totals::TransferTotals;

/// The advisory lock of PostgreSQL that an import holds until its connection ends.
const IMPORT_LOCK: i64 = 0x5745_4952_494d_504f;

/// What was imported.
#[derive(Clone, Debug)]
pub struct ImportedStore {
    pub totals: TransferTotals,
    /// Where it went on, if it had been cut.
    pub resumed_at: Option<ImportPlace>,
}

/// Writes a file to an empty store, and compares the store with the file.
///
/// The file is checked as a whole before the store is changed. A cut import goes on where it was when it is called again with the
/// same file; until then nothing else opens the store. Errors: the file is not a whole export, or of another secret; the store is
/// not empty; a server or another import works on it; the database failed.
pub async fn import(
    settings: &StoreSettings,
    path: &Path,
    now_ms: i64,
    on_progress: &mut OnProgress<'_>,
) -> Result<ImportedStore, StoreError> {
    let file = open(path)?;
    check_header(settings, &read_header(path, &file)?)?;
    let _lock = StoreLock::acquire(&settings.url)?;
    let is_postgres = matches!(settings.url, StoreUrl::Postgres(_));
    let checked = check((path, &file), is_postgres, on_progress)?;
    let store = Store::prepare(settings).await?.store;
    store.make_tables(settings).await?;
    let mut connection = connect(&store.url).await?;
    let mut import = Import {
        connection: &mut connection,
        store: &store,
        file: (path, &file),
        checked: &checked,
        on_progress,
    };
    let imported = import.run(now_ms).await;
    _ = connection.close().await;
    store.close().await;
    Ok(ImportedStore {
        totals: checked.totals,
        resumed_at: imported?,
    })
}

fn open(path: &Path) -> Result<File, StoreError> {
    let file = File::open(path).map_err(|error| match error.kind() {
        // The cure of an absent file is for those that are written.
        ErrorKind::NotFound => file_error(path, std::io::Error::other("there is no such file")),
        _ => file_error(path, error),
    })?;
    let metadata = file.metadata().map_err(|error| file_error(path, error))?;
    match metadata.is_file() {
        true => Ok(file),
        false => {
            let error = std::io::Error::other("is no file: an import reads it more than once");
            Err(file_error(path, error))
        }
    }
}

/// Checks that the file is for tables that this version knows, and of the secret of the store.
fn check_header(settings: &StoreSettings, header: &Header) -> Result<(), StoreError> {
    let (needed, known) = (header.needs_migration, newest_migration());
    if needed > known {
        return Err(StoreError::NewerTables { needed, known });
    }
    let pepper = secret::find(
        &settings.url,
        &settings.state_dir,
        settings.secret.as_deref(),
    )?;
    let Some(pepper) = pepper else {
        let path = secret::path(&settings.state_dir);
        return Err(TransferError::NoSecret(path).into());
    };
    match bytes_to_hex(&pepper.fingerprint()) == header.secret_mark {
        true => Ok(()),
        false => Err(TransferError::OtherSecret.into()),
    }
}

/// An import of a file that is whole.
struct Import<'i, 'p> {
    connection: &'i mut AnyConnection,
    store: &'i Store,
    file: (&'i Path, &'i File),
    checked: &'i CheckedFile,
    on_progress: &'i mut OnProgress<'p>,
}

impl Import<'_, '_> {
    /// Returns where it went on.
    async fn run(&mut self, now_ms: i64) -> Result<Option<ImportPlace>, StoreError> {
        lock(self.connection).await?;
        let shapes = read_shapes(self.connection).await?;
        self.checked.check_columns(&shapes)?;
        let begun = ImportRecord::find(self.connection, &self.checked.sha256).await?;
        let record = match &begun {
            Some(record) => record.clone(),
            None => {
                if self.connection.is_postgres() && self.store.has_running_process().await? {
                    return Err(TransferError::TargetRuns.into());
                }
                ImportRecord::begin(self.connection, &self.checked.sha256, now_ms).await?
            }
        };
        self.write_rows(&shapes, &record.place).await?;
        self.compare(&shapes).await?;
        count_on(self.connection, &shapes).await?;
        record.finish(self.connection, now_ms).await?;
        Ok(begun.map(|record| record.place))
    }

    /// Writes the rows of all tables behind those that are written already.
    async fn write_rows(
        &mut self,
        shapes: &[Shape],
        place: &ImportPlace,
    ) -> Result<(), StoreError> {
        let (path, file) = self.file;
        let mut lines = FileLines::of_file(path, file)?;
        lines.read()?;
        let done_place = tables::find(&place.table).map(|(place, _)| place);
        let checked = self.checked;
        for (table, shape) in checked.with_shapes(shapes) {
            let own_place = tables::find(table.name).map(|(place, _)| place);
            let done = match own_place.cmp(&done_place) {
                std::cmp::Ordering::Less => table.end.rows,
                std::cmp::Ordering::Equal => place.rows.unsigned_abs(),
                std::cmp::Ordering::Greater => 0,
            };
            lines.read()?;
            self.write_table(&mut lines, (table, shape), done).await?;
            lines.read()?;
        }
        Ok(())
    }

    /// Writes the rows of a table behind the first `done`.
    async fn write_table(
        &mut self,
        lines: &mut FileLines<'_>,
        (table, shape): (&CheckedTable, &Shape),
        done: u64,
    ) -> Result<(), StoreError> {
        let checked = self.checked;
        let mut batch = Batch::new(shape, &table.columns, &checked.sha256);
        for number in 1..=table.end.rows {
            let line = lines.read()?;
            if number <= done {
                continue;
            }
            let row = parse_row(line, &table.columns);
            let bytes = line.len();
            batch.push(row.map_err(|problem| lines.problem(&problem))?, bytes);
            if batch.is_full() || number == table.end.rows {
                batch.write(self.connection, number).await?;
                (self.on_progress)(TransferProgress {
                    phase: TransferPhase::Write,
                    table: table.name,
                    rows: number,
                    done: lines.bytes,
                    total: checked.bytes,
                });
            }
        }
        Ok(())
    }

    /// Compares what the store holds with the file.
    ///
    /// Errors: [`TransferError::Different`] with the tables.
    async fn compare(&mut self, shapes: &[Shape]) -> Result<(), StoreError> {
        begin_reading(self.connection).await?;
        let mut different = Vec::new();
        let checked = self.checked;
        let total = checked.tables.len() as u64;
        for (done, (table, shape)) in (0..total).zip(checked.with_shapes(shapes)) {
            let on_progress = &mut *self.on_progress;
            let mut visit = |row: &VisitedRow<'_>| {
                if row.number.is_multiple_of(ROWS_BETWEEN) {
                    on_progress(TransferProgress {
                        phase: TransferPhase::Compare,
                        table: table.name,
                        rows: row.number,
                        done,
                        total,
                    });
                }
                Ok(())
            };
            let found = visit_rows(self.connection, shape, &table.columns, &mut visit);
            if found.await? != table.end {
                different.push(table.name);
            }
        }
        end_reading(self.connection).await?;
        match different.is_empty() {
            true => Ok(()),
            false => Err(TransferError::Different(different).into()),
        }
    }
}

/// Keeps other imports off a PostgreSQL store until the connection ends. A SQLite file has [`StoreLock`].
async fn lock(connection: &mut AnyConnection) -> Result<(), StoreError> {
    if !connection.is_postgres() {
        return Ok(());
    }
    let query = sqlx::query_scalar("SELECT pg_try_advisory_lock($1)").bind(IMPORT_LOCK);
    match query.fetch_one(connection).await? {
        true => Ok(()),
        false => Err(TransferError::ImportRuns.into()),
    }
}

/// Lets the database go on counting behind the ids that were imported. SQLite does so by itself.
async fn count_on(connection: &mut AnyConnection, shapes: &[Shape]) -> Result<(), StoreError> {
    for shape in shapes {
        let Some(column) = &shape.identity else {
            continue;
        };
        let table = shape.table;
        let sql = format!(
            "SELECT setval(pg_get_serial_sequence('{table}', '{column}'), \
             (SELECT COALESCE(MAX(\"{column}\"), 0) + 1 FROM {table}), false)"
        );
        sqlx::query(AssertSqlSafe(sql))
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}
