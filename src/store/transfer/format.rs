//! The lines of the file.
//!
//! Shape: JSON lines. The first is a [`Header`]. Each table has a [`TableHead`], a line for each row, which is an array of the
//! columns' values, and a [`TableEnd`]. Then come the [`TotalsLine`] and the [`FileEnd`]. Bytes are text in base64. Nothing in the
//! file depends on when or where it was made.

use std::io::Write;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::shape::{Column, ColumnType};
use super::totals::WrittenTotals;

/// The version of the format. Another version of the program reads no other.
pub(super) const FORMAT: u32 = 1;
/// The maximum length of a line with its end. No row of the store comes near it.
pub(super) const MAX_LINE_BYTES: u64 = 64 << 20;

/// The first line.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    /// [`FORMAT`].
    pub(super) weirgate_export: u32,
    /// The version of the program that made the file.
    pub(super) program: String,
    /// The migration that a program has to know to work with these tables.
    pub(super) needs_migration: i64,
    /// The mark of the secret, in hexadecimal digits. The secret does not follow from it.
    pub(super) secret_mark: String,
}

/// The part of the first line that is the same in every version.
#[derive(Deserialize)]
pub(super) struct FormatNumber {
    pub(super) weirgate_export: u32,
}

/// The line before the rows of a table.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TableHead {
    pub(super) table: String,
    pub(super) columns: Vec<Column>,
}

/// The line behind the rows of a table: their number, and the SHA-256 of their lines.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TableEnd {
    pub(super) rows: u64,
    pub(super) sha256: String,
}

/// The line behind all tables.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TotalsLine {
    pub(super) totals: WrittenTotals,
}

/// A line behind a table.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum BetweenTables {
    Table(TableHead),
    Totals(TotalsLine),
}

/// The last line: the SHA-256 of all lines before it.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileEnd {
    pub(super) sha256: String,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Null,
    Integer(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// Appends the line of a row.
pub(super) fn write_row(cells: &[Cell], line: &mut Vec<u8>) {
    line.push(b'[');
    for (place, cell) in cells.iter().enumerate() {
        if place > 0 {
            line.push(b',');
        }
        // Writing to memory cannot fail.
        match cell {
            Cell::Null => line.extend_from_slice(b"null"),
            Cell::Integer(integer) => _ = write!(line, "{integer}"),
            Cell::Text(text) => _ = serde_json::to_writer(&mut *line, text),
            Cell::Bytes(bytes) => _ = write!(line, "\"{}\"", BASE64_STANDARD.encode(bytes)),
        }
    }
    line.extend_from_slice(b"]\n");
}

/// Parses the line of a row. Only a line that [`write_row`] writes is one.
///
/// Errors: the predicate of a sentence about the line.
pub(super) fn parse_row(line: &[u8], columns: &[Column]) -> Result<Vec<Cell>, String> {
    let values: Vec<Value> =
        serde_json::from_slice(line).map_err(|_| "is no row of values".to_owned())?;
    if values.len() != columns.len() {
        let (came, wanted) = (values.len(), columns.len());
        return Err(format!(
            "has {came} values, and the table has {wanted} columns"
        ));
    }
    let cells = values.into_iter().zip(columns);
    let cells: Result<Vec<Cell>, String> = cells
        .map(|(value, Column(name, column_type))| {
            parse_cell(value, *column_type).ok_or_else(|| {
                format!(
                    "has a value of the column {name} that is {}",
                    wrong(*column_type)
                )
            })
        })
        .collect();
    let cells = cells?;
    let mut again = Vec::with_capacity(line.len());
    write_row(&cells, &mut again);
    match again == line {
        true => Ok(cells),
        false => Err("is not written as an export writes it".to_owned()),
    }
}

fn wrong(wanted: ColumnType) -> &'static str {
    match wanted {
        ColumnType::Integer => "no integer of 64 bits",
        ColumnType::Text => "no text",
        ColumnType::Bytes => "no base64",
    }
}

fn parse_cell(value: Value, wanted: ColumnType) -> Option<Cell> {
    match (value, wanted) {
        (Value::Null, _) => Some(Cell::Null),
        (Value::Number(number), ColumnType::Integer) => number.as_i64().map(Cell::Integer),
        (Value::String(text), ColumnType::Text) => Some(Cell::Text(text)),
        (Value::String(text), ColumnType::Bytes) => {
            BASE64_STANDARD.decode(text).ok().map(Cell::Bytes)
        }
        _ => None,
    }
}

/// Returns the line of a value.
pub(super) fn to_line(value: &impl Serialize) -> Vec<u8> {
    // Our lines have no map with keys that are no texts, so this cannot fail.
    let mut line = serde_json::to_vec(value).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Returns a digest in hexadecimal digits.
pub(super) fn to_hex(digest: Sha256) -> String {
    bytes_to_hex(digest.finalize().as_slice())
}

/// Returns bytes in hexadecimal digits.
pub(super) fn bytes_to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn columns() -> Vec<Column> {
        let column = |name: &str, column_type| Column(name.to_owned(), column_type);
        vec![
            column("a", ColumnType::Text),
            column("b", ColumnType::Integer),
            column("c", ColumnType::Bytes),
            column("d", ColumnType::Text),
        ]
    }

    #[test]
    fn a_row_comes_back_as_it_was() {
        let cells = vec![
            Cell::Text("é \"\\ \u{1}\n 🦀".to_owned()),
            Cell::Integer(i64::MIN),
            Cell::Bytes(vec![0, 255, 7]),
            Cell::Null,
        ];
        let mut line = Vec::new();
        write_row(&cells, &mut line);
        assert_eq!(parse_row(&line, &columns()).unwrap(), cells);
    }

    #[test]
    fn a_line_that_no_export_writes_is_refused_and_named() {
        for (line, problem) in [
            (
                "[\"a\",1,\"AA==\"]\n",
                "has 3 values, and the table has 4 columns",
            ),
            ("[1,1,\"AA==\",null]\n", "of the column a that is no text"),
            (
                "[\"a\",1.5,\"AA==\",null]\n",
                "of the column b that is no integer",
            ),
            (
                "[\"a\",9223372036854775808,\"AA==\",null]\n",
                "no integer of 64 bits",
            ),
            (
                "[\"a\",1,\"A\",null]\n",
                "of the column c that is no base64",
            ),
            ("[\"a\", 1,\"AA==\",null]\n", "as an export writes it"),
            ("{}\n", "is no row of values"),
            ("[\"a\n", "is no row of values"),
        ] {
            let said = parse_row(line.as_bytes(), &columns()).unwrap_err();
            assert!(said.contains(problem), "{line}: {said}");
        }
    }
}
