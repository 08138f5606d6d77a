//! The snapshot of accounts, which requests read instead of the store.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use filters::accounts::{
    AccountsSnapshot, Caller, KeyHash, KeyRow, KeyTerms, Member, Mode, OrganizationStatus, Plan,
    TermsFile,
};
use futures::TryStreamExt;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe};

use super::feed::Changes;
use super::members::budget;
use super::projects::cache_ttl_s;
use super::records::{AccountRecord, KeyRecord, MemberRecord, OrganizationRecord, ProjectRecord};
use super::rows::Rows;
use super::{PromptRecord, SealedKey, Store, StoreError};

/// The columns of a key in a snapshot.
const KEY_COLUMNS: &str = "k.id, k.project_id, k.label, k.hash, k.expires_at, k.revoked_at, k.terms, k.member_id, k.debug";

/// All accounts as of one revision, with what it takes to follow their changes.
#[derive(Default)]
pub struct LoadedAccounts {
    /// The snapshot for requests.
    pub snapshot: AccountsSnapshot,
    /// What its keys share.
    pub shared: SharedRows,
    /// All BYOK keys, oldest first.
    pub byok: Vec<SealedKey>,
    /// All prompts.
    pub prompts: Vec<PromptRecord>,
}

/// A snapshot that follows another one.
pub struct Followed {
    /// The next snapshot.
    pub snapshot: AccountsSnapshot,
    /// The organizations whose BYOK keys have changed, with all their keys.
    pub byok: Vec<(String, Vec<SealedKey>)>,
    /// The prompts that have changed.
    pub prompts: Vec<PromptRecord>,
    /// The rows that were read, with the revision that they make.
    pub records: Vec<AccountRecord>,
    /// Whether the feed had all changes. If not, the snapshot has those that it had, and everything must be read again.
    pub is_complete: bool,
}

impl Store {
    /// Returns every key with its project and organization, and their revision.
    pub async fn accounts(&self) -> Result<AccountsSnapshot, StoreError> {
        Ok(self.load_accounts(|_| ()).await?.snapshot)
    }

    /// Reads all accounts. `keep` sees each row, and the revision at last.
    ///
    /// The revision is read first. A change between the statements is either in the rows already, or is missing and
    /// will be read again with its own revision. Cost: one row per key ever issued, read as a stream; values that keys
    /// share are read once.
    pub async fn load_accounts(
        &self,
        mut keep: impl FnMut(&AccountRecord) + Send,
    ) -> Result<LoadedAccounts, StoreError> {
        let revision = self.revision().await?;
        let mut shared = SharedRows::default();
        for record in self.shared_records().await? {
            keep(&record);
            shared.add(&record)?;
        }
        let mut interned = Interned::default();
        let sql = format!("SELECT {KEY_COLUMNS} FROM api_keys k");
        let mut rows = sqlx::query(AssertSqlSafe(sql)).fetch(&self.pool);
        let mut snapshot = AccountsSnapshot::new(revision, []);
        while let Some(row) = rows.try_next().await? {
            let record = AccountRecord::Key(KeyRecord::read(&row)?);
            keep(&record);
            if let AccountRecord::Key(key) = record
                && let Some((hash, row)) = shared.key_row(key, &mut interned)?
            {
                snapshot.insert(hash, row);
            }
        }
        drop(rows);
        let byok = self.sealed_keys(None).await?;
        for (organization, keys) in by_organization(&byok) {
            keep(&AccountRecord::ByokKeys(organization, keys));
        }
        let prompts = self.prompt_records(None).await?;
        for prompt in &prompts {
            keep(&AccountRecord::Prompt(prompt.clone()));
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
        })
    }

    /// Returns the snapshot after the next changes, or `None` if there are none. Cost: one row if nothing has changed,
    /// else the rows that have changed, and the keys of a changed organization, project or member.
    ///
    /// Errors: the database failed. Then `shared` may be newer than `before`, which the next try mends.
    pub async fn follow_accounts(
        &self,
        before: &AccountsSnapshot,
        shared: &mut SharedRows,
    ) -> Result<Option<Followed>, StoreError> {
        let Some(changes) = self.changes_since(before.revision()).await? else {
            return Ok(None);
        };
        let mut connection = self.pool.acquire().await?;
        let mut records = changed_records(&mut connection, &changes).await?;
        for record in &records {
            shared.add(record)?;
        }
        let projects = shared.projects_of(&changes);
        let mut snapshot = before.clone();
        snapshot.set_revision(changes.revision);
        let mut interned = Interned::default();
        for (column, ids) in [
            ("id", &changes.keys),
            ("project_id", &projects),
            ("member_id", &changes.members),
        ] {
            let sql = format!(
                "SELECT {KEY_COLUMNS} FROM (SELECT value ->> 0 AS wanted FROM {{rows}}) AS r \
                 CROSS JOIN api_keys k WHERE k.{column} = wanted"
            );
            for row in select(&mut connection, &sql, ids).await? {
                let key = KeyRecord::read(&row)?;
                records.push(AccountRecord::Key(key.clone()));
                if let Some((hash, row)) = shared.key_row(key, &mut interned)? {
                    snapshot.insert(hash, row);
                }
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
        records.push(AccountRecord::Revision(changes.revision));
        Ok(Some(Followed {
            snapshot,
            byok,
            prompts,
            records,
            is_complete: changes.is_complete,
        }))
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
        self.prompt_records(Some(&changes.prompts)).await
    }

    /// Reads the rows that keys share.
    async fn shared_records(&self) -> Result<Vec<AccountRecord>, StoreError> {
        let mut records = Vec::new();
        for table in SHARED_TABLES {
            let rows = sqlx::query(table.all).fetch_all(&self.pool).await?;
            for row in &rows {
                records.push((table.read)(row)?);
            }
        }
        Ok(records)
    }
}

fn by_organization(keys: &[SealedKey]) -> BTreeMap<String, Vec<SealedKey>> {
    let mut organizations: BTreeMap<String, Vec<SealedKey>> = BTreeMap::new();
    for key in keys {
        let keys = organizations.entry(key.organization_id.clone());
        keys.or_default().push(key.clone());
    }
    organizations
}

/// A table whose rows keys share.
struct SharedTable {
    all: &'static str,
    read: fn(&AnyRow) -> Result<AccountRecord, StoreError>,
    changed: fn(&Changes) -> &BTreeSet<String>,
}

const SHARED_TABLES: [SharedTable; 3] = [
    SharedTable {
        all: "SELECT id, name, plan, plan_since, status, held_at FROM organizations",
        read: |row| OrganizationRecord::read(row).map(AccountRecord::Organization),
        changed: |changes| &changes.organizations,
    },
    SharedTable {
        all: "SELECT id, organization_id, name, mode, cache_ttl_s, status, experiments FROM projects",
        read: |row| ProjectRecord::read(row).map(AccountRecord::Project),
        changed: |changes| &changes.projects,
    },
    SharedTable {
        all: "SELECT id, budget FROM members",
        read: |row| MemberRecord::read(row).map(AccountRecord::Member),
        changed: |changes| &changes.members,
    },
];

/// Reads the rows that keys share and that have changed.
async fn changed_records(
    connection: &mut AnyConnection,
    changes: &Changes,
) -> Result<Vec<AccountRecord>, StoreError> {
    let mut records = Vec::new();
    for table in SHARED_TABLES {
        let all = table.all;
        let sql = format!("{all} WHERE id IN (SELECT value ->> 0 FROM {{rows}})");
        for row in select(connection, &sql, (table.changed)(changes)).await? {
            records.push((table.read)(&row)?);
        }
    }
    Ok(records)
}

/// Reads the rows of these ids. `sql` reads them from the table `{rows}`. Cost: nothing without ids.
async fn select(
    connection: &mut AnyConnection,
    sql: &str,
    ids: &BTreeSet<String>,
) -> Result<Vec<AnyRow>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let ids = Rows::from_texts(connection, ids.iter().map(String::as_str))?;
    Ok(ids.query(sql).fetch_all(connection).await?)
}

struct OrganizationRow {
    id: Arc<str>,
    name: Arc<str>,
    plan: Plan,
    plan_since_ms: i64,
    status: OrganizationStatus,
}

struct ProjectRow {
    id: Arc<str>,
    organization_id: String,
    name: Arc<str>,
    mode: Mode,
    cache_ttl_s: Option<u32>,
    is_archived: bool,
    experiments: Option<Arc<str>>,
}

/// What keys share: organizations, projects and members, by id.
#[derive(Default)]
pub struct SharedRows {
    organizations: HashMap<String, OrganizationRow>,
    projects: HashMap<String, ProjectRow>,
    members: HashMap<String, Arc<Member>>,
}

/// Equal values of the keys that are read together, stored once.
#[derive(Default)]
pub(super) struct Interned {
    terms: HashMap<String, Arc<KeyTerms>>,
    labels: HashMap<String, Arc<str>>,
}

impl SharedRows {
    /// Adds a row, or replaces the one of its id. Rows of other kinds are left out.
    pub(super) fn add(&mut self, record: &AccountRecord) -> Result<(), StoreError> {
        match record {
            AccountRecord::Organization(record) => {
                let row = OrganizationRow {
                    id: record.id.as_str().into(),
                    name: record.name.as_str().into(),
                    plan: parse("plan", &record.plan)?,
                    plan_since_ms: record.plan_since,
                    status: record.status(),
                };
                self.organizations.insert(record.id.clone(), row);
            }
            AccountRecord::Project(record) => {
                let row = ProjectRow {
                    id: record.id.as_str().into(),
                    organization_id: record.organization_id.clone(),
                    name: record.name.as_str().into(),
                    mode: parse("mode", &record.mode)?,
                    cache_ttl_s: cache_ttl_s(record.cache_ttl_s)?,
                    is_archived: record.status == "archived",
                    experiments: record.experiments.as_deref().map(Arc::from),
                };
                self.projects.insert(record.id.clone(), row);
            }
            AccountRecord::Member(record) => {
                let member = Member {
                    id: record.id.as_str().into(),
                    budget: budget(record.budget.as_deref())?,
                };
                self.members.insert(record.id.clone(), Arc::new(member));
            }
            AccountRecord::Key(_)
            | AccountRecord::ByokKeys(..)
            | AccountRecord::Prompt(_)
            | AccountRecord::Revoked(..)
            | AccountRecord::Revision(_) => {}
        }
        Ok(())
    }

    /// Returns the projects that have changed, or whose organization has.
    fn projects_of(&self, changes: &Changes) -> BTreeSet<String> {
        let mut projects = changes.projects.clone();
        if !changes.organizations.is_empty() {
            let of_changed = self.projects.iter().filter(|(_, project)| {
                changes
                    .organizations
                    .contains(project.organization_id.as_str())
            });
            projects.extend(of_changed.map(|(id, _)| id.clone()));
        }
        projects
    }

    /// Returns the row of a key, or `None` if the key is newer than the shared rows.
    pub(super) fn key_row(
        &self,
        key: KeyRecord,
        interned: &mut Interned,
    ) -> Result<Option<(KeyHash, KeyRow)>, StoreError> {
        let project = self.projects.get(&key.project_id);
        let organization =
            project.and_then(|project| self.organizations.get(&project.organization_id));
        let (Some(project), Some(organization)) = (project, organization) else {
            return Ok(None);
        };
        let hash = key.hash.try_into();
        let hash = hash.map_err(|_| StoreError::Damaged("hash"))?;
        let caller = Caller {
            organization_id: Arc::clone(&organization.id),
            organization: Arc::clone(&organization.name),
            project_id: Arc::clone(&project.id),
            project: Arc::clone(&project.name),
            key_id: key.id.into(),
            key_label: interned.label(key.label),
            mode: project.mode,
            plan: organization.plan,
            plan_since_ms: organization.plan_since_ms,
            member: key.member_id.and_then(|id| self.members.get(&id).cloned()),
            terms: interned.terms(key.terms)?,
            cache_ttl_s: project.cache_ttl_s,
            experiments: project.experiments.clone(),
            expires_at_ms: key.expires_at,
            is_debug: key.is_debug,
        };
        let row = KeyRow {
            caller: Arc::new(caller),
            is_revoked: key.revoked_at.is_some(),
            organization_status: organization.status,
            is_project_archived: project.is_archived,
        };
        Ok(Some((KeyHash::from_bytes(hash), row)))
    }
}

impl Interned {
    fn terms(&mut self, text: Option<String>) -> Result<Option<Arc<KeyTerms>>, StoreError> {
        let Some(text) = text else { return Ok(None) };
        if let Some(terms) = self.terms.get(&text) {
            return Ok(Some(Arc::clone(terms)));
        }
        let file: TermsFile =
            serde_json::from_str(&text).map_err(|_| StoreError::Damaged("terms"))?;
        let terms = Arc::new(file.check().map_err(|_| StoreError::Damaged("terms"))?);
        self.terms.insert(text, Arc::clone(&terms));
        Ok(Some(terms))
    }

    fn label(&mut self, label: String) -> Arc<str> {
        let entry = self.labels.entry(label);
        Arc::clone(entry.or_insert_with_key(|label| Arc::from(label.as_str())))
    }
}

fn parse<T: std::str::FromStr>(column: &'static str, text: &str) -> Result<T, StoreError> {
    text.parse().map_err(|_| StoreError::Damaged(column))
}
