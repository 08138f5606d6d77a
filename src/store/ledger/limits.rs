//! Leases of limits: what each process holds of the limits of a key, a member, a plan or a budget.
//!
//! They change in the same transactions as leases of credit, under the same locks, and so does what is spent. What a process
//! is granted is decided in `filters::ledger`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use filters::ledger::{Funding, LedgerEntry, LimitGrant, LimitOffer, LimitScope, LimitState};
use filters::money::Usd;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};

use super::super::StoreError;
use super::rows::Rows;
use super::{spent, usd};

/// A change of a process's lease of the limits of a scope.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LimitRequest {
    /// The organization's id.
    pub organization_id: String,
    /// Whose limits.
    pub scope: LimitScope,
    /// Counts the changes of the process. One that comes behind a later one changes nothing.
    pub number: i64,
    /// What the process tells.
    pub offer: LimitOffer,
}

/// The SQL of whether leases of other processes are read. Their number grows with the fleet.
type Others = &'static str;
const OTHERS: Others = "1 = 1";
const NO_OTHERS: Others = "1 = 0";

/// An organization's id, and a scope as text.
type ScopeKey<'a> = (&'a str, String);

/// What processes hold of the limits of a scope.
#[derive(Clone, Copy, Default)]
struct ScopeLeases {
    /// The process's own lease.
    own: Option<ScopeLease>,
    /// The amount of all others.
    others: Usd,
}

/// The lease of a process.
#[derive(Clone, Copy, Default)]
struct ScopeLease {
    granted: Usd,
    /// How much of what it spent is stored.
    stored: Usd,
    /// The number of its last change.
    number: i64,
}

/// An amount of a process that is stored from now on: of a call that has ended, or of a job that begins.
#[derive(Clone, Copy)]
pub(super) struct Stored<'a> {
    pub organization_id: &'a str,
    pub key_id: &'a str,
    pub member_id: Option<&'a str>,
    /// Whether the plan pays, and if so whether the model is premium.
    pub premium: Option<bool>,
    /// The names of its budgets.
    pub budgets: &'a [Arc<str>],
    pub cost: Usd,
}

impl<'a> Stored<'a> {
    /// Returns what is stored of a call; `None` if it cost nothing.
    pub(super) fn of_call(call: &'a LedgerEntry) -> Option<Self> {
        let cost = call.usage.total();
        let stored = Self {
            organization_id: &call.owner.organization_id,
            key_id: &call.owner.key_id,
            member_id: call.owner.member_id.as_deref(),
            premium: (call.funding == Funding::Plan).then_some(call.usage.is_premium),
            budgets: call.budgets(),
            cost,
        };
        (cost != Usd::ZERO).then_some(stored)
    }

    fn places(&self) -> impl Iterator<Item = ScopeKey<'a>> {
        let key = Some(LimitScope::Key(self.key_id.into()));
        let member = self.member_id.map(|id| LimitScope::Member(id.into()));
        let plan = self.premium.map(|_| LimitScope::Plan);
        let premium = self.premium.filter(|is_premium| *is_premium);
        let premium = premium.map(|_| LimitScope::Premium);
        let organization = self.organization_id;
        let scopes = [key, member, plan, premium].into_iter().flatten();
        let budgets = self.budgets.iter();
        let budgets = budgets.map(|name| LimitScope::Budget(Arc::clone(name)));
        scopes
            .chain(budgets)
            .map(move |scope| (organization, scope.to_string()))
    }
}

impl ScopeLease {
    /// Returns what the process holds.
    fn held(self) -> Usd {
        self.granted.minus(self.stored).max(Usd::ZERO)
    }
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
    let places: BTreeSet<ScopeKey<'_>> = requests.iter().map(LimitRequest::place).collect();
    let held = read(change, (owner, OTHERS), &places).await?;
    let wanted = requests.iter().filter(|of| of.offer.wanted.is_some());
    let wanted = wanted.map(|of| (&*of.organization_id, &of.scope));
    let spent = spent::read(change, owner, wanted).await?;
    let mut grants = Vec::with_capacity(requests.len());
    let (mut changed, mut forgotten) = (BTreeMap::new(), Vec::new());
    for request in requests {
        let place = request.place();
        let held = held.get(&place).copied().unwrap_or_default();
        let own = held.own.unwrap_or_default();
        let state = LimitState {
            stored: own.stored,
            others: held.others,
            room: request.offer.wanted.map(|(terms, _)| {
                let (now_ms, since_ms) = (request.offer.now_ms, terms.plan_since_ms());
                let spent = spent.spent_in(&request.organization_id, &request.scope);
                terms.room(&spent.so_far(now_ms, since_ms), now_ms)
            }),
            processes,
        };
        let grant = request.offer.decide(&state);
        grants.push(grant);
        if request.number > own.number {
            if request.is_forgotten(&grant) {
                changed.remove(&place);
                forgotten.push(place);
                continue;
            }
            let (granted, number) = (grant.granted, request.number);
            let own = ScopeLease {
                granted,
                number,
                ..own
            };
            changed.insert(place, own);
        }
    }
    write(change, owner, &changed).await?;
    forget(change, owner, &forgotten).await?;
    Ok(grants)
}

impl LimitRequest {
    fn place(&self) -> ScopeKey<'_> {
        (&self.organization_id, self.scope.to_string())
    }

    /// Returns whether the process holds nothing of a budget any more. Clients name budgets, so no row stays of one that rests.
    fn is_forgotten(&self, grant: &LimitGrant) -> bool {
        matches!(self.scope, LimitScope::Budget(_))
            && self.offer.wanted.is_none()
            && grant.held == Usd::ZERO
    }
}

/// Deletes leases of a process.
async fn forget(
    change: &mut AnyConnection,
    owner: &str,
    places: &[ScopeKey<'_>],
) -> Result<(), StoreError> {
    if places.is_empty() {
        return Ok(());
    }
    let sql = "DELETE FROM limit_leases WHERE owner = $2 AND (organization_id, scope) IN \
               (SELECT value ->> 0, value ->> 1 FROM {rows})";
    let places = Rows::new(change, places)?;
    places.query(sql).bind(owner).execute(change).await?;
    Ok(())
}

/// Takes what is stored of a process out of its leases. The organizations' balances are locked.
pub(super) async fn take_stored(
    change: &mut AnyConnection,
    owner: &str,
    all: &[Stored<'_>],
) -> Result<(), StoreError> {
    let places: BTreeSet<ScopeKey<'_>> = all.iter().flat_map(Stored::places).collect();
    if places.is_empty() {
        return Ok(());
    }
    let held = read(change, (owner, NO_OTHERS), &places).await?;
    let own = held
        .into_iter()
        .filter_map(|(place, held)| Some((place, held.own?)));
    let mut own: BTreeMap<ScopeKey<'_>, ScopeLease> = own.collect();
    for stored in all {
        for place in stored.places() {
            if let Some(own) = own.get_mut(&place) {
                own.stored = own.stored.plus(stored.cost);
            }
        }
    }
    write(change, owner, &own).await
}

/// Reads what a process holds, by organization and scope, and what others do if they are asked for.
async fn read<'a>(
    change: &mut AnyConnection,
    (owner, others): (&str, Others),
    places: &BTreeSet<ScopeKey<'a>>,
) -> Result<HashMap<ScopeKey<'a>, ScopeLeases>, StoreError> {
    let sql = format!(
        "SELECT number, owner, amount, stored, granted, turn \
         FROM (SELECT value ->> 0 AS id, value ->> 1 AS wanted, \
         CAST(value ->> 2 AS BIGINT) AS number FROM {{rows}}) AS r \
         CROSS JOIN limit_leases WHERE organization_id = r.id AND scope = r.wanted \
         AND (owner = $2 OR {others})"
    );
    let places: Vec<&ScopeKey<'_>> = places.iter().collect();
    let wanted = places.iter().enumerate();
    let wanted: Vec<_> = wanted.map(|(n, (id, scope))| (id, scope, n)).collect();
    let rows = Rows::new(change, &wanted)?;
    let mut all: HashMap<ScopeKey<'a>, ScopeLeases> = HashMap::new();
    for row in rows.query(&sql).bind(owner).fetch_all(change).await? {
        let number = row.try_get::<i64, _>("number")?;
        let place = usize::try_from(number).ok().and_then(|at| places.get(at));
        let Some(place) = place else { continue };
        let held = all.entry(ScopeKey::clone(place)).or_default();
        if row.try_get::<&str, _>("owner")? == owner {
            held.own = Some(read_lease(&row)?);
        } else {
            held.others = held.others.plus(usd(&row, "amount")?);
        }
    }
    Ok(all)
}

fn read_lease(row: &AnyRow) -> Result<ScopeLease, StoreError> {
    Ok(ScopeLease {
        granted: usd(row, "granted")?,
        stored: usd(row, "stored")?,
        number: row.try_get("turn")?,
    })
}

/// Writes leases. Processes of the version before read the amount.
async fn write(
    change: &mut AnyConnection,
    owner: &str,
    leases: &BTreeMap<ScopeKey<'_>, ScopeLease>,
) -> Result<(), StoreError> {
    if leases.is_empty() {
        return Ok(());
    }
    let rows = leases.iter().map(|((id, scope), lease)| {
        let amounts = [lease.held(), lease.stored, lease.granted];
        let [held, stored, granted] = amounts.map(|amount| amount.to_string());
        (id, scope, held, stored, granted, lease.number)
    });
    let rows: Vec<_> = rows.collect();
    let sql = "INSERT INTO limit_leases \
               (organization_id, scope, owner, amount, stored, granted, turn) \
               SELECT value ->> 0, value ->> 1, $2, value ->> 2, value ->> 3, value ->> 4, \
               CAST(value ->> 5 AS BIGINT) \
               FROM {rows} WHERE 1 = 1 ON CONFLICT (organization_id, scope, owner) DO UPDATE \
               SET amount = excluded.amount, stored = excluded.stored, granted = excluded.granted, \
               turn = excluded.turn";
    let rows = Rows::new(change, &rows)?;
    rows.query(sql).bind(owner).execute(change).await?;
    Ok(())
}
