//! The regions in which the calls of organizations and projects may be computed.

use filters::accounts::AllowedRegions;
use filters::audit::{AuditKind, Verb};

use super::{AccountEditor, Changed, StoreError, organizations, projects};

impl AccountEditor<'_> {
    /// Sets the regions in which the calls of an organization, or of one of its projects, may be computed; `None`: in all.
    ///
    /// Errors: [`StoreError::NotFound`] or [`StoreError::Inactive`] for the organization and the project.
    pub async fn set_regions(
        self,
        organization: &str,
        project: Option<&str>,
        regions: Option<&AllowedRegions>,
    ) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        let organization = organizations::active(&mut change, organization).await?.id;
        let (kind, id, sql) = match project {
            Some(name) => {
                let id = projects::active_project(&mut change, &organization, name).await?;
                let sql = "UPDATE projects SET regions = $2 WHERE id = $1";
                (AuditKind::Project, id, sql)
            }
            None => {
                let sql = "UPDATE organizations SET regions = $2 WHERE id = $1";
                (AuditKind::Organization, organization, sql)
            }
        };
        let noted = change.note(kind, Verb::Update, &id).await?;
        sqlx::query(sql)
            .bind(&id)
            .bind(regions.map(ToString::to_string))
            .execute(&mut *change)
            .await?;
        let changed = match project {
            Some(_) => Changed::Project(&id),
            None => Changed::Organization(&id),
        };
        change.commit(&[changed], noted).await
    }
}

/// Reads the regions of a column.
pub(super) fn read(column: Option<&str>) -> Result<Option<AllowedRegions>, StoreError> {
    let read = column.map(str::parse).transpose();
    read.map_err(|_| StoreError::Damaged("regions"))
}
