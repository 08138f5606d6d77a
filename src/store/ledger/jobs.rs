//! Jobs, which go on after the call that has ordered them: videos, and responses that are made in the background. Each has what it
//! may cost, from its order to its end.
//!
//! A job outlives its call and its process, so what it may cost cannot stay with either. [`Store::begin_job`] moves
//! it from the lease of the process to one of the job, which no process owns and which never expires;
//! [`Store::end_job`] charges the cost to it and frees the rest. Each is one transaction. The end closes the row first, so
//! of two that end the same job one does nothing.

use std::sync::Arc;

use filters::ledger::{CallMarks, CallOwner, Charge, EntryId, Funding, LedgerEntry};
use filters::money::Usd;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Row};
use tokio::time::timeout;

use super::super::cipher::Cipher;
use super::super::responses::{self, EndedResponse, NewResponse, SealedResponse};
use super::super::{Store, StoreError};
use super::limits::Stored;
use super::{
    QUERY_TIMEOUT, StoreAccount, calls, finish, hours, leases, limits, lock_balances, post,
    read_accounts, spent, usd,
};

/// The columns of a job.
pub(super) const COLUMNS: &str = "id, organization_id, project_id, key_id, member_id, request_id, funding, \
                       is_premium, reserved, ordered, state, secret, created_at, tags, budgets, is_open";

/// The SQL of a job for which something has to be done and that no process has claimed: a claim ends with its time, and with
/// its process.
const DUE: &str = "due_at > 0 AND due_at <= {now} AND (claimed_until <= {now} \
                   OR claimed_by NOT IN (SELECT owner FROM ledger_processes))";

/// What jobs make. Each kind has a table.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum JobKind {
    #[default]
    Video,
    /// A response of a model, made in the background.
    Response,
}

impl JobKind {
    /// Returns the table of its jobs.
    pub(in super::super) fn table(self) -> &'static str {
        match self {
            Self::Video => "video_jobs",
            Self::Response => "response_jobs",
        }
    }
}

/// A job. It has no `Debug`, because it holds a secret.
#[derive(Clone, Default)]
pub struct StoredJob {
    pub kind: JobKind,
    /// The id of its call in the ledger.
    pub id: EntryId,
    /// Who ordered it.
    pub owner: CallOwner,
    /// Who pays.
    pub funding: Funding,
    /// Whether its model is premium.
    pub is_premium: bool,
    /// Its tags, and the names of its budgets.
    pub marks: Option<Arc<CallMarks>>,
    /// The most that it may cost.
    pub reserved: Usd,
    /// What was ordered, as JSON.
    pub ordered: String,
    /// How far it has come, as JSON.
    pub state: String,
    /// What is kept encrypted: the secret that signs the webhooks of a video, or the request for a response.
    pub secret: Option<String>,
    /// When it was ordered, in unix milliseconds.
    pub created_ms: i64,
    /// Whether it goes on.
    pub is_open: bool,
}

/// Which of the jobs that are due are claimed: the first of each organization before the second of any.
#[derive(Clone, Debug)]
pub struct DueJobs {
    /// Jobs that go on; else jobs whose webhook is due.
    pub is_open: bool,
    /// The maximum number.
    pub most: usize,
    /// The maximum number of one organization.
    pub of_organization: usize,
    /// The most of some organizations, where that is another number.
    pub of_others: Vec<(Arc<str>, usize)>,
}

impl DueJobs {
    /// Returns the SQL of the most of a row's organization; their names are bound from `first` on.
    fn most_sql(&self, first: usize) -> String {
        let others = self.of_others.iter().enumerate();
        let others = others.map(|(at, (_, most))| format!("WHEN ${} THEN {most} ", first + at));
        let others: String = others.collect();
        match others.is_empty() {
            true => self.of_organization.to_string(),
            false => format!(
                "CASE organization_id {others}ELSE {} END",
                self.of_organization
            ),
        }
    }
}

/// Returns the owner of the lease of a job.
fn lease_owner(id: &EntryId) -> String {
    format!("job:{id}")
}

impl Store {
    /// Stores a job, and moves what it may cost from the lease of this process to one of its own. `response` is the response that
    /// it makes.
    pub async fn begin_job(
        &self,
        process: &str,
        job: &StoredJob,
        due_ms: i64,
        response: Option<&NewResponse>,
    ) -> Result<(), StoreError> {
        let id = job.id.to_string();
        let secret = match &job.secret {
            Some(secret) => Cipher::new(&self.pepper)?.encrypt(&id, secret)?,
            None => Vec::new(),
        };
        let response = response.map(|response| response.seal(&self.pepper));
        let response = response.transpose()?;
        let _turn = self.write_turn().await;
        let mut connection = self.ledger_pool.acquire().await?;
        let begun = begin(
            connection.unlimited()?,
            process,
            job,
            (secret, due_ms),
            response.as_ref(),
        );
        let done = timeout(QUERY_TIMEOUT, begun).await;
        finish(connection, done)
    }

    /// Ends a job: writes its state and its response, charges `entry` if it cost something, and frees what is left of its lease.
    /// Returns the charge; `None`: the job had ended already, and nothing has changed.
    ///
    /// A response job without a response takes the one that it has begun with it.
    pub async fn end_job(
        &self,
        (kind, id): (JobKind, &EntryId),
        (state, due_ms): (&str, i64),
        entry: Option<&LedgerEntry>,
        response: Option<&EndedResponse>,
    ) -> Result<Option<Charge>, StoreError> {
        let sealed = response.map(|response| response.seal(&self.pepper));
        let response = sealed.transpose()?;
        let _turn = self.write_turn().await;
        let mut connection = self.ledger_pool.acquire().await?;
        let ended = async {
            let connection = connection.unlimited()?;
            let mut change = connection.begin().await?;
            if !close(&mut change, (kind, id), (state, due_ms)).await? {
                change.rollback().await?;
                return Ok(None);
            }
            if kind == JobKind::Response {
                responses::end(&mut change, &id.to_string(), response.as_ref()).await?;
            }
            let charge = charge(&mut change, id, entry).await?;
            change.commit().await?;
            Ok(Some(charge))
        };
        let done = timeout(QUERY_TIMEOUT, ended).await;
        finish(connection, done)
    }

    /// Returns whether something has to be done for a job that goes on, or for one whose end is told.
    pub async fn has_due_job(
        &self,
        kind: JobKind,
        now_ms: i64,
        is_open: bool,
    ) -> Result<bool, StoreError> {
        let (due, table) = (DUE.replace("{now}", "$1"), kind.table());
        let sql = format!("SELECT COUNT(*) FROM {table} WHERE {due} AND is_open = $2");
        let count: i64 = sqlx::query_scalar(AssertSqlSafe(sql))
            .bind(now_ms)
            .bind(i64::from(is_open))
            .fetch_one(&mut self.pool.acquire().await?)
            .await?;
        Ok(count > 0)
    }

    /// Claims jobs for which something has to be done: until `until_ms`, or until this process is gone, no other does it.
    pub async fn claim_jobs(
        &self,
        kind: JobKind,
        process: &str,
        (now_ms, until_ms): (i64, i64),
        wanted: &DueJobs,
    ) -> Result<Vec<StoredJob>, StoreError> {
        let (due, table) = (DUE.replace("{now}", "$3"), kind.table());
        let most = wanted.most_sql(6);
        // A process that has waited for the row of another one checks it again.
        let sql = format!(
            "UPDATE {table} SET claimed_by = $1, claimed_until = $2 WHERE {due} AND id IN \
             (SELECT id FROM (SELECT id, due_at, organization_id, ROW_NUMBER() OVER \
              (PARTITION BY organization_id ORDER BY due_at) AS place \
              FROM {table} WHERE {due} AND is_open = $5) AS ranked \
              WHERE place <= {most} ORDER BY place, due_at LIMIT $4) RETURNING {COLUMNS}"
        );
        let _turn = self.write_turn().await;
        let query = sqlx::query(AssertSqlSafe(sql)).bind(process).bind(until_ms);
        let query = query.bind(now_ms);
        let query = query.bind(i64::try_from(wanted.most).unwrap_or(i64::MAX));
        let mut query = query.bind(i64::from(wanted.is_open));
        for (organization, _) in &wanted.of_others {
            query = query.bind(&**organization);
        }
        let rows = query.fetch_all(&mut self.pool.acquire().await?).await?;
        rows.iter().map(|row| self.read_job(kind, row)).collect()
    }

    /// Writes the state of a job that this process has claimed, and when the next thing has to be done; the claim ends.
    /// Does nothing if the claim is another's by now.
    pub async fn postpone_job(
        &self,
        process: &str,
        (kind, id): (JobKind, &EntryId),
        (state, due_ms): (&str, i64),
    ) -> Result<(), StoreError> {
        let sql = format!(
            "UPDATE {} SET state = $1, due_at = $2, claimed_until = 0 \
             WHERE id = $3 AND claimed_by = $4",
            kind.table()
        );
        let _turn = self.write_turn().await;
        let query = sqlx::query(AssertSqlSafe(sql)).bind(state).bind(due_ms);
        let query = query.bind(id.to_string()).bind(process);
        query.execute(&mut self.pool.acquire().await?).await?;
        Ok(())
    }

    pub(super) fn read_job(&self, kind: JobKind, row: &AnyRow) -> Result<StoredJob, StoreError> {
        let text = |column: &str| row.try_get::<String, _>(column);
        let id = text("id")?;
        let sealed: Vec<u8> = row.try_get("secret")?;
        let secret = match sealed.is_empty() {
            true => None,
            // One that was encrypted under another secret signs nothing.
            false => Cipher::new(&self.pepper)?.decrypt(&id, &sealed).ok(),
        };
        let member: String = text("member_id")?;
        Ok(StoredJob {
            kind,
            id: parse_id(&id).ok_or(StoreError::Damaged("id"))?,
            owner: CallOwner {
                organization_id: text("organization_id")?.into(),
                project_id: text("project_id")?.into(),
                key_id: text("key_id")?.into(),
                member_id: (!member.is_empty()).then(|| member.into()),
                request_id: text("request_id")?.into(),
            },
            funding: parse_funding(&text("funding")?).ok_or(StoreError::Damaged("funding"))?,
            is_premium: row.try_get::<i64, _>("is_premium")? != 0,
            marks: read_marks(&text("tags")?, &text("budgets")?)?,
            reserved: usd(row, "reserved")?,
            ordered: text("ordered")?,
            state: text("state")?,
            secret,
            created_ms: row.try_get("created_at")?,
            is_open: row.try_get::<i64, _>("is_open")? != 0,
        })
    }
}

fn parse_id(text: &str) -> Option<EntryId> {
    let number = u128::from_str_radix(text, 16).ok()?;
    (text.len() == 32).then(|| EntryId(number.to_be_bytes()))
}

/// Returns names as their column; empty: there are none.
fn to_json<T: Serialize>(names: &[T]) -> Result<String, StoreError> {
    match names {
        [] => Ok(String::new()),
        names => serde_json::to_string(names).map_err(|_| StoreError::Damaged("names")),
    }
}

fn read_marks(tags: &str, budgets: &str) -> Result<Option<Arc<CallMarks>>, StoreError> {
    if tags.is_empty() && budgets.is_empty() {
        return Ok(None);
    }
    fn read<T: DeserializeOwned + Default>(names: &str) -> Result<T, StoreError> {
        match names {
            "" => Ok(T::default()),
            names => serde_json::from_str(names).map_err(|_| StoreError::Damaged("names")),
        }
    }
    Ok(Some(Arc::new(CallMarks {
        tags: read(tags)?,
        budgets: read(budgets)?,
    })))
}

fn parse_funding(text: &str) -> Option<Funding> {
    let all = [
        Funding::Credit,
        Funding::Plan,
        Funding::Byok,
        Funding::Unbilled,
    ];
    all.into_iter().find(|funding| funding.as_str() == text)
}

async fn begin(
    connection: &mut AnyConnection,
    process: &str,
    job: &StoredJob,
    (secret, due_ms): (Vec<u8>, i64),
    response: Option<&SealedResponse<'_>>,
) -> Result<(), StoreError> {
    let mut change = connection.begin().await?;
    // The first statement is a write, because SQLite cannot upgrade a reading transaction.
    leases::lock_process(&mut change, process).await?;
    lock_balances(&mut change, &[&*job.owner.organization_id]).await?;
    if job.funding == Funding::Credit {
        move_lease(&mut change, process, job).await?;
    }
    // From here on its maximum cost counts as spent.
    limits::take_stored(&mut change, process, &[to_be_held(job)]).await?;
    if let Some(response) = response {
        responses::insert(&mut change, response).await?;
    }
    let table = job.kind.table();
    let sql = format!(
        "INSERT INTO {table} ({COLUMNS}, due_at, claimed_by, claimed_until) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, 1, $16, '', 0)"
    );
    let owner = &job.owner;
    let (tags, budgets): (&[_], &[_]) = match &job.marks {
        Some(marks) => (&marks.tags, &marks.budgets),
        None => (&[], &[]),
    };
    sqlx::query(AssertSqlSafe(sql))
        .bind(job.id.to_string())
        .bind(&*owner.organization_id)
        .bind(&*owner.project_id)
        .bind(&*owner.key_id)
        .bind(owner.member_id.as_deref().unwrap_or_default())
        .bind(&*owner.request_id)
        .bind(job.funding.as_str())
        .bind(i64::from(job.is_premium))
        .bind(job.reserved.to_string())
        .bind(&job.ordered)
        .bind(&job.state)
        .bind(secret)
        .bind(job.created_ms)
        .bind(to_json(tags)?)
        .bind(to_json(budgets)?)
        .bind(due_ms)
        .execute(&mut *change)
        .await?;
    change.commit().await?;
    Ok(())
}

fn to_be_held(job: &StoredJob) -> Stored<'_> {
    Stored {
        organization_id: &job.owner.organization_id,
        key_id: &job.owner.key_id,
        member_id: job.owner.member_id.as_deref(),
        premium: (job.funding == Funding::Plan).then_some(job.is_premium),
        budgets: job.marks.as_ref().map_or(&[], |marks| &marks.budgets),
        cost: job.reserved,
    }
}

/// Moves what a job may cost to its own lease. What the lease of the process does not cover, because it has expired, is
/// taken from the amount that no process leases, as far as that goes.
async fn move_lease(
    change: &mut AnyConnection,
    process: &str,
    job: &StoredJob,
) -> Result<(), StoreError> {
    let id = &*job.owner.organization_id;
    let own = leases::read_leases(change, &[id], process).await?;
    let leased = own.get(id).map_or(Usd::ZERO, |lease| lease.amount);
    let from_lease = job.reserved.min(leased);
    let missing = job.reserved.minus(from_lease);
    let from_free = match missing {
        Usd::ZERO => Usd::ZERO,
        missing => {
            let accounts = read_accounts(change, &[id]).await?;
            missing.min(accounts.get(id).map_or(Usd::ZERO, StoreAccount::free))
        }
    };
    let sql = "UPDATE leases SET amount = $1 WHERE organization_id = $2 AND owner = $3";
    let query = sqlx::query(sql).bind(leased.minus(from_lease).to_string());
    query.bind(id).bind(process).execute(&mut *change).await?;
    let sql = "INSERT INTO leases (organization_id, owner, amount) VALUES ($1, $2, $3)";
    let query = sqlx::query(sql).bind(id).bind(lease_owner(&job.id));
    let query = query.bind(from_lease.plus(from_free).to_string());
    query.execute(change).await?;
    Ok(())
}

/// Closes the row of a job. Returns whether it was open. A response is found by its own row, so that of its job goes.
async fn close(
    change: &mut AnyConnection,
    (kind, id): (JobKind, &EntryId),
    (state, due_ms): (&str, i64),
) -> Result<bool, StoreError> {
    let id = id.to_string();
    let query = match kind {
        JobKind::Video => sqlx::query(
            "UPDATE video_jobs SET is_open = 0, state = $1, due_at = $2, claimed_until = 0 \
             WHERE id = $3 AND is_open = 1",
        )
        .bind(state)
        .bind(due_ms)
        .bind(id),
        JobKind::Response => sqlx::query("DELETE FROM response_jobs WHERE id = $1").bind(id),
    };
    Ok(query.execute(change).await?.rows_affected() == 1)
}

/// Charges what a job took to its lease, and frees the rest.
async fn charge(
    change: &mut AnyConnection,
    id: &EntryId,
    entry: Option<&LedgerEntry>,
) -> Result<Charge, StoreError> {
    let owner = lease_owner(id);
    let mut charge = Charge::default();
    if let Some(entry) = entry {
        let entries = [entry];
        let added = spent::add(change, &entries).await?;
        hours::add(change, &entries).await?;
        let charges = post::charge(change, &owner, &entries, &added).await?;
        calls::insert(change, &owner, &entries, &charges).await?;
        charge = charges.first().copied().unwrap_or_default();
    }
    let sql = "DELETE FROM leases WHERE owner = $1";
    sqlx::query(sql).bind(owner).execute(change).await?;
    Ok(charge)
}
