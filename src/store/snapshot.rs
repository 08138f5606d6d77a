//! The snapshot that the request path reads instead of the store.

use std::collections::HashMap;
use std::sync::Arc;

use filters::auth::{Accounts, Caller, KeyHash, KeyRow};
use sqlx::Row;
use sqlx::any::AnyRow;

use super::{Error, Store, word};

impl Store {
    /// Every key with its project and organization, and the revision they are of.
    ///
    /// The revision is read first: what changes between the two statements is in the rows already, and is then
    /// read once more under its own number, never missed. Cost: one row per key ever issued.
    pub async fn accounts(&self) -> Result<Accounts, Error> {
        let revision = self.revision().await?;
        let sql = "SELECT k.id AS key_id, k.label, k.hash, k.expires_at, k.revoked_at, \
                   p.id AS project_id, p.name AS project, p.mode, p.cache_ttl_s, \
                   p.status AS project_status, \
                   o.id AS organization_id, o.name AS organization, o.plan, \
                   o.status AS organization_status \
                   FROM api_keys k JOIN projects p ON p.id = k.project_id \
                   JOIN organizations o ON o.id = p.organization_id";
        let rows = sqlx::query(sql).fetch_all(&self.pool).await?;
        let mut shared = Shared::default();
        let rows: Vec<_> = rows
            .iter()
            .map(|row| read(row, &mut shared))
            .collect::<Result<_, Error>>()?;
        Ok(Accounts::new(revision, rows))
    }
}

/// Texts that many keys have in common, kept once.
#[derive(Default)]
struct Shared(HashMap<String, Arc<str>>);

impl Shared {
    fn text(&mut self, row: &AnyRow, column: &str) -> Result<Arc<str>, Error> {
        let text: String = row.try_get(column)?;
        let kept = self
            .0
            .entry(text)
            .or_insert_with_key(|text| Arc::from(text.as_str()));
        Ok(Arc::clone(kept))
    }
}

fn read(row: &AnyRow, shared: &mut Shared) -> Result<(KeyHash, KeyRow), Error> {
    let hash: Vec<u8> = row.try_get("hash")?;
    let hash = hash.try_into().map_err(|_| Error::Damaged("hash"))?;
    let cache_ttl_s: Option<i64> = row.try_get("cache_ttl_s")?;
    let cache_ttl_s = cache_ttl_s
        .map(u32::try_from)
        .transpose()
        .map_err(|_| Error::Damaged("cache_ttl_s"))?;
    let key_id: String = row.try_get("key_id")?;
    let caller = Caller {
        organization_id: shared.text(row, "organization_id")?,
        organization: shared.text(row, "organization")?,
        project_id: shared.text(row, "project_id")?,
        project: shared.text(row, "project")?,
        key_id: key_id.into(),
        key_label: shared.text(row, "label")?,
        mode: word(row, "mode")?,
        plan: word(row, "plan")?,
        cache_ttl_s,
        expires_at_ms: row.try_get("expires_at")?,
    };
    let key = KeyRow {
        caller: Arc::new(caller),
        is_revoked: row.try_get::<Option<i64>, _>("revoked_at")?.is_some(),
        is_organization_disabled: row.try_get::<String, _>("organization_status")? == "disabled",
        is_project_archived: row.try_get::<String, _>("project_status")? == "archived",
    };
    Ok((KeyHash::from_bytes(hash), key))
}
