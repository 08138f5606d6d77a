//! Projects.

use filters::accounts::{AllowedRegions, Mode};
use filters::audit::{AuditKind, Verb};
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row};

use super::{
    AccountChange, AccountEditor, Changed, Noted, Store, StoreError, check_name, new_id,
    organizations, parse_column, regions, rename,
};

/// A project: a part of an organization with its own settings.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Project {
    /// `proj_` and a uuid.
    pub id: String,
    /// Its name within the organization.
    pub name: String,
    /// Which credentials serve it: the platform's, the caller's or both.
    pub mode: Mode,
    /// How long its responses may be cached, in seconds.
    pub cache_ttl_s: Option<u32>,
    /// The SDK key of the datafile whose flags its requests may name as models.
    pub experiments: Option<String>,
    pub is_archived: bool,
    pub created_at_ms: i64,
    /// The regions in which its calls may be computed, of those of its organization; `None`: in all.
    pub regions: Option<AllowedRegions>,
}

/// The changes of a project; `None` leaves a setting unchanged.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProjectChange<'a> {
    /// Which credentials serve it.
    pub mode: Option<Mode>,
    /// How long its responses may be cached, in seconds; `Some(None)`: never.
    pub cache_ttl_s: Option<Option<u32>>,
    /// The SDK key of the datafile whose flags its requests may name as models; `Some(None)`: none.
    pub experiments: Option<Option<&'a str>>,
}

/// The settings of a new project.
#[derive(Clone, Copy, Debug)]
pub struct NewProject<'a> {
    /// Its name within the organization.
    pub name: &'a str,
    /// Which credentials serve it.
    pub mode: Mode,
    /// How long its responses may be cached, in seconds.
    pub cache_ttl_s: Option<u32>,
}

impl Store {
    /// Returns all projects of an organization, by name, including archived ones.
    ///
    /// Errors: [`StoreError::NotFound`] for the organization.
    pub async fn projects(&self, organization: &str) -> Result<Vec<Project>, StoreError> {
        let sql = format!("{SELECT} WHERE organization_id = $1 ORDER BY name");
        self.read_of(organization, AssertSqlSafe(sql), read).await
    }

    /// Returns a project of an organization, also an archived one.
    ///
    /// Errors: [`StoreError::NotFound`] for the organization or the project.
    pub async fn project(&self, organization: &str, name: &str) -> Result<Project, StoreError> {
        let organization_id = self.organization(organization).await?.id;
        let sql = format!("{SELECT} WHERE organization_id = $1 AND name = $2");
        let query = sqlx::query(AssertSqlSafe(sql)).bind(&organization_id);
        let row = query
            .bind(name)
            .fetch_optional(&mut self.pool.acquire().await?)
            .await?;
        let row = row.ok_or_else(|| StoreError::not_found_of("project", name, &organization_id));
        read(&row?)
    }
}

impl AccountEditor<'_> {
    /// Creates a project of an organization.
    ///
    /// Errors: [`StoreError::NotFound`] or [`StoreError::Inactive`] for the organization,
    /// [`StoreError::AlreadyExists`], [`StoreError::InvalidName`].
    pub async fn create_project(
        self,
        organization: &str,
        project: &NewProject<'_>,
        now_ms: i64,
    ) -> Result<Project, StoreError> {
        check_name("project", project.name, false)?;
        let mut change = self.change().await?;
        let organization = organizations::active(&mut change, organization).await?;
        let created = insert_project(&mut change, &organization.id, project, now_ms).await?;
        let noted = Noted::new(AuditKind::Project, Verb::Create, &created.id);
        let changed = [Changed::Project(&created.id)];
        change.commit(&changed, noted).await?;
        Ok(created)
    }

    /// Changes a project.
    ///
    /// Errors: [`StoreError::NotFound`] or [`StoreError::Inactive`] for the organization and the project.
    pub async fn update_project(
        self,
        organization: &str,
        name: &str,
        update: &ProjectChange<'_>,
    ) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        let organization = organizations::active(&mut change, organization).await?;
        let id = active_project(&mut change, &organization.id, name).await?;
        let noted = change.note(AuditKind::Project, Verb::Update, &id).await?;
        if let Some(mode) = update.mode {
            let sql = "UPDATE projects SET mode = $2 WHERE id = $1";
            let query = sqlx::query(sql).bind(&id).bind(mode.as_str());
            query.execute(&mut *change).await?;
        }
        if let Some(cache_ttl_s) = update.cache_ttl_s {
            let sql = "UPDATE projects SET cache_ttl_s = $2 WHERE id = $1";
            let query = sqlx::query(sql).bind(&id).bind(cache_ttl_s.map(i64::from));
            query.execute(&mut *change).await?;
        }
        if let Some(experiments) = update.experiments {
            let sql = "UPDATE projects SET experiments = $2 WHERE id = $1";
            let query = sqlx::query(sql).bind(&id).bind(experiments);
            query.execute(&mut *change).await?;
        }
        change.commit(&[Changed::Project(&id)], noted).await
    }

    /// Archives a project, which makes its keys invalid. Archiving it again changes nothing.
    ///
    /// Errors: [`StoreError::NotFound`] for the organization or the project.
    pub async fn archive_project(self, organization: &str, name: &str) -> Result<(), StoreError> {
        let to = ("archived", Verb::Archive);
        self.set_project_status((organization, name), to).await
    }

    /// Takes back that a project is archived.
    ///
    /// Errors: [`StoreError::NotFound`] for the organization or the project.
    pub async fn enable_project(self, organization: &str, name: &str) -> Result<(), StoreError> {
        let to = ("active", Verb::Enable);
        self.set_project_status((organization, name), to).await
    }

    async fn set_project_status(
        self,
        (organization, name): (&str, &str),
        (status, verb): (&'static str, Verb),
    ) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        let organization_id = organizations::find(&mut change, organization).await?.id;
        let (id, _) = find_project(&mut change, &organization_id, name).await?;
        let noted = change.note(AuditKind::Project, verb, &id).await?;
        let sql = "UPDATE projects SET status = $2 WHERE id = $1";
        let query = sqlx::query(sql).bind(&id).bind(status);
        query.execute(&mut *change).await?;
        change.commit(&[Changed::Project(&id)], noted).await
    }

    /// Renames a project.
    ///
    /// Errors: [`StoreError::NotFound`] for the organization or the project, [`StoreError::AlreadyExists`],
    /// [`StoreError::InvalidName`].
    pub async fn rename_project(
        self,
        (organization, name): (&str, &str),
        new_name: &str,
    ) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        let organization_id = organizations::find(&mut change, organization).await?.id;
        let (id, _) = find_project(&mut change, &organization_id, name).await?;
        let noted = change.note(AuditKind::Project, Verb::Rename, &id).await?;
        let sql = "UPDATE projects SET name = $2 WHERE id = $1";
        rename(&mut change, sql, &id, ("project", new_name)).await?;
        change.commit(&[Changed::Project(&id)], noted).await
    }
}

/// The SQL that reads projects.
pub(super) const SELECT: &str =
    "SELECT id, name, mode, cache_ttl_s, experiments, status, created_at, regions FROM projects";

/// Inserts a project within a change.
pub(super) async fn insert_project(
    change: &mut AccountChange,
    organization_id: &str,
    project: &NewProject<'_>,
    now_ms: i64,
) -> Result<Project, StoreError> {
    let id = new_id("proj");
    let sql = "INSERT INTO projects \
               (id, organization_id, name, mode, cache_ttl_s, status, created_at) \
               VALUES ($1, $2, $3, $4, $5, 'active', $6)";
    sqlx::query(sql)
        .bind(&id)
        .bind(organization_id)
        .bind(project.name)
        .bind(project.mode.as_str())
        .bind(project.cache_ttl_s.map(i64::from))
        .bind(now_ms)
        .execute(&mut **change)
        .await
        .map_err(|error| StoreError::from_insert(error, "project", project.name))?;
    Ok(Project {
        id,
        name: project.name.to_owned(),
        mode: project.mode,
        cache_ttl_s: project.cache_ttl_s,
        experiments: None,
        is_archived: false,
        created_at_ms: now_ms,
        regions: None,
    })
}

/// Returns the id of a project that is not archived.
///
/// Errors: [`StoreError::NotFound`], [`StoreError::Inactive`].
pub(super) async fn active_project(
    change: &mut AccountChange,
    organization_id: &str,
    name: &str,
) -> Result<String, StoreError> {
    let (id, is_archived) = find_project(change, organization_id, name).await?;
    if is_archived {
        let (kind, name) = ("project", name.to_owned());
        return Err(StoreError::Inactive { kind, name });
    }
    Ok(id)
}

/// Returns the id of a project, and whether it is archived. Errors: [`StoreError::NotFound`].
pub(super) async fn find_project(
    change: &mut AccountChange,
    organization_id: &str,
    name: &str,
) -> Result<(String, bool), StoreError> {
    let sql = "SELECT id, status FROM projects WHERE organization_id = $1 AND name = $2";
    let row = sqlx::query(sql)
        .bind(organization_id)
        .bind(name)
        .fetch_optional(&mut **change)
        .await?
        .ok_or_else(|| StoreError::not_found_of("project", name, organization_id))?;
    let is_archived = row.try_get::<String, _>("status")? == "archived";
    Ok((row.try_get("id")?, is_archived))
}

/// Parses a time to live of its column.
pub(super) fn cache_ttl_s(stored: Option<i64>) -> Result<Option<u32>, StoreError> {
    let read = stored.map(u32::try_from).transpose();
    read.map_err(|_| StoreError::Damaged("cache_ttl_s"))
}

/// Reads a row of [`SELECT`].
pub(super) fn read(row: &AnyRow) -> Result<Project, StoreError> {
    Ok(Project {
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        mode: parse_column(row, "mode")?,
        cache_ttl_s: cache_ttl_s(row.try_get("cache_ttl_s")?)?,
        experiments: row.try_get("experiments")?,
        is_archived: row.try_get::<String, _>("status")? == "archived",
        created_at_ms: row.try_get("created_at")?,
        regions: regions::read(row.try_get("regions")?)?,
    })
}
