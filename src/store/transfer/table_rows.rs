//! Reads the rows of a table, one after the other.

use futures::TryStreamExt;
use sha2::{Digest, Sha256};
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};

use super::super::connections::Dialect;
use super::super::error::TransferError;
use super::super::{StoreError, connections};
use super::format::{Cell, MAX_LINE_BYTES, TableEnd, to_hex, write_row};
use super::shape::{Column, ColumnType, Shape};
use super::tables::TABLES;

/// A row and its line.
pub(super) struct VisitedRow<'a> {
    pub(super) cells: &'a [Cell],
    pub(super) line: &'a [u8],
    /// Its number in the table, counted from 0.
    pub(super) number: u64,
}

/// Begins a transaction in which a connection sees one moment of the store.
pub(super) async fn begin_reading(connection: &mut AnyConnection) -> Result<(), StoreError> {
    let sql = match connection.is_postgres() {
        true => "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY",
        // The first read sets the moment.
        false => "BEGIN",
    };
    sqlx::raw_sql(sql).execute(connection).await?;
    Ok(())
}

/// Ends that transaction.
pub(super) async fn end_reading(connection: &mut AnyConnection) -> Result<(), StoreError> {
    sqlx::raw_sql("COMMIT").execute(connection).await?;
    Ok(())
}

/// Makes a connection without time limits to the store at this URL.
pub(super) async fn connect(url: &str) -> Result<AnyConnection, StoreError> {
    connections::connect(url, connections::Purpose::Migration).await
}

/// Reads the shapes of all tables.
pub(super) async fn read_shapes(connection: &mut AnyConnection) -> Result<Vec<Shape>, StoreError> {
    let mut shapes = Vec::with_capacity(TABLES.len());
    for table in TABLES {
        shapes.push(Shape::read(connection, table).await?);
    }
    Ok(shapes)
}

/// Visits these columns of the rows of a table in their order. Returns their number and the digest of their lines. Cost: one row
/// at a time in memory; the database sorts.
pub(super) async fn visit_rows(
    connection: &mut AnyConnection,
    shape: &Shape,
    columns: &[Column],
    visit: &mut dyn FnMut(&VisitedRow<'_>) -> Result<(), StoreError>,
) -> Result<TableEnd, StoreError> {
    let mut rows = sqlx::query(shape.select(columns)).fetch(connection);
    let mut digest = Sha256::new();
    let mut count = 0;
    let mut line = Vec::new();
    while let Some(row) = rows.try_next().await? {
        let cells = read_cells(&row, shape.table, columns)?;
        line.clear();
        write_row(&cells, &mut line);
        if line.len() as u64 > MAX_LINE_BYTES {
            return Err(TransferError::RowTooLarge(shape.table).into());
        }
        digest.update(&line);
        visit(&VisitedRow {
            cells: &cells,
            line: &line,
            number: count,
        })?;
        count += 1;
    }
    Ok(TableEnd {
        rows: count,
        sha256: to_hex(digest),
    })
}

fn read_cells(
    row: &AnyRow,
    table: &'static str,
    columns: &[Column],
) -> Result<Vec<Cell>, StoreError> {
    let cells = columns.iter().enumerate();
    let cells = cells.map(|(place, Column(name, column_type))| {
        read_cell(row, place, *column_type).map_err(|_| {
            let column = name.clone();
            TransferError::WrongType { table, column }.into()
        })
    });
    cells.collect()
}

fn read_cell(row: &AnyRow, place: usize, column_type: ColumnType) -> Result<Cell, sqlx::Error> {
    let cell = match column_type {
        ColumnType::Integer => row.try_get::<Option<i64>, _>(place)?.map(Cell::Integer),
        ColumnType::Text => row.try_get::<Option<String>, _>(place)?.map(Cell::Text),
        ColumnType::Bytes => row.try_get::<Option<Vec<u8>>, _>(place)?.map(Cell::Bytes),
    };
    Ok(cell.unwrap_or(Cell::Null))
}
