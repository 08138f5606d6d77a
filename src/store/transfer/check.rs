//! Checks a file as a whole before anything is written.

use std::fs::File;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::super::StoreError;
use super::super::error::TransferError;
use super::format::{
    BetweenTables, Cell, FORMAT, FileEnd, FormatNumber, Header, TableEnd, TableHead, parse_row,
    to_hex,
};
use super::lines::FileLines;
use super::progress::{OnProgress, ROWS_BETWEEN, TransferPhase, TransferProgress};
use super::shape::{Column, Shape};
use super::tables;
use super::totals::{TransferTotals, WrittenTotals};

/// A file that is whole.
pub(super) struct CheckedFile {
    /// The version of the program that made it.
    pub(super) program: String,
    pub(super) tables: Vec<CheckedTable>,
    pub(super) totals: TransferTotals,
    /// The SHA-256 of all lines but the last, by which an import knows its file again.
    pub(super) sha256: String,
    pub(super) bytes: u64,
}

/// A table of the file.
pub(super) struct CheckedTable {
    pub(super) name: &'static str,
    pub(super) columns: Vec<Column>,
    pub(super) end: TableEnd,
}

/// Reads the first line.
///
/// Errors: it is of no export, or of one that this version cannot read.
pub(super) fn read_header(path: &Path, file: &File) -> Result<Header, StoreError> {
    let mut lines = FileLines::of_file(path, file)?;
    let of_export = "the beginning of an export (`weirgate export FILE` makes one)";
    let FormatNumber { weirgate_export } = lines.read_object(of_export)?;
    if weirgate_export != FORMAT {
        return Err(lines.problem(&format!(
            "says format {weirgate_export}, and this version reads {FORMAT}: import it with the version that made it"
        )));
    }
    serde_json::from_slice(lines.line())
        .map_err(|_| lines.problem("is not the beginning of an export"))
}

/// Reads a file to its end. Cost: one line in memory.
///
/// Errors: a line that is not what it has to be, a sum or a digest that differs, a table that is unknown.
pub(super) fn check(
    (path, file): (&Path, &File),
    is_postgres: bool,
    on_progress: &mut OnProgress<'_>,
) -> Result<CheckedFile, StoreError> {
    let header = read_header(path, file)?;
    let metadata = file.metadata();
    let size = metadata.map_or(0, |metadata| metadata.len());
    let mut lines = FileLines::of_file(path, file)?;
    lines.read()?;
    let mut checked = CheckedFile {
        program: header.program,
        tables: Vec::new(),
        totals: TransferTotals::default(),
        sha256: String::new(),
        bytes: size,
    };
    let said = loop {
        let between = "the beginning of a table, nor that of the sums";
        match lines.read_object(between)? {
            BetweenTables::Table(head) => {
                let mut check = TableCheck {
                    lines: &mut lines,
                    is_postgres,
                    on_progress: &mut *on_progress,
                };
                check.run(head, &mut checked)?;
            }
            BetweenTables::Totals(line) => break line.totals,
        }
    };
    if said != WrittenTotals::from(&checked.totals) {
        return Err(lines.problem("has other sums than the rows"));
    }
    let end: FileEnd = lines.read_object("the end of an export")?;
    checked.sha256 = lines.digest();
    if end.sha256 != checked.sha256 {
        return Err(lines.problem(
            "has another SHA-256 than the lines before it: a part of the file is damaged",
        ));
    }
    match lines.is_at_end()? {
        true => Ok(checked),
        false => Err(lines.problem("is the end, and more follows")),
    }
}

/// The check of one table.
struct TableCheck<'c, 'f> {
    lines: &'c mut FileLines<'f>,
    is_postgres: bool,
    on_progress: &'c mut OnProgress<'c>,
}

impl TableCheck<'_, '_> {
    /// Checks a table whose head was read, and adds it to the file.
    fn run(&mut self, head: TableHead, checked: &mut CheckedFile) -> Result<(), StoreError> {
        let Some((place, name)) = tables::find(&head.table) else {
            return Err(unknown(format!("the table {}", head.table), checked));
        };
        let last = checked.tables.last();
        let last = last.and_then(|table| tables::find(table.name));
        if last.is_some_and(|(last, _)| last >= place) {
            let problem =
                format!("begins the table {name}, which is at a wrong place or comes twice");
            return Err(self.lines.problem(&problem));
        }
        let mut digest = Sha256::new();
        let mut rows = 0_u64;
        loop {
            let line = self.lines.read()?;
            if line.first() != Some(&b'[') {
                break;
            }
            digest.update(line);
            let cells = parse_row(line, &head.columns);
            let cells = cells.map_err(|problem| self.lines.problem(&problem))?;
            self.check_texts(&cells, &head.columns)?;
            let added = checked.totals.add(name, &head.columns, &cells);
            added.map_err(|column| {
                let problem = format!("has a value of the column {column} that is no amount");
                self.lines.problem(&problem)
            })?;
            if rows.is_multiple_of(ROWS_BETWEEN) {
                (self.on_progress)(TransferProgress {
                    phase: TransferPhase::Check,
                    table: name,
                    rows,
                    done: self.lines.bytes,
                    total: checked.bytes,
                });
            }
            rows += 1;
        }
        let end = TableEnd {
            rows,
            sha256: to_hex(digest),
        };
        let said: Result<TableEnd, _> = serde_json::from_slice(self.lines.line());
        if said.ok().as_ref() != Some(&end) {
            let problem = format!(
                "is neither a row nor the number and the SHA-256 of the rows of the table {name}"
            );
            return Err(self.lines.problem(&problem));
        }
        checked.tables.push(CheckedTable {
            name,
            columns: head.columns,
            end,
        });
        Ok(())
    }

    /// Refuses what one of the databases cannot hold.
    fn check_texts(&self, cells: &[Cell], columns: &[Column]) -> Result<(), StoreError> {
        if !self.is_postgres {
            return Ok(());
        }
        let is_refused = |cell: &Cell| matches!(cell, Cell::Text(text) if text.contains('\0'));
        let Some(place) = cells.iter().position(is_refused) else {
            return Ok(());
        };
        let column = columns.get(place).map_or("", |column| &column.0);
        Err(self.lines.problem(&format!(
            "has the character U+0000 in the column {column}, which PostgreSQL cannot hold"
        )))
    }
}

impl CheckedFile {
    /// Compares the columns of the file with those of the target.
    ///
    /// Errors: a column that the target does not have, or has with another type, or that it needs and the file lacks.
    pub(super) fn check_columns(&self, shapes: &[Shape]) -> Result<(), StoreError> {
        for (table, shape) in self.with_shapes(shapes) {
            let unknown_column = |column: &&Column| !shape.columns.contains(column);
            if let Some(column) = table.columns.iter().find(unknown_column) {
                return Err(unknown(
                    format!("the column {}.{}", table.name, column.0),
                    self,
                ));
            }
            let is_missing =
                |name: &&String| !table.columns.iter().any(|column| column.0 == **name);
            if let Some(name) = shape.required.iter().find(is_missing) {
                let column = format!("{}.{name}", table.name);
                return Err(TransferError::MissingColumn(column).into());
            }
        }
        Ok(())
    }

    /// Returns the tables of the file with their shapes in the target.
    pub(super) fn with_shapes<'a>(
        &'a self,
        shapes: &'a [Shape],
    ) -> impl Iterator<Item = (&'a CheckedTable, &'a Shape)> {
        self.tables.iter().filter_map(|table| {
            let shape = shapes.iter().find(|shape| shape.table == table.name)?;
            Some((table, shape))
        })
    }
}

fn unknown(name: String, file: &CheckedFile) -> StoreError {
    let program = file.program.clone();
    TransferError::Unknown { name, program }.into()
}
