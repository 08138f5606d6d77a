//! The snapshot of accounts, which requests read instead of the store.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use filters::accounts::{
    AccountsSnapshot, Caller, KeyHash, KeyRow, KeyTerms, Member, Mode, Plan, TermsFile,
};
use futures::TryStreamExt;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Row};

use super::feed::Changes;
use super::members::budget;
use super::projects::cache_ttl_s;
use super::rows::Rows;
use super::{Store, StoreError, parse_column};

/// The columns of a key in a snapshot.
const KEY_COLUMNS: &str =
    "k.id, k.project_id, k.label, k.hash, k.expires_at, k.revoked_at, k.terms, k.member_id";

/// All accounts as of one revision, with what it takes to follow their changes.
pub struct LoadedAccounts {
    /// The snapshot for requests.
    pub snapshot: AccountsSnapshot,
    /// What its keys share.
    pub shared: SharedRows,
}

/// A snapshot that follows another one.
pub struct Followed {
    /// The next snapshot.
    pub snapshot: AccountsSnapshot,
    /// Ids of the organizations whose BYOK keys have changed.
    pub byok_organizations: Vec<String>,
    /// Whether the feed had all changes. If not, the snapshot has those that it had, and everything must be read again.
    pub is_complete: bool,
}

impl Store {
    /// Returns every key with its project and organization, and their revision.
    pub async fn accounts(&self) -> Result<AccountsSnapshot, StoreError> {
        Ok(self.load_accounts().await?.snapshot)
    }

    /// Reads all accounts.
    ///
    /// The revision is read first. A change between the statements is either in the rows already, or is missing and
    /// will be read again with its own revision. Cost: one row per key ever issued, read as a stream; values that keys
    /// share are read once.
    pub async fn load_accounts(&self) -> Result<LoadedAccounts, StoreError> {
        let revision = self.revision().await?;
        let mut shared = self.shared_rows().await?;
        let mut interned = Interned::default();
        let sql = format!("SELECT {KEY_COLUMNS} FROM api_keys k");
        let mut rows = sqlx::query(AssertSqlSafe(sql)).fetch(&self.pool);
        let mut snapshot = AccountsSnapshot::new(revision, []);
        while let Some(row) = rows.try_next().await? {
            if let Some((hash, row)) = shared.key_row(&row, &mut interned)? {
                snapshot.insert(hash, row);
            }
        }
        drop(rows);
        shared.shrink();
        Ok(LoadedAccounts { snapshot, shared })
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
        shared.update(&mut connection, &changes).await?;
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
                if let Some((hash, row)) = shared.key_row(&row, &mut interned)? {
                    snapshot.insert(hash, row);
                }
            }
        }
        Ok(Some(Followed {
            snapshot,
            byok_organizations: changes.byok_organizations.into_iter().collect(),
            is_complete: changes.is_complete,
        }))
    }

    /// Reads the rows that keys share.
    async fn shared_rows(&self) -> Result<SharedRows, StoreError> {
        let rows = sqlx::query(ORGANIZATIONS).fetch_all(&self.pool).await?;
        let organizations = by_id(&rows, organization)?;
        let rows = sqlx::query(MEMBERS).fetch_all(&self.pool).await?;
        let members = by_id(&rows, member)?;
        let rows = sqlx::query(PROJECTS).fetch_all(&self.pool).await?;
        Ok(SharedRows {
            organizations,
            projects: by_id(&rows, project)?,
            members,
        })
    }
}

const ORGANIZATIONS: &str = "SELECT id, name, plan, plan_since, status FROM organizations";
const MEMBERS: &str = "SELECT id, budget FROM members";
const PROJECTS: &str = "SELECT id, organization_id, name, mode, cache_ttl_s, status FROM projects";

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

/// Reads the rows of these ids with a statement that reads all.
async fn select_by_id(
    connection: &mut AnyConnection,
    all: &str,
    ids: &BTreeSet<String>,
) -> Result<Vec<AnyRow>, StoreError> {
    let sql = format!("{all} WHERE id IN (SELECT value ->> 0 FROM {{rows}})");
    select(connection, &sql, ids).await
}

struct OrganizationRow {
    id: Arc<str>,
    name: Arc<str>,
    plan: Plan,
    plan_since_ms: i64,
    is_disabled: bool,
}

struct ProjectRow {
    id: Arc<str>,
    organization_id: String,
    name: Arc<str>,
    mode: Mode,
    cache_ttl_s: Option<u32>,
    is_archived: bool,
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
struct Interned {
    terms: HashMap<String, Arc<KeyTerms>>,
    labels: HashMap<String, Arc<str>>,
}

impl SharedRows {
    /// Reads the rows that have changed.
    async fn update(
        &mut self,
        connection: &mut AnyConnection,
        changes: &Changes,
    ) -> Result<(), StoreError> {
        let rows = select_by_id(connection, ORGANIZATIONS, &changes.organizations).await?;
        self.organizations.extend(by_id(&rows, organization)?);
        let rows = select_by_id(connection, PROJECTS, &changes.projects).await?;
        self.projects.extend(by_id(&rows, project)?);
        let rows = select_by_id(connection, MEMBERS, &changes.members).await?;
        self.members.extend(by_id(&rows, member)?);
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

    fn shrink(&mut self) {
        self.organizations.shrink_to_fit();
        self.projects.shrink_to_fit();
        self.members.shrink_to_fit();
    }

    /// Returns the row of a key, or `None` if the key is newer than the shared rows.
    fn key_row(
        &self,
        row: &AnyRow,
        interned: &mut Interned,
    ) -> Result<Option<(KeyHash, KeyRow)>, StoreError> {
        let terms = interned.terms(row.try_get("terms")?)?;
        let key_label = interned.label(row.try_get("label")?);
        let project = self.projects.get(row.try_get::<&str, _>("project_id")?);
        let organization =
            project.and_then(|project| self.organizations.get(&project.organization_id));
        let (Some(project), Some(organization)) = (project, organization) else {
            return Ok(None);
        };
        let member: Option<String> = row.try_get("member_id")?;
        let hash: Vec<u8> = row.try_get("hash")?;
        let hash = hash.try_into().map_err(|_| StoreError::Damaged("hash"))?;
        let caller = Caller {
            organization_id: Arc::clone(&organization.id),
            organization: Arc::clone(&organization.name),
            project_id: Arc::clone(&project.id),
            project: Arc::clone(&project.name),
            key_id: row.try_get::<&str, _>("id")?.into(),
            key_label,
            mode: project.mode,
            plan: organization.plan,
            plan_since_ms: organization.plan_since_ms,
            member: member.and_then(|id| self.members.get(&id).cloned()),
            terms,
            cache_ttl_s: project.cache_ttl_s,
            expires_at_ms: row.try_get("expires_at")?,
        };
        let row = KeyRow {
            caller: Arc::new(caller),
            is_revoked: row.try_get::<Option<i64>, _>("revoked_at")?.is_some(),
            is_organization_disabled: organization.is_disabled,
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

fn by_id<T>(
    rows: &[AnyRow],
    read: fn(&AnyRow) -> Result<T, StoreError>,
) -> Result<HashMap<String, T>, StoreError> {
    let pairs = rows.iter().map(|row| Ok((row.try_get("id")?, read(row)?)));
    pairs.collect()
}

fn text(row: &AnyRow, column: &str) -> Result<Arc<str>, StoreError> {
    Ok(row.try_get::<&str, _>(column)?.into())
}

fn organization(row: &AnyRow) -> Result<OrganizationRow, StoreError> {
    Ok(OrganizationRow {
        id: text(row, "id")?,
        name: text(row, "name")?,
        plan: parse_column(row, "plan")?,
        plan_since_ms: row.try_get("plan_since")?,
        is_disabled: row.try_get::<&str, _>("status")? == "disabled",
    })
}

fn project(row: &AnyRow) -> Result<ProjectRow, StoreError> {
    Ok(ProjectRow {
        id: text(row, "id")?,
        organization_id: row.try_get("organization_id")?,
        name: text(row, "name")?,
        mode: parse_column(row, "mode")?,
        cache_ttl_s: cache_ttl_s(row)?,
        is_archived: row.try_get::<&str, _>("status")? == "archived",
    })
}

fn member(row: &AnyRow) -> Result<Arc<Member>, StoreError> {
    let member = Member {
        id: row.try_get::<&str, _>("id")?.into(),
        budget: budget(row)?,
    };
    Ok(Arc::new(member))
}
