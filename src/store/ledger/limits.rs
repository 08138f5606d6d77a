//! Leases of limits: what each process holds of the limits of a key, a member or a plan.
//!
//! They change in the same transactions as leases of credit, under the same locks. The store knows no limit: a process
//! says how much room it sees. What it is granted is decided in `filters::ledger`.

use std::collections::{BTreeMap, HashMap};

use filters::ledger::{HeldLimit, HeldLimits, LimitGrant, LimitOffer};
use sqlx::{AnyConnection, Row};
use tokio::time::timeout;

use super::super::{Store, StoreError};
use super::rows::Rows;
use super::{QUERY_TIMEOUT, finish, usd};

/// A change of a process's lease of the limits of a scope.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LimitRequest {
    /// The organization's id.
    pub organization_id: String,
    /// The scope, as text.
    pub scope: String,
    /// What the process tells.
    pub offer: LimitOffer,
    /// What processes held before the process read what is spent.
    pub seen: HeldLimits,
}

impl Store {
    /// Returns what processes hold of the limits of an organization's scopes, by scope.
    pub async fn held_limits(
        &self,
        organization_id: &str,
        scopes: &[String],
    ) -> Result<HashMap<String, HeldLimits>, StoreError> {
        let wanted: Vec<_> = scopes
            .iter()
            .map(|scope| (organization_id, scope.as_str()))
            .collect();
        let mut connection = self.ledger_pool.acquire().await?;
        let read = timeout(QUERY_TIMEOUT, read(connection.unlimited()?, &wanted)).await;
        let held = finish(connection, read)?;
        Ok(held
            .into_iter()
            .map(|((_, scope), held)| (scope, held))
            .collect())
    }
}

/// Reads what processes hold, by organization and scope.
async fn read(
    connection: &mut AnyConnection,
    wanted: &[(&str, &str)],
) -> Result<HashMap<(String, String), HeldLimits>, StoreError> {
    let sql = "SELECT organization_id, scope, owner, amount, stored \
               FROM (SELECT value ->> 0 AS id, value ->> 1 AS wanted FROM {rows}) AS r \
               CROSS JOIN limit_leases WHERE organization_id = r.id AND scope = r.wanted";
    let rows = Rows::new(connection, wanted)?;
    let mut all: HashMap<(String, String), HeldLimits> = HashMap::new();
    for row in rows.query(sql).fetch_all(connection).await? {
        let scope = (row.try_get("organization_id")?, row.try_get("scope")?);
        let held = HeldLimit {
            amount: usd(&row, "amount")?,
            stored: usd(&row, "stored")?,
        };
        all.entry(scope)
            .or_default()
            .insert(row.try_get("owner")?, held);
    }
    Ok(all)
}

/// Changes leases of a process, whose organizations' balances are locked. Returns the results in the order of the
/// requests.
pub(super) async fn change(
    change: &mut AnyConnection,
    owner: &str,
    requests: &[LimitRequest],
    processes: i64,
) -> Result<Vec<LimitGrant>, StoreError> {
    if requests.is_empty() {
        return Ok(Vec::new());
    }
    let wanted: Vec<_> = requests
        .iter()
        .map(|request| (request.organization_id.as_str(), request.scope.as_str()))
        .collect();
    let held = read(change, &wanted).await?;
    let mut grants = Vec::with_capacity(requests.len());
    // Of two requests for one scope the last counts: one statement changes no row twice.
    let mut changed = BTreeMap::new();
    let none = HeldLimits::default();
    for (request, scope) in requests.iter().zip(wanted) {
        let now = held
            .get(&(scope.0.to_owned(), scope.1.to_owned()))
            .unwrap_or(&none);
        let grant = request.offer.decide(owner, &request.seen, now, processes);
        let row = (grant.amount.to_string(), request.offer.stored.to_string());
        changed.insert(scope, row);
        grants.push(grant);
    }
    let rows: Vec<_> = changed
        .into_iter()
        .map(|((id, scope), (amount, stored))| (id, scope, amount, stored))
        .collect();
    let sql = "INSERT INTO limit_leases (organization_id, scope, owner, amount, stored) \
               SELECT value ->> 0, value ->> 1, $2, value ->> 2, value ->> 3 \
               FROM {rows} WHERE 1 = 1 ON CONFLICT (organization_id, scope, owner) DO UPDATE \
               SET amount = excluded.amount, stored = excluded.stored";
    let rows = Rows::new(change, &rows)?;
    rows.query(sql).bind(owner).execute(change).await?;
    Ok(grants)
}
