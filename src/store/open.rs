//! Opens a store: its file or server, its tables, its pepper.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::PgListener;
use sqlx::{AnyPool, Connection};
use tokio::time::timeout;

use super::connections::{ACQUIRE_TIMEOUT, Connections, Purpose, connect, options};
use super::migrate::migrate;
use super::secret::{self, file_error};
use super::transfer::check_finished;
use super::{Store, StoreError, StoreUrl, url};
use crate::durable;

/// The time limit of all migrations together. Large tables take minutes.
const MIGRATION_TIMEOUT: Duration = Duration::from_secs(1800);

/// The settings of a store. It has no `Debug`, because it holds secrets.
#[derive(Clone)]
pub struct StoreSettings {
    pub url: StoreUrl,
    /// The folder of `secret.key`.
    pub state_dir: PathBuf,
    /// The bytes of the secret that replaces `secret.key`; required with PostgreSQL.
    pub secret: Option<Vec<u8>>,
}

impl StoreSettings {
    /// Makes the settings of a checked configuration.
    ///
    /// Errors: [`StoreError::Configuration`] for an invalid URL.
    pub fn from_config(configured: &crate::config::StoreConfig) -> Result<Self, StoreError> {
        let secret = configured.secret.as_ref();
        Ok(Self {
            url: StoreUrl::parse(&configured.url)?,
            state_dir: configured.state_dir.clone(),
            secret: secret.map(|secret| secret.expose().to_vec()),
        })
    }
}

/// An opened store.
pub struct OpenedStore {
    pub store: Store,
    /// Whether this call created the SQLite file. If several processes open it at once, only one did.
    pub is_new_file: bool,
}

/// Does work with the store on a thread of this runtime, and not on the one that waits for it: SQLite has a thread per
/// connection, which takes its priority from the thread that connects.
pub async fn in_background<T: Send + 'static>(
    work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::spawn(work).await;
    done.map_err(|_| StoreError::Database(sqlx::Error::WorkerCrashed))?
}

impl Store {
    /// Opens the store, creates the folders and files it needs, and migrates its tables.
    ///
    /// Errors: those of [`Self::prepare`] and [`Self::make_ready`].
    pub async fn open(settings: &StoreSettings) -> Result<OpenedStore, StoreError> {
        let prepared = Self::prepare(settings).await?;
        prepared.store.make_ready(settings).await?;
        Ok(prepared)
    }

    /// Creates the folders and files that the store needs, and connects to nothing.
    ///
    /// Errors: [`StoreError::Configuration`] for a missing or short secret, and errors of the file system.
    pub async fn prepare(settings: &StoreSettings) -> Result<OpenedStore, StoreError> {
        let (url, is_new_file) = match &settings.url {
            StoreUrl::Sqlite(path) => {
                let (path, is_new_file) = create_file(path)?;
                (url::sqlite_url(&path), is_new_file)
            }
            StoreUrl::Postgres(url) => (url.clone(), false),
        };
        let pepper = secret::load(
            &settings.url,
            &settings.state_dir,
            settings.secret.as_deref(),
        )?;
        let has_one_writer = matches!(settings.url, StoreUrl::Sqlite(_));
        let store = Self {
            pool: Connections::new(&url, Purpose::Rest)?,
            ledger_pool: Connections::new(&url, Purpose::Ledger)?,
            heartbeat_pool: Connections::new(&url, Purpose::Heartbeat)?,
            url: url.into(),
            write_turn: has_one_writer.then(Arc::default),
            pepper,
        };
        Ok(OpenedStore { store, is_new_file })
    }

    /// Migrates the tables of a store that was prepared.
    ///
    /// Errors: [`StoreError::WrongPepper`] if the keys were hashed under another one, an import that has not ended, and errors of
    /// the database.
    pub async fn make_ready(&self, settings: &StoreSettings) -> Result<(), StoreError> {
        self.make_tables(settings).await?;
        check_finished(self.pool.acquire().await?.unlimited()?).await?;
        self.check_pepper().await
    }

    /// Migrates the tables, whatever is in them.
    pub(super) async fn make_tables(&self, settings: &StoreSettings) -> Result<(), StoreError> {
        let first = connect(&self.url, Purpose::Migration).await?;
        _ = timeout(ACQUIRE_TIMEOUT, first.close()).await;
        let connections = Connections::new(&self.url, Purpose::Migration)?;
        let migrated = migrate_locked(connections.unlimited(), &settings.url);
        let migrated = timeout(MIGRATION_TIMEOUT, migrated).await;
        connections.close().await;
        migrated.map_err(|_| StoreError::TimedOut)?
    }

    /// Returns a connection on which other processes of a PostgreSQL store are heard on a channel.
    pub async fn listen(&self, channel: &str) -> Result<PgListener, StoreError> {
        let url = options(&self.url, Purpose::Heartbeat)?.database_url;
        let listening = timeout(ACQUIRE_TIMEOUT, async {
            let mut listener = PgListener::connect(url.as_str()).await?;
            listener.listen(channel).await?;
            Ok(listener)
        });
        listening.await.map_err(|_| StoreError::TimedOut)?
    }

    /// Compares the pepper's mark with the mark under which the keys were made.
    ///
    /// A store without keys, including those of providers, takes the new mark, because nothing is lost then.
    async fn check_pepper(&self) -> Result<(), StoreError> {
        let mark = self.pepper.fingerprint();
        let sql = "SELECT pepper_mark FROM store_state WHERE one = 1";
        let stored_mark: Option<Vec<u8>> = sqlx::query_scalar(sql)
            .fetch_one(&mut self.pool.acquire().await?)
            .await?;
        if stored_mark.as_deref() == Some(mark.as_slice()) {
            return Ok(());
        }
        let sql = "UPDATE store_state SET pepper_mark = $1 WHERE one = 1 \
                   AND NOT EXISTS (SELECT 1 FROM api_keys) \
                   AND NOT EXISTS (SELECT 1 FROM provider_keys)";
        let done = sqlx::query(sql)
            .bind(mark.to_vec())
            .execute(&mut self.pool.acquire().await?)
            .await?;
        if done.rows_affected() == 1 {
            Ok(())
        } else {
            Err(StoreError::WrongPepper)
        }
    }
}

/// Migrates the tables.
///
/// Two processes may do so at once. PostgreSQL serializes them. With SQLite, each process waits here for the lock of
/// the file's folder.
async fn migrate_locked(pool: &AnyPool, url: &StoreUrl) -> Result<(), StoreError> {
    let _folder_lock = match url {
        StoreUrl::Sqlite(path) => Some(lock_folder(folder_of(path)).await?),
        StoreUrl::Postgres(_) => None,
    };
    migrate(pool, url).await
}

/// Locks a folder. A lock on the file itself would interfere with SQLite's own locks.
async fn lock_folder(folder: &Path) -> Result<fs::File, StoreError> {
    let path = folder.to_owned();
    let lock = move || {
        let folder = fs::File::open(&path)?;
        folder.lock().map(|()| folder)
    };
    let locked = tokio::task::spawn_blocking(lock).await;
    locked
        .map_err(std::io::Error::other)
        .flatten()
        .map_err(|error| file_error(folder, error))
}

/// Creates the file and its folders if they are missing, readable only by their owner.
///
/// Returns the file's absolute path, and whether this call created it.
fn create_file(path: &Path) -> Result<(PathBuf, bool), StoreError> {
    let folder = folder_of(path);
    durable::create_folders(folder).map_err(|error| file_error(folder, error))?;
    let mut options = fs::OpenOptions::new();
    let is_new = match options.write(true).create_new(true).mode(0o600).open(path) {
        Ok(file) => {
            let made = durable::give_to_owner_of(folder, &file);
            let made = made.and_then(|()| durable::sync_name(path));
            made.map_err(|error| file_error(folder, error))?;
            true
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
        Err(error) => return Err(file_error(path, error)),
    };
    let path = path
        .canonicalize()
        .map_err(|error| file_error(path, error))?;
    Ok((path, is_new))
}

pub(super) fn folder_of(path: &Path) -> &Path {
    let folder = path.parent();
    folder
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}
