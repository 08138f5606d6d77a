//! Errors of exports and imports.

use std::path::PathBuf;

/// Why a store was not exported, or a file not imported.
#[derive(Debug)]
pub enum TransferError {
    /// A server works on the store that was to be exported.
    SourceRuns,
    /// A server works on the store that was to be filled.
    TargetRuns,
    /// A line of the file is not what it has to be.
    Line {
        /// Counted from 1.
        number: u64,
        /// The predicate of a sentence about the line.
        problem: String,
    },
    /// The file ends before its last line.
    CutFile {
        /// The number of whole lines.
        lines: u64,
    },
    /// The target has no secret yet.
    NoSecret(PathBuf),
    /// The file was made under another secret than that of the target.
    OtherSecret,
    /// The file has a table or a column that this version does not know.
    Unknown {
        name: String,
        /// The version that made the file.
        program: String,
    },
    /// The file lacks a column without a default.
    MissingColumn(String),
    /// A column of the store has a value of another type.
    WrongType { table: &'static str, column: String },
    /// A row is too large for a line.
    RowTooLarge(&'static str),
    /// The target has rows in these tables.
    NotEmpty(Vec<&'static str>),
    /// The target has got this file before.
    AlreadyImported,
    /// The target holds the beginning of another file.
    OtherImport(ImportPlace),
    /// Another import is running.
    ImportRuns,
    /// The store holds the beginning of a file.
    Unfinished(ImportPlace),
    /// The target holds something else than the file in these tables.
    Different(Vec<&'static str>),
}

/// How far an import has come.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ImportPlace {
    /// The table that it is in.
    pub table: String,
    /// The number of rows of that table that are written.
    pub rows: i64,
}

impl TransferError {
    /// Returns whether the configuration must change.
    pub(super) fn is_configuration(&self) -> bool {
        matches!(self, Self::NoSecret(_) | Self::OtherSecret)
    }
}

impl std::fmt::Display for ImportPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &*self.table {
            "" => f.write_str("it had not begun to write"),
            table => write!(f, "it had written {} rows of the table {table}", self.rows),
        }
    }
}

impl std::fmt::Display for TransferError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::SourceRuns => f.write_str(
                "a server works on this store, and calls that only its journal has would be missing in the file: stop it \
                 first, or say --while-running. On PostgreSQL a server that was killed counts for half a minute more",
            ),
            Self::TargetRuns => f.write_str(
                "a server works on this store: stop it first. One that was killed counts for half a minute more",
            ),
            Self::Line { number, problem } => {
                write!(f, "line {number} of the file {problem}; nothing was changed")
            }
            Self::CutFile { lines } => write!(
                f,
                "the file ends after {lines} lines and lacks its last one: export it again, or copy it again as a whole; \
                 nothing was changed"
            ),
            Self::NoSecret(path) => write!(
                f,
                "this store has no secret yet, and needs the one under which the file was made: copy secret.key of the other \
                 machine to {}, or name it by store.secret; nothing was changed",
                path.display()
            ),
            Self::OtherSecret => f.write_str(
                "the file was made under another secret, so none of its keys would count here: name the secret of the other \
                 machine by store.secret = { file = \"…\" }, or copy its secret.key to store.state_dir; nothing was changed",
            ),
            Self::Unknown { name, program } => write!(
                f,
                "the file has {name}, which this version does not know: import it with version {program} or a newer one; \
                 nothing was changed"
            ),
            Self::MissingColumn(column) => write!(
                f,
                "the file lacks the column {column}, which has no default: export it again with a newer version; nothing was \
                 changed"
            ),
            Self::WrongType { table, column } => {
                write!(f, "the store has a value in {table}.{column} that is of another type")
            }
            Self::RowTooLarge(table) => {
                write!(f, "the store has a row in {table} that takes more than 64 MiB")
            }
            _ => self.fmt_target(f),
        }
    }
}

impl TransferError {
    /// Writes what is wrong with what the target holds.
    fn fmt_target(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotEmpty(tables) => write!(
                f,
                "the store is not empty: it has rows in {}. Name a new file or an empty database by store.url; nothing was \
                 changed",
                tables.join(", ")
            ),
            Self::AlreadyImported => f.write_str(
                "this file is imported already, as a whole: the store has it, and a server may start; nothing was changed",
            ),
            Self::OtherImport(place) => write!(
                f,
                "the store holds the beginning of another file ({place}): import that one again, or name a new file or an \
                 empty database by store.url; nothing was changed"
            ),
            Self::ImportRuns => {
                f.write_str("another import works on this store: wait until it has ended")
            }
            Self::Unfinished(place) => write!(
                f,
                "the store holds the beginning of an import that was cut ({place}): run `weirgate import FILE` again with the \
                 same file, which goes on there, or name another store by store.url"
            ),
            Self::Different(tables) => write!(
                f,
                "the store does not hold what the file has, in {}: something else has written to it. No server starts on it. \
                 Import into a new file or an empty database",
                tables.join(", ")
            ),
            _ => Ok(()),
        }
    }
}
