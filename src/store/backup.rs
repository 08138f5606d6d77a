//! A copy of a SQLite store while servers and commands work on it.

use std::path::Path;
use std::time::Duration;

use sqlx::{AnyConnection, Connection};

use super::connections::{Purpose, connect};
use super::secret::file_error;
use super::{StoreError, StoreUrl, url};
use crate::durable::new_file::{NewFile, PRIVATE};

/// The time between two reports of how much is copied.
const REPORT_INTERVAL: Duration = Duration::from_millis(200);

/// Writes a copy of a SQLite store to a new file, readable only by its owner. Returns the size of the copy. `on_bytes` is told
/// how many bytes are written, and of how many at the most.
///
/// The copy is one moment of the store as it is: nothing is migrated or created, and writers do not wait. Errors: the
/// store is PostgreSQL or absent, the file exists already, the file system or the database failed.
pub async fn back_up(
    store: &StoreUrl,
    copy: &Path,
    on_bytes: impl Fn(u64, u64),
) -> Result<u64, StoreError> {
    let StoreUrl::Sqlite(database) = store else {
        let message = "the store is PostgreSQL: its own tool makes the copy, pg_dump";
        return Err(StoreError::Configuration(message.to_owned()));
    };
    let database = database
        .canonicalize()
        .map_err(|error| file_error(database, error))?;
    let new = NewFile::create(copy, PRIVATE).map_err(|error| file_error(copy, error))?;
    let mut connection = connect(&url::sqlite_url(&database), Purpose::Migration).await?;
    let copying = copy_to(&mut connection, new.draft());
    let copied = watch_size(copying, (new.draft(), &database), on_bytes).await;
    _ = connection.close().await;
    copied?;
    new.publish().map_err(|error| file_error(copy, error))
}

/// Copies to a file that is there and empty: SQLite keeps its permissions, and a file of its own making would be readable by all.
async fn copy_to(connection: &mut AnyConnection, draft: &Path) -> Result<(), StoreError> {
    let Some(path) = draft.to_str() else {
        let error = std::io::Error::other("SQLite takes only names in UTF-8");
        return Err(file_error(draft, error));
    };
    sqlx::query("VACUUM INTO $1")
        .bind(path)
        .execute(connection)
        .await?;
    Ok(())
}

/// Waits for a copy, and reports how large it is.
async fn watch_size(
    copying: impl Future<Output = Result<(), StoreError>>,
    (draft, database): (&Path, &Path),
    on_bytes: impl Fn(u64, u64),
) -> Result<(), StoreError> {
    let size = |path: &Path| path.metadata().map_or(0, |metadata| metadata.len());
    let mut copying = std::pin::pin!(copying);
    loop {
        tokio::select! {
            copied = &mut copying => return copied,
            () = tokio::time::sleep(REPORT_INTERVAL) => on_bytes(size(draft), size(database)),
        }
    }
}
