//! Errors of the ledger.

use std::path::{Path, PathBuf};

/// Why the ledger did not start.
#[derive(Debug)]
pub enum LedgerError {
    /// A file or folder of the journal.
    File {
        path: PathBuf,
        error: std::io::Error,
    },
    Damaged {
        path: PathBuf,
        offset: usize,
        reason: &'static str,
    },
    Store(crate::store::StoreError),
}

impl std::fmt::Display for LedgerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Damaged {
                path,
                offset,
                reason,
            } => write!(
                f,
                "{}: at offset {offset}: {reason}. Bring the file back as it was; or, to go on without what it holds, \
                 move its folder away: calls that are not in the store yet are then not charged",
                path.display()
            ),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LedgerError {}

impl From<crate::store::StoreError> for LedgerError {
    fn from(error: crate::store::StoreError) -> Self {
        Self::Store(error)
    }
}

/// For `map_err`: returns the error of this file.
pub(super) fn file_error(path: &Path) -> impl FnOnce(std::io::Error) -> LedgerError {
    let path = path.to_owned();
    |error| LedgerError::File { path, error }
}
