//! API keys: created and shown once, stored as a hash.

use std::sync::LazyLock;

use filters::accounts::{KeyState, KeyText, TermsFile};
use filters::audit::{AuditKind, Verb};
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row};

use super::members::member_id;
use super::projects::active_project;
use super::{
    AccountChange, AccountEditor, Changed, DEFAULT_PROJECT, Noted, Store, StoreError, check_name,
    new_id, organizations,
};

/// A stored key. Its text is not stored.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct IssuedKey {
    /// `key_` and a uuid.
    pub id: String,
    /// The owner's label; may be empty.
    pub label: String,
    pub project: String,
    /// The last four characters of its text.
    pub last_four: String,
    pub created_at_ms: i64,
    pub expires_at_ms: Option<i64>,
    pub revoked_at_ms: Option<i64>,
    /// Since when it is disabled.
    pub disabled_at_ms: Option<i64>,
    /// The name of its owner; `None`: only the organization owns it.
    pub member: Option<String>,
    /// What it may spend and which models and providers it may use.
    pub terms: TermsFile,
    /// Whether its requests may ask why their providers were chosen.
    pub is_debug: bool,
}

/// The settings of a new key.
#[derive(Clone, Copy, Debug)]
pub struct NewKey<'a> {
    pub organization: &'a str,
    pub project: &'a str,
    /// The owner's label; may be empty.
    pub label: &'a str,
    pub expires_at_ms: Option<i64>,
    /// The name of its owner; `None`: only the organization owns it.
    pub member: Option<&'a str>,
    /// What it may spend and which models and providers it may use.
    pub terms: &'a TermsFile,
    /// Whether its requests may ask why their providers were chosen.
    pub is_debug: bool,
}

impl Default for NewKey<'_> {
    /// A key without a label or limits, in a project with the default name.
    fn default() -> Self {
        static NONE: LazyLock<TermsFile> = LazyLock::new(TermsFile::default);
        Self {
            organization: "",
            project: DEFAULT_PROJECT,
            label: "",
            expires_at_ms: None,
            member: None,
            terms: &NONE,
            is_debug: false,
        }
    }
}

/// The changes of a key; `None` leaves a setting unchanged.
#[derive(Clone, Debug, Default)]
pub struct KeyChange {
    pub label: Option<String>,
    /// When it expires, in unix milliseconds; `Some(None)`: never.
    pub expires_at_ms: Option<Option<i64>>,
    /// The name of its owner; `Some(None)`: only the organization owns it.
    pub member: Option<Option<String>>,
    pub terms: Option<TermsFile>,
    /// Whether its requests may ask why their providers were chosen.
    pub is_debug: Option<bool>,
}

/// The SQL that reads keys.
pub(super) const SELECT: &str = "SELECT k.id, k.label, p.name AS project, o.name AS organization, k.last_four, \
     k.created_at, k.expires_at, k.revoked_at, k.disabled_at, k.terms, k.debug, m.name AS member \
     FROM api_keys k JOIN projects p ON p.id = k.project_id \
     JOIN organizations o ON o.id = p.organization_id LEFT JOIN members m ON m.id = k.member_id";

impl IssuedKey {
    /// Returns its state, whether or not it has expired.
    pub fn state(&self) -> KeyState {
        KeyState::from_times(self.disabled_at_ms, self.revoked_at_ms)
    }

    /// Returns whether it has expired, whatever else it is.
    pub fn is_expired(&self, now_ms: i64) -> bool {
        self.expires_at_ms.is_some_and(|end_ms| now_ms >= end_ms)
    }

    /// Returns the word for its state, which is `expired` for one that would be active.
    pub fn status(&self, now_ms: i64) -> &'static str {
        match self.state() {
            KeyState::Active if self.is_expired(now_ms) => "expired",
            state => state.as_str(),
        }
    }
}

impl Store {
    /// Returns all keys of an organization, oldest first, including revoked ones.
    ///
    /// Errors: [`StoreError::NotFound`] for the organization.
    pub async fn keys(&self, organization: &str) -> Result<Vec<IssuedKey>, StoreError> {
        let sql = format!("{SELECT} WHERE p.organization_id = $1 ORDER BY k.created_at, k.id");
        self.read_of(organization, AssertSqlSafe(sql), read).await
    }

    /// Returns a key and the name of its organization. Errors: [`StoreError::NotFound`].
    pub async fn key(&self, id: &str) -> Result<(String, IssuedKey), StoreError> {
        let sql = format!("{SELECT} WHERE k.id = $1");
        let row = sqlx::query(AssertSqlSafe(sql))
            .bind(id)
            .fetch_optional(&mut self.pool.acquire().await?)
            .await?
            .ok_or_else(|| StoreError::not_found("key", id))?;
        Ok((row.try_get("organization")?, read(&row)?))
    }

    /// Returns the terms of a key. Errors: [`StoreError::NotFound`].
    pub async fn key_terms(&self, id: &str) -> Result<TermsFile, StoreError> {
        let sql = "SELECT terms FROM api_keys WHERE id = $1";
        let row = sqlx::query(sql)
            .bind(id)
            .fetch_optional(&mut self.pool.acquire().await?)
            .await?;
        read_terms(&row.ok_or_else(|| StoreError::not_found("key", id))?)
    }
}

impl AccountEditor<'_> {
    /// Creates a key. Only the return value has its text.
    ///
    /// Errors: [`StoreError::NotFound`] or [`StoreError::Inactive`] for organization, project and member,
    /// [`StoreError::InvalidName`] for the label, [`StoreError::InvalidTerm`], [`StoreError::Randomness`].
    pub async fn create_key(
        self,
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
            disabled_at_ms: None,
            member: new.member.map(str::to_owned),
            terms: new.terms.clone(),
            is_debug: new.is_debug,
        };
        let terms = to_column(new.terms)?;
        let mut change = self.change().await?;
        let organization = organizations::active(&mut change, new.organization).await?;
        let project_id = active_project(&mut change, &organization.id, new.project).await?;
        let member_id = match new.member {
            Some(name) => Some(member_id(&mut change, &organization.id, name).await?),
            None => None,
        };
        let sql = "INSERT INTO api_keys (id, project_id, label, hash, last_four, created_at, \
                   expires_at, terms, member_id, debug) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
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
            .bind(i64::from(new.is_debug))
            .execute(&mut *change)
            .await?;
        let noted = Noted::new(AuditKind::Key, Verb::Create, &issued.id);
        change.commit(&[Changed::Key(&issued.id)], noted).await?;
        Ok((text, issued))
    }

    /// Changes a key, even a revoked one.
    ///
    /// Errors: [`StoreError::NotFound`] for key and member, [`StoreError::InvalidName`] for the label,
    /// [`StoreError::InvalidTerm`].
    pub async fn update_key(self, id: &str, update: &KeyChange) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        let (_, organization_id) = key_state(&mut change, id).await?;
        let noted = change.note(AuditKind::Key, Verb::Update, id).await?;
        if let Some(label) = &update.label {
            check_name("key", label, true)?;
            set_text(
                &mut change,
                id,
                "UPDATE api_keys SET label = $2 WHERE id = $1",
                Some(label),
            )
            .await?;
        }
        if let Some(expires_at_ms) = update.expires_at_ms {
            let sql = "UPDATE api_keys SET expires_at = $2 WHERE id = $1";
            let query = sqlx::query(sql).bind(id).bind(expires_at_ms);
            query.execute(&mut *change).await?;
        }
        if let Some(member) = &update.member {
            let member_id = match member {
                Some(name) => Some(member_id(&mut change, &organization_id, name).await?),
                None => None,
            };
            let sql = "UPDATE api_keys SET member_id = $2 WHERE id = $1";
            set_text(&mut change, id, sql, member_id.as_deref()).await?;
        }
        if let Some(terms) = &update.terms {
            let terms = to_column(terms)?;
            let sql = "UPDATE api_keys SET terms = $2 WHERE id = $1";
            set_text(&mut change, id, sql, terms.as_deref()).await?;
        }
        if let Some(is_debug) = update.is_debug {
            let sql = "UPDATE api_keys SET debug = $2 WHERE id = $1";
            let query = sqlx::query(sql).bind(id).bind(i64::from(is_debug));
            query.execute(&mut *change).await?;
        }
        change.commit(&[Changed::Key(id)], noted).await
    }

    /// Revokes a key. Revoking it again keeps the first time.
    ///
    /// Errors: [`StoreError::NotFound`].
    pub async fn revoke_key(self, id: &str, now_ms: i64) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        let noted = change.note(AuditKind::Key, Verb::Revoke, id).await?;
        let sql = "UPDATE api_keys SET revoked_at = COALESCE(revoked_at, $2) WHERE id = $1";
        let done = sqlx::query(sql)
            .bind(id)
            .bind(now_ms)
            .execute(&mut *change)
            .await?;
        if done.rows_affected() == 0 {
            return Err(StoreError::not_found("key", id));
        }
        change.commit(&[Changed::Key(id)], noted).await
    }

    /// Takes a key out of use since `since_ms`, or puts it to use again. Disabling it again keeps the first time.
    ///
    /// Errors: [`StoreError::NotFound`], [`StoreError::Revoked`].
    pub async fn disable_key(self, id: &str, since_ms: Option<i64>) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        let (state, _) = key_state(&mut change, id).await?;
        if state == KeyState::Revoked {
            return Err(StoreError::Revoked(id.to_owned()));
        }
        let verb = since_ms.map_or(Verb::Enable, |_| Verb::Disable);
        let noted = change.note(AuditKind::Key, verb, id).await?;
        let sql = match since_ms {
            Some(_) => "UPDATE api_keys SET disabled_at = COALESCE(disabled_at, $2) WHERE id = $1",
            None => "UPDATE api_keys SET disabled_at = $2 WHERE id = $1",
        };
        let query = sqlx::query(sql).bind(id).bind(since_ms);
        query.execute(&mut *change).await?;
        change.commit(&[Changed::Key(id)], noted).await
    }
}

/// Checks when a key expires; `None`: never. Errors: [`StoreError::PastExpiry`].
pub fn check_expiry(at_ms: Option<i64>, now_ms: i64) -> Result<(), StoreError> {
    match at_ms.is_some_and(|at_ms| at_ms <= now_ms) {
        true => Err(StoreError::PastExpiry),
        false => Ok(()),
    }
}

/// Returns the state of a key, and the id of its organization. Errors: [`StoreError::NotFound`].
pub(super) async fn key_state(
    change: &mut AccountChange,
    id: &str,
) -> Result<(KeyState, String), StoreError> {
    let sql = "SELECT k.disabled_at, k.revoked_at, p.organization_id FROM api_keys k \
               JOIN projects p ON p.id = k.project_id WHERE k.id = $1";
    let row = sqlx::query(sql)
        .bind(id)
        .fetch_optional(&mut **change)
        .await?
        .ok_or_else(|| StoreError::not_found("key", id))?;
    let state = KeyState::from_times(row.try_get("disabled_at")?, row.try_get("revoked_at")?);
    Ok((state, row.try_get("organization_id")?))
}

async fn set_text(
    change: &mut AccountChange,
    id: &str,
    sql: &'static str,
    text: Option<&str>,
) -> Result<(), StoreError> {
    let query = sqlx::query(sql).bind(id).bind(text.map(str::to_owned));
    query.execute(&mut **change).await?;
    Ok(())
}

/// Checks terms and returns their column; `None` if they limit nothing.
pub(super) fn to_column(terms: &TermsFile) -> Result<Option<String>, StoreError> {
    terms.check().map_err(StoreError::InvalidTerm)?;
    if terms.is_empty() {
        return Ok(None);
    }
    let text = serde_json::to_string(terms).map_err(|_| StoreError::Damaged("terms"))?;
    Ok(Some(text))
}

pub(super) fn read_terms(row: &AnyRow) -> Result<TermsFile, StoreError> {
    let text: Option<String> = row.try_get("terms")?;
    let Some(text) = text else {
        return Ok(TermsFile::default());
    };
    serde_json::from_str(&text).map_err(|_| StoreError::Damaged("terms"))
}

pub(super) fn random_key() -> Result<KeyText, StoreError> {
    let mut entropy = [0_u8; 32];
    getrandom::fill(&mut entropy).map_err(|_| StoreError::Randomness)?;
    Ok(KeyText::from_entropy(&entropy))
}

/// Reads a row of [`SELECT`].
pub(super) fn read(row: &AnyRow) -> Result<IssuedKey, StoreError> {
    Ok(IssuedKey {
        id: row.try_get("id")?,
        label: row.try_get("label")?,
        project: row.try_get("project")?,
        last_four: row.try_get("last_four")?,
        created_at_ms: row.try_get("created_at")?,
        expires_at_ms: row.try_get("expires_at")?,
        revoked_at_ms: row.try_get("revoked_at")?,
        disabled_at_ms: row.try_get("disabled_at")?,
        member: row.try_get("member")?,
        terms: read_terms(row)?,
        is_debug: is_debug(row)?,
    })
}

/// Returns whether requests with the key of a row may ask why their providers were chosen.
pub(super) fn is_debug(row: &AnyRow) -> Result<bool, StoreError> {
    let debug: i64 = row.try_get("debug")?;
    Ok(debug != 0)
}
