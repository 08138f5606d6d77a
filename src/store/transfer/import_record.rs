//! What a store knows of imports into it.

use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Row};

use super::super::StoreError;
use super::super::error::{ImportPlace, TransferError};
use super::tables::{STATE_TABLE, TABLES};

/// An import that has not ended.
#[derive(Clone, Debug)]
pub(super) struct ImportRecord {
    file_sha256: String,
    pub(super) place: ImportPlace,
}

impl ImportRecord {
    fn read(row: &AnyRow) -> Result<Self, StoreError> {
        Ok(Self {
            file_sha256: row.try_get("file_sha256")?,
            place: ImportPlace {
                table: row.try_get("table_name")?,
                rows: row.try_get("rows_done")?,
            },
        })
    }

    /// Finds the import that has not ended.
    ///
    /// Errors: [`TransferError::OtherImport`] if it is of another file.
    pub(super) async fn find(
        connection: &mut AnyConnection,
        file_sha256: &str,
    ) -> Result<Option<Self>, StoreError> {
        match find_unfinished(connection).await? {
            Some(found) if found.file_sha256 != file_sha256 => {
                Err(TransferError::OtherImport(found.place).into())
            }
            found => Ok(found),
        }
    }

    /// Begins an import into an empty store.
    ///
    /// Errors: [`TransferError::AlreadyImported`] and [`TransferError::NotEmpty`].
    pub(super) async fn begin(
        connection: &mut AnyConnection,
        file_sha256: &str,
        now_ms: i64,
    ) -> Result<Self, StoreError> {
        let mut change = connection.begin().await?;
        // The first statement is a write, because SQLite cannot upgrade a reading transaction.
        let sql = "INSERT INTO imports (file_sha256, table_name, rows_done, started_at) \
                   VALUES ($1, '', 0, $2) ON CONFLICT (file_sha256) DO NOTHING";
        let query = sqlx::query(sql).bind(file_sha256.to_owned()).bind(now_ms);
        let is_new = query.execute(&mut *change).await?.rows_affected() == 1;
        let filled = find_filled(&mut change).await?;
        if !is_new {
            return Err(TransferError::AlreadyImported.into());
        }
        if !filled.is_empty() {
            return Err(TransferError::NotEmpty(filled).into());
        }
        change.commit().await?;
        Ok(Self {
            file_sha256: file_sha256.to_owned(),
            place: ImportPlace::default(),
        })
    }

    /// Records that the import has ended: the store is whole.
    pub(super) async fn finish(
        &self,
        connection: &mut AnyConnection,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let sql = "UPDATE imports SET finished_at = $1 WHERE file_sha256 = $2";
        let query = sqlx::query(sql).bind(now_ms).bind(self.file_sha256.clone());
        query.execute(connection).await?;
        Ok(())
    }
}

/// Records that so many rows of a table are written, and the tables before it.
pub(super) async fn advance(
    change: &mut AnyConnection,
    file_sha256: &str,
    table: &str,
    rows: u64,
) -> Result<(), StoreError> {
    let sql = "UPDATE imports SET table_name = $1, rows_done = $2 WHERE file_sha256 = $3";
    let query = sqlx::query(sql)
        .bind(table.to_owned())
        .bind(rows.cast_signed());
    let query = query.bind(file_sha256.to_owned());
    query.execute(change).await?;
    Ok(())
}

/// Checks that a store is whole.
///
/// Errors: [`TransferError::Unfinished`] if it holds the beginning of an import.
pub(in super::super) async fn check_finished(
    connection: &mut AnyConnection,
) -> Result<(), StoreError> {
    match find_unfinished(connection).await? {
        Some(found) => Err(TransferError::Unfinished(found.place).into()),
        None => Ok(()),
    }
}

async fn find_unfinished(
    connection: &mut AnyConnection,
) -> Result<Option<ImportRecord>, StoreError> {
    let sql = "SELECT file_sha256, table_name, rows_done FROM imports WHERE finished_at IS NULL";
    let row = sqlx::query(sql).fetch_optional(connection).await?;
    row.as_ref().map(ImportRecord::read).transpose()
}

/// Returns the tables that have rows, but for the one row that every store has.
async fn find_filled(change: &mut AnyConnection) -> Result<Vec<&'static str>, StoreError> {
    let mut filled = Vec::new();
    for table in TABLES.into_iter().filter(|table| *table != STATE_TABLE) {
        let sql = AssertSqlSafe(format!("SELECT 1 FROM {table} LIMIT 1"));
        if sqlx::query(sql)
            .fetch_optional(&mut *change)
            .await?
            .is_some()
        {
            filled.push(table);
        }
    }
    Ok(filled)
}
