//! Rows that are written in one transaction, with how far the import has come.

use sqlx::any::AnyArguments;
use sqlx::query::Query;
use sqlx::{Any, AnyConnection, Connection};

use super::super::StoreError;
use super::format::Cell;
use super::import_record;
use super::shape::{Column, ColumnType, Shape};

/// The maximum number of rows in one transaction.
const MAX_ROWS: usize = 8192;
/// The maximum size of the lines of one transaction, but for its last one.
const MAX_BYTES: usize = 8 << 20;
/// The maximum number of rows in one statement.
const MAX_STATEMENT_ROWS: usize = 256;
/// The maximum number of values in one statement. SQLite takes 32,766, PostgreSQL 65,535.
const MAX_STATEMENT_VALUES: usize = 16_000;

/// Rows of a table that wait to be written.
pub(super) struct Batch<'b> {
    shape: &'b Shape,
    columns: &'b [Column],
    file_sha256: &'b str,
    rows: Vec<Vec<Cell>>,
    bytes: usize,
}

impl<'b> Batch<'b> {
    /// Makes an empty batch of rows with these columns.
    pub(super) fn new(shape: &'b Shape, columns: &'b [Column], file_sha256: &'b str) -> Self {
        Self {
            shape,
            columns,
            file_sha256,
            rows: Vec::new(),
            bytes: 0,
        }
    }

    /// Adds a row whose line has so many bytes.
    pub(super) fn push(&mut self, row: Vec<Cell>, bytes: usize) {
        self.rows.push(row);
        self.bytes += bytes;
    }

    /// Returns whether it has to be written before more is added.
    pub(super) fn is_full(&self) -> bool {
        self.rows.len() >= MAX_ROWS || self.bytes >= MAX_BYTES
    }

    /// Writes the rows, up to the one with this number, counted from 1, and records that. Leaves the batch empty.
    pub(super) async fn write(
        &mut self,
        connection: &mut AnyConnection,
        number: u64,
    ) -> Result<(), StoreError> {
        let mut change = connection.begin().await?;
        let in_statement = MAX_STATEMENT_VALUES / self.columns.len().max(1);
        let in_statement = in_statement.clamp(1, MAX_STATEMENT_ROWS);
        let mut rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        while !rows.is_empty() {
            let count = rows.len().min(in_statement);
            let mut query = sqlx::query(self.shape.insert(self.columns, count));
            // Only the statement of a whole portion comes again and again.
            query = query.persistent(count == in_statement);
            for row in rows.drain(..count) {
                for (cell, column) in row.into_iter().zip(self.columns) {
                    query = bind(query, cell, column.1);
                }
            }
            query.execute(&mut *change).await?;
        }
        import_record::advance(&mut change, self.file_sha256, self.shape.table, number).await?;
        change.commit().await?;
        Ok(())
    }
}

fn bind(
    query: Query<'_, Any, AnyArguments>,
    cell: Cell,
    column_type: ColumnType,
) -> Query<'_, Any, AnyArguments> {
    match (cell, column_type) {
        (Cell::Integer(integer), _) => query.bind(integer),
        (Cell::Text(text), _) => query.bind(text),
        (Cell::Bytes(bytes), _) => query.bind(bytes),
        // PostgreSQL wants the type of a NULL, too.
        (Cell::Null, ColumnType::Integer) => query.bind(None::<i64>),
        (Cell::Null, ColumnType::Text) => query.bind(None::<String>),
        (Cell::Null, ColumnType::Bytes) => query.bind(None::<Vec<u8>>),
    }
}
