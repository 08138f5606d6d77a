//! Calls that the store refuses: they are set aside in a file, so that the calls behind them are stored.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use filters::ledger::{ExperimentNames, LedgerEntry, SessionNames};
use serde::Serialize;

use super::error::{LedgerError, file_error};
use crate::durable;
use crate::store::{Store, StoreError};

/// The file in `store.state_dir`.
const FILE: &str = "refused_calls.jsonl";
/// If the store has refused more calls than this and taken none, it is not about the calls.
const MAX_REFUSED_ALONE: usize = 16;

/// The file of the calls that the store refused: a line of JSON each.
pub(super) struct RefusedCalls {
    path: PathBuf,
}

#[derive(Serialize)]
struct RefusedCall<'a> {
    id: String,
    error: String,
    call: &'a LedgerEntry,
    #[serde(skip_serializing_if = "Option::is_none")]
    experiment: Option<&'a ExperimentNames>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a SessionNames>,
}

impl RefusedCalls {
    pub(super) fn new(state_dir: &Path) -> Self {
        Self {
            path: state_dir.join(FILE),
        }
    }

    /// Appends calls and waits until the disk has them. A call that the file has is left out: after a kill the journal
    /// brings it again. Returns the number of new lines.
    ///
    /// Errors: the file system failed.
    pub(super) fn append(&self, calls: &[(&LedgerEntry, StoreError)]) -> Result<u64, LedgerError> {
        self.try_append(calls).map_err(file_error(&self.path))
    }

    fn try_append(&self, calls: &[(&LedgerEntry, StoreError)]) -> io::Result<u64> {
        let mut options = OpenOptions::new();
        let options = options.read(true).append(true).create(true).mode(0o600);
        let mut file = options.open(&self.path)?;
        let mut known = String::new();
        file.read_to_string(&mut known)?;
        let (mut lines, mut count) = (Vec::new(), 0);
        if !known.is_empty() && !known.ends_with('\n') {
            // The line before was cut off.
            lines.push(b'\n');
        }
        for (call, error) in calls {
            let id = call.id.to_string();
            if known.contains(&id) {
                continue;
            }
            let error = error.to_string();
            log::error!(
                "the store refuses the call {} of the organization {}, it is set aside in {}: {error}",
                call.owner.request_id,
                call.owner.organization_id,
                self.path.display()
            );
            let line = RefusedCall {
                id,
                error,
                call,
                experiment: call.experiment.as_deref(),
                session: call.session.as_deref(),
            };
            serde_json::to_writer(&mut lines, &line)?;
            lines.push(b'\n');
            count += 1;
        }
        file.write_all(&lines)?;
        file.sync_all()?;
        durable::sync_name(&self.path)?;
        Ok(count)
    }
}

/// What the store made of calls.
pub(super) struct Posted<'a> {
    pub(super) was_registered: bool,
    /// The calls that the store does not take, each tried alone.
    pub(super) refused: Vec<Refused<'a>>,
}

/// Stores calls of a process. Where the store refuses some of them, they are halved until those are alone.
///
/// Errors: the store failed, or refuses everything. Then it is unknown which calls were stored.
pub(super) async fn post<'a>(
    store: &Store,
    owner: &str,
    calls: &'a [LedgerEntry],
    mut may_be_stored: bool,
) -> Result<Posted<'a>, StoreError> {
    let mut posted = Posted {
        was_registered: true,
        refused: Vec::new(),
    };
    let (mut parts, mut has_stored, mut has_failed) = (vec![calls], false, false);
    let mut refused_alone = 0;
    while let Some(part) = parts.pop() {
        let error = match store.post(owner, part, may_be_stored).await {
            Ok(was_registered) => {
                posted.was_registered &= was_registered;
                has_stored = true;
                continue;
            }
            Err(StoreError::DeletedOrganizations(ids)) => {
                may_be_stored = true;
                let (runs, deleted) = split_deleted(part, &ids);
                parts.extend(runs);
                posted.refused.extend(deleted);
                continue;
            }
            Err(error) if error.is_about_rows() => error,
            Err(error) => return Err(error),
        };
        may_be_stored = true;
        match part {
            [call] if has_failed => {
                refused_alone += 1;
                if !has_stored && refused_alone > MAX_REFUSED_ALONE {
                    return Err(error);
                }
                posted.refused.push((call, error));
            }
            // A call is refused twice before it is given up.
            [_] => parts.push(part),
            _ => {
                let (first, second) = part.split_at(part.len() / 2);
                parts.extend([second, first]);
            }
        }
        has_failed = true;
    }
    Ok(posted)
}

/// A call that the store does not take, and why.
type Refused<'a> = (&'a LedgerEntry, StoreError);

/// Splits calls into runs without those of deleted organizations, the last run first, and the calls of these.
fn split_deleted<'a>(
    calls: &'a [LedgerEntry],
    ids: &BTreeSet<String>,
) -> (Vec<&'a [LedgerEntry]>, Vec<Refused<'a>>) {
    let is_deleted = |call: &LedgerEntry| ids.contains(&*call.owner.organization_id);
    let runs = calls.chunk_by(|a, b| is_deleted(a) == is_deleted(b));
    let has_deleted = |run: &&[LedgerEntry]| run.first().is_some_and(is_deleted);
    let (deleted, others): (Vec<_>, Vec<_>) = runs.rev().partition(has_deleted);
    let deleted = deleted.into_iter().rev().flatten();
    let refused = deleted.map(|call| {
        let id = BTreeSet::from([call.owner.organization_id.to_string()]);
        (call, StoreError::DeletedOrganizations(id))
    });
    (others, refused.collect())
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]
mod tests {
    use filters::accounts::Plan;
    use filters::audit::PROGRAM;
    use filters::ledger::{CallOwner, EntryId};
    use sqlx::{Connection, SqliteConnection};

    use super::*;
    use crate::config::{Durability, StoreConfig};
    use crate::store::StoreSettings;

    /// A store that refuses calls of models with this name.
    async fn refusing(folder: &Path, model: &str) -> Store {
        let configured = StoreConfig {
            url: format!("sqlite:{}", folder.join("store.db").display()),
            state_dir: folder.to_owned(),
            secret: None,
            durability: Durability::Process,
            journal_bytes: 0,
            usage_retention: None,
        };
        let settings = StoreSettings::from_config(&configured).unwrap();
        let store = Store::open(&settings).await.unwrap().store;
        let mut database = SqliteConnection::connect(&configured.url).await.unwrap();
        let trigger = format!(
            "CREATE TRIGGER refuse BEFORE INSERT ON usage_hours WHEN NEW.model = '{model}' \
             BEGIN SELECT RAISE(ABORT, 'no'); END"
        );
        let trigger = sqlx::raw_sql(sqlx::AssertSqlSafe(trigger));
        trigger.execute(&mut database).await.unwrap();
        store
    }

    fn call(n: u8, model: &str) -> LedgerEntry {
        let mut call = LedgerEntry {
            id: EntryId([n; 16]),
            owner: CallOwner {
                organization_id: "org_1".into(),
                ..CallOwner::default()
            },
            ..LedgerEntry::default()
        };
        call.usage.model = model.into();
        call
    }

    async fn stored(store: &Store) -> Vec<u8> {
        let mut stored = Vec::new();
        let always = (i64::MIN, i64::MAX);
        let read = store.visit_calls(always, |_| true, |call| stored.push(call.id.0[0]));
        read.await.unwrap();
        stored.sort_unstable();
        stored
    }

    #[tokio::test]
    async fn calls_are_halved_until_those_that_are_refused_are_alone() {
        for bad in [
            vec![0],
            vec![8],
            vec![3, 4],
            vec![0, 5, 8],
            (0..8).collect(),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let store = refusing(folder.path(), "bad").await;
            let model = |n| if bad.contains(&n) { "bad" } else { "good" };
            let calls: Vec<_> = (0..9).map(|n| call(n, model(n))).collect();
            let posted = post(&store, "a", &calls, false).await.unwrap();
            let refused: Vec<u8> = posted
                .refused
                .iter()
                .map(|(call, _)| call.id.0[0])
                .collect();
            assert_eq!(refused, bad);
            let good: Vec<u8> = (0..9).filter(|n| !bad.contains(n)).collect();
            assert_eq!(stored(&store).await, good);
            // A late node brings all of them again.
            let again = post(&store, "a", &calls, true).await.unwrap();
            assert_eq!(again.refused.len(), bad.len());
            assert_eq!(stored(&store).await, good);
            store.close().await;
        }
    }

    #[tokio::test]
    async fn calls_of_a_deleted_organization_are_refused_however_many_they_are_and_others_stored() {
        let folder = tempfile::tempdir().unwrap();
        let store = refusing(folder.path(), "bad").await;
        let organization = store
            .by(&PROGRAM)
            .create_organization("acme", Plan::None, 1)
            .await;
        let id = organization.unwrap().id;
        store
            .by(&PROGRAM)
            .disable_organization("acme")
            .await
            .unwrap();
        store
            .by(&PROGRAM)
            .delete_organization("acme", true, 2)
            .await
            .unwrap();
        let of_deleted = |n| {
            let mut call = call(n, "good");
            call.owner.organization_id = id.as_str().into();
            call
        };
        let calls: Vec<_> = (0..60)
            .map(|n| match n % 3 {
                0 => call(n, "good"),
                _ => of_deleted(n),
            })
            .collect();
        let good: Vec<u8> = (0..60).filter(|n| n % 3 == 0).collect();
        for may_be_stored in [false, true] {
            let posted = post(&store, "a", &calls, may_be_stored).await.unwrap();
            let refused: Vec<u8> = posted
                .refused
                .iter()
                .map(|(call, _)| call.id.0[0])
                .collect();
            let expected: Vec<u8> = (0..60).filter(|n| n % 3 != 0).collect();
            assert_eq!(refused, expected);
            assert!(posted.refused[0].1.to_string().contains("was deleted"));
            assert_eq!(stored(&store).await, good);
        }
        let only: Vec<_> = (100..140).map(of_deleted).collect();
        let posted = post(&store, "a", &only, false).await.unwrap();
        assert_eq!(posted.refused.len(), only.len());
        store.close().await;
    }

    #[tokio::test]
    async fn a_store_that_refuses_everything_or_fails_has_refused_no_call() {
        let folder = tempfile::tempdir().unwrap();
        let store = refusing(folder.path(), "bad").await;
        let calls: Vec<_> = (0..40).map(|n| call(n, "bad")).collect();
        assert!(post(&store, "a", &calls, false).await.is_err());
        let few = post(&store, "a", &calls[..3], false).await.unwrap();
        assert_eq!(few.refused.len(), 3);
        store.close().await;
        assert!(post(&store, "a", &calls[..3], false).await.is_err());
    }

    #[test]
    fn a_refused_call_is_one_line_that_nobody_else_reads() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let file = RefusedCalls::new(folder.path());
        let (first, second) = (call(1, "bad"), call(2, "bad"));
        let of = |call| (call, StoreError::Damaged("settled"));
        assert_eq!(file.append(&[of(&first)]).unwrap(), 1);
        // A kill cut the last line off.
        let mut text = std::fs::read_to_string(&file.path).unwrap();
        text.push_str("{\"id\":");
        std::fs::write(&file.path, text).unwrap();
        assert_eq!(file.append(&[of(&first), of(&second)]).unwrap(), 1);
        let text = std::fs::read_to_string(&file.path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        let line: serde_json::Value = serde_json::from_str(lines[2]).unwrap();
        assert_eq!(line["id"], "02".repeat(16));
        let mode = std::fs::metadata(&file.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
