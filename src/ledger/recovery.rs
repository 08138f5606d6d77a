//! At start: the journals of processes that are gone, and what they come to.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use filters::ledger::LedgerEntry;
use filters::ledger::journal::{Damage, FrameRead, FrameReader, Replay, owner};

use super::error::{LedgerError, file};
use super::segments::{FOLDER, LOCK, SUFFIX, lock, remove};

/// The journal of a process that is gone.
pub struct RecoveredJournal {
    /// Its process, as leases name it.
    pub owner: String,
    /// What has to be in the ledger.
    pub entries: Vec<LedgerEntry>,
    folder: PathBuf,
    /// Held until it is done with, so that no other process adopts it too.
    _lock: File,
}

impl RecoveredJournal {
    /// Deletes it: everything is in the store.
    pub fn forget(self) {
        remove(&self.folder);
    }
}

/// Reads the journals under `state_dir` whose processes are gone.
///
/// Errors: a file that cannot be read or does not add up; nothing has been changed then.
pub fn recover(state_dir: &Path) -> Result<Vec<RecoveredJournal>, LedgerError> {
    let folder = state_dir.join(FOLDER);
    let mut found = Vec::new();
    for process in sorted(&folder)? {
        if !process.is_dir() {
            continue;
        }
        let lock = lock(&process)?;
        if lock.try_lock().is_err() {
            continue;
        }
        let owner = process.file_name().unwrap_or_default().to_string_lossy();
        found.push(RecoveredJournal {
            owner: owner.into_owned(),
            entries: entries(&process)?,
            folder: process,
            _lock: lock,
        });
    }
    Ok(found)
}

/// What the segments of one process come to.
fn entries(folder: &Path) -> Result<Vec<LedgerEntry>, LedgerError> {
    let mut replay = Replay::default();
    let mut cut: Option<LedgerError> = None;
    for path in sorted(folder)? {
        if path.extension().is_none_or(|suffix| suffix != SUFFIX) {
            continue;
        }
        let bytes = fs::read(&path).map_err(file(&path))?;
        let damaged = |damage: Damage| LedgerError::Damaged {
            path: path.clone(),
            offset: damage.offset,
            what: damage.what,
        };
        if owner(&bytes).map_err(damaged)?.is_none() {
            continue;
        }
        // Only the last segment may end in the middle of a record: what follows shows that the others were whole.
        if let Some(cut) = cut.take() {
            return Err(cut);
        }
        let mut reader = FrameReader::new(&bytes);
        loop {
            match reader.read().map_err(damaged)? {
                FrameRead::Record(record) => replay.take(*record),
                FrameRead::End { is_cut: false, .. } => break,
                FrameRead::End { offset, .. } => {
                    let what = "a record ends in the middle though others were written behind it";
                    log::warn!(
                        "{}: the record at offset {offset} was never finished, and counts as not written",
                        path.display()
                    );
                    cut = Some(damaged(Damage { offset, what }));
                    break;
                }
            }
        }
    }
    Ok(replay.finish())
}

/// What is in a folder, by name; nothing where there is none.
fn sorted(folder: &Path) -> Result<Vec<PathBuf>, LedgerError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(file(folder)(error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.map_err(file(folder))?.path());
    }
    paths.retain(|path| path.file_name().is_some_and(|name| name != LOCK));
    paths.sort();
    Ok(paths)
}
