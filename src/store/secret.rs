//! The pepper's file.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use filters::accounts::Pepper;

use super::{StoreError, StoreUrl};

/// The file of the pepper, in the folder of state.
const FILE: &str = "secret.key";

/// Takes the pepper that was given, else the one of `state_dir/secret.key`, which is made on first use.
///
/// Errors: a PostgreSQL store without a given secret, because two processes that share it would each make their
/// own; fewer than 32 bytes; a file that cannot be read or written.
pub(super) fn load(
    place: &StoreUrl,
    state_dir: &Path,
    given: Option<&[u8]>,
) -> Result<Pepper, StoreError> {
    match (given, place) {
        (Some(secret), _) => parse(secret, "store.secret"),
        (None, StoreUrl::Postgres(_)) => Err(StoreError::Configuration(
            "store.secret is required with PostgreSQL: name a file of 32 random bytes, \
             the same on every machine"
                .to_owned(),
        )),
        (None, StoreUrl::Sqlite(_)) => {
            let path = state_dir.join(FILE);
            let secret = match fs::read(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => make(state_dir, &path)?,
                read => read.map_err(|error| file(&path, error))?,
            };
            parse(&secret, &path.display().to_string())
        }
    }
}

fn parse(secret: &[u8], name: &str) -> Result<Pepper, StoreError> {
    Pepper::parse(secret)
        .map_err(|_| StoreError::Configuration(format!("{name} has fewer than 32 bytes")))
}

/// Writes a new secret under another name and links it into place, so that no reader ever finds half of one and
/// the first of two makers wins.
fn make(folder: &Path, path: &Path) -> Result<Vec<u8>, StoreError> {
    let mut secret = [0_u8; 32];
    getrandom::fill(&mut secret).map_err(|_| StoreError::Randomness)?;
    fs::create_dir_all(folder).map_err(|error| file(folder, error))?;
    let draft = folder.join(format!("{FILE}.{}", uuid::Uuid::now_v7()));
    let linked = write(&draft, &secret).and_then(|()| fs::hard_link(&draft, path));
    // Only tidiness: a draft that stays behind has the mode of the secret itself.
    let _ = fs::remove_file(&draft);
    match linked {
        Ok(()) => Ok(secret.to_vec()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            fs::read(path).map_err(|error| file(path, error))
        }
        Err(error) => Err(file(path, error)),
    }
}

fn write(path: &Path, secret: &[u8]) -> std::io::Result<()> {
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(secret)?;
    file.sync_all()
}

pub(super) fn file(path: &Path, error: std::io::Error) -> StoreError {
    let path = path.to_owned();
    StoreError::File { path, error }
}
