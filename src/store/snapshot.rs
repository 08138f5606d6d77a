//! The snapshot of accounts, which requests read instead of the store.

use std::collections::{BTreeMap, BTreeSet};

use filters::accounts::{AccountsSnapshot, KeyHash};
use futures::TryStreamExt;
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row};

use super::connections::{Connected, Dialect};
use super::fan_out::KEY_COLUMNS;
use super::feed::Changes;
use super::records::{
    AccountRecord, KeyRecord, MemberRecord, OrganizationRecord, ProjectRecord, SharedKind,
};
use super::rows::Rows;
use super::shared_rows::{Interned, SharedRows, UnreadableRows};
use super::{BudgetRecord, PromptRecord, SealedKey, Store, StoreError};

/// All accounts as of one revision, with what it takes to follow their changes.
#[derive(Default)]
pub struct LoadedAccounts {
    pub snapshot: AccountsSnapshot,
    /// What its keys share.
    pub shared: SharedRows,
    /// All BYOK keys, oldest first.
    pub byok: Vec<SealedKey>,
    pub prompts: Vec<PromptRecord>,
    pub budgets: Vec<BudgetRecord>,
    /// The rows that cannot be read. Their keys are refused.
    pub unreadable: UnreadableRows,
}

impl Store {
    /// Returns every key with its project and organization, and their revision.
    pub async fn accounts(&self) -> Result<AccountsSnapshot, StoreError> {
        Ok(self.load_accounts(|_| ()).await?.snapshot)
    }

    /// Reads all accounts. `keep` sees each row, and the revision at last.
    ///
    /// The revision is read first. A change between the statements is either in the rows already, or is missing and
    /// will be read again with its own revision. Cost: one value per key ever issued, in pages; values that keys share are
    /// read once.
    pub async fn load_accounts(
        &self,
        mut keep: impl FnMut(&AccountRecord) + Send,
    ) -> Result<LoadedAccounts, StoreError> {
        let revision = self.revision().await?;
        let (mut shared, mut unreadable) = (SharedRows::default(), UnreadableRows::default());
        for record in self.shared_records(&mut shared, &mut unreadable).await? {
            keep(&record);
            shared.add(&record, &mut unreadable);
        }
        let mut interned = Interned::default();
        let mut snapshot = AccountsSnapshot::new(revision, []);
        let add = |key, snapshot: &mut AccountsSnapshot, unreadable: &mut UnreadableRows| {
            let record = AccountRecord::Key(key);
            keep(&record);
            if let AccountRecord::Key(key) = record
                && let Some((hash, row)) = shared.key_row(key, &mut interned, unreadable)
            {
                snapshot.insert(hash, row);
            }
        };
        let mut connection = self.pool.acquire().await?;
        read_keys(&mut connection, (&mut snapshot, &mut unreadable), add).await?;
        drop(connection);
        let byok = self.sealed_keys(None).await?;
        for (organization, keys) in by_organization(&byok) {
            keep(&AccountRecord::ByokKeys(organization, keys));
        }
        let prompts = self.prompt_records(None).await?;
        for prompt in &prompts {
            keep(&AccountRecord::Prompt(prompt.clone()));
        }
        let budgets = self.all_budgets().await?;
        for budget in &budgets {
            keep(&AccountRecord::Budget(budget.clone()));
        }
        for (id, at_ms) in self.revocations(None).await? {
            snapshot.revoke(&id, at_ms);
            keep(&AccountRecord::Revoked(id, at_ms));
        }
        keep(&AccountRecord::Revision(revision));
        Ok(LoadedAccounts {
            snapshot,
            shared,
            byok,
            prompts,
            budgets,
            unreadable,
        })
    }

    /// Reads the rows that keys share.
    async fn shared_records(
        &self,
        shared: &mut SharedRows,
        unreadable: &mut UnreadableRows,
    ) -> Result<Vec<AccountRecord>, StoreError> {
        let mut records = Vec::new();
        for table in SHARED_TABLES {
            let rows = sqlx::query(table.all)
                .fetch_all(&mut self.pool.acquire().await?)
                .await?;
            let read = rows
                .iter()
                .filter_map(|row| table.read(row, shared, unreadable));
            records.extend(read);
        }
        Ok(records)
    }
}

/// Reads all keys. `add` sees each, with the snapshot and the unreadable rows.
async fn read_keys(
    connection: &mut Connected,
    (snapshot, unreadable): (&mut AccountsSnapshot, &mut UnreadableRows),
    mut add: impl FnMut(KeyRecord, &mut AccountsSnapshot, &mut UnreadableRows) + Send,
) -> Result<(), StoreError> {
    let mut after = String::new();
    // A value that fits no JSON does not say whose it is, so from its page on rows are read one by one.
    while let Ok(page) = keys_behind(connection, &after).await {
        let Some(last) = page.last() else {
            return Ok(());
        };
        after.clone_from(&last.id);
        for key in page {
            add(key, snapshot, unreadable);
        }
    }
    let sql = format!("SELECT {KEY_COLUMNS} FROM api_keys k WHERE k.id > $1");
    let rest = sqlx::query(AssertSqlSafe(sql)).bind(&after);
    let mut rows = rest.fetch(connection);
    while let Some(row) = rows.try_next().await? {
        if let Some(key) = read_key(&row, snapshot, unreadable) {
            add(key, snapshot, unreadable);
        }
    }
    Ok(())
}

/// The most keys that are read as one text. One by one, with nine values each, 100,000 rows take half as long again.
const KEYS_AT_ONCE: i64 = 2000;

/// Reads the next keys behind this id, in the order of their ids; none if there is no more.
///
/// Errors: a value is not of its column's type, or the store failed.
async fn keys_behind(
    connection: &mut Connected,
    after: &str,
) -> Result<Vec<KeyRecord>, StoreError> {
    let (list, array, hash) = match connection.is_postgres() {
        true => ("json_agg", "json_build_array", "encode(k.hash, 'hex')"),
        false => ("json_group_array", "json_array", "hex(k.hash)"),
    };
    let columns = KEY_COLUMNS.replace("k.hash", hash);
    let sql = format!(
        "SELECT CAST({list}({array}({columns}) ORDER BY k.id) AS TEXT) \
         FROM (SELECT * FROM api_keys WHERE id > $1 ORDER BY id LIMIT {KEYS_AT_ONCE}) AS k"
    );
    let page = sqlx::query_scalar(AssertSqlSafe(sql)).bind(after);
    // PostgreSQL makes NULL of no rows.
    let page: Option<String> = page.fetch_one(connection).await?;
    page.map_or(Ok(Vec::new()), |page| KeyRecord::read_all(&page))
}

pub(super) fn by_organization(keys: &[SealedKey]) -> BTreeMap<String, Vec<SealedKey>> {
    let mut organizations: BTreeMap<String, Vec<SealedKey>> = BTreeMap::new();
    for key in keys {
        let keys = organizations.entry(key.organization_id.clone());
        keys.or_default().push(key.clone());
    }
    organizations
}

/// A table whose rows keys share.
struct SharedTable {
    kind: SharedKind,
    all: &'static str,
    record: fn(&AnyRow) -> Result<AccountRecord, StoreError>,
    changed: fn(&Changes) -> &BTreeSet<String>,
}

const SHARED_TABLES: [SharedTable; 3] = [
    SharedTable {
        kind: SharedKind::Organization,
        all: "SELECT id, name, plan, plan_since, status, held_at, regions, export_content, \
              keep_bodies_until \
              FROM organizations",
        record: |row| OrganizationRecord::read(row).map(AccountRecord::Organization),
        changed: |changes| &changes.organizations,
    },
    SharedTable {
        kind: SharedKind::Project,
        all: "SELECT id, organization_id, name, mode, cache_ttl_s, status, experiments, regions \
              FROM projects",
        record: |row| ProjectRecord::read(row).map(AccountRecord::Project),
        changed: |changes| &changes.projects,
    },
    SharedTable {
        kind: SharedKind::Member,
        all: "SELECT id, budget FROM members",
        record: |row| MemberRecord::read(row).map(AccountRecord::Member),
        changed: |changes| &changes.members,
    },
];

impl SharedTable {
    /// Reads a row. If that cannot be, the keys that share it are refused.
    fn read(
        &self,
        row: &AnyRow,
        shared: &mut SharedRows,
        unreadable: &mut UnreadableRows,
    ) -> Option<AccountRecord> {
        let error = match (self.record)(row) {
            Ok(record) => return Some(record),
            Err(error) => error,
        };
        let id: String = row.try_get("id").unwrap_or_default();
        unreadable.add(self.kind.as_str(), &id, &error);
        shared.refuse(self.kind, id);
        None
    }
}

/// Reads the row of a key. If that cannot be, the key is refused.
pub(super) fn read_key(
    row: &AnyRow,
    snapshot: &mut AccountsSnapshot,
    unreadable: &mut UnreadableRows,
) -> Option<KeyRecord> {
    let error = match KeyRecord::read(row) {
        Ok(key) => return Some(key),
        Err(error) => error,
    };
    let id: String = row.try_get("id").unwrap_or_default();
    unreadable.add("key", &id, &error);
    let hash: Vec<u8> = row.try_get("hash").unwrap_or_default();
    if let Ok(hash) = hash.try_into() {
        snapshot.refuse(&KeyHash::from_bytes(hash));
    }
    None
}

/// Reads the rows that keys share and that have changed.
pub(super) async fn changed_records(
    connection: &mut Connected,
    changes: &Changes,
    shared: &mut SharedRows,
    unreadable: &mut UnreadableRows,
) -> Result<Vec<AccountRecord>, StoreError> {
    let mut records = Vec::new();
    for table in SHARED_TABLES {
        let all = table.all;
        let sql = format!("{all} WHERE id IN (SELECT value ->> 0 FROM {{rows}})");
        let rows = select(connection, &sql, (table.changed)(changes)).await?;
        let read = rows
            .iter()
            .filter_map(|row| table.read(row, shared, unreadable));
        records.extend(read);
    }
    Ok(records)
}

/// Reads the rows of these ids. `sql` reads them from the table `{rows}`. Cost: nothing without ids.
pub(super) async fn select(
    connection: &mut Connected,
    sql: &str,
    ids: &BTreeSet<String>,
) -> Result<Vec<AnyRow>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let ids = Rows::from_texts(connection, ids.iter().map(String::as_str))?;
    Ok(ids.query(sql).fetch_all(connection).await?)
}
