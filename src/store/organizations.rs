//! Organizations.

use std::collections::{BTreeSet, HashMap};

use filters::accounts::{AllowedRegions, Mode, OrganizationStatus, Plan};
use filters::audit::{AuditKind, Verb};
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row, SqlSafeStr};

use super::connections::Connected;
use super::projects::insert_project;
use super::regions;
use super::snapshot::select;
use super::{
    AccountChange, AccountEditor, Changed, DEFAULT_PROJECT, NewProject, Noted, Store, StoreError,
    check_name, new_id, parse_column, rename,
};

/// An organization, which pays for its calls.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Organization {
    /// `org_` and a uuid.
    pub id: String,
    /// Its unique name.
    pub name: String,
    pub plan: Plan,
    pub status: OrganizationStatus,
    pub created_at_ms: i64,
    /// The regions in which its calls may be computed; `None`: in all.
    pub regions: Option<AllowedRegions>,
    /// Whether the export of logs has the content of its calls.
    pub exports_content: bool,
    /// Until when its bodies may be kept in memory, in unix milliseconds; `None`: never.
    pub keep_bodies_until_ms: Option<i64>,
}

/// The columns of an organization.
pub(super) const COLUMNS: &str =
    "id, name, plan, status, held_at, created_at, regions, export_content, keep_bodies_until";

impl Store {
    /// Returns all organizations, by name.
    pub async fn organizations(&self) -> Result<Vec<Organization>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM organizations ORDER BY name");
        let rows = sqlx::query(AssertSqlSafe(sql))
            .fetch_all(&mut self.pool.acquire().await?)
            .await?;
        rows.iter().map(read).collect()
    }

    /// Returns one organization. Errors: [`StoreError::NotFound`].
    pub async fn organization(&self, name: &str) -> Result<Organization, StoreError> {
        let mut connection = self.pool.acquire().await?;
        find(&mut connection, name).await
    }

    /// Returns the names of the organizations with these ids, by id.
    pub async fn organization_names(
        &self,
        ids: &BTreeSet<String>,
    ) -> Result<HashMap<String, String>, StoreError> {
        let sql = "SELECT id, name FROM organizations WHERE id IN (SELECT value ->> 0 FROM {rows})";
        let rows = select(&mut self.pool.acquire().await?, sql, ids).await?;
        let name = |row: &AnyRow| Ok((row.try_get("id")?, row.try_get("name")?));
        rows.iter().map(name).collect()
    }

    /// Reads the rows of an organization. `$1` is its id. Errors: [`StoreError::NotFound`].
    pub(super) async fn read_of<T>(
        &self,
        organization: &str,
        sql: impl SqlSafeStr,
        read: fn(&AnyRow) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let query = sqlx::query(sql).bind(self.organization(organization).await?.id);
        let rows = query.fetch_all(&mut self.pool.acquire().await?).await?;
        rows.iter().map(read).collect()
    }
}

impl AccountEditor<'_> {
    /// Creates an organization and its project `default`.
    ///
    /// Errors: [`StoreError::AlreadyExists`], [`StoreError::InvalidName`].
    pub async fn create_organization(
        self,
        name: &str,
        plan: Plan,
        now_ms: i64,
    ) -> Result<Organization, StoreError> {
        check_name("organization", name, false)?;
        let mut change = self.change().await?;
        let organization = Organization {
            id: new_id("org"),
            name: name.to_owned(),
            plan,
            status: OrganizationStatus::Active,
            created_at_ms: now_ms,
            regions: None,
            exports_content: false,
            keep_bodies_until_ms: None,
        };
        let sql = "INSERT INTO organizations (id, name, plan, plan_since, status, created_at) \
                   VALUES ($1, $2, $3, $4, 'active', $4)";
        sqlx::query(sql)
            .bind(&organization.id)
            .bind(name)
            .bind(plan.as_str())
            .bind(now_ms)
            .execute(&mut *change)
            .await
            .map_err(|error| StoreError::from_insert(error, "organization", name))?;
        let project = NewProject {
            name: DEFAULT_PROJECT,
            mode: Mode::default(),
            cache_ttl_s: None,
        };
        let project = insert_project(&mut change, &organization.id, &project, now_ms).await?;
        let changed = [
            Changed::Organization(&organization.id),
            Changed::Project(&project.id),
        ];
        let noted = vec![
            Noted::new(AuditKind::Organization, Verb::Create, &organization.id),
            Noted::new(AuditKind::Project, Verb::Create, &project.id),
        ];
        change.commit_all(&changed, noted).await?;
        Ok(organization)
    }

    /// Disables an organization, which makes its keys invalid. Disabling it again changes nothing.
    ///
    /// Errors: [`StoreError::NotFound`].
    pub async fn disable_organization(self, name: &str) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        let id = find(&mut change, name).await?.id;
        let noted = note(&mut change, Verb::Disable, &id).await?;
        set_status(&mut change, &id, "disabled").await?;
        change.commit(&[Changed::Organization(&id)], noted).await
    }

    /// Takes back that an organization is disabled. One that was held for review is so again.
    ///
    /// Errors: [`StoreError::NotFound`].
    pub async fn enable_organization(self, name: &str) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        let id = find(&mut change, name).await?.id;
        let noted = note(&mut change, Verb::Enable, &id).await?;
        set_status(&mut change, &id, "active").await?;
        change.commit(&[Changed::Organization(&id)], noted).await
    }

    /// Renames an organization.
    ///
    /// Errors: [`StoreError::NotFound`], [`StoreError::AlreadyExists`], [`StoreError::InvalidName`].
    pub async fn rename_organization(self, name: &str, new_name: &str) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        let id = find(&mut change, name).await?.id;
        let noted = note(&mut change, Verb::Rename, &id).await?;
        let sql = "UPDATE organizations SET name = $2 WHERE id = $1";
        rename(&mut change, sql, &id, ("organization", new_name)).await?;
        change.commit(&[Changed::Organization(&id)], noted).await
    }

    /// Holds an organization for review, which refuses its keys, or releases it. `now_ms` is when it began to be held.
    ///
    /// Errors: [`StoreError::NotFound`], [`StoreError::Inactive`].
    pub async fn hold_organization(
        self,
        name: &str,
        now_ms: Option<i64>,
    ) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        let id = active(&mut change, name).await?.id;
        let verb = now_ms.map_or(Verb::Release, |_| Verb::Hold);
        let noted = note(&mut change, verb, &id).await?;
        sqlx::query("UPDATE organizations SET held_at = $2 WHERE id = $1")
            .bind(&id)
            .bind(now_ms)
            .execute(&mut *change)
            .await?;
        change.commit(&[Changed::Organization(&id)], noted).await
    }

    /// Puts an organization on a plan, with a first cycle that starts now. If it has the plan already, nothing changes.
    ///
    /// Errors: [`StoreError::NotFound`], [`StoreError::Inactive`].
    pub async fn set_plan(self, name: &str, plan: Plan, now_ms: i64) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        let organization = active(&mut change, name).await?;
        if organization.plan == plan {
            return Ok(());
        }
        let id = organization.id;
        let noted = note(&mut change, Verb::Update, &id).await?;
        let sql = "UPDATE organizations SET plan = $2, plan_since = $3 WHERE id = $1";
        sqlx::query(sql)
            .bind(&id)
            .bind(plan.as_str())
            .bind(now_ms)
            .execute(&mut *change)
            .await?;
        change.commit(&[Changed::Organization(&id)], noted).await
    }

    /// Sets whether the export of logs has the content of an organization's calls.
    ///
    /// Errors: [`StoreError::NotFound`], [`StoreError::Inactive`].
    pub async fn set_export_content(
        self,
        name: &str,
        exports_content: bool,
    ) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        let id = active(&mut change, name).await?.id;
        let noted = note(&mut change, Verb::Update, &id).await?;
        sqlx::query("UPDATE organizations SET export_content = $2 WHERE id = $1")
            .bind(&id)
            .bind(i64::from(exports_content))
            .execute(&mut *change)
            .await?;
        change.commit(&[Changed::Organization(&id)], noted).await
    }

    /// Sets until when what is asked and answered in an organization's calls may be kept in memory; `None`: it is not.
    ///
    /// Errors: [`StoreError::NotFound`], [`StoreError::Inactive`].
    pub async fn keep_bodies(self, name: &str, until_ms: Option<i64>) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        let id = active(&mut change, name).await?.id;
        let noted = note(&mut change, Verb::Update, &id).await?;
        sqlx::query("UPDATE organizations SET keep_bodies_until = $2 WHERE id = $1")
            .bind(&id)
            .bind(until_ms)
            .execute(&mut *change)
            .await?;
        change.commit(&[Changed::Organization(&id)], noted).await
    }
}

/// Returns the organization with that name, which must not be disabled.
///
/// Errors: [`StoreError::NotFound`], [`StoreError::Inactive`].
pub(super) async fn active(
    change: &mut AccountChange,
    name: &str,
) -> Result<Organization, StoreError> {
    let organization = find(change, name).await?;
    if organization.status == OrganizationStatus::Disabled {
        let (kind, name) = ("organization", name.to_owned());
        return Err(StoreError::Inactive { kind, name });
    }
    Ok(organization)
}

/// Notes an organization that is about to change.
async fn note(change: &mut AccountChange, verb: Verb, id: &str) -> Result<Noted, StoreError> {
    change.note(AuditKind::Organization, verb, id).await
}

async fn set_status(
    change: &mut AccountChange,
    id: &str,
    status: &'static str,
) -> Result<(), StoreError> {
    let sql = "UPDATE organizations SET status = $2 WHERE id = $1";
    let query = sqlx::query(sql).bind(id).bind(status);
    query.execute(&mut **change).await?;
    Ok(())
}

/// Returns the organization with that name. Errors: [`StoreError::NotFound`].
pub(super) async fn find(
    connection: &mut Connected,
    name: &str,
) -> Result<Organization, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM organizations WHERE name = $1");
    let row = sqlx::query(AssertSqlSafe(sql))
        .bind(name)
        .fetch_optional(connection)
        .await?;
    read(&row.ok_or_else(|| StoreError::not_found("organization", name))?)
}

/// Returns the state that the columns `status` and `held_at` make.
pub(super) fn organization_status(status: &str, held_at: Option<i64>) -> OrganizationStatus {
    match held_at {
        _ if status == "disabled" => OrganizationStatus::Disabled,
        Some(_) => OrganizationStatus::Held,
        None => OrganizationStatus::Active,
    }
}

/// Reads a row of [`COLUMNS`].
pub(super) fn read(row: &AnyRow) -> Result<Organization, StoreError> {
    Ok(Organization {
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        plan: parse_column(row, "plan")?,
        status: organization_status(row.try_get("status")?, row.try_get("held_at")?),
        created_at_ms: row.try_get("created_at")?,
        regions: regions::read(row.try_get("regions")?)?,
        exports_content: row.try_get::<i64, _>("export_content")? != 0,
        keep_bodies_until_ms: row.try_get("keep_bodies_until")?,
    })
}
