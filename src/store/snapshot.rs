//! The snapshot of accounts, which requests read instead of the store.

use std::collections::HashMap;
use std::sync::Arc;

use filters::accounts::{
    AccountsSnapshot, Caller, KeyHash, KeyRow, KeyTerms, Member, Mode, Plan, TermsFile,
};
use futures::TryStreamExt;
use sqlx::Row;
use sqlx::any::AnyRow;

use super::members::budget;
use super::projects::cache_ttl_s;
use super::{Store, StoreError, parse_column};

impl Store {
    /// Returns every key with its project and organization, and their revision.
    ///
    /// The revision is read first. A change between the statements is either in the rows already, or is missing and
    /// will be read again with its own revision. Cost: one row per key ever issued, read as a stream; values that keys
    /// share are read once.
    pub async fn accounts(&self) -> Result<AccountsSnapshot, StoreError> {
        let revision = self.revision().await?;
        let mut shared = self.shared_rows().await?;
        let sql = "SELECT id, project_id, label, hash, expires_at, revoked_at, terms, member_id \
                   FROM api_keys";
        let mut rows = sqlx::query(sql).fetch(&self.pool);
        let mut keys = Vec::new();
        while let Some(row) = rows.try_next().await? {
            keys.extend(shared.key_row(&row)?);
        }
        Ok(AccountsSnapshot::new(revision, keys))
    }

    /// Reads the rows that keys share.
    async fn shared_rows(&self) -> Result<SnapshotRows, StoreError> {
        let sql = "SELECT id, name, plan, plan_since, status FROM organizations";
        let rows = sqlx::query(sql).fetch_all(&self.pool).await?;
        let organizations = by_id(&rows, organization)?;
        let sql = "SELECT id, budget FROM members";
        let rows = sqlx::query(sql).fetch_all(&self.pool).await?;
        let members = by_id(&rows, member)?;
        let sql = "SELECT id, organization_id, name, mode, cache_ttl_s, status FROM projects";
        let rows = sqlx::query(sql).fetch_all(&self.pool).await?;
        Ok(SnapshotRows {
            organizations,
            projects: by_id(&rows, project)?,
            members,
            terms: HashMap::new(),
            labels: HashMap::new(),
        })
    }
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

/// Values that keys share, stored once.
struct SnapshotRows {
    organizations: HashMap<String, OrganizationRow>,
    projects: HashMap<String, ProjectRow>,
    members: HashMap<String, Arc<Member>>,
    terms: HashMap<String, Arc<KeyTerms>>,
    labels: HashMap<String, Arc<str>>,
}

impl SnapshotRows {
    /// Returns the row of a key, or `None` if the key is newer than the shared rows.
    fn key_row(&mut self, row: &AnyRow) -> Result<Option<(KeyHash, KeyRow)>, StoreError> {
        let terms = self.terms(row.try_get("terms")?)?;
        let key_label = self.label(row.try_get("label")?);
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
