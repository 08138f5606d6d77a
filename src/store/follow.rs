//! Follows the feed: reads what has changed, and page by page the keys that share it.

use std::collections::BTreeSet;

use filters::accounts::AccountsSnapshot;
use sqlx::any::AnyRow;

use super::connections::Connected;
use super::fan_out::KEY_COLUMNS;
use super::feed::{Changes, MAX_CHANGES};
use super::records::AccountRecord;
use super::shared_rows::{Interned, SharedRows, UnreadableRows};
use super::snapshot::{by_organization, changed_records, read_key, select};
use super::{BudgetRecord, PromptRecord, SealedKey, Store, StoreError};

/// The maximum number of keys in a page.
const PAGE: i64 = 4096;

/// A snapshot that follows another one.
pub struct Followed {
    pub snapshot: AccountsSnapshot,
    /// The organizations whose BYOK keys have changed, with all their keys.
    pub byok: Vec<(String, Vec<SealedKey>)>,
    pub prompts: Vec<PromptRecord>,
    pub budgets: Vec<BudgetRecord>,
    /// The rows that were read, with the revision that they make.
    pub records: Vec<AccountRecord>,
    /// Whether the feed had all changes. If not, the snapshot has those that it had, and everything must be read again.
    pub is_complete: bool,
    /// The rows that cannot be read. Their keys are refused.
    pub unreadable: UnreadableRows,
}

impl Store {
    /// Returns the snapshot after the next changes, or `None` if there are none. The keys of a changed organization,
    /// project or member come with [`Self::follow_keys`]. Cost: one row if nothing has changed, else the rows that have
    /// changed.
    ///
    /// Errors: the database failed. Then `shared` may be newer than `before`, which the next try mends.
    pub async fn follow_accounts(
        &self,
        before: &AccountsSnapshot,
        shared: &mut SharedRows,
    ) -> Result<Option<Followed>, StoreError> {
        let changes = self.changes_since(before.revision(), shared.step(MAX_CHANGES));
        let Some(changes) = changes.await? else {
            return Ok(None);
        };
        let mut unreadable = UnreadableRows::default();
        let mut connection = self.pool.acquire().await?;
        // What was deleted goes first: another row may have its id by now.
        let mut records = deleted_records(&changes);
        add_all(&records, shared, &mut unreadable);
        let changed = changed_records(&mut connection, &changes, shared, &mut unreadable).await?;
        add_all(&changed, shared, &mut unreadable);
        records.extend(changed);
        shared
            .fan_out
            .add("project_id", &shared.projects_of(&changes));
        shared.fan_out.add("member_id", &changes.members);
        let mut snapshot = without_deleted(before, &changes);
        let mut interned = Interned::default();
        for row in changed_keys(&mut connection, &changes).await? {
            let Some(key) = read_key(&row, &mut snapshot, &mut unreadable) else {
                continue;
            };
            records.push(AccountRecord::Key(key.clone()));
            if let Some((hash, row)) = shared.key_row(key, &mut interned, &mut unreadable) {
                snapshot.insert(hash, row);
            }
        }
        drop(connection);
        let byok = self.changed_byok(&changes).await?;
        let of_byok = byok.iter().cloned();
        records.extend(
            of_byok.map(|(organization, keys)| AccountRecord::ByokKeys(organization, keys)),
        );
        for (id, at_ms) in self.revocations(Some(&changes.revoked)).await? {
            snapshot.revoke(&id, at_ms);
            records.push(AccountRecord::Revoked(id, at_ms));
        }
        let prompts = self.changed_prompts(&changes).await?;
        records.extend(prompts.iter().cloned().map(AccountRecord::Prompt));
        let budgets = self.budget_records(Some(&changes.budgets)).await?;
        records.extend(budgets.iter().cloned().map(AccountRecord::Budget));
        records.push(AccountRecord::Revision(changes.revision));
        Ok(Some(Followed {
            snapshot,
            byok,
            prompts,
            budgets,
            records,
            is_complete: changes.is_complete,
            unreadable,
        }))
    }

    /// Returns the snapshot with the next page of keys whose organization, project or member has changed, and what of it
    /// cannot be read; `None` if there is no such key. It has the revision of `before`.
    ///
    /// A copy of the accounts needs none of these keys: their own rows have not changed.
    ///
    /// Errors: the database failed. Then the page is still the next one.
    pub async fn follow_keys(
        &self,
        before: &AccountsSnapshot,
        shared: &mut SharedRows,
    ) -> Result<Option<(AccountsSnapshot, UnreadableRows)>, StoreError> {
        if shared.fan_out.is_empty() {
            return Ok(None);
        }
        let page = shared.step(PAGE);
        let mut connection = self.pool.acquire().await?;
        let Some(rows) = shared.fan_out.next_page(&mut connection, page).await? else {
            return Ok(None);
        };
        drop(connection);
        let mut unreadable = UnreadableRows::default();
        let (mut snapshot, mut interned) = (before.clone(), Interned::default());
        for row in &rows {
            let Some(key) = read_key(row, &mut snapshot, &mut unreadable) else {
                continue;
            };
            if let Some((hash, row)) = shared.key_row(key, &mut interned, &mut unreadable) {
                snapshot.insert(hash, row);
            }
        }
        Ok(Some((snapshot, unreadable)))
    }

    /// Reads the BYOK keys of the organizations that have changed theirs.
    async fn changed_byok(
        &self,
        changes: &Changes,
    ) -> Result<Vec<(String, Vec<SealedKey>)>, StoreError> {
        if changes.byok_organizations.is_empty() {
            return Ok(Vec::new());
        }
        let keys = self.sealed_keys(Some(&changes.byok_organizations)).await?;
        let mut keys = by_organization(&keys);
        let changed = changes.byok_organizations.iter();
        // Perhaps the last key was removed.
        let of_changed = changed.map(|id| (id.clone(), keys.remove(id).unwrap_or_default()));
        Ok(of_changed.collect())
    }

    async fn changed_prompts(&self, changes: &Changes) -> Result<Vec<PromptRecord>, StoreError> {
        if changes.prompts.is_empty() {
            return Ok(Vec::new());
        }
        let mut records = self.prompt_records(Some(&changes.prompts)).await?;
        let known: BTreeSet<String> = records.iter().map(|record| record.id.clone()).collect();
        let gone = changes.prompts.difference(&known);
        records.extend(gone.map(|id| PromptRecord::removed(id)));
        Ok(records)
    }
}

fn add_all(records: &[AccountRecord], shared: &mut SharedRows, unreadable: &mut UnreadableRows) {
    records.iter().for_each(|it| shared.add(it, unreadable));
}

/// Returns the snapshot of the next revision without the keys that were deleted.
fn without_deleted(before: &AccountsSnapshot, changes: &Changes) -> AccountsSnapshot {
    let mut snapshot = before.clone();
    snapshot.set_revision(changes.revision);
    if !changes.deleted.is_empty() {
        snapshot.remove_keys(|caller| changes.has_deleted(caller));
    }
    snapshot
}

async fn changed_keys(
    connection: &mut Connected,
    changes: &Changes,
) -> Result<Vec<AnyRow>, StoreError> {
    let sql = format!(
        "SELECT {KEY_COLUMNS} FROM (SELECT value ->> 0 AS wanted FROM {{rows}}) AS r \
         CROSS JOIN api_keys k WHERE k.id = wanted"
    );
    select(connection, &sql, &changes.keys).await
}

fn deleted_records(changes: &Changes) -> Vec<AccountRecord> {
    let deleted = changes.deleted.iter();
    let deleted = deleted.flat_map(|(kind, ids)| ids.iter().map(move |id| (*kind, id.clone())));
    deleted
        .map(|(kind, id)| AccountRecord::Deleted(kind, id))
        .collect()
}
