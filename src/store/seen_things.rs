//! Things as someone saw them who changes them now. Another may have changed them meanwhile, and then nothing is done.

use filters::audit::{AuditKind, Verb};
use filters::money::Usd;
use serde_json::{Map, Value, json};

use super::account_change::AccountChange;
use super::connections::Connected;
use super::{Store, StoreError, audit_state};

/// A thing as someone saw it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SeenThing {
    kind: SeenKind,
    id: String,
    fields: Map<String, Value>,
}

/// What was seen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SeenKind {
    Key,
    Member,
    Organization,
    Prompt,
    /// All credit that an organization was given, less what was taken back. Its id is that of the organization.
    Credit,
}

impl SeenKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Member => "member",
            Self::Organization => "organization",
            Self::Prompt => "prompt",
            Self::Credit => "credit of the organization",
        }
    }
}

impl SeenThing {
    /// Reads what [`Self::to_text`] has written; `None`: it is something else.
    pub fn parse(kind: SeenKind, id: &str, text: &str) -> Option<Self> {
        Some(Self {
            kind,
            id: id.to_owned(),
            fields: serde_json::from_str(text).ok()?,
        })
    }

    /// Returns it as a text, for a form. It has no secret.
    pub fn to_text(&self) -> String {
        Value::Object(self.fields.clone()).to_string()
    }

    /// Returns what has changed since it was seen, in words; empty: nothing.
    fn changes(&self, now: &Map<String, Value>) -> String {
        let names = self.fields.keys().chain(now.keys());
        let names: std::collections::BTreeSet<&String> = names.collect();
        let value = |fields: &Map<String, Value>, name: &str| -> Value {
            fields.get(name).cloned().unwrap_or_default()
        };
        let changes = names.into_iter().filter_map(|name| {
            let (was, is) = (value(&self.fields, name), value(now, name));
            (was != is).then(|| format!("{name} was {was} and is {is}"))
        });
        changes.collect::<Vec<_>>().join(", ")
    }
}

impl Store {
    /// Returns a thing as it is now. Errors: [`StoreError::NotFound`].
    pub async fn see(&self, kind: SeenKind, id: &str) -> Result<SeenThing, StoreError> {
        let fields = fields(&mut self.pool.acquire().await?, kind, id).await?;
        Ok(SeenThing {
            kind,
            id: id.to_owned(),
            fields,
        })
    }
}

/// Checks within a change that a thing is still as it was seen. No other change runs beside it.
///
/// Errors: [`StoreError::NotFound`], [`StoreError::ChangedMeanwhile`].
pub(super) async fn check(change: &mut AccountChange, seen: &SeenThing) -> Result<(), StoreError> {
    let (kind, id) = (seen.kind, &*seen.id);
    let changes = seen.changes(&fields(change, kind, id).await?);
    match changes.is_empty() {
        true => Ok(()),
        false => Err(StoreError::ChangedMeanwhile {
            kind: kind.as_str(),
            name: id.to_owned(),
            changes,
        }),
    }
}

/// Reads what someone sees of a thing: all that its changes may have in the log.
async fn fields(
    connection: &mut Connected,
    kind: SeenKind,
    id: &str,
) -> Result<Map<String, Value>, StoreError> {
    if kind == SeenKind::Credit {
        return granted(connection, id).await;
    }
    let found = audit_state::read(connection, (audited(kind), Verb::Update), id).await?;
    let found = found.ok_or_else(|| StoreError::not_found(kind.as_str(), id))?;
    Ok(found.fields)
}

fn audited(kind: SeenKind) -> AuditKind {
    match kind {
        SeenKind::Key => AuditKind::Key,
        SeenKind::Member => AuditKind::Member,
        SeenKind::Organization => AuditKind::Organization,
        SeenKind::Prompt => AuditKind::Prompt,
        SeenKind::Credit => AuditKind::Credit,
    }
}

/// Reads what an organization was granted. No other change of accounts runs beside the one that reads it.
async fn granted(
    connection: &mut Connected,
    organization_id: &str,
) -> Result<Map<String, Value>, StoreError> {
    let sql = "SELECT amount FROM credit_grants WHERE organization_id = $1 AND is_summed = 0 \
               UNION ALL SELECT granted AS amount FROM balances WHERE organization_id = $1";
    let query = sqlx::query_scalar(sql).bind(organization_id.to_owned());
    let amounts: Vec<String> = query.fetch_all(connection).await?;
    let mut sum = Usd::ZERO;
    for amount in &amounts {
        let amount = Usd::parse_signed(amount);
        sum = sum.plus(amount.map_err(|_| StoreError::Damaged("amount"))?);
    }
    let fields = [("granted".to_owned(), json!(sum.to_string()))];
    Ok(fields.into_iter().collect())
}
