//! How a store is opened: its file or server, its tables, its pepper.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::migrate::Migrator;
use sqlx::{AnyPool, ConnectOptions, Connection};

use super::secret::{self, file};
use super::{Store, StoreError, StoreUrl, url};

static SQLITE: Migrator = sqlx::migrate!("src/store/migrations/sqlite");
static POSTGRES: Migrator = sqlx::migrate!("src/store/migrations/postgres");

/// Connections of one process: the background shares them, and calls that need more of a balance.
const CONNECTIONS: u32 = 4;
/// How long one waits for a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// What a store is opened from. It has no `Debug`: it holds secrets.
#[derive(Clone)]
pub struct StoreSettings {
    /// Where it is.
    pub place: StoreUrl,
    /// The folder of `secret.key`.
    pub state_dir: PathBuf,
    /// The bytes of the secret that replaces `secret.key`; required with PostgreSQL.
    pub secret: Option<Vec<u8>>,
}

impl StoreSettings {
    /// The settings that a checked configuration names.
    ///
    /// Errors: [`StoreError::Configuration`] for a URL that names no store.
    pub fn of(configured: &crate::config::StoreConfig) -> Result<Self, StoreError> {
        let secret = configured.secret.as_ref();
        Ok(Self {
            place: StoreUrl::parse(&configured.url)?,
            state_dir: configured.state_dir.clone(),
            secret: secret.map(|secret| secret.expose().to_vec()),
        })
    }
}

/// A store that was opened.
pub struct OpenedStore {
    /// The store.
    pub store: Store,
    /// Whether this opening created its SQLite file. Of several processes that open it at once, one.
    pub is_new_file: bool,
}

impl Store {
    /// Opens it, makes the folders and files it needs, and brings its tables up to date.
    ///
    /// Errors: [`StoreError::Configuration`] for a missing or short secret, [`StoreError::OtherPepper`] where the keys were
    /// hashed under another one, else what the file system or the database said.
    pub async fn open(settings: &StoreSettings) -> Result<OpenedStore, StoreError> {
        let (url, is_new_file) = match &settings.place {
            StoreUrl::Sqlite(path) => {
                let (path, is_new_file) = touch(path)?;
                (url::sqlite_url(&path), is_new_file)
            }
            StoreUrl::Postgres(url) => (url.clone(), false),
        };
        let pepper = secret::load(
            &settings.place,
            &settings.state_dir,
            settings.secret.as_deref(),
        )?;
        let pool = connect(&url).await?;
        prepare(&pool, &settings.place).await?;
        let store = Self { pool, pepper };
        store.check_pepper().await?;
        Ok(OpenedStore { store, is_new_file })
    }

    /// Compares the pepper's mark with the one the store's keys were made under.
    ///
    /// A store without keys, those of providers included, takes the new mark: nothing is lost by another pepper then.
    async fn check_pepper(&self) -> Result<(), StoreError> {
        let mark = self.pepper.fingerprint();
        let sql = "SELECT pepper_mark FROM store_state WHERE one = 1";
        let known: Option<Vec<u8>> = sqlx::query_scalar(sql).fetch_one(&self.pool).await?;
        if known.as_deref() == Some(mark.as_slice()) {
            return Ok(());
        }
        let sql = "UPDATE store_state SET pepper_mark = $1 WHERE one = 1 \
                   AND NOT EXISTS (SELECT 1 FROM api_keys) \
                   AND NOT EXISTS (SELECT 1 FROM provider_keys)";
        let done = sqlx::query(sql)
            .bind(mark.to_vec())
            .execute(&self.pool)
            .await?;
        if done.rows_affected() == 1 {
            Ok(())
        } else {
            Err(StoreError::OtherPepper)
        }
    }
}

async fn connect(url: &str) -> Result<AnyPool, StoreError> {
    sqlx::any::install_default_drivers();
    // The driver's own words may repeat the URL with its password.
    let options = AnyConnectOptions::from_str(url)
        .map_err(|_| StoreError::Configuration("store.url is not a URL".to_owned()))?
        .disable_statement_logging();
    // A pool tries again until its time is over and then says only that; a single connection says why.
    let first = tokio::time::timeout(ACQUIRE_TIMEOUT, options.connect());
    first
        .await
        .map_err(|_| StoreError::Silent)??
        .close()
        .await?;
    let pool = AnyPoolOptions::new()
        .max_connections(CONNECTIONS)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .connect_lazy_with(options);
    Ok(pool)
}

/// Brings the tables up to date.
///
/// Two processes may do so at once: PostgreSQL makes them wait for each other, and of SQLite's each waits here until
/// the folder of the file is its own.
async fn prepare(pool: &AnyPool, place: &StoreUrl) -> Result<(), StoreError> {
    let _until_done = match place {
        StoreUrl::Sqlite(path) => Some(claim(folder_of(path)).await?),
        StoreUrl::Postgres(_) => None,
    };
    migrate(pool, place).await
}

/// The lock of a folder. That of the file itself would be in the way of SQLite's own.
async fn claim(folder: &Path) -> Result<fs::File, StoreError> {
    let path = folder.to_owned();
    let lock = move || {
        let folder = fs::File::open(&path)?;
        folder.lock().map(|()| folder)
    };
    let locked = tokio::task::spawn_blocking(lock).await;
    locked
        .map_err(std::io::Error::other)
        .flatten()
        .map_err(|error| file(folder, error))
}

async fn migrate(pool: &AnyPool, place: &StoreUrl) -> Result<(), StoreError> {
    let migrator = match place {
        StoreUrl::Sqlite(_) => {
            // The mode stays with the file: readers and the writer do not wait for each other.
            sqlx::query("PRAGMA journal_mode = WAL")
                .execute(pool)
                .await?;
            &SQLITE
        }
        StoreUrl::Postgres(_) => &POSTGRES,
    };
    migrator.run(pool).await.map_err(StoreError::Migration)
}

/// Makes the file and its folders where they are missing, readable by its owner alone.
///
/// Answers its absolute path, and whether this call made it.
fn touch(path: &Path) -> Result<(PathBuf, bool), StoreError> {
    let folder = folder_of(path);
    fs::create_dir_all(folder).map_err(|error| file(folder, error))?;
    let mut options = fs::OpenOptions::new();
    let is_new = match options.write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
        Err(error) => return Err(file(path, error)),
    };
    let path = path.canonicalize().map_err(|error| file(path, error))?;
    Ok((path, is_new))
}

fn folder_of(path: &Path) -> &Path {
    let folder = path.parent();
    folder
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}
