//! Errors of the store.

mod transfer;

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::PathBuf;

use filters::accounts::InvalidTerm;
use filters::money::Usd;
use sqlx::migrate::MigrateError;
pub use transfer::{ImportPlace, TransferError};

/// Why an operation of the store failed. No variant holds a key, the pepper or a password.
#[derive(Debug)]
pub enum StoreError {
    AlreadyExists {
        /// The kind of thing that was to be created: `organization`, `project`.
        kind: &'static str,
        name: String,
    },
    NotFound {
        kind: &'static str,
        name: String,
        /// The id of the organization in which it was looked for, if that exists.
        owner: Option<String>,
    },
    /// The thing was disabled or archived.
    Inactive {
        kind: &'static str,
        name: String,
    },
    InvalidName {
        kind: &'static str,
        /// What is wrong with the name.
        problem: &'static str,
    },
    /// The text of a provider's key is invalid. The message says why and nothing about the text.
    InvalidSecret(&'static str),
    InvalidTerm(InvalidTerm),
    /// The key was revoked, which is final.
    Revoked(String),
    /// The thing is not as it was seen by the one who changes it.
    ChangedMeanwhile {
        kind: &'static str,
        name: String,
        /// What it was and what it is, in words.
        changes: String,
    },
    /// A key would have expired already.
    PastExpiry,
    /// The organization has as many budgets of which something is said as it may.
    TooManyBudgets(i64),
    /// No credit at all was to be given or taken.
    NoAmount {
        is_given: bool,
    },
    /// The thing cannot be deleted now.
    Kept {
        kind: &'static str,
        name: String,
        /// The reason, and what ends it.
        why: String,
    },
    /// More credit was to be taken back than can be.
    BeyondFree {
        organization: String,
        /// How much can be.
        free: Usd,
        /// How much servers hold back besides.
        held: Usd,
    },
    /// Calls are of organizations with these ids, which were deleted.
    DeletedOrganizations(BTreeSet<String>),
    /// `store.url` or `store.secret` is unusable: the configuration must change.
    Configuration(String),
    /// The keys of this store were hashed under another pepper.
    WrongPepper,
    /// A column has a value that the server never writes.
    Damaged(&'static str),
    /// The operating system gave no random bytes.
    Randomness,
    /// A file or folder of the store failed.
    File {
        path: PathBuf,
        error: std::io::Error,
    },
    /// Another server works on the SQLite file.
    InUse {
        database: PathBuf,
        /// The process id of that server, if it is known.
        pid: Option<u32>,
    },
    /// The database did not respond in time.
    TimedOut,
    /// A newer version has changed the tables so that this one cannot work with them.
    NewerTables {
        /// The migration that a process has to know.
        needed: i64,
        /// The newest that this one knows.
        known: i64,
    },
    /// An organization has as much as it may have.
    Full,
    /// The tables are of a version that is too old, or of none.
    UnknownTables,
    /// An export or an import was refused.
    Transfer(TransferError),
    Migration(MigrateError),
    Database(sqlx::Error),
}

impl StoreError {
    /// Returns whether the configuration must change.
    pub fn is_configuration(&self) -> bool {
        match self {
            Self::Configuration(_) | Self::WrongPepper => true,
            Self::Transfer(error) => error.is_configuration(),
            _ => false,
        }
    }

    /// Returns whether the database refused what it was given, rather than being unable to write: it may take other rows.
    pub fn is_about_rows(&self) -> bool {
        match self {
            Self::Damaged(_) | Self::DeletedOrganizations(_) => true,
            Self::Database(sqlx::Error::Database(error)) => {
                error.code().is_some_and(|code| is_code_of_rows(&code))
            }
            _ => false,
        }
    }

    /// Returns whether the database cannot be reached now, and perhaps can later.
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::TimedOut => true,
            Self::Database(error) => is_unavailable(error),
            Self::Migration(MigrateError::Execute(error)) => is_unavailable(error),
            _ => false,
        }
    }

    /// Maps the error of an insert or a new name: a broken unique constraint means that the name exists.
    pub(super) fn from_insert(error: sqlx::Error, kind: &'static str, name: &str) -> Self {
        let is_taken = error
            .as_database_error()
            .is_some_and(|error| error.is_unique_violation());
        if is_taken {
            let name = name.to_owned();
            Self::AlreadyExists { kind, name }
        } else {
            Self::Database(error)
        }
    }

    /// The error for a name that does not exist.
    pub fn not_found(kind: &'static str, name: &str) -> Self {
        Self::NotFound {
            kind,
            name: name.to_owned(),
            owner: None,
        }
    }

    /// The error for a name that does not exist in the organization with this id.
    pub(super) fn not_found_of(kind: &'static str, name: &str, organization_id: &str) -> Self {
        Self::NotFound {
            kind,
            name: name.to_owned(),
            owner: Some(organization_id.to_owned()),
        }
    }

    /// The error for a thing that cannot be deleted now.
    pub(super) fn kept(kind: &'static str, name: &str, why: String) -> Self {
        let name = name.to_owned();
        Self::Kept { kind, name, why }
    }
}

/// Returns whether an error code says that values are refused: by a type, a constraint or a trigger.
///
/// PostgreSQL's codes have five characters, of which two are the class. Those of SQLite are numbers with the kind in the
/// lowest byte.
fn is_code_of_rows(code: &str) -> bool {
    match code.split_at_checked(2) {
        Some((class, rest)) if rest.len() == 3 => matches!(class, "21" | "22" | "23" | "P0"),
        // Too large, constraint, mismatch, range.
        _ => code
            .parse::<u32>()
            .is_ok_and(|code| matches!(code & 0xff, 18 | 19 | 20 | 25)),
    }
}

/// Returns the command that shows the names of a kind.
fn list_command(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "organization" => "weirgate org list",
        "project" => "weirgate project list --org ORG",
        "key" => "weirgate key list --org ORG",
        "member" => "weirgate member list --org ORG",
        "provider key" => "weirgate provider-key list --org ORG",
        "prompt" | "version" | "label" => "weirgate prompt list --org ORG",
        "client" => "weirgate mcp clients list",
        _ => return None,
    })
}

/// Returns the command that opens again what is closed.
fn enable_command(kind: &str, name: &str) -> String {
    match kind {
        "project" => format!("weirgate project enable --org ORG {name}"),
        _ => format!("weirgate org enable {name}"),
    }
}

/// Returns what helps against an error of a file; empty: nothing that is known.
fn file_cure(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => ": make its folder, or name another place",
        ErrorKind::PermissionDenied => ": run this as the user who owns it, or name another place",
        ErrorKind::AlreadyExists => ": name another file",
        ErrorKind::StorageFull => ": make room on the disk",
        _ => "",
    }
}

/// Each text says what to do next.
impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.account_text().or_else(|| self.change_text()) {
            Some(text) => f.write_str(&text),
            None => f.write_str(&self.store_text()),
        }
    }
}

impl StoreError {
    /// Returns the text of an error of an account.
    fn account_text(&self) -> Option<String> {
        Some(match self {
            Self::AlreadyExists { kind, name } => {
                format!("the {kind} `{name}` exists already: take another name")
            }
            Self::NotFound { kind, name, .. } => {
                let cure = list_command(kind).map_or_else(String::new, |command| {
                    format!(": `{command}` names those there are")
                });
                format!("there is no {kind} `{name}`{cure}")
            }
            Self::Inactive { kind, name } => {
                let command = enable_command(kind, name);
                format!("the {kind} `{name}` is closed: `{command}` opens it again")
            }
            Self::InvalidName { kind, problem } => format!(
                "the name of the {kind} {problem}: accepted are 1 to 128 characters, without a control character and \
                 without a space at either end"
            ),
            Self::InvalidSecret(problem) => format!(
                "the text of the provider key {problem}: give the key alone, as the provider shows it"
            ),
            Self::InvalidTerm(term) => term.to_string(),
            Self::Revoked(id) => format!(
                "the key `{id}` was revoked, which is final: make another with `weirgate key create`"
            ),
            Self::Kept { kind, name, why } => {
                format!("the {kind} `{name}` cannot be deleted: {why}")
            }
            Self::BeyondFree {
                organization,
                free,
                held,
            } => format!(
                "of the credit of `{organization}` at most {free} USD can be taken: the rest is used, or held back for \
                 calls that run ({held} USD)"
            ),
            Self::DeletedOrganizations(ids) => {
                let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
                format!("the organization {} was deleted", ids.join(", "))
            }
            Self::Full => "the organization has as many kept responses as it may have: delete some, or raise the \
                           bounds in [responses]"
                .to_owned(),
            _ => return None,
        })
    }

    /// Returns the text of an error of a change that was asked for.
    fn change_text(&self) -> Option<String> {
        Some(match self {
            Self::ChangedMeanwhile {
                kind,
                name,
                changes,
            } => {
                format!(
                    "the {kind} `{name}` was changed meanwhile ({changes}), and nothing was done: look at it again"
                )
            }
            Self::TooManyBudgets(most) => format!(
                "more was granted to {most} sessions of the organization, or they are paused, and no more are accepted: \
                 resume some, or raise the budget of the key"
            ),
            Self::PastExpiry => {
                "expires is not in the future: accepted is a later time, such as 2031-01-01T00:00:00Z"
                    .to_owned()
            }
            Self::NoAmount { is_given } => {
                let does = if *is_given { "gives" } else { "takes" };
                format!("0 {does} nothing; an amount above 0 is accepted")
            }
            _ => return None,
        })
    }

    /// Returns the text of an error of the store itself.
    fn store_text(&self) -> String {
        match self {
            Self::Configuration(message) => message.clone(),
            Self::WrongPepper => "the secret is not the one that hashed the keys of this store: \
                                  bring back its `secret.key` (or the file of `store.secret`)"
                .to_owned(),
            Self::Damaged(column) => format!(
                "the store has a value in `{column}` that is none: a newer version may have written it, else restore a \
                 backup (docs/upgrade.md)"
            ),
            Self::Randomness => "the system gave no random bytes: try again".to_owned(),
            Self::File { path, error } => {
                format!("{}: {error}{}", path.display(), file_cure(error.kind()))
            }
            Self::InUse { database, pid } => {
                let holder = pid.map_or_else(
                    || "another process".to_owned(),
                    |pid| format!("the process {pid}"),
                );
                format!(
                    "{} is in use by {holder}: stop that one, or set another store.url; several servers can share a \
                     PostgreSQL store",
                    database.display()
                )
            }
            Self::TimedOut => "the store does not answer: see that the database of store.url runs and can be reached"
                .to_owned(),
            Self::NewerTables { needed, known } => format!(
                "the store's tables are of a newer version: they need migration {needed}, and this \
                 version knows {known}. Start the newer version, or restore the backup that was made \
                 before the upgrade (docs/upgrade.md)"
            ),
            Self::UnknownTables => "the store's tables are of a version that is too old for this one, and were not \
                                    changed. Start a version between them first (docs/upgrade.md)"
                .to_owned(),
            Self::Migration(error) => format!("the store's tables: {error}"),
            Self::Database(error) if is_unavailable(error) => format!(
                "the store: {error}: see that the database of store.url runs and can be reached"
            ),
            Self::Database(error) => format!("the store: {error}"),
            Self::Transfer(error) => error.to_string(),
            _ => String::new(),
        }
    }
}

impl std::error::Error for StoreError {}

fn is_unavailable(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut => true,
        // PostgreSQL starts, stops, or has no connection left.
        sqlx::Error::Database(error) => error.code().is_some_and(|code| {
            code.starts_with("57P") || code == "53300" || is_code_of_time(&code)
        }),
        _ => false,
    }
}

/// Returns whether PostgreSQL's code says that a time limit is over: of a statement, of a wait for a lock, of a transaction.
fn is_code_of_time(code: &str) -> bool {
    matches!(code, "57014" | "55P03" | "25P03")
}

impl From<TransferError> for StoreError {
    fn from(error: TransferError) -> Self {
        Self::Transfer(error)
    }
}

impl From<MigrateError> for StoreError {
    fn from(error: MigrateError) -> Self {
        Self::Migration(error)
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let is_late = match &error {
            sqlx::Error::Io(error) => error.kind() == ErrorKind::TimedOut,
            sqlx::Error::Database(error) => error.code().is_some_and(|code| is_code_of_time(&code)),
            _ => false,
        };
        if is_late {
            Self::TimedOut
        } else {
            Self::Database(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_cannot_write_refuses_no_rows() {
        // PostgreSQL: lost, deadlock, disk full, shut down, cancelled, no table, read only. SQLite: busy, full, no table.
        for code in [
            "08006", "40P01", "53100", "57P01", "57014", "42P01", "25006", "5", "517", "13", "1",
        ] {
            assert!(!is_code_of_rows(code), "{code}");
        }
        for error in [StoreError::TimedOut, sqlx::Error::PoolTimedOut.into()] {
            assert!(!error.is_about_rows(), "{error}");
        }
        // PostgreSQL: out of range, a constraint, a trigger. SQLite: a constraint, a trigger, too large.
        for code in ["22003", "23514", "P0001", "19", "1811", "2067", "18"] {
            assert!(is_code_of_rows(code), "{code}");
        }
    }
}
