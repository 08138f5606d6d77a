//! API keys: made once, shown once, kept as a hash.

use std::sync::LazyLock;

use filters::accounts::{KeyText, TermsFile};
use sqlx::Row;
use sqlx::any::AnyRow;

use super::members::member_id;
use super::projects::active_project;
use super::{AccountChange, DEFAULT_PROJECT, Store, StoreError, check_name, new_id, organizations};

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
    /// The name of its owner; none: the organization alone.
    pub member: Option<String>,
    /// What it may spend and whom it may reach.
    pub terms: TermsFile,
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
    /// The name of its owner; none: the organization alone.
    pub member: Option<&'a str>,
    /// What it may spend and whom it may reach.
    pub terms: &'a TermsFile,
}

impl Default for NewKey<'_> {
    /// A key without a name or any bound, of a project named as the default one.
    fn default() -> Self {
        static NONE: LazyLock<TermsFile> = LazyLock::new(TermsFile::default);
        Self {
            organization: "",
            project: DEFAULT_PROJECT,
            label: "",
            expires_at_ms: None,
            member: None,
            terms: &NONE,
        }
    }
}

/// What of a key is changed; what is `None` stays as it is.
#[derive(Clone, Debug, Default)]
pub struct KeyChange {
    /// What the owner calls it.
    pub label: Option<String>,
    /// When it stops to count, in unix milliseconds; `Some(None)`: never.
    pub expires_at_ms: Option<Option<i64>>,
    /// The name of its owner; `Some(None)`: the organization alone.
    pub member: Option<Option<String>>,
    /// All of its terms.
    pub terms: Option<TermsFile>,
}

impl Store {
    /// Makes a key. Its text is in the answer and nowhere else.
    ///
    /// Errors: [`StoreError::Absent`] or [`StoreError::Closed`] for organization, project and member, [`StoreError::BadName`] for the
    /// label, [`StoreError::BadTerm`], [`StoreError::Randomness`].
    pub async fn create_key(
        &self,
        new: &NewKey<'_>,
        now_ms: i64,
    ) -> Result<(KeyText, IssuedKey), StoreError> {
        check_name("key", new.label, true)?;
        let text = random_key()?;
        let issued = IssuedKey {
            id: new_id("key"),
            label: new.label.to_owned(),
            project: new.project.to_owned(),
            last_four: text.to_api_key().last_four(),
            created_at_ms: now_ms,
            expires_at_ms: new.expires_at_ms,
            revoked_at_ms: None,
            member: new.member.map(str::to_owned),
            terms: new.terms.clone(),
        };
        let terms = stored(new.terms)?;
        let mut change = self.change().await?;
        let organization = organizations::active(&mut change, new.organization).await?;
        let project_id = active_project(&mut change, &organization.id, new.project).await?;
        let member_id = match new.member {
            Some(name) => Some(member_id(&mut change, &organization.id, name).await?),
            None => None,
        };
        let sql = "INSERT INTO api_keys (id, project_id, label, hash, last_four, created_at, \
                   expires_at, terms, member_id) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
        sqlx::query(sql)
            .bind(&issued.id)
            .bind(project_id)
            .bind(&issued.label)
            .bind(self.pepper.hash(text.to_api_key()).as_bytes().to_vec())
            .bind(&issued.last_four)
            .bind(now_ms)
            .bind(issued.expires_at_ms)
            .bind(terms)
            .bind(member_id)
            .execute(&mut *change)
            .await?;
        change.commit().await?;
        Ok((text, issued))
    }

    /// All keys of an organization, oldest first, revoked ones too.
    ///
    /// Errors: [`StoreError::Absent`] for the organization.
    pub async fn keys(&self, organization: &str) -> Result<Vec<IssuedKey>, StoreError> {
        let id = self.organization(organization).await?.id;
        let sql = "SELECT k.id, k.label, p.name AS project, k.last_four, k.created_at, \
                   k.expires_at, k.revoked_at, k.terms, m.name AS member FROM api_keys k \
                   JOIN projects p ON p.id = k.project_id \
                   LEFT JOIN members m ON m.id = k.member_id \
                   WHERE p.organization_id = $1 ORDER BY k.created_at, k.id";
        let rows = sqlx::query(sql).bind(id).fetch_all(&self.pool).await?;
        rows.iter().map(read).collect()
    }

    /// The terms of a key. Errors: [`StoreError::Absent`].
    pub async fn key_terms(&self, id: &str) -> Result<TermsFile, StoreError> {
        let sql = "SELECT terms FROM api_keys WHERE id = $1";
        let row = sqlx::query(sql).bind(id).fetch_optional(&self.pool).await?;
        read_terms(&row.ok_or_else(|| StoreError::absent("key", id))?)
    }

    /// Changes a key, also one that is revoked.
    ///
    /// Errors: [`StoreError::Absent`] for key and member, [`StoreError::BadName`] for the label, [`StoreError::BadTerm`].
    pub async fn update_key(&self, id: &str, wanted: &KeyChange) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        let sql = "SELECT p.organization_id FROM api_keys k \
                   JOIN projects p ON p.id = k.project_id WHERE k.id = $1";
        let found = sqlx::query_scalar(sql).bind(id);
        let organization_id: Option<String> = found.fetch_optional(&mut *change).await?;
        let organization_id = organization_id.ok_or_else(|| StoreError::absent("key", id))?;
        if let Some(label) = &wanted.label {
            check_name("key", label, true)?;
            set(
                &mut change,
                id,
                "UPDATE api_keys SET label = $2 WHERE id = $1",
                Some(label),
            )
            .await?;
        }
        if let Some(expires_at_ms) = wanted.expires_at_ms {
            let sql = "UPDATE api_keys SET expires_at = $2 WHERE id = $1";
            let update = sqlx::query(sql).bind(id).bind(expires_at_ms);
            update.execute(&mut *change).await?;
        }
        if let Some(member) = &wanted.member {
            let member_id = match member {
                Some(name) => Some(member_id(&mut change, &organization_id, name).await?),
                None => None,
            };
            let sql = "UPDATE api_keys SET member_id = $2 WHERE id = $1";
            set(&mut change, id, sql, member_id.as_deref()).await?;
        }
        if let Some(terms) = &wanted.terms {
            let terms = stored(terms)?;
            let sql = "UPDATE api_keys SET terms = $2 WHERE id = $1";
            set(&mut change, id, sql, terms.as_deref()).await?;
        }
        Ok(change.commit().await?)
    }

    /// Revokes a key. Revoking it again keeps the first time.
    ///
    /// Errors: [`StoreError::Absent`].
    pub async fn revoke_key(&self, id: &str, now_ms: i64) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        let sql = "UPDATE api_keys SET revoked_at = COALESCE(revoked_at, $2) WHERE id = $1";
        let done = sqlx::query(sql)
            .bind(id)
            .bind(now_ms)
            .execute(&mut *change)
            .await?;
        if done.rows_affected() == 0 {
            return Err(StoreError::absent("key", id));
        }
        Ok(change.commit().await?)
    }
}

async fn set(
    change: &mut AccountChange,
    id: &str,
    sql: &'static str,
    text: Option<&str>,
) -> Result<(), StoreError> {
    let update = sqlx::query(sql).bind(id).bind(text.map(str::to_owned));
    update.execute(&mut **change).await?;
    Ok(())
}

/// Terms as they are kept: checked, and nothing where they bound nothing.
fn stored(terms: &TermsFile) -> Result<Option<String>, StoreError> {
    terms.check().map_err(StoreError::BadTerm)?;
    if terms.is_empty() {
        return Ok(None);
    }
    let text = serde_json::to_string(terms).map_err(|_| StoreError::Damaged("terms"))?;
    Ok(Some(text))
}

fn read_terms(row: &AnyRow) -> Result<TermsFile, StoreError> {
    let text: Option<String> = row.try_get("terms")?;
    let Some(text) = text else {
        return Ok(TermsFile::default());
    };
    serde_json::from_str(&text).map_err(|_| StoreError::Damaged("terms"))
}

fn random_key() -> Result<KeyText, StoreError> {
    let mut entropy = [0_u8; 32];
    getrandom::fill(&mut entropy).map_err(|_| StoreError::Randomness)?;
    Ok(KeyText::from_entropy(&entropy))
}

fn read(row: &AnyRow) -> Result<IssuedKey, StoreError> {
    Ok(IssuedKey {
        id: row.try_get("id")?,
        label: row.try_get("label")?,
        project: row.try_get("project")?,
        last_four: row.try_get("last_four")?,
        created_at_ms: row.try_get("created_at")?,
        expires_at_ms: row.try_get("expires_at")?,
        revoked_at_ms: row.try_get("revoked_at")?,
        member: row.try_get("member")?,
        terms: read_terms(row)?,
    })
}
