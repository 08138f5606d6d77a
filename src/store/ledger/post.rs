//! Stores ended calls: their rows, their charges to balances and leases, and the spending of their keys.

use std::collections::BTreeSet;

use filters::ledger::{Funding, LedgerEntry};
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Row};
use tokio::time::timeout;

use super::super::{Store, StoreError};
use super::{QUERY_TIMEOUT, finish, leases, lock_balance, read_account, rows, spent};

/// The maximum number of ids in one lookup.
const MAX_LOOKUP_IDS: usize = 64;

impl Store {
    /// Stores ended calls of a process, all or none. `may_be_stored`: some may be stored already, and are skipped then.
    /// Returns whether the process was registered. If not, it has lost its leases.
    ///
    /// Errors: the database failed. Then it is unknown whether the calls were stored.
    pub async fn post(
        &self,
        owner: &str,
        entries: Vec<LedgerEntry>,
        may_be_stored: bool,
    ) -> Result<bool, StoreError> {
        let mut connection = self.pool.acquire().await?;
        let posted = post(&mut connection, owner, entries, may_be_stored);
        let done = timeout(QUERY_TIMEOUT, posted).await;
        finish(connection, done)
    }
}

async fn post(
    connection: &mut AnyConnection,
    owner: &str,
    mut entries: Vec<LedgerEntry>,
    may_be_stored: bool,
) -> Result<bool, StoreError> {
    let mut change = connection.begin().await?;
    // The first statement is a write, because SQLite cannot upgrade a reading transaction.
    let was_registered = leases::refresh(&mut change, owner).await?;
    let organizations: BTreeSet<String> = entries
        .iter()
        .filter(|entry| entry.funding == Funding::Credit)
        .map(|entry| entry.owner.organization_id.to_string())
        .collect();
    for organization in &organizations {
        lock_balance(&mut change, organization).await?;
    }
    if may_be_stored {
        let stored = stored_ids(&mut change, &entries).await?;
        entries.retain(|entry| !stored.contains(&entry.id.to_string()));
    }
    for organization in &organizations {
        charge(&mut change, organization, owner, &mut entries).await?;
    }
    rows::insert(&mut change, &entries).await?;
    spent::add(&mut change, &entries).await?;
    change.commit().await?;
    Ok(was_registered)
}

/// Returns the ids of the calls that are stored already.
async fn stored_ids(
    change: &mut AnyConnection,
    entries: &[LedgerEntry],
) -> Result<BTreeSet<String>, StoreError> {
    let mut found = BTreeSet::new();
    for chunk in entries.chunks(MAX_LOOKUP_IDS) {
        let placeholders: Vec<String> = (1..=chunk.len())
            .map(|number| format!("${number}"))
            .collect();
        let sql = format!(
            "SELECT id FROM ledger WHERE id IN ({})",
            placeholders.join(", ")
        );
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for entry in chunk {
            query = query.bind(entry.id.to_string());
        }
        for row in query.fetch_all(&mut *change).await? {
            found.insert(row.try_get("id")?);
        }
    }
    Ok(found)
}

/// Charges the calls of an organization to its balance and to the process's lease.
async fn charge(
    change: &mut AnyConnection,
    organization: &str,
    owner: &str,
    entries: &mut [LedgerEntry],
) -> Result<(), StoreError> {
    let account = read_account(change, organization).await?;
    let own = leases::read_lease(change, organization, owner)
        .await?
        .amount;
    let (mut lease, mut free) = (own, account.free());
    let (mut settled, mut shortfall) = (account.settled, account.shortfall);
    let calls = entries
        .iter_mut()
        .filter(|entry| entry.funding == Funding::Credit)
        .filter(|entry| &*entry.owner.organization_id == organization);
    for call in calls {
        let cost = call.charged.plus(call.shortfall);
        let from_lease = call.charged.min(lease);
        lease = lease.minus(from_lease);
        // The lease may have expired, or the call may cost more than was reserved. The rest is taken from the amount
        // that no process leases.
        let from_free = cost.minus(from_lease).min(free);
        free = free.minus(from_free);
        call.charged = from_lease.plus(from_free);
        call.shortfall = cost.minus(call.charged);
        settled = settled.plus(call.charged);
        shortfall = shortfall.plus(call.shortfall);
    }
    let sql = "UPDATE balances SET settled = $2, shortfall = $3 WHERE organization_id = $1";
    sqlx::query(sql)
        .bind(organization)
        .bind(settled.to_string())
        .bind(shortfall.to_string())
        .execute(&mut *change)
        .await?;
    if lease != own {
        leases::write_lease(change, organization, owner, lease).await?;
    }
    Ok(())
}
