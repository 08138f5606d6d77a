//! Reads the log: pages of it, newest first, and the walk along its chain.

use filters::audit::{AuditEntry, AuditHead, BrokenChain, ChainWalk, EntryHash};
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::query::Query;
use sqlx::{Any, AssertSqlSafe, Row};

use super::connections::Connected;
use super::{Store, StoreError};

/// The most entries of a page. An entry has less than 140 KiB.
const MAX_PAGE: u32 = 1_000;
/// How many entries a walk reads at once.
const MAX_PORTION: i64 = 200;
/// The columns of an entry. No version writes longer texts than these; of a longer one the walk reads no more than it needs to
/// find that the entry was changed.
const COLUMNS: &str = "number, at, substr(actor, 1, 256) AS actor, substr(origin, 1, 512) AS origin, \
    substr(action, 1, 64) AS action, substr(kind, 1, 64) AS kind, substr(subject_id, 1, 8192) AS subject_id, \
    substr(name, 1, 1024) AS name, substr(organization_id, 1, 1024) AS organization_id, \
    substr(organization, 1, 1024) AS organization, substr(before, 1, 66000) AS before, \
    substr(after, 1, 66000) AS after, substr(hash, 1, 65) AS hash";

/// An entry with its hash.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HashedEntry {
    pub entry: AuditEntry,
    /// As the store has it: 64 hexadecimal digits.
    pub hash: String,
}

/// Which entries are asked for; `None`: whatever they have.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    /// Not earlier. Units: unix milliseconds.
    pub since_ms: Option<i64>,
    /// The id of the organization.
    pub organization_id: Option<String>,
    pub actor: Option<String>,
    /// An action, as `key.create`, or a kind, as `key`.
    pub action: Option<String>,
    /// The id of the thing that was changed.
    pub subject_id: Option<String>,
    /// Only those with a lower number: the last one of the page before.
    pub below: Option<i64>,
}

/// A page of the log, newest first.
#[derive(Clone, Debug, Default)]
pub struct AuditPage {
    pub entries: Vec<HashedEntry>,
    /// Whether there are older ones that were asked for.
    pub has_more: bool,
}

impl Store {
    /// Returns the newest entries, up to `count` and never more than 1,000. Cost: the index of the organization, the actor or the
    /// action; of entries that only `since_ms` or `subject_id` leaves out, each is read.
    pub async fn audit_entries(
        &self,
        filter: &AuditFilter,
        count: u32,
    ) -> Result<AuditPage, StoreError> {
        let count = count.min(MAX_PAGE) as usize;
        let sql = format!(
            "SELECT {COLUMNS} FROM audit_log{} ORDER BY number DESC LIMIT {}",
            filter.condition(),
            count + 1
        );
        let query = filter.bind(sqlx::query(AssertSqlSafe(sql)));
        let rows = query.fetch_all(&mut self.pool.acquire().await?).await?;
        let entries = rows.iter().take(count).map(read);
        Ok(AuditPage {
            entries: entries.collect::<Result<_, _>>()?,
            has_more: rows.len() > count,
        })
    }

    /// Returns the id of the organization with this name or id. One that was deleted, or has another name now, is found by the
    /// last entry that names it so.
    ///
    /// Errors: [`StoreError::NotFound`].
    pub async fn audited_organization(&self, name: &str) -> Result<String, StoreError> {
        let mut connection = self.pool.acquire().await?;
        for sql in [
            "SELECT id FROM organizations WHERE name = $1",
            "SELECT id FROM organizations WHERE id = $1",
            "SELECT organization_id FROM audit_log WHERE organization_id = $1 ORDER BY number DESC LIMIT 1",
            "SELECT organization_id FROM audit_log WHERE organization = $1 AND organization_id <> '' \
             ORDER BY number DESC LIMIT 1",
        ] {
            let query = sqlx::query_scalar(sql).bind(name.to_owned());
            if let Some(id) = query.fetch_optional(&mut connection).await? {
                return Ok(id);
            }
        }
        Err(StoreError::not_found("organization", name))
    }

    /// Returns the last entry of the log.
    pub async fn audit_head(&self) -> Result<AuditHead, StoreError> {
        find_head(&mut self.pool.acquire().await?).await
    }

    /// Walks along the whole log, and returns its last entry, or the first one that is not as it was written. `expected` was the
    /// last entry at some time. Cost: the log is read in portions, so memory does not grow with it.
    pub async fn verify_audit_log(
        &self,
        expected: Option<AuditHead>,
    ) -> Result<Result<AuditHead, BrokenChain>, StoreError> {
        let mut walk = ChainWalk::new(expected);
        // What stands before the first number is part of no portion.
        let mut above = i64::MIN;
        let sql = format!(
            "SELECT {COLUMNS} FROM audit_log WHERE number >= $1 ORDER BY number LIMIT {MAX_PORTION}"
        );
        loop {
            let query = sqlx::query(AssertSqlSafe(sql.clone())).bind(above);
            let rows = query.fetch_all(&mut self.pool.acquire().await?).await?;
            for row in &rows {
                let Ok(HashedEntry { entry, hash }) = read(row) else {
                    return Ok(Err(walk.unreadable()));
                };
                if let Err(broken) = walk.step(&entry, &hash) {
                    return Ok(Err(broken));
                }
            }
            if rows.is_empty() {
                return Ok(walk.finish());
            }
            above = walk.head().number + 1;
        }
    }
}

impl AuditFilter {
    /// Returns the condition of the statement, with its parameters in the order of [`Self::bind`].
    fn condition(&self) -> String {
        let is_kind = self.action.as_ref().is_some_and(|it| !it.contains('.'));
        let action = if is_kind { "kind =" } else { "action =" };
        let all = [
            (self.organization_id.is_some(), "organization_id ="),
            (self.actor.is_some(), "actor ="),
            (self.action.is_some(), action),
            (self.subject_id.is_some(), "subject_id ="),
            (self.since_ms.is_some(), "at >="),
            (self.below.is_some(), "number <"),
        ];
        let asked = all.into_iter().filter(|(is_asked, _)| *is_asked);
        let asked = asked
            .zip(1..)
            .map(|((_, condition), place)| format!("{condition} ${place}"));
        let asked: Vec<String> = asked.collect();
        match asked.is_empty() {
            true => String::new(),
            false => format!(" WHERE {}", asked.join(" AND ")),
        }
    }

    fn bind<'q>(&self, mut query: Query<'q, Any, AnyArguments>) -> Query<'q, Any, AnyArguments> {
        let texts = [
            &self.organization_id,
            &self.actor,
            &self.action,
            &self.subject_id,
        ];
        for text in texts.into_iter().flatten() {
            query = query.bind(text.clone());
        }
        for number in [self.since_ms, self.below].into_iter().flatten() {
            query = query.bind(number);
        }
        query
    }
}

/// Returns the last entry of the log.
pub(super) async fn find_head(connection: &mut Connected) -> Result<AuditHead, StoreError> {
    let sql = "SELECT number, hash FROM audit_log ORDER BY number DESC LIMIT 1";
    let Some(row) = sqlx::query(sql).fetch_optional(connection).await? else {
        return Ok(AuditHead::EMPTY);
    };
    let hash: String = row.try_get("hash")?;
    Ok(AuditHead {
        number: row.try_get("number")?,
        // A hash that somebody has damaged must not keep keys from being revoked. The walk names its entry.
        hash: hash.parse().unwrap_or(EntryHash::START),
    })
}

fn read(row: &AnyRow) -> Result<HashedEntry, StoreError> {
    let entry = AuditEntry {
        number: row.try_get("number")?,
        at_ms: row.try_get("at")?,
        actor: row.try_get("actor")?,
        origin: row.try_get("origin")?,
        action: row.try_get("action")?,
        kind: row.try_get("kind")?,
        subject_id: row.try_get("subject_id")?,
        name: row.try_get("name")?,
        organization_id: row.try_get("organization_id")?,
        organization: row.try_get("organization")?,
        before: row.try_get("before")?,
        after: row.try_get("after")?,
    };
    Ok(HashedEntry {
        entry,
        hash: row.try_get("hash")?,
    })
}
