//! The keys that have to be read again because their organization, project or member has changed, page by page.
//!
//! An organization may have more keys than can be read while a revocation waits. So a change only notes here whose keys
//! are to be read, and later changes are followed between the pages.

use std::collections::{BTreeSet, VecDeque};

use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row};

use super::StoreError;
use super::connections::Connected;
use super::rows::Rows;

/// The columns of a key in a snapshot, in the order in which [`KeyRecord::read_all`] reads them.
///
/// [`KeyRecord::read_all`]: super::records::KeyRecord::read_all
pub(super) const KEY_COLUMNS: &str = "k.id, k.project_id, k.label, k.hash, k.expires_at, k.revoked_at, k.terms, k.member_id, k.debug, k.disabled_at";
/// How many projects or members are read together, as long as their keys make one page.
const MAX_IDS: usize = 256;

/// See the module.
#[derive(Default)]
pub(super) struct FanOut(VecDeque<Part>);

/// Keys of some projects, or of some members.
struct Part {
    column: &'static str,
    ids: Vec<String>,
    /// The last key that was read, if there is one id.
    after: String,
}

impl FanOut {
    /// Adds the keys whose `column` is one of these ids. They are read from their first one again.
    pub(super) fn add(&mut self, column: &'static str, ids: &BTreeSet<String>) {
        for part in &mut self.0 {
            if part.column == column {
                part.ids.retain(|id| !ids.contains(id));
            }
        }
        self.0.retain(|part| !part.ids.is_empty());
        let ids: Vec<String> = ids.iter().cloned().collect();
        let parts = ids.chunks(MAX_IDS).map(|ids| Part {
            column,
            ids: ids.to_vec(),
            after: String::new(),
        });
        self.0.extend(parts);
    }

    /// Returns whether there is nothing to read.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads the next page of so many keys, or returns `None` if there is no more. If it fails, it is the next one again.
    pub(super) async fn next_page(
        &mut self,
        connection: &mut Connected,
        page: i64,
    ) -> Result<Option<Vec<AnyRow>>, StoreError> {
        loop {
            let Some(part) = self.0.front_mut() else {
                return Ok(None);
            };
            let rows = part.read(connection, page).await?;
            let is_whole = rows.len() as i64 <= page;
            if is_whole || part.ids.len() <= 1 {
                match rows.last() {
                    Some(last) if !is_whole => part.after = last.try_get("id")?,
                    _ => _ = self.0.pop_front(),
                }
                return Ok(Some(rows));
            }
            // Rows of several ids have no order, so these are read again in two halves.
            let second = Part {
                ids: part.ids.split_off(part.ids.len() / 2),
                after: String::new(),
                ..*part
            };
            self.0.insert(1, second);
        }
    }
}

impl Part {
    /// Reads a page and one key more.
    async fn read(&self, connection: &mut Connected, page: i64) -> Result<Vec<AnyRow>, StoreError> {
        let column = self.column;
        if let [id] = &*self.ids {
            let sql = format!(
                "SELECT {KEY_COLUMNS} FROM api_keys k WHERE k.{column} = $1 AND k.id > $2 \
                 ORDER BY k.id LIMIT $3"
            );
            let query = sqlx::query(AssertSqlSafe(sql)).bind(id).bind(&self.after);
            return Ok(query.bind(page + 1).fetch_all(connection).await?);
        }
        let sql = format!(
            "SELECT {KEY_COLUMNS} FROM (SELECT value ->> 0 AS wanted FROM {{rows}}) AS r \
             CROSS JOIN api_keys k WHERE k.{column} = wanted LIMIT $2"
        );
        let ids = Rows::from_texts(connection, self.ids.iter().map(String::as_str))?;
        let rows = ids.query(&sql).bind(page + 1).fetch_all(connection).await?;
        Ok(rows)
    }
}
