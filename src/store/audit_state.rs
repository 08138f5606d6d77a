//! What the store says of a thing before and after a change: the columns that entries may show, read by id.
//!
//! Each statement names its columns, so a new column of a table is in no entry until it is added here and to
//! [`AuditKind::fields`]. The names of fields are those of `weirgate apply`, whose plans are entries as they are.

use filters::accounts::KeyState;
use filters::audit::{AuditKind, Verb};
use filters::manifest::{normal_terms, to_time};
use filters::money::tally::Tally;
use serde_json::{Map, Value, json};
use sqlx::Row;
use sqlx::any::AnyRow;

use super::StoreError;
use super::connections::Connected;
use super::keys::read_terms;
use super::organizations::organization_status;

/// What a client calls itself is not longer in an entry. Units: characters.
const MAX_CLIENT_NAME_CHARS: usize = 128;

/// A thing as the store has it.
pub(super) struct StoredThing {
    pub(super) name: String,
    /// Empty: it belongs to none.
    pub(super) organization_id: String,
    pub(super) organization: String,
    pub(super) fields: Map<String, Value>,
}

/// Reads a thing; `None`: there is no such one.
pub(super) async fn read(
    connection: &mut Connected,
    (kind, verb): (AuditKind, Verb),
    id: &str,
) -> Result<Option<StoredThing>, StoreError> {
    let row = match statement(kind) {
        None => budget_row(connection, id).await?,
        Some(sql) => {
            let query = sqlx::query(sql).bind(id.to_owned());
            query.fetch_optional(&mut *connection).await?
        }
    };
    let Some(row) = row else {
        return Ok(None);
    };
    let mut thing = StoredThing {
        name: row.try_get("named")?,
        organization_id: row.try_get("organization_id")?,
        organization: row.try_get("organization")?,
        fields: read_fields(kind, &row)?,
    };
    match kind {
        AuditKind::Prompt => {
            if thing.fields.get("versions") == Some(&json!(0)) {
                // A prompt that was removed has kept its row.
                return Ok(None);
            }
            add_labels(connection, id, &mut thing.fields).await?;
        }
        AuditKind::Key if has_member(verb) => {
            add_member(connection, &row, &mut thing.fields).await?;
        }
        AuditKind::OAuthClient => thing.name = client_name(&thing.name),
        _ => {}
    }
    Ok(Some(thing))
}

/// Returns the statement that reads a thing by its id; `None`: the id has two parts. `named` is what it is called.
fn statement(kind: AuditKind) -> Option<&'static str> {
    Some(match kind {
        AuditKind::Budget => return None,
        AuditKind::Organization => {
            "SELECT name AS named, id AS organization_id, name AS organization, name, plan, regions, \
             export_content, keep_bodies_until, status, held_at FROM organizations WHERE id = $1"
        }
        AuditKind::Project => {
            "SELECT p.name AS named, p.organization_id, o.name AS organization, p.name, p.mode, p.cache_ttl_s, \
             p.experiments, p.regions, p.status FROM projects p \
             JOIN organizations o ON o.id = p.organization_id WHERE p.id = $1"
        }
        AuditKind::Member => {
            "SELECT m.name AS named, m.organization_id, o.name AS organization, m.name, m.budget FROM members m \
             JOIN organizations o ON o.id = m.organization_id WHERE m.id = $1"
        }
        AuditKind::Key => {
            "SELECT k.label AS named, p.organization_id, o.name AS organization, k.label, p.name AS project, \
             k.member_id, k.last_four, k.expires_at, k.disabled_at, k.revoked_at, k.debug, k.terms \
             FROM api_keys k JOIN projects p ON p.id = k.project_id \
             JOIN organizations o ON o.id = p.organization_id WHERE k.id = $1"
        }
        AuditKind::ProviderKey => {
            "SELECT k.label AS named, k.organization_id, o.name AS organization, k.provider, k.label, k.last_four \
             FROM provider_keys k JOIN organizations o ON o.id = k.organization_id WHERE k.id = $1"
        }
        AuditKind::Prompt => {
            "SELECT p.name AS named, p.organization_id, o.name AS organization, p.name, j.name AS project, \
             (SELECT COUNT(*) FROM prompt_versions v WHERE v.prompt_id = p.id) AS versions FROM prompts p \
             JOIN organizations o ON o.id = p.organization_id LEFT JOIN projects j ON j.id = p.project_id \
             WHERE p.id = $1"
        }
        AuditKind::Credit => {
            "SELECT '' AS named, g.organization_id, o.name AS organization, g.amount FROM credit_grants g \
             JOIN organizations o ON o.id = g.organization_id WHERE g.id = $1"
        }
        AuditKind::OAuthClient => {
            "SELECT metadata AS named, '' AS organization_id, '' AS organization, created_at, revoked_at \
             FROM oauth_clients WHERE id = $1"
        }
        AuditKind::Journal => {
            "SELECT '' AS named, '' AS organization_id, '' AS organization, ended_last FROM journal_owners \
             WHERE owner = $1"
        }
    })
}

/// Reads the row of a budget, whose id is that of its organization and its name.
async fn budget_row(connection: &mut Connected, id: &str) -> Result<Option<AnyRow>, StoreError> {
    let (organization_id, name) = id.split_once(' ').unwrap_or_default();
    let sql = "SELECT b.name AS named, b.organization_id, o.name AS organization, b.granted, b.paused_at \
               FROM budget_states b JOIN organizations o ON o.id = b.organization_id \
               WHERE b.organization_id = $1 AND b.name = $2";
    let query = sqlx::query(sql).bind(organization_id.to_owned());
    Ok(query
        .bind(name.to_owned())
        .fetch_optional(connection)
        .await?)
}

/// Parses what was granted to a budget; empty: nothing.
pub(super) fn parse_granted(text: &str) -> Result<Tally, StoreError> {
    match text {
        "" => Ok(Tally::default()),
        text => text.parse().map_err(|_| StoreError::Damaged("granted")),
    }
}

fn read_fields(kind: AuditKind, row: &AnyRow) -> Result<Map<String, Value>, StoreError> {
    let fields = match kind {
        AuditKind::Organization => {
            let status = organization_status(row.try_get("status")?, row.try_get("held_at")?);
            json!({
                "name": text(row, "name")?, "plan": text(row, "plan")?, "regions": text(row, "regions")?,
                "export_content": flag(row, "export_content")?,
                "keep_bodies_until": time(row, "keep_bodies_until")?, "status": status.as_str(),
            })
        }
        AuditKind::Project => json!({
            "name": text(row, "name")?, "mode": text(row, "mode")?,
            "cache_ttl_s": row.try_get::<Option<i64>, _>("cache_ttl_s")?,
            "experiments": text(row, "experiments")?, "regions": text(row, "regions")?,
            "status": text(row, "status")?,
        }),
        AuditKind::Member => json!({"name": text(row, "name")?, "budget": text(row, "budget")?}),
        AuditKind::Key => return read_key(row),
        AuditKind::ProviderKey => json!({
            "provider": text(row, "provider")?, "label": text(row, "label")?,
            "last_four": text(row, "last_four")?,
        }),
        AuditKind::Prompt => json!({
            "name": text(row, "name")?, "project": text(row, "project")?,
            "versions": row.try_get::<i64, _>("versions")?,
        }),
        AuditKind::Credit => json!({"amount": text(row, "amount")?}),
        AuditKind::OAuthClient => {
            let revoked_at: Option<i64> = row.try_get("revoked_at")?;
            let status = revoked_at.map_or("active", |_| "revoked");
            json!({"created_at": time(row, "created_at")?, "status": status})
        }
        AuditKind::Budget => {
            let granted = parse_granted(row.try_get("granted")?)?;
            let paused_at: Option<i64> = row.try_get("paused_at")?;
            let status = paused_at.map_or("active", |_| "paused");
            json!({"granted": granted.spent(i64::MAX).total.to_string(), "status": status})
        }
        AuditKind::Journal => json!({"last_call_at": time(row, "ended_last")?}),
    };
    Ok(to_map(fields))
}

fn read_key(row: &AnyRow) -> Result<Map<String, Value>, StoreError> {
    let terms = normal_terms(&read_terms(row)?);
    let terms = serde_json::to_value(terms).map_err(|_| StoreError::Damaged("terms"))?;
    let state = KeyState::from_times(row.try_get("disabled_at")?, row.try_get("revoked_at")?);
    let mut fields = to_map(json!({
        "label": text(row, "label")?, "project": text(row, "project")?,
        "last_four": text(row, "last_four")?, "expires": time(row, "expires_at")?,
        "debug": flag(row, "debug")?, "status": state.as_str(),
    }));
    fields.extend(to_map(terms));
    Ok(fields)
}

/// Returns whether the entry of a key says whose it is. To take one out of use must not wait for a lock on the table of members.
fn has_member(verb: Verb) -> bool {
    !matches!(verb, Verb::Revoke | Verb::Disable | Verb::Enable)
}

/// Adds who owns a key.
async fn add_member(
    connection: &mut Connected,
    row: &AnyRow,
    fields: &mut Map<String, Value>,
) -> Result<(), StoreError> {
    if let Some(id) = text(row, "member_id")? {
        let query = sqlx::query("SELECT name FROM members WHERE id = $1").bind(id);
        let member = query.fetch_optional(connection).await?;
        let name: Option<String> = member.map(|row| row.try_get("name")).transpose()?;
        fields.insert("member".to_owned(), json!(name));
    }
    Ok(())
}

/// Adds where the labels of a prompt are.
async fn add_labels(
    connection: &mut Connected,
    id: &str,
    fields: &mut Map<String, Value>,
) -> Result<(), StoreError> {
    let sql = "SELECT label, version FROM prompt_labels WHERE prompt_id = $1";
    let query = sqlx::query(sql).bind(id.to_owned());
    for row in query.fetch_all(connection).await? {
        let label: String = row.try_get("label")?;
        let version: i64 = row.try_get("version")?;
        fields.insert(format!("labels.{label}"), json!(version));
    }
    Ok(())
}

/// Returns what a client calls itself in its metadata.
fn client_name(metadata: &str) -> String {
    let metadata: Value = serde_json::from_str(metadata).unwrap_or_default();
    let name = metadata.get("client_name").and_then(Value::as_str);
    let chars = name.unwrap_or_default().chars().take(MAX_CLIENT_NAME_CHARS);
    chars
        .map(|it| if it.is_control() { ' ' } else { it })
        .collect()
}

fn to_map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// Reads a text; an empty one is none.
fn text(row: &AnyRow, column: &str) -> Result<Option<String>, StoreError> {
    let text: Option<String> = row.try_get(column)?;
    Ok(text.filter(|text| !text.is_empty()))
}

fn flag(row: &AnyRow, column: &str) -> Result<bool, StoreError> {
    Ok(row.try_get::<i64, _>(column)? != 0)
}

fn time(row: &AnyRow, column: &str) -> Result<Option<String>, StoreError> {
    let unix_ms: Option<i64> = row.try_get(column)?;
    Ok(unix_ms.map(to_time))
}
