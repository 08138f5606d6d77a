//! Rows of accounts as the store has them, which can also stand in a file.

use std::collections::BTreeMap;

use filters::accounts::{AccountsSnapshot, OrganizationStatus};
use serde::{Deserialize, Serialize};
use sqlx::Row;
use sqlx::any::AnyRow;

use super::feed::DeletedKind;
use super::keys::is_debug;
use super::organizations::organization_status;
use super::shared_rows::{Interned, SharedRows, UnreadableRows};
use super::snapshot::LoadedAccounts;
use super::{BudgetRecord, PromptRecord, SealedKey, StoreError};

/// A row, or what makes the rows before it count.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AccountRecord {
    Organization(OrganizationRecord),
    Project(ProjectRecord),
    Member(MemberRecord),
    Key(KeyRecord),
    /// All BYOK keys of an organization.
    ByokKeys(String, Vec<SealedKey>),
    /// A prompt with all its versions; without any, it is removed.
    Prompt(PromptRecord),
    /// What people say of a budget.
    Budget(BudgetRecord),
    /// A grant or a client of OAuth that was revoked, and when, in unix milliseconds.
    Revoked(String, i64),
    /// A row that was deleted, with those that belong to it.
    Deleted(DeletedKind, String),
    /// The revision that the rows before it make.
    Revision(i64),
}

/// A kind of row that keys share.
#[derive(Clone, Copy, Debug)]
pub(super) enum SharedKind {
    Organization,
    Project,
    Member,
}

impl SharedKind {
    /// Returns its name.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Organization => "organization",
            Self::Project => "project",
            Self::Member => "member",
        }
    }
}

/// A row of the table `organizations`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct OrganizationRecord {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) plan: String,
    pub(super) plan_since: i64,
    pub(super) status: String,
    #[serde(default)]
    pub(super) held_at: Option<i64>,
    #[serde(default)]
    pub(super) regions: Option<String>,
    #[serde(default)]
    pub(super) exports_content: bool,
    #[serde(default)]
    pub(super) keep_bodies_until: Option<i64>,
}

/// A row of the table `projects`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ProjectRecord {
    pub(super) id: String,
    pub(super) organization_id: String,
    pub(super) name: String,
    pub(super) mode: String,
    pub(super) cache_ttl_s: Option<i64>,
    pub(super) status: String,
    #[serde(default)]
    pub(super) experiments: Option<String>,
    #[serde(default)]
    pub(super) regions: Option<String>,
}

/// A row of the table `members`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct MemberRecord {
    pub(super) id: String,
    pub(super) budget: Option<String>,
}

/// A row of the table `api_keys`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct KeyRecord {
    pub(super) id: String,
    pub(super) project_id: String,
    pub(super) label: String,
    pub(super) hash: Vec<u8>,
    pub(super) expires_at: Option<i64>,
    pub(super) revoked_at: Option<i64>,
    pub(super) terms: Option<String>,
    pub(super) member_id: Option<String>,
    #[serde(default)]
    pub(super) is_debug: bool,
    #[serde(default)]
    pub(super) disabled_at: Option<i64>,
}

impl OrganizationRecord {
    pub(super) fn read(row: &AnyRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.try_get("id")?,
            name: row.try_get("name")?,
            plan: row.try_get("plan")?,
            plan_since: row.try_get("plan_since")?,
            status: row.try_get("status")?,
            held_at: row.try_get("held_at")?,
            regions: row.try_get("regions")?,
            exports_content: row.try_get::<i64, _>("export_content")? != 0,
            keep_bodies_until: row.try_get("keep_bodies_until")?,
        })
    }

    pub(super) fn status(&self) -> OrganizationStatus {
        organization_status(&self.status, self.held_at)
    }
}

impl ProjectRecord {
    pub(super) fn read(row: &AnyRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.try_get("id")?,
            organization_id: row.try_get("organization_id")?,
            name: row.try_get("name")?,
            mode: row.try_get("mode")?,
            cache_ttl_s: row.try_get("cache_ttl_s")?,
            status: row.try_get("status")?,
            experiments: row.try_get("experiments")?,
            regions: row.try_get("regions")?,
        })
    }
}

impl MemberRecord {
    pub(super) fn read(row: &AnyRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.try_get("id")?,
            budget: row.try_get("budget")?,
        })
    }
}

impl KeyRecord {
    pub(super) fn read(row: &AnyRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.try_get("id")?,
            project_id: row.try_get("project_id")?,
            label: row.try_get("label")?,
            hash: row.try_get("hash")?,
            expires_at: row.try_get("expires_at")?,
            revoked_at: row.try_get("revoked_at")?,
            terms: row.try_get("terms")?,
            member_id: row.try_get("member_id")?,
            is_debug: is_debug(row)?,
            disabled_at: row.try_get("disabled_at")?,
        })
    }

    /// Reads rows from a JSON array of arrays, in which the hash is hexadecimal.
    pub(super) fn read_all(rows: &str) -> Result<Vec<Self>, StoreError> {
        let rows: Vec<WrittenKey> =
            serde_json::from_str(rows).map_err(|_| StoreError::Damaged("keys"))?;
        let key = |row: WrittenKey| {
            let WrittenKey(
                id,
                project_id,
                label,
                hash,
                expires_at,
                revoked_at,
                terms,
                member_id,
                debug,
                disabled_at,
            ) = row;
            Some(Self {
                id,
                project_id,
                label,
                hash: from_hex(&hash)?,
                expires_at,
                revoked_at,
                terms,
                member_id,
                is_debug: debug != 0,
                disabled_at,
            })
        };
        let keys: Option<Vec<Self>> = rows.into_iter().map(key).collect();
        keys.ok_or(StoreError::Damaged("hash"))
    }
}

/// The columns of a key, as one statement writes many of them.
#[derive(Deserialize)]
struct WrittenKey(
    String,
    String,
    String,
    String,
    Option<i64>,
    Option<i64>,
    Option<String>,
    Option<String>,
    i64,
    Option<i64>,
);

fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.as_bytes().chunks(2).map(byte).collect()
}

/// The rows of a file. The last one of an id counts.
#[derive(Default)]
pub struct RecordedAccounts {
    revision: i64,
    shared: Vec<AccountRecord>,
    keys: BTreeMap<String, KeyRecord>,
    byok: BTreeMap<String, Vec<SealedKey>>,
    prompts: BTreeMap<String, PromptRecord>,
    budgets: BTreeMap<String, BudgetRecord>,
    revoked: Vec<(String, i64)>,
}

impl RecordedAccounts {
    /// Adds a row.
    pub fn add(&mut self, record: AccountRecord) {
        match record {
            AccountRecord::Key(key) => {
                self.keys.insert(key.id.clone(), key);
            }
            AccountRecord::ByokKeys(organization, keys) => {
                self.byok.insert(organization, keys);
            }
            AccountRecord::Prompt(prompt) => {
                self.prompts.insert(prompt.id.clone(), prompt);
            }
            AccountRecord::Budget(budget) => {
                let id = BudgetRecord::id(&budget.organization_id, &budget.name);
                self.budgets.insert(id, budget);
            }
            AccountRecord::Revoked(id, at_ms) => self.revoked.push((id, at_ms)),
            AccountRecord::Deleted(DeletedKind::Key, id) => _ = self.keys.remove(&id),
            AccountRecord::Revision(revision) => self.revision = revision,
            shared => self.shared.push(shared),
        }
    }

    /// Returns the accounts of the rows.
    pub fn load(self) -> LoadedAccounts {
        let (mut shared, mut unreadable) = (SharedRows::default(), UnreadableRows::default());
        for record in &self.shared {
            shared.add(record, &mut unreadable);
        }
        let mut snapshot = AccountsSnapshot::new(self.revision, []);
        let mut interned = Interned::default();
        for key in self.keys.into_values() {
            if let Some((hash, row)) = shared.key_row(key, &mut interned, &mut unreadable) {
                snapshot.insert(hash, row);
            }
        }
        for (id, at_ms) in self.revoked {
            snapshot.revoke(&id, at_ms);
        }
        LoadedAccounts {
            snapshot,
            shared,
            byok: self.byok.into_values().flatten().collect(),
            prompts: self.prompts.into_values().collect(),
            budgets: self.budgets.into_values().collect(),
            unreadable,
        }
    }
}
