//! Notices changed files of the configuration, for `server.watch`.
//!
//! Files are polled, not subscribed to: that also works on network file systems, and for links that are exchanged, as
//! Kubernetes does. Certificates are not among the files, because they are read again by themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::Source;
use super::effective::{hash_file, named_files};

const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long files have to be still before a change counts, so that half a file is not read.
const STILL_TIME: Duration = Duration::from_secs(1);
/// The most files that are watched. More are ignored.
const MAX_FILES: usize = 4096;

/// A watch over the files of a configuration: its own, the catalogue, datafiles and secrets.
///
/// Create it before the configuration is loaded: then no change is missed.
pub struct ConfigWatch(Arc<Mutex<Watched>>);

impl ConfigWatch {
    /// Starts to watch. `env` is the environment with which the configuration is loaded.
    ///
    /// Blocks: it reads all files once.
    pub fn new(source: &Source, env: BTreeMap<String, String>) -> Self {
        let mut watched = Watched {
            source: source.clone(),
            env,
            files: BTreeMap::new(),
            moved_at: None,
            has_changed: false,
        };
        watched.list_files();
        Self(Arc::new(Mutex::new(watched)))
    }

    /// Returns when a file has another content, and all files have been still for a second. A file that comes or goes has
    /// changed, too. A dropped call loses nothing.
    ///
    /// Cost: each second the metadata of each file. Contents are read only after the metadata changed.
    pub async fn changed(&mut self) {
        loop {
            if std::mem::take(&mut lock(&self.0).has_changed) {
                return;
            }
            sleep(POLL_INTERVAL).await;
            let (watched, now) = (Arc::clone(&self.0), Instant::now());
            let look = tokio::task::spawn_blocking(move || lock(&watched).look(now));
            if let Err(error) = look.await {
                log::error!("the files of the configuration are not watched: {error}");
            }
        }
    }
}

fn lock(watched: &Mutex<Watched>) -> std::sync::MutexGuard<'_, Watched> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Watched {
    source: Source,
    env: BTreeMap<String, String>,
    files: BTreeMap<PathBuf, WatchedFile>,
    /// When the metadata of a file last changed whose content has not been compared since.
    moved_at: Option<Instant>,
    /// Whether a change is to be reported.
    has_changed: bool,
}

struct WatchedFile {
    metadata: Option<Metadata>,
    /// The hash of the content, or `None` if the file cannot be read.
    content: Option<[u8; 32]>,
    /// Whether the metadata changed after the content was read.
    has_moved: bool,
}

/// What tells that a file was written or replaced. Links are followed.
#[derive(Clone, Copy, Eq, PartialEq)]
struct Metadata {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Watched {
    /// Compares the metadata, and the contents once all files are still.
    fn look(&mut self, now: Instant) {
        for (path, file) in &mut self.files {
            let metadata = read_metadata(path);
            if metadata != file.metadata {
                file.metadata = metadata;
                file.has_moved = true;
                self.moved_at = Some(now);
            }
        }
        let is_still = |at: Instant| now.duration_since(at) >= STILL_TIME;
        if !self.moved_at.is_some_and(is_still) {
            return;
        }
        self.moved_at = None;
        let mut has_changed = false;
        for (path, file) in &mut self.files {
            if std::mem::take(&mut file.has_moved) {
                let content = hash_file(path).ok();
                has_changed |= content != file.content;
                file.content = content;
            }
        }
        if has_changed {
            self.has_changed = true;
            self.list_files();
        }
    }

    /// Watches the files that the configuration names now, if it can be read.
    fn list_files(&mut self) {
        let own = match &self.source {
            Source::File(path) => Some(path.clone()),
            Source::Text { .. } | Source::Defaults => None,
        };
        let text = match &self.source {
            Source::File(path) => std::fs::read_to_string(path).ok(),
            Source::Text { text, .. } => Some(text.clone()),
            Source::Defaults => Some(String::new()),
        };
        let named = match text {
            Some(text) => named_files(&text, &self.env),
            None => self.files.keys().cloned().collect(),
        };
        let paths = own.into_iter().chain(named).take(MAX_FILES);
        let paths: BTreeSet<PathBuf> = paths.collect();
        self.files.retain(|path, _| paths.contains(path));
        for path in paths {
            self.files
                .entry(path)
                .or_insert_with_key(|path| WatchedFile {
                    // The metadata is older than the content, so that a change in between is seen.
                    metadata: read_metadata(path),
                    content: hash_file(path).ok(),
                    has_moved: false,
                });
        }
    }
}

fn read_metadata(path: &Path) -> Option<Metadata> {
    let found = std::fs::metadata(path).ok()?;
    Some(Metadata {
        device: found.dev(),
        inode: found.ino(),
        bytes: found.len(),
        modified: (found.mtime(), found.mtime_nsec()),
        changed: (found.ctime(), found.ctime_nsec()),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
    use super::*;

    /// A folder with a configuration that is watched, and the time.
    struct Folder {
        folder: tempfile::TempDir,
        watched: Watched,
        now: Instant,
    }

    impl Folder {
        fn new(text: &str) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("weirgate.toml");
            std::fs::write(&path, text).unwrap();
            Self::at(folder, &path)
        }

        fn at(folder: tempfile::TempDir, path: &Path) -> Self {
            let env = BTreeMap::from([(
                "CREDENTIALS_DIRECTORY".to_owned(),
                folder.path().display().to_string(),
            )]);
            let source = Source::File(path.to_owned());
            let ConfigWatch(watched) = ConfigWatch::new(&source, env);
            let watched = Arc::into_inner(watched).unwrap().into_inner().unwrap();
            let now = Instant::now();
            Self {
                folder,
                watched,
                now,
            }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        fn write(&self, name: &str, text: &str) {
            std::fs::write(self.path(name), text).unwrap();
        }

        #[expect(clippy::disallowed_methods, reason = "an editor does not sync")]
        fn rename(&self, from: &str, to: &str) {
            std::fs::rename(self.path(from), self.path(to)).unwrap();
        }

        /// Looks after half a second. Returns whether a change is reported.
        fn look(&mut self) -> bool {
            self.now += STILL_TIME / 2;
            self.watched.look(self.now);
            std::mem::take(&mut self.watched.has_changed)
        }

        /// Looks until all is still. Returns the number of reported changes.
        fn count(&mut self) -> usize {
            (0..8).map(|_| usize::from(self.look())).sum()
        }
    }

    #[test]
    fn a_file_that_is_written_in_two_pieces_changes_once_and_after_both() {
        let mut folder = Folder::new("");
        assert_eq!(folder.count(), 0);
        folder.write("weirgate.toml", "[server]\n");
        assert!(!folder.look());
        folder.write("weirgate.toml", "[server]\nthreads = 1\n");
        assert!(!folder.look(), "the second piece");
        assert!(!folder.look(), "half a second later");
        assert!(folder.look(), "a second later");
        assert_eq!(folder.count(), 0);
    }

    #[test]
    fn a_file_that_is_replaced_by_a_rename_changes() {
        let mut folder = Folder::new("");
        folder.write("new", "[server]\n");
        folder.rename("new", "weirgate.toml");
        assert_eq!(folder.count(), 1);
    }

    #[test]
    fn a_file_that_is_written_again_with_the_same_content_does_not_change() {
        let mut folder = Folder::new("[server]\n");
        folder.write("new", "[server]\n");
        folder.rename("new", "weirgate.toml");
        assert_eq!(folder.count(), 0);
    }

    #[test]
    fn a_file_that_goes_and_returns_changes_twice() {
        let mut folder = Folder::new("[server]\n");
        std::fs::remove_file(folder.path("weirgate.toml")).unwrap();
        assert_eq!(folder.count(), 1);
        folder.write("weirgate.toml", "[server]\n");
        assert_eq!(folder.count(), 1);
    }

    /// Kubernetes mounts `weirgate.toml -> ..data/weirgate.toml` and `..data -> ..VERSION`, and exchanges `..data`.
    #[test]
    fn a_link_that_is_exchanged_changes() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for (version, text) in [("..1", ""), ("..2", "[server]\n")] {
            std::fs::create_dir(path(version)).unwrap();
            std::fs::write(path(version).join("weirgate.toml"), text).unwrap();
        }
        symlink("..1", path("..data")).unwrap();
        symlink("..data/weirgate.toml", path("weirgate.toml")).unwrap();
        let own = path("weirgate.toml");
        let mut folder = Folder::at(folder, &own);
        assert_eq!(folder.count(), 0);
        symlink("..2", folder.path("..new")).unwrap();
        folder.rename("..new", "..data");
        assert_eq!(folder.count(), 1);
    }

    #[test]
    fn a_file_that_the_configuration_names_changes_it() {
        let mut folder = Folder::new("");
        let (models, flags) = (folder.path("models.toml"), folder.path("flags.json"));
        let text = format!(
            "[models]\nfile = {models:?}\n[admin]\ntoken = {{ file = \"token\" }}\n\
             [[decisions.projects]]\nsdk_key = \"k\"\ndatafile = {flags:?}\n"
        );
        folder.write("weirgate.toml", &text);
        assert_eq!(folder.count(), 1);
        // The files are watched before they are there, and the secret in the folder of credentials.
        for name in ["models.toml", "flags.json", "token"] {
            folder.write(name, "1");
            assert_eq!(folder.count(), 1, "{name}");
            folder.write(name, "2");
            assert_eq!(folder.count(), 1, "{name}");
        }
        // Other problems of the configuration change nothing about that.
        folder.write(
            "weirgate.toml",
            &format!("{text}[server]\nthreads = \"many\"\n"),
        );
        assert_eq!(folder.count(), 1);
        folder.write("token", "3");
        assert_eq!(folder.count(), 1);
        folder.write("weirgate.toml", "");
        assert_eq!(folder.count(), 1);
        folder.write("token", "4");
        assert_eq!(folder.count(), 0, "it is no longer named");
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_is_waited_for_and_a_dropped_wait_loses_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weirgate.toml");
        std::fs::write(&path, "").unwrap();
        let mut watch = ConfigWatch::new(&Source::File(path.clone()), BTreeMap::new());
        std::fs::write(&path, "[server]\n").unwrap();
        let mut has_changed = false;
        for _ in 0..20 {
            let wait = watch.changed();
            has_changed |= tokio::time::timeout(POLL_INTERVAL * 3 / 2, wait)
                .await
                .is_ok();
        }
        assert!(has_changed);
        let wait = tokio::time::timeout(POLL_INTERVAL * 10, watch.changed());
        assert!(wait.await.is_err(), "reported twice");
    }
}
