//! The columns of a table, as the database has them: a later migration needs no change here.

use serde::{Deserialize, Serialize};
use sqlx::{AnyConnection, AssertSqlSafe, Row};

use super::super::StoreError;
use super::super::connections::Dialect;
use super::tables::{KEPT_COLUMN, STATE_TABLE};

/// The type of a column.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ColumnType {
    Integer,
    Text,
    Bytes,
}

impl ColumnType {
    /// Reads a type as a database names it.
    fn from_sql(name: &str) -> Option<Self> {
        match name {
            "bigint" | "integer" => Some(Self::Integer),
            "text" => Some(Self::Text),
            "bytea" | "blob" => Some(Self::Bytes),
            _ => None,
        }
    }
}

/// A column, as the file names it: its name and its type.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Column(pub(super) String, pub(super) ColumnType);

/// A table of a database.
pub(super) struct Shape {
    pub(super) table: &'static str,
    /// By name, so that their order does not tell in which order migrations added them.
    pub(super) columns: Vec<Column>,
    /// The columns of the primary key, in their order.
    key: Vec<Column>,
    /// The columns that every row needs a value for.
    pub(super) required: Vec<String>,
    /// The column whose values the database makes.
    pub(super) identity: Option<String>,
    is_postgres: bool,
}

/// `$1` is a table. `type` is lower case; `key_place` is NULL beside the primary key.
const SQLITE_COLUMNS: &str = "\
SELECT name, lower(type) AS type, NULLIF(pk, 0) AS key_place, \
    CASE WHEN (\"notnull\" = 1 OR pk > 0) AND dflt_value IS NULL THEN 1 ELSE 0 END AS is_required, \
    0 AS is_identity \
FROM pragma_table_info($1)";
const POSTGRES_COLUMNS: &str = "\
SELECT CAST(a.attname AS TEXT) AS name, format_type(a.atttypid, a.atttypmod) AS type, \
    CAST(array_position(CAST(i.indkey AS int2[]), a.attnum) AS BIGINT) AS key_place, \
    CAST(CASE WHEN a.attnotnull AND NOT a.atthasdef THEN 1 ELSE 0 END AS BIGINT) AS is_required, \
    CAST(CASE WHEN a.attidentity <> '' THEN 1 ELSE 0 END AS BIGINT) AS is_identity \
FROM pg_attribute a LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary \
WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped";

impl Shape {
    /// Reads the columns of a table.
    ///
    /// Errors: the table is absent, or has a type that no table of the store has.
    pub(super) async fn read(
        connection: &mut AnyConnection,
        table: &'static str,
    ) -> Result<Self, StoreError> {
        let is_postgres = connection.is_postgres();
        let sql = match is_postgres {
            true => POSTGRES_COLUMNS,
            false => SQLITE_COLUMNS,
        };
        let mut shape = Self {
            table,
            columns: Vec::new(),
            key: Vec::new(),
            required: Vec::new(),
            identity: None,
            is_postgres,
        };
        let mut key = Vec::new();
        for row in sqlx::query(sql).bind(table).fetch_all(connection).await? {
            let name: String = row.try_get("name")?;
            let column_type = ColumnType::from_sql(row.try_get("type")?);
            let column_type = column_type.ok_or(StoreError::Damaged("a type of a column"))?;
            let column = Column(name.clone(), column_type);
            if let Some(place) = row.try_get::<Option<i64>, _>("key_place")? {
                key.push((place, column.clone()));
            }
            if row.try_get::<i64, _>("is_required")? != 0 {
                shape.required.push(name.clone());
            }
            if row.try_get::<i64, _>("is_identity")? != 0 {
                shape.identity = Some(name.clone());
            }
            if (table, &*name) != KEPT_COLUMN {
                shape.columns.push(column);
            }
        }
        if shape.columns.is_empty() {
            return Err(StoreError::UnknownTables);
        }
        shape.columns.sort_by(|a, b| a.0.cmp(&b.0));
        key.sort_by_key(|(place, _)| *place);
        shape.key = key.into_iter().map(|(_, column)| column).collect();
        Ok(shape)
    }

    /// Returns the statement that reads these columns of all rows. Both databases return them in the same order: that of the
    /// primary key, texts by their bytes.
    pub(super) fn select(&self, columns: &[Column]) -> AssertSqlSafe<String> {
        let order = |column: &Column| match (column.1, self.is_postgres) {
            (ColumnType::Text, true) => format!("\"{}\" COLLATE \"C\"", column.0),
            _ => format!("\"{}\"", column.0),
        };
        let order: Vec<String> = self.key.iter().map(order).collect();
        AssertSqlSafe(format!(
            "SELECT {} FROM {} ORDER BY {}",
            quoted(columns),
            self.table,
            order.join(", ")
        ))
    }

    /// Returns the statement that inserts so many rows of these columns.
    pub(super) fn insert(&self, columns: &[Column], rows: usize) -> AssertSqlSafe<String> {
        let numbers = 1..=columns.len() * rows;
        let numbers: Vec<String> = numbers.map(|number| format!("${number}")).collect();
        let values = numbers.chunks(columns.len().max(1));
        let values: Vec<String> = values.map(|row| format!("({})", row.join(", "))).collect();
        let ids = match &self.identity {
            Some(_) => "OVERRIDING SYSTEM VALUE ",
            None => "",
        };
        AssertSqlSafe(format!(
            "INSERT INTO {} ({}) {ids}VALUES {}{}",
            self.table,
            quoted(columns),
            values.join(", "),
            self.replacement(columns)
        ))
    }

    /// Returns what an insert does with a row that every store has.
    fn replacement(&self, columns: &[Column]) -> String {
        if self.table != STATE_TABLE {
            return String::new();
        }
        let is_of_key = |column: &&Column| self.key.iter().any(|of_key| of_key.0 == column.0);
        let others = columns.iter().filter(|column| !is_of_key(column));
        let set = others.map(|column| format!("\"{0}\" = excluded.\"{0}\"", column.0));
        let set: Vec<String> = set.collect();
        let key = quoted(&self.key);
        format!(" ON CONFLICT ({key}) DO UPDATE SET {}", set.join(", "))
    }
}

fn quoted(columns: &[Column]) -> String {
    let names = columns.iter().map(|column| format!("\"{}\"", column.0));
    names.collect::<Vec<_>>().join(", ")
}
