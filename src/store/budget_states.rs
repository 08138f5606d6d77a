//! What people say of budgets: more than the limit for one session, a pause, and how many calls behind the end were made.

use std::collections::BTreeSet;

use filters::audit::{AuditKind, Verb};
use filters::ledger::LimitScope;
use filters::money::Usd;
use filters::money::allowance::KeyLimits;
use filters::money::budgets::{BudgetState, nameless_budget, session_budget};
use filters::money::tally::{Spent, Tally};
use serde::{Deserialize, Serialize};
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row};

use super::audit_state::parse_granted;
use super::rows::Rows;
use super::{AccountChange, AccountEditor, Changed, Store, StoreError, organizations};

/// The most budgets of an organization of which something is said.
const MAX_STATES: i64 = 10_000;
/// What the store does not forget of a budget that rests: so long, and what is paused at all.
const KEPT_MS: i64 = 400 * 86_400_000;
/// The same of calls behind the end of a budget. No period is longer.
const GRACE_KEPT_MS: i64 = 40 * 86_400_000;

/// The SQL of a budget of which people have said something.
const IS_SAID: &str = "(paused_at IS NOT NULL OR granted <> '')";

/// A row of the table `budget_states`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct BudgetRecord {
    pub organization_id: String,
    /// The name of the budget.
    pub name: String,
    /// What was granted, as the text of a tally; `None`: the row is gone.
    pub granted: Option<String>,
    /// Since when it is paused, in unix milliseconds.
    pub paused_at: Option<i64>,
}

/// What is done to a budget.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BudgetChange {
    /// More may be spent, for good and in the current periods. It goes on if it was paused.
    Grant(Usd),
    Pause,
    Resume,
}

/// What is known of a budget.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct BudgetReport {
    pub spent: Spent,
    /// The limits of the keys that have used it in the last 30 days, the lowest of each two, with what was granted.
    pub limits: KeyLimits,
    /// All that was granted.
    pub granted: Usd,
    pub paused_ms: Option<i64>,
    /// The calls that were made behind its last end.
    pub grace_calls: i64,
    /// The ids of the keys.
    pub keys: Vec<String>,
}

impl BudgetReport {
    /// Returns what is left of its tightest limit, at least zero; `None`: it has no limit.
    pub fn left(&self) -> Option<Usd> {
        let lifetime = self
            .limits
            .lifetime
            .map(|limit| limit.minus(self.spent.total));
        let periods = self.limits.periods.into_iter().zip(self.spent.periods);
        let periods = periods.filter_map(|(limit, spent)| Some(limit?.minus(spent)));
        let tightest = lifetime.into_iter().chain(periods).min();
        tightest.map(|left| left.max(Usd::ZERO))
    }
}

impl BudgetRecord {
    /// Returns the id of the row in the feed and in the log.
    pub(super) fn id(organization_id: &str, name: &str) -> String {
        format!("{organization_id} {name}")
    }

    /// Returns the record of a row that is gone.
    fn removed(id: &str) -> Self {
        let (organization_id, name) = id.split_once(' ').unwrap_or_default();
        Self {
            organization_id: organization_id.to_owned(),
            name: name.to_owned(),
            granted: None,
            paused_at: None,
        }
    }

    fn read(row: &AnyRow) -> Result<Self, StoreError> {
        Ok(Self {
            organization_id: row.try_get("organization_id")?,
            name: row.try_get("name")?,
            granted: Some(row.try_get("granted")?),
            paused_at: row.try_get("paused_at")?,
        })
    }
}

impl Store {
    /// Returns the records of all budgets of which something is said.
    pub async fn all_budgets(&self) -> Result<Vec<BudgetRecord>, StoreError> {
        self.budget_records(None).await
    }

    /// Returns the records of all budgets, or of those with these ids, also where a row is gone.
    pub(super) async fn budget_records(
        &self,
        ids: Option<&BTreeSet<String>>,
    ) -> Result<Vec<BudgetRecord>, StoreError> {
        // Of others only calls behind their end are counted.
        let sql = format!(
            "SELECT organization_id, name, granted, paused_at FROM budget_states WHERE {IS_SAID}"
        );
        let mut connection = self.pool.acquire().await?;
        let Some(ids) = ids else {
            let rows = sqlx::query(AssertSqlSafe(sql))
                .fetch_all(&mut connection)
                .await?;
            return rows.iter().map(BudgetRecord::read).collect();
        };
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let wanted: Vec<(&str, &str)> = ids.iter().filter_map(|id| id.split_once(' ')).collect();
        let sql = format!(
            "{sql} AND (organization_id, name) IN (SELECT value ->> 0, value ->> 1 FROM {{rows}})"
        );
        let wanted = Rows::new(&connection, &wanted)?;
        let rows = wanted.query(&sql).fetch_all(&mut connection).await?;
        let mut records: Vec<BudgetRecord> = Vec::new();
        for row in &rows {
            records.push(BudgetRecord::read(row)?);
        }
        let known: BTreeSet<String> = records
            .iter()
            .map(|record| BudgetRecord::id(&record.organization_id, &record.name))
            .collect();
        let gone = ids.difference(&known).map(|id| BudgetRecord::removed(id));
        records.extend(gone);
        Ok(records)
    }

    /// Returns what is known of the budget of a session, by the budget's name.
    ///
    /// Errors: [`StoreError::NotFound`] for the organization.
    pub async fn budget_report(
        &self,
        organization: &str,
        name: &str,
        now_ms: i64,
    ) -> Result<BudgetReport, StoreError> {
        let organization_id = self.organization(organization).await?.id;
        let scope = LimitScope::Budget(name.into());
        let (spent, _) = self.spent("", &organization_id, &[scope]).await?;
        let spent = spent.first().map(|spent| spent.so_far(now_ms, 0).key);
        let mut report = BudgetReport {
            spent: spent.unwrap_or_default(),
            keys: self.keys_of_budget(&organization_id, name).await?,
            ..BudgetReport::default()
        };
        let mut state = BudgetState::default();
        let sql = "SELECT granted, paused_at, grace_calls FROM budget_states \
                   WHERE organization_id = $1 AND name = $2";
        let query = sqlx::query(sql).bind(&organization_id).bind(name);
        if let Some(row) = query
            .fetch_optional(&mut self.pool.acquire().await?)
            .await?
        {
            state.granted = parse_granted(row.try_get("granted")?)?;
            report.paused_ms = row.try_get("paused_at")?;
            report.grace_calls = row.try_get("grace_calls")?;
        }
        report.granted = state.granted.spent(now_ms).total;
        let mut terms = Vec::new();
        for key in &report.keys {
            let of_key = self.key_terms(key).await?.check();
            terms.push(of_key.map_err(StoreError::InvalidTerm)?.budgets.session);
        }
        report.limits = terms
            .into_iter()
            .fold(KeyLimits::default(), KeyLimits::lower);
        report.limits = report.limits.plus(&state.granted, now_ms);
        Ok(report)
    }

    /// Returns the ids of the keys that have used the budget of a session in the last 30 days.
    async fn keys_of_budget(
        &self,
        organization_id: &str,
        name: &str,
    ) -> Result<Vec<String>, StoreError> {
        const MAX_KEYS: i64 = 100;
        if let Some(key) = name.strip_prefix(&nameless_budget("")) {
            return Ok(vec![key.to_owned()]);
        }
        let session = name.strip_prefix(&session_budget("")).unwrap_or_default();
        let sql = "SELECT DISTINCT h.key_id FROM session_hours h JOIN api_keys k ON k.id = h.key_id \
                   WHERE h.organization_id = $1 AND h.session_id = $2 ORDER BY h.key_id LIMIT $3";
        let query = sqlx::query_scalar(sql).bind(organization_id).bind(session);
        let query = query.bind(MAX_KEYS);
        Ok(query.fetch_all(&mut self.pool.acquire().await?).await?)
    }

    /// Counts a call behind the end of a budget. `since` names the period and the limit of that end: under another one the count
    /// begins anew. Returns whether the call may be made.
    pub async fn use_grace_call(
        &self,
        organization_id: &str,
        name: &str,
        (since, most): (&str, u32),
        now_ms: i64,
    ) -> Result<bool, StoreError> {
        let sql = "INSERT INTO budget_states (organization_id, name, granted, grace_calls, grace_since, changed_at) \
                   VALUES ($1, $2, '', 1, $3, $5) ON CONFLICT (organization_id, name) DO UPDATE SET \
                   grace_calls = CASE WHEN budget_states.grace_since = excluded.grace_since \
                   THEN budget_states.grace_calls + 1 ELSE 1 END, \
                   grace_since = excluded.grace_since, changed_at = excluded.changed_at \
                   WHERE budget_states.grace_since <> excluded.grace_since \
                   OR budget_states.grace_calls < $4";
        if most == 0 {
            return Ok(false);
        }
        let _turn = self.write_turn().await;
        let query = sqlx::query(sql).bind(organization_id).bind(name);
        let query = query.bind(since);
        let query = query.bind(i64::from(most)).bind(now_ms);
        let done = query.execute(&mut self.pool.acquire().await?).await?;
        Ok(done.rows_affected() == 1)
    }

    /// Deletes some counters of budgets that have spent nothing since that time, and what was said of budgets without one. Returns
    /// whether there may be more.
    pub async fn delete_old_budgets(&self, now_ms: i64) -> Result<bool, StoreError> {
        const MAX_ROWS: i64 = 1_000;
        let before = now_ms - KEPT_MS;
        let _turn = self.write_turn().await;
        let mut connection = self.pool.acquire().await?;
        let sql = "DELETE FROM limit_counters WHERE (organization_id, scope) IN \
                   (SELECT organization_id, scope FROM limit_counters \
                   WHERE last_month > 0 AND last_month < $1 ORDER BY last_month LIMIT $2)";
        let query = sqlx::query(sql).bind(before).bind(MAX_ROWS);
        let counters = query.execute(&mut connection).await?.rows_affected();
        let sql = "DELETE FROM budget_states WHERE (organization_id, name) IN \
                   (SELECT organization_id, name FROM budget_states \
                   WHERE paused_at IS NULL AND (changed_at < $1 OR granted = '' AND changed_at < $2) LIMIT $3)";
        let query = sqlx::query(sql).bind(before).bind(now_ms - GRACE_KEPT_MS);
        let query = query.bind(MAX_ROWS);
        let states = query.execute(&mut connection).await?.rows_affected();
        Ok(counters.max(states) == MAX_ROWS.unsigned_abs())
    }
}

impl AccountEditor<'_> {
    /// Grants a budget more, pauses it, or lets it go on.
    ///
    /// Errors: [`StoreError::NotFound`] or [`StoreError::Inactive`] for the organization, [`StoreError::TooManyBudgets`].
    pub async fn change_budget(
        self,
        organization: &str,
        name: &str,
        what: BudgetChange,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        let organization_id = organizations::active(&mut change, organization).await?.id;
        let id = BudgetRecord::id(&organization_id, name);
        let verb = match what {
            BudgetChange::Grant(_) => Verb::Add,
            BudgetChange::Pause => Verb::Disable,
            BudgetChange::Resume => Verb::Enable,
        };
        let noted = change.note(AuditKind::Budget, verb, &id).await?;
        let before = find(&mut change, &organization_id, name).await?;
        if before
            .as_ref()
            .is_none_or(|(granted, paused_at)| granted.is_empty() && paused_at.is_none())
        {
            check_room(&mut change, &organization_id).await?;
        }
        let (granted, paused_at) = before.unwrap_or_default();
        let mut granted = parse_granted(&granted)?;
        if let BudgetChange::Grant(usd) = what {
            granted.charge(usd, now_ms);
        }
        let paused_at = match what {
            BudgetChange::Pause => Some(paused_at.unwrap_or(now_ms)),
            _ => None,
        };
        // Behind a grant the calls of the end are there again.
        let sql = "INSERT INTO budget_states (organization_id, name, granted, paused_at, changed_at) \
                   VALUES ($1, $2, $3, $4, $5) ON CONFLICT (organization_id, name) DO UPDATE SET \
                   granted = excluded.granted, paused_at = excluded.paused_at, \
                   changed_at = excluded.changed_at";
        let query = sqlx::query(sql).bind(&organization_id).bind(name);
        let granted = match granted == Tally::default() {
            true => String::new(),
            false => granted.to_string(),
        };
        let query = query.bind(granted).bind(paused_at).bind(now_ms);
        query.execute(&mut *change).await?;
        change.commit(&[Changed::Budget(&id)], noted).await
    }
}

/// Reads what was granted, and since when a budget is paused.
async fn find(
    change: &mut AccountChange,
    organization_id: &str,
    name: &str,
) -> Result<Option<(String, Option<i64>)>, StoreError> {
    let sql =
        "SELECT granted, paused_at FROM budget_states WHERE organization_id = $1 AND name = $2";
    let query = sqlx::query(sql).bind(organization_id).bind(name);
    let row = query.fetch_optional(&mut **change).await?;
    let state = row.map(|row| Ok((row.try_get("granted")?, row.try_get("paused_at")?)));
    state.transpose()
}

async fn check_room(change: &mut AccountChange, organization_id: &str) -> Result<(), StoreError> {
    let sql =
        format!("SELECT COUNT(*) FROM budget_states WHERE organization_id = $1 AND {IS_SAID}");
    let query = sqlx::query_scalar(AssertSqlSafe(sql)).bind(organization_id);
    let count: i64 = query.fetch_one(&mut **change).await?;
    match count < MAX_STATES {
        true => Ok(()),
        false => Err(StoreError::TooManyBudgets(MAX_STATES)),
    }
}
