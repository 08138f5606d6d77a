//! Recovers the journals of dead processes at start.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use filters::ledger::LedgerEntry;
use filters::ledger::journal::{
    FoundSegment, Mismatch, Replay, SegmentId, check_lane, read_segment,
};

use super::error::{LedgerError, file_error};
use super::journal::{JOURNAL_FOLDER, LOCK_FILE, delete_folder, open_lock, parse_name};

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
            entries: replay_lanes(&process, &owner)?,
            owner: owner.into_owned(),
            folder: process,
            _lock: lock,
        });
    }
    Ok(found)
}

/// Replays the segments of one process into entries.
fn replay_lanes(folder: &Path, owner: &str) -> Result<Vec<LedgerEntry>, LedgerError> {
    let mut lanes: BTreeMap<u32, Vec<FoundSegment>> = BTreeMap::new();
    let mut paths = BTreeMap::new();
    let owner = u128::from_str_radix(owner, 16).unwrap_or_default();
    for path in list_sorted(folder)? {
        let Some((lane, number)) = parse_name(&path) else {
            let damage = Mismatch {
                reason: "another version wrote this journal: start that version once and stop it normally",
                ..Mismatch::default()
            };
            return Err(damaged(&path, damage));
        };
        let id = SegmentId {
            owner: owner.to_be_bytes(),
            lane,
            number,
        };
        let bytes = fs::read(&path).map_err(file_error(&path))?;
        let read = read_segment(&bytes, &id);
        lanes
            .entry(lane)
            .or_default()
            .push(FoundSegment { number, read });
        paths.insert((lane, number), path);
    }
    let mut replay = Replay::default();
    for (lane, segments) in lanes {
        let path = |mismatch: &Mismatch| {
            let path = paths.get(&(lane, mismatch.segment));
            path.map_or(folder, PathBuf::as_path)
        };
        for torn in check_lane(&segments).map_err(|damage| damaged(path(&damage), damage))? {
            log::warn!(
                "{}: at offset {}: {}. The disk had not confirmed these bytes, so they count as not written",
                path(&torn).display(),
                torn.offset,
                torn.reason
            );
        }
        let records = segments
            .into_iter()
            .flat_map(|segment| segment.read.records);
        records.for_each(|record| replay.apply(record));
    }
    Ok(replay.into_entries())
}

fn damaged(path: &Path, damage: Mismatch) -> LedgerError {
    LedgerError::Damaged {
        path: path.to_owned(),
        offset: damage.offset as usize,
        reason: damage.reason,
    }
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
