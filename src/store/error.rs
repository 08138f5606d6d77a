//! What goes wrong with accounts at rest.

use std::path::PathBuf;

use filters::accounts::InvalidTerm;

/// Why the store did not do it. No variant holds a key, the pepper or a password.
#[derive(Debug)]
pub enum StoreError {
    /// The name is in use.
    Taken {
        /// What was to be made: `organization`, `project`.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// There is nothing of that name.
    Absent {
        /// What was looked for.
        what: &'static str,
        /// By which name or id.
        name: String,
    },
    /// It exists, but was disabled or archived.
    Closed {
        /// What it is.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// The name cannot be one.
    BadName {
        /// What was to be named.
        what: &'static str,
        /// What is wrong with the name.
        problem: &'static str,
    },
    /// The text of a provider's key cannot be one; this says why and no more.
    BadSecret(&'static str),
    /// A limit or a rule cannot be one.
    BadTerm(InvalidTerm),
    /// `store.url` or `store.secret` cannot be used: the configuration has to change.
    Configuration(String),
    /// The pepper is not the one that hashed the keys of this store.
    OtherPepper,
    /// A column holds what was never written there.
    Damaged(&'static str),
    /// The system gave no random bytes.
    Randomness,
    /// A file or folder of the store.
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// The database took the connection and said nothing.
    Silent,
    /// The tables could not be brought up to date.
    Migration(sqlx::migrate::MigrateError),
    /// The database.
    Database(sqlx::Error),
}

impl StoreError {
    /// Whether the configuration is what has to change.
    pub fn is_configuration(&self) -> bool {
        matches!(self, Self::Configuration(_) | Self::OtherPepper)
    }

    /// Reads a broken uniqueness as a name that is in use.
    pub(super) fn taken(error: sqlx::Error, what: &'static str, name: &str) -> Self {
        let is_taken = error
            .as_database_error()
            .is_some_and(|error| error.is_unique_violation());
        if is_taken {
            let name = name.to_owned();
            Self::Taken { what, name }
        } else {
            Self::Database(error)
        }
    }

    /// Nothing of that name.
    pub(super) fn absent(what: &'static str, name: &str) -> Self {
        let name = name.to_owned();
        Self::Absent { what, name }
    }
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Taken { what, name } => write!(f, "the {what} `{name}` exists already"),
            Self::Absent { what, name } => write!(f, "there is no {what} `{name}`"),
            Self::Closed { what, name } => write!(f, "the {what} `{name}` is closed"),
            Self::BadName { what, problem } => write!(f, "the name of the {what} {problem}"),
            Self::BadSecret(problem) => write!(f, "the text of the provider key {problem}"),
            Self::BadTerm(term) => write!(f, "{term}"),
            Self::Configuration(message) => f.write_str(message),
            Self::OtherPepper => f.write_str(
                "the secret is not the one that hashed the keys of this store: \
                 bring back its `secret.key` (or the file of `store.secret`)",
            ),
            Self::Damaged(column) => write!(f, "the store has a value in `{column}` that is none"),
            Self::Randomness => f.write_str("the system gave no random bytes"),
            Self::File { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Silent => f.write_str("the store does not answer"),
            Self::Migration(error) => write!(f, "the store's tables: {error}"),
            Self::Database(error) => write!(f, "the store: {error}"),
        }
    }
}

impl std::error::Error for StoreError {}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}
