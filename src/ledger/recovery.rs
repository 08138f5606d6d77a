//! Recovers the journals of dead processes at start.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use filters::ledger::LedgerEntry;
use filters::ledger::journal::{Damage, FrameRead, FrameReader, Replay, read_owner};

use super::error::{LedgerError, file_error};
use super::segments::{JOURNAL_FOLDER, LOCK_FILE, SEGMENT_SUFFIX, delete_folder, open_lock};

/// The journal of a dead process.
pub struct RecoveredJournal {
    /// The id of that process in leases.
    pub owner: String,
    /// The entries that the ledger must have.
    pub entries: Vec<LedgerEntry>,
    folder: PathBuf,
    /// Held until the entries are stored, so that no other process recovers the same journal.
    _lock: File,
}

impl RecoveredJournal {
    /// Deletes the journal, after all its entries are stored.
    pub fn delete(self) {
        delete_folder(&self.folder);
    }
}

/// Reads the journals of dead processes under `state_dir`.
///
/// Errors: a file that is unreadable or damaged. Nothing has been changed then.
pub fn recover_journals(state_dir: &Path) -> Result<Vec<RecoveredJournal>, LedgerError> {
    let folder = state_dir.join(JOURNAL_FOLDER);
    let mut found = Vec::new();
    for process in list_sorted(&folder)? {
        if !process.is_dir() {
            continue;
        }
        let lock = open_lock(&process)?;
        if lock.try_lock().is_err() {
            continue;
        }
        let owner = process.file_name().unwrap_or_default().to_string_lossy();
        found.push(RecoveredJournal {
            owner: owner.into_owned(),
            entries: replay_segments(&process)?,
            folder: process,
            _lock: lock,
        });
    }
    Ok(found)
}

/// Replays the segments of one process into entries.
fn replay_segments(folder: &Path) -> Result<Vec<LedgerEntry>, LedgerError> {
    let mut replay = Replay::default();
    let mut cut: Option<LedgerError> = None;
    for path in list_sorted(folder)? {
        if path
            .extension()
            .is_none_or(|suffix| suffix != SEGMENT_SUFFIX)
        {
            continue;
        }
        let bytes = fs::read(&path).map_err(file_error(&path))?;
        let damaged = |damage: Damage| LedgerError::Damaged {
            path: path.clone(),
            offset: damage.offset,
            reason: damage.reason,
        };
        if read_owner(&bytes).map_err(damaged)?.is_none() {
            continue;
        }
        // Only the last segment may end in an unfinished record: a later segment proves that this one was complete.
        if let Some(cut) = cut.take() {
            return Err(cut);
        }
        let mut reader = FrameReader::new(&bytes);
        loop {
            match reader.read().map_err(damaged)? {
                FrameRead::Record(record) => replay.apply(*record),
                FrameRead::End { is_cut: false, .. } => break,
                FrameRead::End { offset, .. } => {
                    let reason = "a record ends in the middle though others were written behind it";
                    log::warn!(
                        "{}: the record at offset {offset} was never finished, and counts as not written",
                        path.display()
                    );
                    cut = Some(damaged(Damage { offset, reason }));
                    break;
                }
            }
        }
    }
    Ok(replay.into_entries())
}

/// Returns the paths in a folder, sorted by name; none if the folder does not exist.
fn list_sorted(folder: &Path) -> Result<Vec<PathBuf>, LedgerError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(file_error(folder)(error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.map_err(file_error(folder))?.path());
    }
    paths.retain(|path| path.file_name().is_some_and(|name| name != LOCK_FILE));
    paths.sort();
    Ok(paths)
}
