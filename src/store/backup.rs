//! A copy of a SQLite store while servers and commands work on it.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use sqlx::{AnyConnection, Connection};

use super::connections::{Purpose, connect};
use super::secret::file_error;
use super::{StoreError, StoreUrl, url};
use crate::durable;

/// Writes a copy of a SQLite store to a new file, readable only by its owner. Returns the size of the copy.
///
/// The copy is one moment of the store as it is: nothing is migrated or created, and writers do not wait. Errors: the
/// store is PostgreSQL or absent, the file exists already, the file system or the database failed.
pub async fn back_up(store: &StoreUrl, copy: &Path) -> Result<u64, StoreError> {
    let StoreUrl::Sqlite(database) = store else {
        let message = "the store is PostgreSQL: its own tool makes the copy, pg_dump";
        return Err(StoreError::Configuration(message.to_owned()));
    };
    let database = database
        .canonicalize()
        .map_err(|error| file_error(database, error))?;
    if copy.exists() {
        return Err(file_error(copy, ErrorKind::AlreadyExists.into()));
    }
    // A copy that fails halfway must not look like a whole one, so it gets its name at the end.
    let mut draft = copy.as_os_str().to_owned();
    draft.push(format!(".{}", uuid::Uuid::now_v7()));
    let draft = Path::new(&draft);
    let mut connection = connect(&url::sqlite_url(&database), Purpose::Migration).await?;
    let copied = copy_to(&mut connection, draft).await;
    _ = connection.close().await;
    // A link never replaces a file that appeared meanwhile.
    let named =
        copied.and_then(|()| durable::link(draft, copy).map_err(|error| file_error(copy, error)));
    // The draft has the same permissions as the copy, so a draft that stays is harmless.
    _ = fs::remove_file(draft);
    named?;
    let written = fs::metadata(copy).map_err(|error| file_error(copy, error))?;
    Ok(written.len())
}

async fn copy_to(connection: &mut AnyConnection, draft: &Path) -> Result<(), StoreError> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o600);
    // SQLite fills an empty file and keeps its permissions; a file of its own making would be readable by all.
    let file = options
        .open(draft)
        .map_err(|error| file_error(draft, error))?;
    let Some(path) = draft.to_str() else {
        let error = std::io::Error::other("SQLite takes only names in UTF-8");
        return Err(file_error(draft, error));
    };
    sqlx::query("VACUUM INTO $1")
        .bind(path)
        .execute(connection)
        .await?;
    file.sync_all().map_err(|error| file_error(draft, error))
}
