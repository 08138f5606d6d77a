//! What is used of the limits of keys, members and organizations, for people who look at many of them.
//!
//! It is read of the counters, which have all that is stored. Calls on their way to the store are not among it.

use std::collections::HashMap;

use filters::accounts::TermsFile;
use filters::ledger::LimitScope;
use filters::money::Usd;
use filters::money::limit_use::{LimitName, LimitUse};
use filters::money::tally::{PlanTally, Tally};
use futures::TryStreamExt;
use sqlx::Row;
use sqlx::any::AnyRow;
use tokio::time::timeout;

use super::super::members::budget;
use super::super::{Store, StoreError, parse_column};
use super::counters::parse;
use super::{QUERY_TIMEOUT, ScopeSpent, StoreAccount, finish, read_accounts, spent, usd};
use crate::config::Plans;

/// A limit of which much is used.
#[derive(Clone, Debug, PartialEq)]
pub struct NearLimit {
    /// The name of the organization.
    pub organization: String,
    /// Whose limit it is.
    pub holder: LimitHolder,
    /// Of several limits the one that is nearest to its end.
    pub limit: LimitUse,
}

/// Whose limit it is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LimitHolder {
    Key {
        id: String,
        label: String,
    },
    /// A member, by its name.
    Member(String),
    Organization,
}

/// The SQL of the limits of keys that may be used. `$1` is the beginning of their scopes.
const OF_KEYS: &str = "\
SELECT o.name AS organization, k.id, k.label, k.terms, c.sums \
FROM api_keys k JOIN projects p ON p.id = k.project_id JOIN organizations o ON o.id = p.organization_id \
JOIN limit_counters c ON c.organization_id = o.id AND c.scope = $1 || k.id \
WHERE k.terms LIKE '%\"limit%' AND k.revoked_at IS NULL AND k.disabled_at IS NULL \
AND p.status = 'active' AND o.status = 'active'";
/// The SQL of the budgets of members. `$1` is the beginning of their scopes.
const OF_MEMBERS: &str = "\
SELECT o.name AS organization, m.name AS member, m.budget, c.sums \
FROM members m JOIN organizations o ON o.id = m.organization_id \
JOIN limit_counters c ON c.organization_id = o.id AND c.scope = $1 || m.id \
WHERE m.budget IS NOT NULL AND o.status = 'active'";
/// The SQL of the plans of organizations. `$1` is the scope of plans.
const OF_PLANS: &str = "\
SELECT o.name AS organization, o.plan, o.plan_since, c.sums FROM organizations o \
JOIN limit_counters c ON c.organization_id = o.id AND c.scope = $1 \
WHERE o.plan <> 'none' AND o.status = 'active'";
/// The SQL of the credit of organizations. Grants that are not in the sum are rows of their own. `$1` is nothing.
const OF_CREDIT: &str = "\
SELECT o.name AS organization, o.id, b.settled, b.granted AS amount FROM organizations o \
JOIN balances b ON b.organization_id = o.id WHERE o.status = 'active' AND $1 = '' UNION ALL \
SELECT o.name AS organization, o.id, '0' AS settled, g.amount FROM credit_grants g \
JOIN organizations o ON o.id = g.organization_id WHERE g.is_summed = 0 AND o.status = 'active'";

/// The nearest limits of those that were seen.
struct Nearest {
    count: usize,
    limits: Vec<NearLimit>,
}

impl Store {
    /// Returns what is spent in scopes of an organization, in their order, without the calls that no process has stored yet.
    pub async fn stored_spent(
        &self,
        organization_id: &str,
        scopes: &[LimitScope],
    ) -> Result<Vec<ScopeSpent>, StoreError> {
        let spent = self.spent(NO_PROCESS, organization_id, scopes).await?;
        Ok(spent.0)
    }

    /// Returns what is spent of the plans of organizations, in the order of their ids, without the calls that no process has stored
    /// yet.
    pub async fn plans_spent(
        &self,
        organization_ids: &[&str],
    ) -> Result<Vec<ScopeSpent>, StoreError> {
        let mut connection = self.pool.acquire().await?;
        let scopes = organization_ids.iter().map(|id| (*id, &LimitScope::Plan));
        let read = spent::read(connection.unlimited()?, NO_PROCESS, scopes);
        let read = timeout(QUERY_TIMEOUT, read).await;
        let all = finish(connection, read)?;
        let ids = organization_ids.iter();
        Ok(ids.map(|id| all.spent_in(id, &LimitScope::Plan)).collect())
    }

    /// Returns the stored credit of organizations, by their ids. One without any is not among them.
    pub async fn stored_accounts(
        &self,
        organization_ids: &[&str],
    ) -> Result<HashMap<String, StoreAccount>, StoreError> {
        let mut connection = self.pool.acquire().await?;
        let read = read_accounts(connection.unlimited()?, organization_ids);
        let read = timeout(QUERY_TIMEOUT, read).await;
        finish(connection, read)
    }

    /// Returns the limits of which the greatest shares are used, the nearest to its end first, of each key, member, plan and credit
    /// at most one. A row that cannot be read is left out: its keys are refused, and the log
    /// says why.
    ///
    /// Cost: reads the counters of all keys that have limits; memory is bounded by `count`, but for the credit of all organizations.
    pub async fn nearest_limits(
        &self,
        plans: &Plans,
        now_ms: i64,
        count: usize,
    ) -> Result<Vec<NearLimit>, StoreError> {
        let mut nearest = Nearest {
            count,
            limits: Vec::new(),
        };
        let key = LimitScope::Key("".into()).to_string();
        let read = |row: &AnyRow| of_key(row, now_ms);
        self.visit_limits(OF_KEYS, key, &mut nearest, read).await?;
        let member = LimitScope::Member("".into()).to_string();
        self.visit_limits(OF_MEMBERS, member, &mut nearest, |row| {
            of_member(row, now_ms)
        })
        .await?;
        let plan = LimitScope::Plan.to_string();
        let read = |row: &AnyRow| of_plan(row, plans, now_ms);
        self.visit_limits(OF_PLANS, plan, &mut nearest, read)
            .await?;
        let mut credit: HashMap<String, NearLimit> = HashMap::new();
        let none = String::new();
        self.visit_limits(OF_CREDIT, none, &mut nearest, |row| {
            add_credit(row, &mut credit)
        })
        .await?;
        let has_credit = |of: &NearLimit| of.limit.limit > Usd::ZERO;
        credit
            .into_values()
            .filter(has_credit)
            .for_each(|of| nearest.add(of));
        Ok(nearest.into_sorted())
    }

    /// Reads rows one after the other, each of which may have a limit.
    async fn visit_limits(
        &self,
        sql: &'static str,
        scope: String,
        nearest: &mut Nearest,
        mut read: impl FnMut(&AnyRow) -> Result<Option<NearLimit>, StoreError> + Send,
    ) -> Result<(), StoreError> {
        let mut connection = self.pool.acquire().await?;
        let mut rows = sqlx::query(sql).bind(scope).fetch(&mut connection);
        while let Some(row) = rows.try_next().await? {
            if let Ok(Some(near)) = read(&row) {
                nearest.add(near);
            }
        }
        Ok(())
    }
}

/// The owner of the posts that are waited for: none.
const NO_PROCESS: &str = "";

fn of_key(row: &AnyRow, now_ms: i64) -> Result<Option<NearLimit>, StoreError> {
    let terms: &str = row.try_get("terms")?;
    let terms: TermsFile = serde_json::from_str(terms).map_err(|_| StoreError::Damaged("terms"))?;
    let limits = terms.check().map_err(StoreError::InvalidTerm)?.limits;
    let tally: Tally = parse(row.try_get("sums")?)?;
    let holder = LimitHolder::Key {
        id: row.try_get("id")?,
        label: row.try_get("label")?,
    };
    near(
        row,
        holder,
        LimitUse::of_key(&limits, &tally.spent(now_ms), now_ms),
    )
}

fn of_member(row: &AnyRow, now_ms: i64) -> Result<Option<NearLimit>, StoreError> {
    let tally: Tally = parse(row.try_get("sums")?)?;
    let used = tally.spent(now_ms).total;
    let budget = budget(row.try_get::<Option<String>, _>("budget")?.as_deref())?;
    let limit = budget.map(|budget| LimitUse::lasting(LimitName::Budget, budget, used));
    near(row, LimitHolder::Member(row.try_get("member")?), limit)
}

fn of_plan(row: &AnyRow, plans: &Plans, now_ms: i64) -> Result<Option<NearLimit>, StoreError> {
    let Some(allowance) = plans.allowance(parse_column(row, "plan")?) else {
        return Ok(None);
    };
    let since_ms = row.try_get("plan_since")?;
    let tally: PlanTally = parse(row.try_get("sums")?)?;
    let spent = tally.spent(now_ms, since_ms);
    let limits = LimitUse::of_plan(&allowance, &spent, since_ms, now_ms);
    near(row, LimitHolder::Organization, limits)
}

/// Adds a part of the credit of an organization to the others.
fn add_credit(
    row: &AnyRow,
    credit: &mut HashMap<String, NearLimit>,
) -> Result<Option<NearLimit>, StoreError> {
    let (granted, used) = (usd(row, "amount")?, usd(row, "settled")?);
    let limit = LimitUse::lasting(LimitName::Credit, granted, used);
    let id: String = row.try_get("id")?;
    if let Some(before) = credit.get_mut(&id) {
        before.limit.limit = before.limit.limit.plus(granted);
        before.limit.used = before.limit.used.plus(used);
    } else if let Some(first) = near(row, LimitHolder::Organization, [limit])? {
        credit.insert(id, first);
    }
    Ok(None)
}

/// Returns the nearest of the limits of one holder.
fn near(
    row: &AnyRow,
    holder: LimitHolder,
    limits: impl IntoIterator<Item = LimitUse>,
) -> Result<Option<NearLimit>, StoreError> {
    let nearest = limits.into_iter().max_by(LimitUse::cmp_nearness);
    let Some(limit) = nearest else {
        return Ok(None);
    };
    Ok(Some(NearLimit {
        organization: row.try_get("organization")?,
        holder,
        limit,
    }))
}

impl Nearest {
    fn add(&mut self, near: NearLimit) {
        self.limits.push(near);
        // Sorted now and then, each is compared a few times, and few are kept.
        if self.limits.len() > 4 * self.count.max(64) {
            self.keep_nearest();
        }
    }

    fn keep_nearest(&mut self) {
        let by_nearness = |a: &NearLimit, b: &NearLimit| {
            let by_nearness = b.limit.cmp_nearness(&a.limit);
            by_nearness.then_with(|| a.organization.cmp(&b.organization))
        };
        self.limits.sort_by(by_nearness);
        self.limits.truncate(self.count);
    }

    fn into_sorted(mut self) -> Vec<NearLimit> {
        self.keep_nearest();
        self.limits
    }
}
