//! The secret from which the pepper is made.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use filters::accounts::Pepper;

use super::{StoreError, StoreUrl};
use crate::durable;

/// The file of the secret in the state folder.
const SECRET_FILE: &str = "secret.key";

/// Returns the file of the secret in the state folder.
pub(super) fn path(state_dir: &Path) -> PathBuf {
    state_dir.join(SECRET_FILE)
}

/// Loads the pepper from the configured secret, or from `state_dir/secret.key`, which the first use creates.
///
/// Errors: those of [`find`]; a file that cannot be written.
pub(super) fn load(
    url: &StoreUrl,
    state_dir: &Path,
    configured: Option<&[u8]>,
) -> Result<Pepper, StoreError> {
    if let Some(pepper) = find(url, state_dir, configured)? {
        return Ok(pepper);
    }
    let path = path(state_dir);
    parse(&create(state_dir, &path)?, &path.display().to_string())
}

/// Loads the pepper from the configured secret, or from `state_dir/secret.key`; `None` if that file is absent.
///
/// Errors: a PostgreSQL store without a configured secret, because two processes would each create their own; fewer
/// than 32 bytes; a file that cannot be read.
pub(super) fn find(
    url: &StoreUrl,
    state_dir: &Path,
    configured: Option<&[u8]>,
) -> Result<Option<Pepper>, StoreError> {
    match (configured, url) {
        (Some(secret), _) => parse(secret, "store.secret").map(Some),
        (None, StoreUrl::Postgres(_)) => Err(StoreError::Configuration(
            "store.secret is required with PostgreSQL: name a file of 32 random bytes, \
             the same on every machine"
                .to_owned(),
        )),
        (None, StoreUrl::Sqlite(_)) => {
            let path = path(state_dir);
            match fs::read(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(file_error(&path, error)),
                Ok(secret) => parse(&secret, &path.display().to_string()).map(Some),
            }
        }
    }
}

fn parse(secret: &[u8], name: &str) -> Result<Pepper, StoreError> {
    Pepper::parse(secret)
        .map_err(|_| StoreError::Configuration(format!("{name} has fewer than 32 bytes")))
}

/// Writes a new secret to a draft and links it into place. So no reader finds a partial secret, and the first of two
/// creators wins.
fn create(folder: &Path, path: &Path) -> Result<Vec<u8>, StoreError> {
    let mut secret = [0_u8; 32];
    getrandom::fill(&mut secret).map_err(|_| StoreError::Randomness)?;
    durable::create_folders(folder).map_err(|error| file_error(folder, error))?;
    let draft = folder.join(format!("{SECRET_FILE}.{}", uuid::Uuid::now_v7()));
    let linked = write(folder, &draft, &secret).and_then(|()| durable::link(&draft, path));
    // A draft that stays has the same permissions as the secret, so a failure is harmless.
    let _ = fs::remove_file(&draft);
    match linked {
        Ok(()) => Ok(secret.to_vec()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            fs::read(path).map_err(|error| file_error(path, error))
        }
        Err(error) => Err(file_error(path, error)),
    }
}

fn write(folder: &Path, path: &Path, secret: &[u8]) -> std::io::Result<()> {
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(secret)?;
    durable::give_to_owner_of(folder, &file)?;
    file.sync_all()
}

pub(super) fn file_error(path: &Path, error: std::io::Error) -> StoreError {
    let path = path.to_owned();
    StoreError::File { path, error }
}
