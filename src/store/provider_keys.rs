//! BYOK keys: the callers' own keys of providers.

use std::collections::BTreeSet;

use filters::audit::{AuditKind, Verb};
use filters::models::cloud_credentials::own_keys::is_json;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row};

use super::cipher::Cipher;
use super::rows::Rows;
use super::{
    AccountEditor, Changed, Noted, Store, StoreError, check_name, new_id, organizations, rename,
};
use crate::config::Secret;

/// A stored BYOK key without its text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ProviderKey {
    /// `pk_` and a uuid.
    pub id: String,
    pub provider: String,
    /// The owner's label, unique for the organization and the provider.
    pub label: String,
    /// The last four characters of its text.
    pub last_four: String,
    pub created_at_ms: i64,
}

/// An encrypted BYOK key.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct SealedKey {
    id: String,
    pub(super) organization_id: String,
    provider: String,
    label: String,
    sealed: Vec<u8>,
}

/// A decrypted BYOK key. It has no `Debug`, because it holds a secret.
pub struct ByokKeyRow {
    /// `pk_` and a uuid.
    pub id: String,
    pub organization_id: String,
    pub provider: String,
    pub label: String,
    /// Its text; `None` if it was encrypted under another secret or is damaged.
    pub secret: Option<Secret>,
}

/// The maximum size of a key's text.
const MAX_SECRET_BYTES: usize = 16 << 10;
/// The last four characters are shown only of texts this long: of a shorter one they would reveal too much.
const MIN_SHOWN_CHARS: usize = 16;

impl Store {
    /// Returns all BYOK keys of an organization, oldest first.
    ///
    /// Errors: [`StoreError::NotFound`] for the organization.
    pub async fn provider_keys(&self, organization: &str) -> Result<Vec<ProviderKey>, StoreError> {
        let sql = "SELECT id, provider, label, last_four, created_at FROM provider_keys \
                   WHERE organization_id = $1 ORDER BY created_at, id";
        self.read_of(organization, sql, read).await
    }

    /// Returns a BYOK key and the name of its organization. Errors: [`StoreError::NotFound`].
    pub async fn provider_key(&self, id: &str) -> Result<(String, ProviderKey), StoreError> {
        let sql = "SELECT k.id, k.provider, k.label, k.last_four, k.created_at, o.name AS organization \
                   FROM provider_keys k JOIN organizations o ON o.id = k.organization_id WHERE k.id = $1";
        let row = sqlx::query(sql)
            .bind(id)
            .fetch_optional(&mut self.pool.acquire().await?)
            .await?
            .ok_or_else(|| StoreError::not_found("provider key", id))?;
        Ok((row.try_get("organization")?, read(&row)?))
    }

    /// Returns every BYOK key, decrypted, oldest first.
    pub async fn byok_keys(&self) -> Result<Vec<ByokKeyRow>, StoreError> {
        self.open_keys(self.sealed_keys(None).await?)
    }

    /// Returns every BYOK key, or those of some organizations, as they are stored, oldest first.
    pub(super) async fn sealed_keys(
        &self,
        organization_ids: Option<&BTreeSet<String>>,
    ) -> Result<Vec<SealedKey>, StoreError> {
        const COLUMNS: &str = "k.id, k.organization_id, k.provider, k.label, k.sealed";
        let mut connection = self.pool.acquire().await?;
        let rows = match organization_ids {
            None => {
                let sql = format!("SELECT {COLUMNS} FROM provider_keys k ORDER BY created_at, id");
                let query = sqlx::query(AssertSqlSafe(sql));
                query.fetch_all(&mut connection).await?
            }
            Some(ids) => {
                let ids = Rows::from_texts(&connection, ids.iter().map(String::as_str))?;
                let sql = format!(
                    "SELECT {COLUMNS} FROM (SELECT value ->> 0 AS wanted FROM {{rows}}) AS r \
                     CROSS JOIN provider_keys k WHERE k.organization_id = wanted \
                     ORDER BY k.created_at, k.id"
                );
                ids.query(&sql).fetch_all(&mut connection).await?
            }
        };
        rows.iter().map(SealedKey::read).collect()
    }

    /// Decrypts BYOK keys.
    pub fn open_keys(&self, keys: Vec<SealedKey>) -> Result<Vec<ByokKeyRow>, StoreError> {
        let cipher = Cipher::new(&self.pepper)?;
        let open = |key: SealedKey| ByokKeyRow {
            secret: cipher.decrypt(&key.id, &key.sealed).ok().map(Secret::new),
            id: key.id,
            organization_id: key.organization_id,
            provider: key.provider,
            label: key.label,
        };
        Ok(keys.into_iter().map(open).collect())
    }
}

impl AccountEditor<'_> {
    /// Encrypts and stores a BYOK key of an organization.
    ///
    /// Errors: [`StoreError::NotFound`] or [`StoreError::Inactive`] for the organization, [`StoreError::AlreadyExists`]
    /// for the label, [`StoreError::InvalidName`] for label and provider, [`StoreError::InvalidSecret`] for the text,
    /// [`StoreError::Randomness`].
    pub async fn add_provider_key(
        self,
        organization: &str,
        provider: &str,
        label: &str,
        text: &str,
        now_ms: i64,
    ) -> Result<ProviderKey, StoreError> {
        check_name("provider", provider, false)?;
        check_name("provider key", label, false)?;
        check_text(text)?;
        let id = new_id("pk");
        let sealed = Cipher::new(&self.pepper)?.encrypt(&id, text)?;
        let mut change = self.change().await?;
        let organization = organizations::active(&mut change, organization).await?;
        let key = ProviderKey {
            id,
            provider: provider.to_owned(),
            label: label.to_owned(),
            last_four: last_four(text),
            created_at_ms: now_ms,
        };
        let sql = "INSERT INTO provider_keys \
                   (id, organization_id, provider, label, sealed, last_four, created_at) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7)";
        sqlx::query(sql)
            .bind(&key.id)
            .bind(&organization.id)
            .bind(provider)
            .bind(label)
            .bind(sealed)
            .bind(&key.last_four)
            .bind(now_ms)
            .execute(&mut *change)
            .await
            .map_err(|error| StoreError::from_insert(error, "provider key", label))?;
        let noted = Noted::new(AuditKind::ProviderKey, Verb::Create, &key.id);
        let changed = [Changed::ProviderKeys(&organization.id)];
        change.commit(&changed, noted).await?;
        Ok(key)
    }

    /// Gives a BYOK key another label.
    ///
    /// Errors: [`StoreError::NotFound`], [`StoreError::AlreadyExists`], [`StoreError::InvalidName`].
    pub async fn rename_provider_key(self, id: &str, label: &str) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        let sql = "SELECT organization_id FROM provider_keys WHERE id = $1";
        let found = sqlx::query_scalar(sql).bind(id);
        let organization_id: Option<String> = found.fetch_optional(&mut *change).await?;
        let organization_id =
            organization_id.ok_or_else(|| StoreError::not_found("provider key", id))?;
        let noted = change.note(AuditKind::ProviderKey, Verb::Rename, id);
        let noted = noted.await?;
        let sql = "UPDATE provider_keys SET label = $2 WHERE id = $1";
        rename(&mut change, sql, id, ("provider key", label)).await?;
        let changed = [Changed::ProviderKeys(&organization_id)];
        change.commit(&changed, noted).await
    }

    /// Deletes a BYOK key. Errors: [`StoreError::NotFound`].
    pub async fn remove_provider_key(self, id: &str) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        let noted = change.note(AuditKind::ProviderKey, Verb::Delete, id);
        let noted = noted.await?;
        let sql = "DELETE FROM provider_keys WHERE id = $1 RETURNING organization_id";
        let removed = sqlx::query_scalar(sql).bind(id);
        let organization_id: Option<String> = removed.fetch_optional(&mut *change).await?;
        let organization_id =
            organization_id.ok_or_else(|| StoreError::not_found("provider key", id))?;
        let changed = [Changed::ProviderKeys(&organization_id)];
        change.commit(&changed, noted).await
    }
}

pub(super) fn check_text(text: &str) -> Result<(), StoreError> {
    // JSON does not go into a header, and may have blanks inside its texts.
    let is_json = is_json(text);
    let problem = if text.is_empty() {
        "is empty"
    } else if text.len() > MAX_SECRET_BYTES {
        "has more than 16 KiB"
    } else if !text
        .bytes()
        .all(|byte| byte.is_ascii_graphic() || byte == b' ' && is_json)
    {
        "has a space, a line end or another character that no header carries"
    } else {
        return Ok(());
    };
    Err(StoreError::InvalidSecret(problem))
}

/// Returns the last four characters: of JSON those of the id of its key, which is no secret.
pub(super) fn last_four(text: &str) -> String {
    if is_json(text) {
        let json: Value = serde_json::from_str(text).unwrap_or_default();
        let id = KEY_IDS.iter().find_map(|name| json.get(name)?.as_str());
        return last_of(id.unwrap_or_default());
    }
    last_of(text)
}

/// The members of JSON that identify a key.
const KEY_IDS: [&str; 2] = ["access_key_id", "private_key_id"];

fn last_of(text: &str) -> String {
    // The text is ASCII, so each byte is a character.
    let shown = text
        .len()
        .checked_sub(4)
        .filter(|_| text.len() >= MIN_SHOWN_CHARS);
    shown
        .and_then(|start| text.get(start..))
        .unwrap_or_default()
        .to_owned()
}

impl SealedKey {
    fn read(row: &AnyRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.try_get("id")?,
            organization_id: row.try_get("organization_id")?,
            provider: row.try_get("provider")?,
            label: row.try_get("label")?,
            sealed: row.try_get("sealed")?,
        })
    }
}

fn read(row: &AnyRow) -> Result<ProviderKey, StoreError> {
    Ok(ProviderKey {
        id: row.try_get("id")?,
        provider: row.try_get("provider")?,
        label: row.try_get("label")?,
        last_four: row.try_get("last_four")?,
        created_at_ms: row.try_get("created_at")?,
    })
}
