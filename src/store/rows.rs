//! Many rows as one parameter of a statement.
//!
//! The parameter is a JSON array of rows, each an array of values. So a statement has the same text and as many
//! parameters for one row as for thousands, on both databases.

use serde::Serialize;
use sqlx::any::AnyArguments;
use sqlx::query::Query;
use sqlx::{Any, AssertSqlSafe};

use super::StoreError;
use super::connections::Dialect;

/// Rows to bind.
pub(super) struct Rows {
    table: &'static str,
    json: String,
}

impl Rows {
    /// Makes the parameter of rows, each a tuple.
    pub(super) fn new(
        connection: &impl Dialect,
        rows: &[impl Serialize],
    ) -> Result<Self, StoreError> {
        let table = match connection.is_postgres() {
            true => "jsonb_array_elements(CAST($1 AS jsonb)) AS rows (value)",
            // `json_each` would write each row as text again, once for each value that is taken out of it.
            false => "jsonb_each($1) AS rows",
        };
        let json = serde_json::to_string(rows).map_err(|_| StoreError::Damaged("rows"))?;
        Ok(Self { table, json })
    }

    /// Makes the parameter of rows of one text.
    pub(super) fn from_texts<'a>(
        connection: &impl Dialect,
        texts: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, StoreError> {
        let rows: Vec<(&str,)> = texts.into_iter().map(|text| (text,)).collect();
        Self::new(connection, &rows)
    }

    /// Makes a query of a statement that reads the rows from the table `{rows}`, whose column `value` is a row. They are
    /// the parameter `$1`.
    pub(super) fn query(&self, sql: &str) -> Query<'_, Any, AnyArguments> {
        let sql = sql.replace("{rows}", self.table);
        sqlx::query(AssertSqlSafe(sql)).bind(self.json.as_str())
    }
}
