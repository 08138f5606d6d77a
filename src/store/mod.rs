//! The store of accounts: organizations, their projects and members, API keys, credit, BYOK keys, managed prompts, the
//! clients and grants of OAuth, and responses that clients have asked to be kept.
//!
//! It is SQLite by default and PostgreSQL by URL. The statements are the same for both, and almost all definitions of tables.
//! Each change first raises `revision` in its own transaction and writes to the feed what it has changed, and to the audit log who
//! has changed it ([`AccountEditor`]). A running server
//! thereby follows changes by the command line ([`crate::accounts`]), and the row's lock serializes changes. The text of a
//! key is never stored. Requests read the snapshot of [`Store::load_accounts`]; only a request that its lease does not cover waits for [`crate::ledger`] to
//! query the store.

mod account_change;
mod account_editor;
mod account_pages;
mod apply;
mod audit_append;
mod audit_log;
mod audit_state;
mod backup;
mod budget_states;
mod cipher;
mod connections;
mod credit;
mod deletion;
mod error;
mod fan_out;
mod feed;
mod first_run;
mod follow;
mod keys;
mod known_names;
pub mod ledger;
mod lock;
mod members;
mod migrate;
mod oauth;
mod open;
mod organizations;
mod projects;
mod prompt_pages;
mod prompts;
mod provider_keys;
mod records;
mod regions;
mod response_jobs;
mod responses;
mod rows;
mod secret;
mod seen_things;
mod shared_rows;
mod snapshot;
mod transfer;
mod url;

use std::sync::Arc;

use filters::accounts::{Pepper, check_account_name};
use sqlx::any::AnyRow;

use self::account_change::{AccountChange, Noted};
use self::connections::Connections;
use self::feed::Changed;
pub use account_editor::AccountEditor;
pub use account_pages::{AccountPage, KeyFilter, KeyUse, MemberUse, OrganizationUse, PageQuery};
pub use apply::{AppliedAccounts, WantedAccounts};
pub use audit_log::{AuditFilter, AuditPage, HashedEntry};
pub use backup::back_up;
pub use budget_states::{BudgetChange, BudgetRecord, BudgetReport};
pub use credit::{Credit, check_amount};
pub use deletion::Deletion;
pub use error::{ImportPlace, StoreError, TransferError};
pub use first_run::{FirstRun, first_run};
pub use follow::Followed;
pub use keys::{IssuedKey, KeyChange, NewKey, check_expiry};
pub use lock::StoreLock;
pub use members::Member;
pub use oauth::{NewCode, OAuthClientRow, OAuthGrant, Redeemed, StoredCode};
pub use open::{OpenedStore, StoreSettings, in_background};
pub use organizations::Organization;
pub use projects::{NewProject, Project, ProjectChange};
pub use prompt_pages::PromptSummary;
pub use prompts::{PromptOwner, PromptRecord, StoredPrompt, StoredVersion};
pub use provider_keys::{ByokKeyRow, ProviderKey, SealedKey};
pub use records::{AccountRecord, RecordedAccounts};
pub use response_jobs::{CANCELLED_JOB, JobHold};
pub use responses::{EndedResponse, NewResponse, ResponseBounds, ResponseTotals, StoredResponse};
pub use seen_things::{SeenKind, SeenThing};
pub use shared_rows::{SharedRows, UnreadableRows};
pub use snapshot::LoadedAccounts;
pub use transfer::{
    ExportedStore, ImportedStore, OnProgress, TransferPhase, TransferProgress, TransferTotals,
    export, export_to_file, import,
};
pub use url::StoreUrl;

/// The name of the first project of each organization.
pub const DEFAULT_PROJECT: &str = "default";

/// An open store. Clones share its connections.
///
/// The connections belong to the tokio runtime that opened the store, so it must be used on that one.
#[derive(Clone)]
pub struct Store {
    /// The URL as the driver takes it. It may hold a password.
    url: Arc<str>,
    /// For everything that is not money.
    pool: Connections,
    /// For calls and leases, which must not wait for other work of this process.
    ledger_pool: Connections,
    /// The connection of heartbeats, which must wait for neither.
    heartbeat_pool: Connections,
    /// Held while this process writes to SQLite, which has one writer. Tasks take turns; SQLite's own lock is not fair.
    write_turn: Option<Arc<tokio::sync::Mutex<()>>>,
    pepper: Pepper,
}

impl Store {
    /// Returns the pepper that hashes the keys.
    pub fn pepper(&self) -> &Pepper {
        &self.pepper
    }

    /// Returns the number that each change raises. Cost: one row, no join.
    pub async fn revision(&self) -> Result<i64, StoreError> {
        let sql = "SELECT revision FROM store_state WHERE one = 1";
        Ok(sqlx::query_scalar(sql)
            .fetch_one(&mut self.pool.acquire().await?)
            .await?)
    }

    /// Closes the connections after their running queries.
    pub async fn close(&self) {
        self.pool.close().await;
        self.ledger_pool.close().await;
        self.heartbeat_pool.close().await;
    }

    /// Moves everything from SQLite's write-ahead log into the file, so that a copy of the file is whole. Does nothing on
    /// PostgreSQL. While a command still reads, SQLite keeps the log.
    pub async fn checkpoint(&self) -> Result<(), StoreError> {
        if self.write_turn.is_some() {
            let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
            sqlx::query(sql)
                .execute(&mut self.pool.acquire().await?)
                .await?;
        }
        Ok(())
    }

    /// Waits until no other task of this process writes to the ledger, if the database has one writer.
    async fn write_turn(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        match &self.write_turn {
            Some(turn) => Some(turn.lock().await),
            None => None,
        }
    }
}

/// Makes an id: a prefix that says what it identifies, and a uuid v7, which sorts by time.
fn new_id(prefix: &str) -> String {
    format!("{prefix}_{}", uuid::Uuid::now_v7())
}

/// Parses a column that holds a value of a closed list.
fn parse_column<T: std::str::FromStr>(row: &AnyRow, column: &'static str) -> Result<T, StoreError> {
    let text: String = sqlx::Row::try_get(row, column)?;
    text.parse().map_err(|_| StoreError::Damaged(column))
}

/// Checks the name of an organization or a project, or a label, which may be empty.
fn check_name(kind: &'static str, name: &str, may_be_empty: bool) -> Result<(), StoreError> {
    check_account_name(name, may_be_empty)
        .map_err(|problem| StoreError::InvalidName { kind, problem })
}

/// Renames a row: `$1` is its id and `$2` its name. Errors: [`StoreError::AlreadyExists`], [`StoreError::InvalidName`].
async fn rename(
    change: &mut AccountChange,
    sql: &'static str,
    id: &str,
    (kind, name): (&'static str, &str),
) -> Result<(), StoreError> {
    check_name(kind, name, false)?;
    let query = sqlx::query(sql).bind(id).bind(name);
    let renamed = query.execute(&mut **change).await;
    renamed.map_err(|error| StoreError::from_insert(error, kind, name))?;
    Ok(())
}

#[cfg(test)]
mod tests;
