//! Writes the tables of a store to a file, all of one moment.

use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;

use sha2::{Digest, Sha256};
use sqlx::{AnyConnection, Connection, Row};

use super::super::error::TransferError;
use super::super::secret::file_error;
use super::super::{Store, StoreError, StoreLock, StoreSettings, StoreUrl};
use super::format::{
    FORMAT, FileEnd, Header, TableHead, TotalsLine, bytes_to_hex, to_hex, to_line,
};
use super::progress::{OnProgress, ROWS_BETWEEN, TransferPhase, TransferProgress};
use super::shape::Shape;
use super::table_rows::{VisitedRow, begin_reading, connect, end_reading, read_shapes, visit_rows};
use super::tables::STATE_TABLE;
use super::totals::TransferTotals;
use crate::durable::new_file::{NewFile, PRIVATE};

/// What was exported.
#[derive(Clone, Debug)]
pub struct ExportedStore {
    pub totals: TransferTotals,
    /// Whether a server works on the store: what it has not stored yet is missing.
    pub has_server: bool,
    /// The number of processes that are gone, and whose journal may hold calls that the store does not have.
    pub left_journals: usize,
}

/// Writes a store to a new file, readable only by its owner.
///
/// Errors: those of [`export`]; the file exists already.
pub async fn export_to_file(
    settings: &StoreSettings,
    while_running: bool,
    path: &Path,
    on_progress: &mut OnProgress<'_>,
) -> Result<ExportedStore, StoreError> {
    let new = NewFile::create(path, PRIVATE).map_err(|error| file_error(path, error))?;
    let mut out = BufWriter::new(new.file());
    let exported = export(settings, while_running, (path, &mut out), on_progress).await?;
    out.flush().map_err(|error| file_error(path, error))?;
    drop(out);
    new.publish().map_err(|error| file_error(path, error))?;
    Ok(exported)
}

/// Writes a store to `to`, whose name is for errors.
///
/// Until the end no server starts on a SQLite file, unless `while_running`. Errors: the store is absent; a server works on it, and
/// `while_running` is false; the database or `to` failed.
pub async fn export<'a>(
    settings: &StoreSettings,
    while_running: bool,
    to: (&'a Path, &'a mut dyn Write),
    on_progress: &mut OnProgress<'_>,
) -> Result<ExportedStore, StoreError> {
    if let StoreUrl::Sqlite(path) = &settings.url {
        path.metadata().map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                let error = std::io::Error::other("there is no store: name one by store.url");
                file_error(path, error)
            }
            _ => file_error(path, error),
        })?;
    }
    let (_lock, is_locked) = match StoreLock::acquire(&settings.url) {
        Ok(lock) => (lock.filter(|_| !while_running), false),
        Err(StoreError::InUse { .. }) => (None, true),
        Err(error) => return Err(error),
    };
    if is_locked && !while_running {
        return Err(TransferError::SourceRuns.into());
    }
    let store = Store::open(settings).await?.store;
    let is_shared = matches!(settings.url, StoreUrl::Postgres(_));
    let has_server = is_locked || (is_shared && store.has_running_process().await?);
    if has_server && !while_running {
        return Err(TransferError::SourceRuns.into());
    }
    let owners = store.journal_owners().await?;
    let left = owners.iter().filter(|owner| !owner.is_running);
    let left_journals = if is_locked { 0 } else { left.count() };
    let mut connection = connect(&store.url).await?;
    let mut writer = ExportWriter {
        to,
        digest: Sha256::new(),
    };
    let written = write_store(&store, &mut connection, &mut writer, on_progress).await;
    _ = connection.close().await;
    store.close().await;
    Ok(ExportedStore {
        totals: written?,
        has_server,
        left_journals,
    })
}

/// Writes lines and sums them up.
struct ExportWriter<'w> {
    to: (&'w Path, &'w mut dyn Write),
    digest: Sha256,
}

impl ExportWriter<'_> {
    fn write(&mut self, line: &[u8]) -> Result<(), StoreError> {
        self.digest.update(line);
        let (path, out) = &mut self.to;
        out.write_all(line).map_err(|error| file_error(path, error))
    }
}

async fn write_store(
    store: &Store,
    connection: &mut AnyConnection,
    writer: &mut ExportWriter<'_>,
    on_progress: &mut OnProgress<'_>,
) -> Result<TransferTotals, StoreError> {
    begin_reading(connection).await?;
    let sql = format!("SELECT needs_migration FROM {STATE_TABLE} WHERE one = 1");
    let state = sqlx::query(sqlx::AssertSqlSafe(sql));
    let state = state.fetch_one(&mut *connection).await?;
    writer.write(&to_line(&Header {
        weirgate_export: FORMAT,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        needs_migration: state.try_get(0)?,
        secret_mark: bytes_to_hex(&store.pepper.fingerprint()),
    }))?;
    let shapes = read_shapes(connection).await?;
    let mut totals = TransferTotals::default();
    let total = shapes.len() as u64;
    for (done, shape) in (0..total).zip(&shapes) {
        let mut on_row = |rows| {
            on_progress(TransferProgress {
                phase: TransferPhase::Export,
                table: shape.table,
                rows,
                done,
                total,
            });
        };
        write_table(connection, shape, writer, &mut totals, &mut on_row).await?;
    }
    end_reading(connection).await?;
    writer.write(&to_line(&TotalsLine {
        totals: (&totals).into(),
    }))?;
    let end = FileEnd {
        sha256: to_hex(writer.digest.clone()),
    };
    writer.write(&to_line(&end))?;
    Ok(totals)
}

async fn write_table(
    connection: &mut AnyConnection,
    shape: &Shape,
    writer: &mut ExportWriter<'_>,
    totals: &mut TransferTotals,
    on_row: &mut dyn FnMut(u64),
) -> Result<(), StoreError> {
    on_row(0);
    writer.write(&to_line(&TableHead {
        table: shape.table.to_owned(),
        columns: shape.columns.clone(),
    }))?;
    let mut visit = |row: &VisitedRow<'_>| {
        if row.number.is_multiple_of(ROWS_BETWEEN) {
            on_row(row.number);
        }
        let added = totals.add(shape.table, &shape.columns, row.cells);
        added.map_err(StoreError::Damaged)?;
        writer.write(row.line)
    };
    let end = visit_rows(connection, shape, &shape.columns, &mut visit).await?;
    writer.write(&to_line(&end))
}
