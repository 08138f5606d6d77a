//! Stores ended calls: their charges to balances and leases, the spending of their keys, and the calls themselves.
//!
//! A batch takes the same few statements, whatever the number of keys in it. Only very many organizations are split.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use filters::ledger::{Charge, Funding, LedgerEntry};
use filters::money::Usd;
use sqlx::{AnyConnection, Connection};
use tokio::time::timeout;

use super::super::{Store, StoreError};
use super::counters::{Addition, BudgetAddition};
use super::limits::Stored;
use super::rows::Rows;
use super::{
    QUERY_TIMEOUT, StoreAccount, calls, counters, deleted, finish, hours, leases, limits,
    lock_balances, read_accounts, sessions, spent, variations,
};

/// The maximum number of organizations in one transaction. It locks their balances to its end, and other processes that
/// need credit of one of them wait for that.
pub const MAX_ORGANIZATIONS: usize = 512;

impl Store {
    /// Stores ended calls of a process. `may_be_stored`: some may be stored already, and are skipped then. Returns
    /// whether the process was registered. If not, it has lost its leases.
    ///
    /// Each call is stored with its charge or not at all. Errors: [`StoreError::DeletedOrganizations`]; the database failed.
    /// Then it is unknown which calls were stored.
    pub async fn post(
        &self,
        owner: &str,
        entries: &[LedgerEntry],
        may_be_stored: bool,
    ) -> Result<bool, StoreError> {
        let mut was_registered = true;
        for group in by_organizations(entries) {
            let _turn = self.write_turn().await;
            let mut connection = self.ledger_pool.acquire().await?;
            let posted = post(connection.unlimited()?, owner, group, may_be_stored);
            let done = timeout(QUERY_TIMEOUT, posted).await;
            was_registered &= finish(connection, done)?;
        }
        Ok(was_registered)
    }
}

/// Groups calls, so that the calls of an organization are in one group, in their order.
fn by_organizations(entries: &[LedgerEntry]) -> Vec<Vec<&LedgerEntry>> {
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut groups: Vec<Vec<&LedgerEntry>> = Vec::new();
    for entry in entries {
        let next = numbers.len();
        let number = *numbers.entry(&entry.owner.organization_id).or_insert(next);
        let group = number / MAX_ORGANIZATIONS;
        match groups.get_mut(group) {
            Some(group) => group.push(entry),
            // Numbers have no gaps, so this is the next group.
            None => groups.push(vec![entry]),
        }
    }
    groups
}

async fn post(
    connection: &mut AnyConnection,
    owner: &str,
    mut entries: Vec<&LedgerEntry>,
    may_be_stored: bool,
) -> Result<bool, StoreError> {
    let mut change = connection.begin().await?;
    // The first statement is a write, because SQLite cannot upgrade a reading transaction.
    let was_registered = leases::lock_process(&mut change, owner).await?;
    calls::lock_journal(&mut change, owner, &entries).await?;
    if may_be_stored {
        let stored = calls::stored_ids(&mut change, owner, &entries).await?;
        entries.retain(|entry| !stored.contains(&entry.id));
    }
    if !entries.is_empty() {
        let added = spent::add(&mut change, &entries).await?;
        hours::add(&mut change, &entries).await?;
        variations::add(&mut change, &entries).await?;
        sessions::add(&mut change, &entries).await?;
        // Balances come last: other processes that need credit wait for them, and for little else.
        let charges = charge(&mut change, owner, &entries, &added).await?;
        deleted::refuse_deleted(&mut change, &entries).await?;
        calls::insert(&mut change, owner, &entries, &charges).await?;
    }
    change.commit().await?;
    Ok(was_registered)
}

/// The calls of an organization that its credit pays, and what is left for them.
#[derive(Default)]
struct Charges<'a> {
    /// The calls with their places in the batch, in its order.
    calls: Vec<(usize, &'a LedgerEntry)>,
    /// The process's lease before and after the calls.
    leased: Usd,
    lease: Usd,
    /// The amount that no process leases.
    free: Usd,
    settled: Usd,
    shortfall: Usd,
}

/// Charges calls to balances and to the process's leases of credit and of limits, and counts what they `added` to hours.
/// Returns the charge of each.
pub(super) async fn charge(
    change: &mut AnyConnection,
    owner: &str,
    entries: &[&LedgerEntry],
    added: &[Addition<'_>],
) -> Result<Vec<Charge>, StoreError> {
    let mut charges = Vec::with_capacity(entries.len());
    let mut organizations: BTreeMap<&str, Charges<'_>> = BTreeMap::new();
    for (place, entry) in entries.iter().enumerate() {
        let (charged, shortfall) = (entry.charged, entry.shortfall);
        charges.push(Charge { charged, shortfall });
        if entry.funding == Funding::Credit {
            let organization = organizations.entry(&entry.owner.organization_id);
            organization.or_default().calls.push((place, entry));
        }
    }
    let stored: Vec<Stored<'_>> = entries
        .iter()
        .filter_map(|of| Stored::of_call(of))
        .collect();
    let spending = stored.iter().map(|stored| stored.organization_id);
    let ids: BTreeSet<&str> = organizations.keys().copied().chain(spending).collect();
    let ids: Vec<&str> = ids.into_iter().collect();
    if ids.is_empty() {
        return Ok(charges);
    }
    let balances = lock_balances(change, &ids).await?;
    let budgets: Vec<_> = entries.iter().flat_map(|of| budgets_of(of)).collect();
    counters::add(change, added, &budgets).await?;
    limits::take_stored(change, owner, &stored).await?;
    if organizations.is_empty() {
        return Ok(charges);
    }
    let own = leases::read_leases(change, &ids, owner).await?;
    for (id, organization) in &mut organizations {
        (organization.settled, organization.shortfall) =
            balances.get(*id).copied().unwrap_or_default();
        organization.leased = own.get(*id).map_or(Usd::ZERO, |lease| lease.amount);
        organization.lease = organization.leased;
    }
    // Almost always the lease covers all, and then nothing else has to be read.
    let beyond = organizations
        .iter()
        .filter(|(_, organization)| organization.exceeds_lease());
    let beyond: Vec<&str> = beyond.map(|(id, _)| *id).collect();
    if !beyond.is_empty() {
        let accounts = read_accounts(change, &beyond).await?;
        for (id, organization) in &mut organizations {
            organization.free = accounts.get(*id).map_or(Usd::ZERO, StoreAccount::free);
        }
    }
    for organization in organizations.values_mut() {
        organization.charge(&mut charges);
    }
    write(change, owner, &organizations).await?;
    Ok(charges)
}

/// Returns what a call adds to its budgets.
fn budgets_of<'a>(entry: &'a LedgerEntry) -> impl Iterator<Item = BudgetAddition<'a>> {
    let cost = entry.usage.total();
    let budgets = entry.budgets().iter().filter(move |_| cost != Usd::ZERO);
    budgets.map(move |name| BudgetAddition {
        organization_id: &entry.owner.organization_id,
        name,
        ended_ms: entry.at_ms,
        cost,
    })
}

impl Charges<'_> {
    /// Returns whether the lease does not cover the calls.
    fn exceeds_lease(&self) -> bool {
        let cost = |(_, call): &(usize, &LedgerEntry)| call.charged.plus(call.shortfall);
        self.calls.iter().map(cost).fold(Usd::ZERO, Usd::plus) > self.leased
            || self
                .calls
                .iter()
                .any(|(_, call)| call.shortfall > Usd::ZERO)
    }

    fn charge(&mut self, charges: &mut [Charge]) {
        for (place, call) in &self.calls {
            let cost = call.charged.plus(call.shortfall);
            let from_lease = call.charged.min(self.lease);
            self.lease = self.lease.minus(from_lease);
            // The lease may have expired, or the call may cost more than was reserved. The rest is taken from the
            // amount that no process leases.
            let from_free = cost.minus(from_lease).min(self.free);
            self.free = self.free.minus(from_free);
            let charged = from_lease.plus(from_free);
            let shortfall = cost.minus(charged);
            self.settled = self.settled.plus(charged);
            self.shortfall = self.shortfall.plus(shortfall);
            if let Some(charge) = charges.get_mut(*place) {
                *charge = Charge { charged, shortfall };
            }
        }
    }
}

/// Writes balances, and the leases that became smaller.
async fn write(
    change: &mut AnyConnection,
    owner: &str,
    organizations: &BTreeMap<&str, Charges<'_>>,
) -> Result<(), StoreError> {
    let balances = organizations.iter().map(|(id, organization)| {
        (
            *id,
            organization.settled.to_string(),
            organization.shortfall.to_string(),
        )
    });
    let balances: Vec<_> = balances.collect();
    let sql = "UPDATE balances SET settled = r.settled, shortfall = r.shortfall FROM \
               (SELECT value ->> 0 AS id, value ->> 1 AS settled, value ->> 2 AS shortfall \
               FROM {rows}) AS r WHERE balances.organization_id = r.id";
    let balances = Rows::new(change, &balances)?;
    balances.query(sql).execute(&mut *change).await?;
    let changed = organizations
        .iter()
        .filter(|(_, organization)| organization.lease != organization.leased);
    let changed: Vec<_> = changed
        .map(|(id, organization)| (*id, organization.lease.to_string()))
        .collect();
    if changed.is_empty() {
        return Ok(());
    }
    let sql = "UPDATE leases SET amount = r.amount FROM \
               (SELECT value ->> 0 AS id, value ->> 1 AS amount FROM {rows}) AS r \
               WHERE leases.organization_id = r.id AND leases.owner = $2";
    let changed = Rows::new(change, &changed)?;
    let query = changed.query(sql).bind(owner);
    query.execute(change).await?;
    Ok(())
}
