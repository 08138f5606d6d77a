//! The last good datafiles, on disk.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;

use crate::durable;

/// Returns a hash that stands for a key in file names and tables without revealing it.
pub(super) fn digest(key: &str) -> [u8; 16] {
    let mut digest = [0; 16];
    let whole = Sha256::digest(key.as_bytes());
    for (to, from) in digest.iter_mut().zip(whole) {
        *to = from;
    }
    digest
}

/// The cache of the last good datafiles on disk.
#[derive(Clone)]
pub(super) struct DiskCache {
    folder: PathBuf,
}

impl DiskCache {
    /// Returns the cache of a state folder.
    pub(super) fn new(state_dir: &Path) -> Self {
        Self {
            folder: state_dir.join("datafiles"),
        }
    }

    fn path(&self, key: &str) -> PathBuf {
        let name = u128::from_be_bytes(digest(key));
        self.folder.join(format!("{name:032x}.json"))
    }

    /// Returns the datafile of a key, if there is one.
    pub(super) async fn read(&self, key: &str) -> Option<Vec<u8>> {
        tokio::fs::read(self.path(key)).await.ok()
    }

    /// Replaces the datafile of a key. Failures are logged.
    pub(super) async fn write(&self, key: &str, text: &[u8]) {
        let file = self.path(key);
        // During an upgrade two processes may write the same datafile.
        let draft = file.with_extension(format!("{:x}.new", std::process::id()));
        let written = async {
            tokio::fs::create_dir_all(&self.folder).await?;
            write_private(&draft, text).await?;
            let (from, to) = (draft.clone(), file.clone());
            let renamed = tokio::task::spawn_blocking(move || durable::rename(&from, &to));
            renamed.await.map_err(std::io::Error::other).flatten()
        };
        if let Err(error) = written.await {
            log::warn!("{}: {error}", file.display());
        }
    }

    /// Removes the datafile of a key.
    pub(super) async fn remove(&self, key: &str) {
        // The file may never have been written.
        _ = tokio::fs::remove_file(self.path(key)).await;
    }

    /// Removes all but the newest `max` files, which earlier processes left. Cost: reads the metadata of each file.
    pub(super) fn sweep(&self, max: usize) {
        let files = std::fs::read_dir(&self.folder).into_iter().flatten();
        let mut files: Vec<(SystemTime, PathBuf)> = files
            .filter_map(|file| {
                let file = file.ok()?;
                Some((file.metadata().ok()?.modified().ok()?, file.path()))
            })
            .collect();
        files.sort_unstable();
        let surplus = files.len().saturating_sub(max);
        for (_, file) in files.drain(..surplus) {
            if let Err(error) = std::fs::remove_file(&file) {
                log::warn!("{}: {error}", file.display());
            }
        }
    }
}

/// Writes a file that only its owner can read.
async fn write_private(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let mut options = tokio::fs::OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(path).await?;
    file.write_all(text).await?;
    file.sync_all().await
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::fs::File;
    use std::os::unix::fs::MetadataExt;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn the_newest_copies_stay() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(folder.path());
        let begun = SystemTime::UNIX_EPOCH;
        for (at, key) in [(3, "new"), (1, "old"), (2, "middle")] {
            cache.write(key, key.as_bytes()).await;
            let file = File::options().write(true).open(cache.path(key)).unwrap();
            file.set_modified(begun + Duration::from_secs(at)).unwrap();
        }
        cache.sweep(2);
        assert_eq!(cache.read("old").await, None);
        assert_eq!(cache.read("middle").await.unwrap(), b"middle");
        assert_eq!(cache.read("new").await.unwrap(), b"new");
        let mode = std::fs::metadata(cache.path("new")).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
