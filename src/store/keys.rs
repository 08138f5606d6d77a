//! API keys: made once, shown once, kept as a hash.

use filters::auth::KeyText;
use sqlx::Row;
use sqlx::any::AnyRow;

use super::projects::active_project;
use super::{Error, Store, check_name, new_id, organizations};

/// What is known of a key after it was made. Its text is not.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct IssuedKey {
    /// `key_` and a uuid.
    pub id: String,
    /// What the owner calls it; may be empty.
    pub label: String,
    /// The name of its project.
    pub project: String,
    /// The last four characters of its text.
    pub last_four: String,
    /// Unix milliseconds.
    pub created_at_ms: i64,
    /// Unix milliseconds; it does not count from then on.
    pub expires_at_ms: Option<i64>,
    /// Unix milliseconds; it does not count any more.
    pub revoked_at_ms: Option<i64>,
}

/// What a key is made from.
#[derive(Clone, Copy, Debug)]
pub struct NewKey<'a> {
    /// The name of its organization.
    pub organization: &'a str,
    /// The name of its project.
    pub project: &'a str,
    /// What the owner calls it; may be empty.
    pub label: &'a str,
    /// When it stops to count, in unix milliseconds.
    pub expires_at_ms: Option<i64>,
}

impl Store {
    /// Makes a key. Its text is in the answer and nowhere else.
    ///
    /// Errors: [`Error::Absent`] or [`Error::Closed`] for organization and project, [`Error::BadName`] for the
    /// label, [`Error::Randomness`].
    pub async fn create_key(
        &self,
        new: &NewKey<'_>,
        now_ms: i64,
    ) -> Result<(KeyText, IssuedKey), Error> {
        check_name("key", new.label, true)?;
        let text = random_key()?;
        let issued = IssuedKey {
            id: new_id("key"),
            label: new.label.to_owned(),
            project: new.project.to_owned(),
            last_four: text.key().last_four(),
            created_at_ms: now_ms,
            expires_at_ms: new.expires_at_ms,
            revoked_at_ms: None,
        };
        let mut change = self.change().await?;
        let organization = organizations::active(&mut change, new.organization).await?;
        let project_id = active_project(&mut change, &organization.id, new.project).await?;
        let sql = "INSERT INTO api_keys \
                   (id, project_id, label, hash, last_four, created_at, expires_at) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7)";
        sqlx::query(sql)
            .bind(&issued.id)
            .bind(project_id)
            .bind(&issued.label)
            .bind(self.pepper.hash(text.key()).as_bytes().to_vec())
            .bind(&issued.last_four)
            .bind(now_ms)
            .bind(issued.expires_at_ms)
            .execute(&mut *change)
            .await?;
        change.commit().await?;
        Ok((text, issued))
    }

    /// All keys of an organization, oldest first, revoked ones too.
    ///
    /// Errors: [`Error::Absent`] for the organization.
    pub async fn keys(&self, organization: &str) -> Result<Vec<IssuedKey>, Error> {
        let id = self.organization(organization).await?.id;
        let sql = "SELECT k.id, k.label, p.name AS project, k.last_four, k.created_at, \
                   k.expires_at, k.revoked_at FROM api_keys k \
                   JOIN projects p ON p.id = k.project_id \
                   WHERE p.organization_id = $1 ORDER BY k.created_at, k.id";
        let rows = sqlx::query(sql).bind(id).fetch_all(&self.pool).await?;
        rows.iter().map(read).collect()
    }

    /// Revokes a key. Revoking it again keeps the first time.
    ///
    /// Errors: [`Error::Absent`].
    pub async fn revoke_key(&self, id: &str, now_ms: i64) -> Result<(), Error> {
        let mut change = self.change().await?;
        let sql = "UPDATE api_keys SET revoked_at = COALESCE(revoked_at, $2) WHERE id = $1";
        let done = sqlx::query(sql)
            .bind(id)
            .bind(now_ms)
            .execute(&mut *change)
            .await?;
        if done.rows_affected() == 0 {
            return Err(Error::absent("key", id));
        }
        Ok(change.commit().await?)
    }
}

fn random_key() -> Result<KeyText, Error> {
    let mut entropy = [0_u8; 32];
    getrandom::fill(&mut entropy).map_err(|_| Error::Randomness)?;
    Ok(KeyText::from_entropy(&entropy))
}

fn read(row: &AnyRow) -> Result<IssuedKey, Error> {
    Ok(IssuedKey {
        id: row.try_get("id")?,
        label: row.try_get("label")?,
        project: row.try_get("project")?,
        last_four: row.try_get("last_four")?,
        created_at_ms: row.try_get("created_at")?,
        expires_at_ms: row.try_get("expires_at")?,
        revoked_at_ms: row.try_get("revoked_at")?,
    })
}
