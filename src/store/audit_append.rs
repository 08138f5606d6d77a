//! Writes entries behind the last one.

use std::collections::HashMap;

use filters::audit::{Actor, AuditEntry, AuditHead, AuditKind, EntryFields, Verb};
use jiff::Timestamp;
use sqlx::Row;

use super::HashedEntry;
use super::StoreError;
use super::audit_log::find_head;
use super::connections::Connected;
use super::rows::Rows;

/// How many entries are written at once.
const MAX_ROWS: usize = 500;

/// An entry that has no number yet.
pub(super) struct NewEntry {
    pub(super) kind: AuditKind,
    pub(super) verb: Verb,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) organization_id: String,
    /// `None`: what the store calls the organization.
    pub(super) organization: Option<String>,
    pub(super) fields: EntryFields,
}

/// Writes entries behind the last one. The caller's transaction has locked the row of `store_state`, so nobody else does so.
pub(super) async fn append(
    connection: &mut Connected,
    actor: &Actor,
    entries: Vec<NewEntry>,
) -> Result<(), StoreError> {
    if entries.is_empty() {
        return Ok(());
    }
    let at_ms = Timestamp::now().as_millisecond();
    let mut head = find_head(connection).await?;
    let mut names = HashMap::new();
    let mut rows = Vec::with_capacity(entries.len().min(MAX_ROWS));
    for new in entries {
        let organization = match &new.organization {
            Some(name) => name.clone(),
            None => organization_name(connection, &mut names, &new.organization_id).await?,
        };
        let [before, after] = new.fields.to_texts();
        let entry = AuditEntry {
            number: head.number + 1,
            at_ms,
            actor: actor.name().to_owned(),
            origin: actor.origin().to_owned(),
            action: format!("{}.{}", new.kind, new.verb.as_str()),
            kind: new.kind.as_str().to_owned(),
            subject_id: new.id,
            name: new.name,
            organization_id: new.organization_id,
            organization,
            before,
            after,
        };
        let hash = entry.hash(&head.hash);
        head = AuditHead {
            number: entry.number,
            hash,
        };
        let hash = hash.to_string();
        rows.push(HashedEntry { entry, hash });
        if rows.len() == MAX_ROWS {
            insert(connection, &rows).await?;
            rows.clear();
        }
    }
    insert(connection, &rows).await
}

/// Returns what an organization is called. It may have been named in this transaction.
async fn organization_name(
    connection: &mut Connected,
    names: &mut HashMap<String, String>,
    id: &str,
) -> Result<String, StoreError> {
    if let Some(name) = names.get(id) {
        return Ok(name.clone());
    }
    let query = sqlx::query("SELECT name FROM organizations WHERE id = $1").bind(id.to_owned());
    let row = query.fetch_optional(connection).await?;
    let name: Option<String> = row.map(|row| row.try_get("name")).transpose()?;
    let name = name.unwrap_or_default();
    names.insert(id.to_owned(), name.clone());
    Ok(name)
}

async fn insert(connection: &mut Connected, entries: &[HashedEntry]) -> Result<(), StoreError> {
    if entries.is_empty() {
        return Ok(());
    }
    let rows = entries.iter().map(|HashedEntry { entry, hash }| {
        (
            entry.number,
            entry.at_ms,
            &entry.actor,
            &entry.origin,
            &entry.action,
            &entry.kind,
            &entry.subject_id,
            &entry.name,
            &entry.organization_id,
            &entry.organization,
            &entry.before,
            &entry.after,
            hash,
        )
    });
    let rows: Vec<_> = rows.collect();
    let sql = "INSERT INTO audit_log (number, at, actor, origin, action, kind, subject_id, name, organization_id, \
               organization, before, after, hash) \
               SELECT CAST(value ->> 0 AS BIGINT), CAST(value ->> 1 AS BIGINT), value ->> 2, value ->> 3, value ->> 4, \
               value ->> 5, value ->> 6, value ->> 7, value ->> 8, value ->> 9, value ->> 10, value ->> 11, \
               value ->> 12 FROM {rows}";
    let rows = Rows::new(connection, &rows)?;
    rows.query(sql).execute(connection).await?;
    Ok(())
}
