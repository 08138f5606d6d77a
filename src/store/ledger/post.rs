//! Ended calls into the store: their rows, what they take from balances and leases, what their keys have spent.

use std::collections::BTreeSet;

use filters::ledger::{Funding, LedgerEntry};
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Row};
use tokio::time::timeout;

use super::super::{Store, StoreError};
use super::{PATIENCE, hold, kept, leases, read, rows, spent};

/// Ids that one look-up names.
const AT_ONCE: usize = 64;

impl Store {
    /// Writes ended calls of a process, all or none. `may_be_known`: some of them may be there already, which are
    /// then left as they are. Answers whether the process was known: one that was not has lost its leases.
    ///
    /// Errors: what the database said; whether the calls were written is not known then.
    pub async fn post(
        &self,
        owner: &str,
        entries: Vec<LedgerEntry>,
        may_be_known: bool,
    ) -> Result<bool, StoreError> {
        let mut connection = self.pool.acquire().await?;
        let posting = post(&mut connection, owner, entries, may_be_known);
        let done = timeout(PATIENCE, posting).await;
        kept(connection, done)
    }
}

async fn post(
    connection: &mut AnyConnection,
    owner: &str,
    mut entries: Vec<LedgerEntry>,
    may_be_known: bool,
) -> Result<bool, StoreError> {
    let mut change = connection.begin().await?;
    // First of all a write: SQLite could not turn a reading change into a writing one.
    let was_known = leases::is_known(&mut change, owner).await?;
    let organizations: BTreeSet<String> = entries
        .iter()
        .filter(|entry| entry.funding == Funding::Credit)
        .map(|entry| entry.owner.organization_id.to_string())
        .collect();
    for organization in &organizations {
        hold(&mut change, organization).await?;
    }
    if may_be_known {
        let known = known(&mut change, &entries).await?;
        entries.retain(|entry| !known.contains(&entry.id.to_string()));
    }
    for organization in &organizations {
        charge(&mut change, organization, owner, &mut entries).await?;
    }
    rows::insert(&mut change, &entries).await?;
    spent::add(&mut change, &entries).await?;
    change.commit().await?;
    Ok(was_known)
}

/// Which of these calls have rows.
async fn known(
    change: &mut AnyConnection,
    entries: &[LedgerEntry],
) -> Result<BTreeSet<String>, StoreError> {
    let mut found = BTreeSet::new();
    for some in entries.chunks(AT_ONCE) {
        let places: Vec<String> = (1..=some.len()).map(|place| format!("${place}")).collect();
        let sql = format!("SELECT id FROM ledger WHERE id IN ({})", places.join(", "));
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for entry in some {
            query = query.bind(entry.id.to_string());
        }
        for row in query.fetch_all(&mut *change).await? {
            found.insert(row.try_get("id")?);
        }
    }
    Ok(found)
}

/// Takes what an organization's calls cost out of its balance and out of the process's lease of it.
async fn charge(
    change: &mut AnyConnection,
    organization: &str,
    owner: &str,
    entries: &mut [LedgerEntry],
) -> Result<(), StoreError> {
    let account = read(change, organization).await?;
    let own = leases::own(change, organization, owner).await?.amount;
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
        // What the lease does not cover, because it has expired or the call cost more than was reserved: as far as
        // nobody holds it back.
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
        leases::write(change, organization, owner, lease).await?;
    }
    Ok(())
}
