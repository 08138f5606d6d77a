//! Projects.

use filters::auth::Mode;
use sqlx::Row;

use super::{Change, Error, Store, check_name, new_id, organizations};

/// A project: a part of an organization with settings of its own.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Project {
    /// `proj_` and a uuid.
    pub id: String,
    /// Its name within the organization.
    pub name: String,
    /// Whose credentials serve it.
    pub mode: Mode,
    /// How long its answers may be replayed, in seconds.
    pub cache_ttl_s: Option<u32>,
    /// Unix milliseconds.
    pub created_at_ms: i64,
}

/// What a project is made from.
#[derive(Clone, Copy, Debug)]
pub struct NewProject<'a> {
    /// Its name within the organization.
    pub name: &'a str,
    /// Whose credentials serve it.
    pub mode: Mode,
    /// How long its answers may be replayed, in seconds.
    pub cache_ttl_s: Option<u32>,
}

impl Store {
    /// Makes a project of an organization.
    ///
    /// Errors: [`Error::Absent`] or [`Error::Closed`] for the organization, [`Error::Taken`], [`Error::BadName`].
    pub async fn create_project(
        &self,
        organization: &str,
        project: &NewProject<'_>,
        now_ms: i64,
    ) -> Result<Project, Error> {
        check_name("project", project.name, false)?;
        let mut change = self.change().await?;
        let organization = organizations::active(&mut change, organization).await?;
        let made = insert_project(&mut change, &organization.id, project, now_ms).await?;
        change.commit().await?;
        Ok(made)
    }

    /// Archives a project: its keys stop to count. Archiving it again changes nothing.
    ///
    /// Errors: [`Error::Absent`] for the organization or the project.
    pub async fn archive_project(&self, organization: &str, name: &str) -> Result<(), Error> {
        let id = self.organization(organization).await?.id;
        let mut change = self.change().await?;
        let sql =
            "UPDATE projects SET status = 'archived' WHERE organization_id = $1 AND name = $2";
        let done = sqlx::query(sql)
            .bind(id)
            .bind(name)
            .execute(&mut *change)
            .await?;
        if done.rows_affected() == 0 {
            return Err(Error::absent("project", name));
        }
        Ok(change.commit().await?)
    }
}

/// Writes a project within a change.
pub(super) async fn insert_project(
    change: &mut Change,
    organization_id: &str,
    project: &NewProject<'_>,
    now_ms: i64,
) -> Result<Project, Error> {
    let id = new_id("proj");
    let sql = "INSERT INTO projects \
               (id, organization_id, name, mode, cache_ttl_s, status, created_at) \
               VALUES ($1, $2, $3, $4, $5, 'active', $6)";
    sqlx::query(sql)
        .bind(&id)
        .bind(organization_id)
        .bind(project.name)
        .bind(project.mode.word())
        .bind(project.cache_ttl_s.map(i64::from))
        .bind(now_ms)
        .execute(&mut **change)
        .await
        .map_err(|error| Error::taken(error, "project", project.name))?;
    Ok(Project {
        id,
        name: project.name.to_owned(),
        mode: project.mode,
        cache_ttl_s: project.cache_ttl_s,
        created_at_ms: now_ms,
    })
}

/// The id of a project that was not archived.
///
/// Errors: [`Error::Absent`], [`Error::Closed`].
pub(super) async fn active_project(
    change: &mut Change,
    organization_id: &str,
    name: &str,
) -> Result<String, Error> {
    let sql = "SELECT id, status FROM projects WHERE organization_id = $1 AND name = $2";
    let row = sqlx::query(sql)
        .bind(organization_id)
        .bind(name)
        .fetch_optional(&mut **change)
        .await?
        .ok_or_else(|| Error::absent("project", name))?;
    if row.try_get::<String, _>("status")? == "archived" {
        let (what, name) = ("project", name.to_owned());
        return Err(Error::Closed { what, name });
    }
    Ok(row.try_get("id")?)
}
