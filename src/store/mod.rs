//! Accounts at rest: organizations, their projects and members, their API keys, credit and own provider keys.
//!
//! SQLite by default, PostgreSQL by URL; the statements are the same for both and only the migrations differ.
//! Every change raises `revision` in its own transaction, first of all: by that a running server notices what
//! the command line did ([`crate::accounts`]), and by the row's lock changes happen one after the other. The text
//! of a key is never stored. Requests read the snapshot that [`Store::accounts`]
//! makes; only one whose lease does not cover it waits for what [`crate::ledger`] asks here.

mod cipher;
mod credit;
mod error;
mod first_run;
mod keys;
pub mod ledger;
mod members;
mod open;
mod organizations;
mod projects;
mod provider_keys;
mod secret;
mod snapshot;
mod url;

use filters::accounts::Pepper;
use sqlx::AnyPool;
use sqlx::any::AnyRow;

pub use credit::Credit;
pub use error::StoreError;
pub use first_run::{FirstRun, first_run};
pub use keys::{IssuedKey, KeyChange, NewKey};
pub use members::Member;
pub use open::{OpenedStore, StoreSettings};
pub use organizations::Organization;
pub use projects::{NewProject, Project, ProjectChange};
pub use provider_keys::{ByokKeyRow, ProviderKey};
pub use url::StoreUrl;

/// The name of the project that every organization begins with.
pub const DEFAULT_PROJECT: &str = "default";

/// An open store. Clones share its connections.
///
/// Its connections belong to the tokio runtime it was opened on: it must be used on that one.
#[derive(Clone)]
pub struct Store {
    pool: AnyPool,
    pepper: Pepper,
}

/// One transaction that changes accounts.
type AccountChange = sqlx::Transaction<'static, sqlx::Any>;

impl Store {
    /// The pepper under which its keys are hashed.
    pub fn pepper(&self) -> &Pepper {
        &self.pepper
    }

    /// The number that every change raises. Cost: one row, no join.
    pub async fn revision(&self) -> Result<i64, StoreError> {
        let sql = "SELECT revision FROM store_state WHERE one = 1";
        Ok(sqlx::query_scalar(sql).fetch_one(&self.pool).await?)
    }

    /// Closes its connections, once what runs on them has ended.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// Begins a change. The first statement raises the revision, so that two changes wait for each other here and
    /// not half-way, and SQLite takes its write lock at once.
    async fn change(&self) -> Result<AccountChange, StoreError> {
        let mut change = self.pool.begin().await?;
        let sql = "UPDATE store_state SET revision = revision + 1 WHERE one = 1";
        sqlx::query(sql).execute(&mut *change).await?;
        Ok(change)
    }
}

/// An identifier: a prefix that says what it names, and a uuid v7, which sorts by time.
fn new_id(prefix: &str) -> String {
    format!("{prefix}_{}", uuid::Uuid::now_v7())
}

/// A word of a closed list, as it was stored.
fn word<T: std::str::FromStr>(row: &AnyRow, column: &'static str) -> Result<T, StoreError> {
    let text: String = sqlx::Row::try_get(row, column)?;
    text.parse().map_err(|_| StoreError::Damaged(column))
}

/// Checks the name of an organization or a project, or a label (which may be empty).
fn check_name(what: &'static str, name: &str, may_be_empty: bool) -> Result<(), StoreError> {
    const MAX_CHARS: usize = 128;
    let problem = if name.is_empty() && !may_be_empty {
        "is empty"
    } else if name.trim() != name {
        "begins or ends with a space"
    } else if name.chars().any(char::is_control) {
        "has a control character"
    } else if name.chars().count() > MAX_CHARS {
        "has more than 128 characters"
    } else {
        return Ok(());
    };
    Err(StoreError::BadName { what, problem })
}

#[cfg(test)]
mod tests;
