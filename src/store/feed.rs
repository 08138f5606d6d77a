//! The feed of account changes: what each revision has changed.
//!
//! A change writes its rows of the feed in its own transaction, so a server that knows the rows up to a revision knows
//! every change up to it. Only the last [`KEPT_REVISIONS`] are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};

use filters::accounts::Caller;
use serde::{Deserialize, Serialize};
use sqlx::Row;

use super::connections::Connected;
use super::rows::Rows;
use super::{Store, StoreError};

/// A server that misses more revisions reads everything again.
const KEPT_REVISIONS: i64 = 100_000;
/// The maximum number of changes that are read at once, so that each reading is short.
pub(super) const MAX_CHANGES: i64 = 10_000;
/// The maximum number of rows of a revision, which is always read as a whole. A change of more makes several.
const MAX_REVISION_ROWS: usize = 5_000;

/// A kind of row that is deleted for good.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeletedKind {
    /// With its projects, members and keys.
    Organization,
    /// With its keys.
    Project,
    Member,
    Key,
}

impl DeletedKind {
    const ALL: [Self; 4] = [Self::Organization, Self::Project, Self::Member, Self::Key];

    /// Returns its kind in the feed.
    fn as_str(self) -> &'static str {
        match self {
            Self::Organization => "organization_deleted",
            Self::Project => "project_deleted",
            Self::Member => "member_deleted",
            Self::Key => "key_deleted",
        }
    }
}

/// What a change has changed, by id.
#[derive(Clone, Copy, Debug)]
pub(super) enum Changed<'a> {
    Organization(&'a str),
    Project(&'a str),
    Member(&'a str),
    Key(&'a str),
    ProviderKeys(&'a str),
    /// The prompt: its versions or its labels.
    Prompt(&'a str),
    /// What people say of the budget, by its organization and its name.
    Budget(&'a str),
    /// The grant or the client of OAuth, which was revoked.
    Revoked(&'a str),
    /// The credit of this organization, which is no part of a snapshot.
    Credit(&'a str),
    /// The journal of this process, which is no part of a snapshot either.
    Journal(&'a str),
    /// The row is gone, with those that belong to it.
    Deleted(DeletedKind, &'a str),
}

impl<'a> Changed<'a> {
    /// Returns the kind in the store, and the id.
    fn columns(self) -> (&'static str, &'a str) {
        match self {
            Self::Organization(id) => ("organization", id),
            Self::Project(id) => ("project", id),
            Self::Member(id) => ("member", id),
            Self::Key(id) => ("key", id),
            Self::ProviderKeys(id) => ("provider_keys", id),
            Self::Prompt(id) => ("prompt", id),
            Self::Budget(id) => ("budget", id),
            Self::Revoked(id) => ("revoked", id),
            Self::Credit(id) => ("credit", id),
            Self::Journal(id) => ("journal", id),
            Self::Deleted(kind, id) => (kind.as_str(), id),
        }
    }
}

/// A transaction that writes to the feed. If it is dropped, nothing has changed.
pub(super) struct FeedChange {
    transaction: Connected,
    revision: i64,
}

impl Deref for FeedChange {
    type Target = Connected;
    fn deref(&self) -> &Connected {
        &self.transaction
    }
}

impl DerefMut for FeedChange {
    fn deref_mut(&mut self) -> &mut Connected {
        &mut self.transaction
    }
}

impl FeedChange {
    /// Writes to the feed what has changed, and commits.
    pub(super) async fn commit(mut self, changed: &[Changed<'_>]) -> Result<(), StoreError> {
        let parts = (self.revision..).zip(changed.chunks(MAX_REVISION_ROWS));
        let rows = parts.flat_map(|(revision, part)| {
            part.iter().map(move |changed| {
                let (kind, id) = changed.columns();
                (revision, kind, id)
            })
        });
        let rows: Vec<(i64, &str, &str)> = rows.collect();
        if let Some((last, ..)) = rows.last().filter(|row| row.0 > self.revision) {
            self.revision = *last;
            let sql = "UPDATE store_state SET revision = $1 WHERE one = 1";
            let query = sqlx::query(sql).bind(self.revision);
            query.execute(&mut self.transaction).await?;
        }
        let sql = "INSERT INTO account_changes (revision, kind, id) \
                   SELECT CAST(value ->> 0 AS BIGINT), value ->> 1, value ->> 2 FROM {rows}";
        let rows = Rows::new(&self.transaction, &rows)?;
        rows.query(sql).execute(&mut self.transaction).await?;
        let sql = "DELETE FROM account_changes WHERE revision <= $1";
        let oldest = sqlx::query(sql).bind(self.revision - KEPT_REVISIONS);
        oldest.execute(&mut self.transaction).await?;
        self.transaction.commit().await
    }
}

/// The changes behind a revision, each id once.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// The revision up to which they are listed.
    pub revision: i64,
    /// Whether the feed had every revision up to there.
    pub is_complete: bool,
    pub organizations: BTreeSet<String>,
    pub projects: BTreeSet<String>,
    pub members: BTreeSet<String>,
    /// Ids of API keys.
    pub keys: BTreeSet<String>,
    pub byok_organizations: BTreeSet<String>,
    pub prompts: BTreeSet<String>,
    /// Organizations and names of budgets.
    pub budgets: BTreeSet<String>,
    /// Ids of grants and clients of OAuth that were revoked.
    pub revoked: BTreeSet<String>,
    /// Ids of rows that were deleted. What has the id now is among the changed ones, too.
    pub deleted: BTreeMap<DeletedKind, BTreeSet<String>>,
}

impl Store {
    /// Begins a change. Its first statement raises the revision. So two changes wait for each other here and not
    /// halfway, and SQLite takes its write lock at once.
    ///
    /// What it changes is not in the audit log: this is for tokens that clients give back. Accounts are changed by
    /// [`AccountEditor`](super::AccountEditor).
    pub(super) async fn change_without_entry(&self) -> Result<FeedChange, StoreError> {
        let mut transaction = self.pool.begin().await?;
        let sql = "UPDATE store_state SET revision = revision + 1 WHERE one = 1 RETURNING revision";
        let revision = sqlx::query_scalar(sql).fetch_one(&mut transaction).await?;
        Ok(FeedChange {
            transaction,
            revision,
        })
    }

    /// Returns what has changed since a revision in the next `revisions`, or `None` if nothing has. After very many
    /// changes these are the first ones, and their own revision says so.
    pub(super) async fn changes_since(
        &self,
        known: i64,
        revisions: i64,
    ) -> Result<Option<Changes>, StoreError> {
        let current = self.revision().await?;
        if current == known {
            return Ok(None);
        }
        let current = current.min(known.saturating_add(revisions));
        let sql = "SELECT revision, kind, id FROM account_changes \
                   WHERE revision > $1 AND revision <= $2 ORDER BY revision LIMIT $3";
        let query = sqlx::query(sql).bind(known).bind(current).bind(MAX_CHANGES);
        let rows = query.fetch_all(&mut self.pool.acquire().await?).await?;
        let is_cut = rows.len() as i64 == MAX_CHANGES;
        let last = match rows.last() {
            Some(last) if is_cut => Some(last.try_get::<i64, _>("revision")?),
            _ => None,
        };
        // The last one may have more rows than were read.
        let revision = last.map_or(current, |last| last - 1);
        let mut changes = Changes {
            revision,
            ..Changes::default()
        };
        let mut revisions = BTreeSet::new();
        for row in &rows {
            let of_row: i64 = row.try_get("revision")?;
            if of_row <= revision {
                revisions.insert(of_row);
                changes.add(row.try_get("kind")?, row.try_get("id")?);
            }
        }
        // A store that was replaced by its backup has an earlier revision.
        changes.is_complete = i64::try_from(revisions.len()) == Ok(revision - known);
        Ok(Some(changes))
    }
}

impl Changes {
    fn add(&mut self, kind: &str, id: String) {
        match kind {
            "organization" => self.organizations.insert(id),
            "project" => self.projects.insert(id),
            "member" => self.members.insert(id),
            "key" => self.keys.insert(id),
            "provider_keys" => self.byok_organizations.insert(id),
            "prompt" => self.prompts.insert(id),
            "budget" => self.budgets.insert(id),
            "revoked" => self.revoked.insert(id),
            kind => match DeletedKind::ALL.into_iter().find(|it| it.as_str() == kind) {
                Some(kind) => self.deleted.entry(kind).or_default().insert(id),
                None => false,
            },
        };
    }

    /// Returns whether the key of a caller was deleted, or what it belongs to.
    pub(super) fn has_deleted(&self, caller: &Caller) -> bool {
        let ids = [
            (DeletedKind::Organization, &caller.organization_id),
            (DeletedKind::Project, &caller.project_id),
            (DeletedKind::Key, &caller.key_id),
        ];
        ids.into_iter().any(|(kind, id)| {
            let deleted = self.deleted.get(&kind);
            deleted.is_some_and(|deleted| deleted.contains(&**id))
        })
    }
}
