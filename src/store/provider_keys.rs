//! The callers' own upstream keys.

use sqlx::Row;
use sqlx::any::AnyRow;

use super::cipher::Cipher;
use super::{Store, StoreError, check_name, new_id, organizations};
use crate::config::Secret;

/// What is known of an own key after it was stored. Its text is not.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ProviderKey {
    /// `pk_` and a uuid.
    pub id: String,
    /// The provider's name in the configuration.
    pub provider: String,
    /// What the owner calls it, unlike any other of the organization for this provider.
    pub label: String,
    /// The last four characters of its text.
    pub last_four: String,
    /// Unix milliseconds.
    pub created_at_ms: i64,
}

/// An own key, opened for use. It has no `Debug`: it holds a secret.
pub struct ByokKeyRow {
    /// `pk_` and a uuid.
    pub id: String,
    /// Whose it is.
    pub organization_id: String,
    /// The provider's name in the configuration.
    pub provider: String,
    /// What the owner calls it.
    pub label: String,
    /// Its text; `None`: it was sealed under another secret, or damaged, and cannot be used.
    pub secret: Option<Secret>,
}

/// The most bytes of a key's text.
const MAX_BYTES: usize = 16 << 10;
/// Below this many characters the last four would tell too much.
const SHOWN_FROM: usize = 16;

impl Store {
    /// Stores an own key of an organization, sealed.
    ///
    /// Errors: [`StoreError::Absent`] or [`StoreError::Closed`] for the organization, [`StoreError::Taken`] for the label,
    /// [`StoreError::BadName`] for label and provider, [`StoreError::BadSecret`] for the text, [`StoreError::Randomness`].
    pub async fn add_provider_key(
        &self,
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
        let sealed = Cipher::new(&self.pepper)?.close(&id, text)?;
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
            .bind(organization.id)
            .bind(provider)
            .bind(label)
            .bind(sealed)
            .bind(&key.last_four)
            .bind(now_ms)
            .execute(&mut *change)
            .await
            .map_err(|error| StoreError::taken(error, "provider key", label))?;
        change.commit().await?;
        Ok(key)
    }

    /// All own keys of an organization, oldest first.
    ///
    /// Errors: [`StoreError::Absent`] for the organization.
    pub async fn provider_keys(&self, organization: &str) -> Result<Vec<ProviderKey>, StoreError> {
        let id = self.organization(organization).await?.id;
        let sql = "SELECT id, provider, label, last_four, created_at FROM provider_keys \
                   WHERE organization_id = $1 ORDER BY created_at, id";
        let rows = sqlx::query(sql).bind(id).fetch_all(&self.pool).await?;
        rows.iter().map(read).collect()
    }

    /// Removes an own key for good. Errors: [`StoreError::Absent`].
    pub async fn remove_provider_key(&self, id: &str) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        let sql = "DELETE FROM provider_keys WHERE id = $1";
        let done = sqlx::query(sql).bind(id).execute(&mut *change).await?;
        if done.rows_affected() == 0 {
            return Err(StoreError::absent("provider key", id));
        }
        Ok(change.commit().await?)
    }

    /// Every own key, opened, oldest first.
    pub async fn byok_keys(&self) -> Result<Vec<ByokKeyRow>, StoreError> {
        let sql = "SELECT id, organization_id, provider, label, sealed FROM provider_keys \
                   ORDER BY created_at, id";
        let rows = sqlx::query(sql).fetch_all(&self.pool).await?;
        let seal = Cipher::new(&self.pepper)?;
        rows.iter().map(|row| open(row, &seal)).collect()
    }
}

fn check_text(text: &str) -> Result<(), StoreError> {
    let problem = if text.is_empty() {
        "is empty"
    } else if text.len() > MAX_BYTES {
        "has more than 16 KiB"
    } else if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        "has a space, a line end or another character that no header carries"
    } else {
        return Ok(());
    };
    Err(StoreError::BadSecret(problem))
}

fn last_four(text: &str) -> String {
    // The text is ASCII: every byte is a character.
    let shown = text
        .len()
        .checked_sub(4)
        .filter(|_| text.len() >= SHOWN_FROM);
    shown
        .and_then(|at| text.get(at..))
        .unwrap_or_default()
        .to_owned()
}

fn open(row: &AnyRow, seal: &Cipher) -> Result<ByokKeyRow, StoreError> {
    let id: String = row.try_get("id")?;
    let sealed: Vec<u8> = row.try_get("sealed")?;
    let secret = seal.open(&id, &sealed).ok().map(Secret::new);
    Ok(ByokKeyRow {
        organization_id: row.try_get("organization_id")?,
        provider: row.try_get("provider")?,
        label: row.try_get("label")?,
        id,
        secret,
    })
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
