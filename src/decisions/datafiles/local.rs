//! Projects by SDK key, which are loaded from files, again whenever these change.
//!
//! An unreadable datafile leaves the previous one in force, and a metric and a log line report it. Reading, indexing
//! and freeing run on their own threads, never on a worker.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, TryLockError};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use bytes::Bytes;
use filters::decisions::EvaluationRules;
use http::StatusCode;
use pingora::server::ShutdownWatch;
use pingora::services::background::BackgroundService;

use super::announcer::Announcer;
use super::deferred_drop::drop_later;
use super::loaded::LoadedDatafile;
use super::state::{DatafileOrigin, DatafileRefresh, DatafileState};
use crate::config::{Datafile, DecisionsConfig};
use crate::decisions::mutex::lock;
use crate::telemetry::metrics::Metrics;

/// The built-in datafile.
const SANDBOX: &[u8] = include_bytes!("../../../conf/flags.json");
/// The interval at which files are checked.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);

/// Projects that are loaded from files.
pub struct LocalDatafiles {
    slots: HashMap<Box<str>, Arc<LocalSlot>>,
    rules: EvaluationRules,
    max_bytes: u64,
    metrics: Arc<Metrics>,
    announcer: Announcer,
}

struct LocalSlot {
    datafile: Datafile,
    current: ArcSwapOption<LoadedDatafile>,
    last_try: Mutex<LastTry>,
}

impl LocalSlot {
    fn new(datafile: Datafile) -> Self {
        Self {
            datafile,
            current: ArcSwapOption::empty(),
            last_try: Mutex::default(),
        }
    }
}

/// The last attempt to read a file.
#[derive(Default)]
struct LastTry {
    /// The file that was read, or `None` if it was unreadable and has to be read again.
    version: Option<FileVersion>,
    /// The reason for which it was unusable, as logged.
    error: Option<String>,
}

/// The time of the last write, and the length of a file.
type FileVersion = (SystemTime, u64);

/// The project of an SDK key.
pub enum ProjectLookup {
    Project(Arc<LoadedDatafile>),
    /// A project that never had a usable datafile.
    Unusable,
    /// No project has the key, and there is no source of datafiles.
    Unknown,
    Refused(StatusCode),
}

impl LocalDatafiles {
    /// Loads all datafiles but those that a previous value has, of the same files by the same rules. Unreadable ones are
    /// tried again later.
    pub fn load(
        decisions: &DecisionsConfig,
        metrics: &Arc<Metrics>,
        announcer: Announcer,
        previous: Option<&Self>,
    ) -> Self {
        let rules = decisions.protocol.rules();
        let same_rules = previous.filter(|previous| previous.rules == rules);
        let slots = decisions.projects.iter().map(|(key, datafile)| {
            let known = same_rules.and_then(|previous| previous.slots.get(key));
            let known = known.filter(|slot| slot.datafile == *datafile);
            let new = || Arc::new(LocalSlot::new(datafile.clone()));
            (key.clone(), known.map_or_else(new, Arc::clone))
        });
        let projects = Self {
            slots: slots.collect(),
            rules,
            max_bytes: decisions.datafile_max_bytes,
            metrics: Arc::clone(metrics),
            announcer,
        };
        projects.load_missing();
        projects
    }

    /// Loads the datafiles that are not in force.
    fn load_missing(&self) {
        for (key, slot) in &self.slots {
            if slot.current.load().is_none() {
                self.refresh(key, slot);
            }
        }
    }

    /// Returns the project of an SDK key. Cost: no lock.
    pub fn find(&self, sdk_key: &str) -> ProjectLookup {
        let Some(slot) = self.slots.get(sdk_key) else {
            return ProjectLookup::Unknown;
        };
        slot.current
            .load_full()
            .map_or(ProjectLookup::Unusable, ProjectLookup::Project)
    }

    /// Returns what is known of each datafile. Waits for no file that is being read.
    pub fn states(&self) -> Vec<DatafileState> {
        let state = |key: &str, slot: &LocalSlot| {
            let last = slot.last_try.try_lock();
            let (origin, interval) = match &slot.datafile {
                Datafile::Sandbox => (DatafileOrigin::BuiltIn, None),
                Datafile::File(path) => (DatafileOrigin::File(path.clone()), Some(WATCH_INTERVAL)),
            };
            let refresh = DatafileRefresh {
                is_running: matches!(last, Err(TryLockError::WouldBlock)),
                error: last.ok().and_then(|last| last.error.clone()),
                age: None,
                interval,
            };
            DatafileState::new(key, (origin, refresh), slot.current.load_full())
        };
        let slots = self.slots.iter();
        slots.map(|(key, slot)| state(key, slot)).collect()
    }

    /// Loads the changed files. Returns the replaced datafiles, because freeing them takes time.
    fn refresh_changed(&self) -> Vec<Arc<LoadedDatafile>> {
        let changed = self.slots.iter().filter(|(_, slot)| {
            let now = file_version(&slot.datafile);
            now.is_some() && lock(&slot.last_try).version != now
        });
        changed
            .filter_map(|(key, slot)| self.refresh(key, slot))
            .collect()
    }

    /// Loads a datafile. Returns the replaced one.
    fn refresh(&self, key: &str, slot: &LocalSlot) -> Option<Arc<LoadedDatafile>> {
        let mut last = lock(&slot.last_try);
        // The version is taken before the file is read, so that a later write is noticed.
        let now = file_version(&slot.datafile);
        let text = self.read(&slot.datafile);
        let is_read = text.is_ok();
        last.version = now.filter(|_| is_read);
        match text.and_then(|text| LoadedDatafile::parse(text, self.rules)) {
            Ok(loaded) => {
                last.error = None;
                self.metrics.count_datafile("loaded");
                let loaded = Arc::new(loaded);
                let replaced = slot.current.swap(Some(Arc::clone(&loaded)));
                self.announcer.announce(key, &loaded);
                replaced
            }
            Err(error) => {
                // An unreadable file is tried at every check, and logged once.
                if is_read || last.error.as_ref() != Some(&error) {
                    self.log_refused(key, slot, &error);
                }
                last.error = Some(error);
                None
            }
        }
    }

    fn log_refused(&self, key: &str, slot: &LocalSlot, error: &str) {
        self.metrics.count_datafile("refused");
        let stays = if slot.current.load().is_some() {
            ": the one before stays"
        } else {
            ""
        };
        log::warn!("datafile of {}: {error}{stays}", key_hint(key));
    }

    fn read(&self, datafile: &Datafile) -> Result<Bytes, String> {
        match datafile {
            Datafile::Sandbox => Ok(Bytes::from_static(SANDBOX)),
            Datafile::File(path) => self.read_file(path).map(Bytes::from),
        }
    }

    fn read_file(&self, path: &Path) -> Result<Vec<u8>, String> {
        let describe = |error: std::io::Error| format!("{}: {error}", path.display());
        let length = std::fs::metadata(path).map_err(describe)?.len();
        if length > self.max_bytes {
            return Err(format!(
                "{} has {length} bytes, more than {}",
                path.display(),
                self.max_bytes
            ));
        }
        std::fs::read(path).map_err(describe)
    }
}

/// Returns a hint that distinguishes keys in log lines without revealing one.
pub(super) fn key_hint(sdk_key: &str) -> String {
    let head: String = sdk_key.chars().take(4).collect();
    format!("SDK key {head}…")
}

/// Returns the version of a file, or `None` for the built-in datafile and for an unreadable file.
fn file_version(datafile: &Datafile) -> Option<FileVersion> {
    let Datafile::File(path) = datafile else {
        return None;
    };
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// Loads changed files again.
pub struct DatafileWatch(pub Arc<LocalDatafiles>);

#[async_trait]
impl BackgroundService for DatafileWatch {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(WATCH_INTERVAL) => {}
                _ = shutdown.changed() => return,
            }
            let projects = Arc::clone(&self.0);
            let refreshed = tokio::task::spawn_blocking(move || projects.refresh_changed());
            refreshed
                .await
                .unwrap_or_default()
                .into_iter()
                .for_each(drop_later);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::fs::File;
    use std::io::Write;
    use std::path::PathBuf;
    use std::process::Command;
    use std::sync::mpsc;

    use filters::decisions::protocol::{Document, Protocol};
    use tokio::sync::{oneshot, watch};

    use super::*;

    fn datafile(revision: &str) -> String {
        format!(r#"{{"version":"4","revision":"{revision}"}}"#)
    }

    fn project(path: PathBuf) -> LocalDatafiles {
        let slot = LocalSlot::new(Datafile::File(path));
        let projects = LocalDatafiles {
            slots: HashMap::from([("key".into(), Arc::new(slot))]),
            rules: Document.rules(),
            max_bytes: 1 << 20,
            metrics: Arc::new(Metrics::new().unwrap()),
            announcer: Announcer::default(),
        };
        projects.load_missing();
        projects
    }

    fn revision(projects: &LocalDatafiles) -> Option<Box<str>> {
        match projects.find("key") {
            ProjectLookup::Project(loaded) => Some(loaded.project.revision.clone()),
            _ => None,
        }
    }

    #[test]
    fn what_changes_between_the_start_and_the_first_look_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flags.json");
        std::fs::write(&path, datafile("1")).unwrap();
        let projects = project(path.clone());
        std::fs::write(&path, datafile("later")).unwrap();
        assert_eq!(projects.refresh_changed().len(), 1);
        assert_eq!(revision(&projects).as_deref(), Some("later"));
        assert!(projects.refresh_changed().is_empty());
    }

    #[test]
    fn what_could_not_be_read_is_tried_again_though_it_looks_the_same_and_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flags.json");
        // To its owner a folder looks like a file, and cannot be read.
        std::fs::create_dir(&path).unwrap();
        let projects = project(path.clone());
        projects.refresh_changed();
        let (at, length) = file_version(&Datafile::File(path.clone())).unwrap();
        std::fs::remove_dir(&path).unwrap();
        let width = usize::try_from(length).unwrap();
        std::fs::write(&path, format!("{:width$}", datafile("1"))).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(at).unwrap();
        assert_eq!(file_version(&Datafile::File(path)), Some((at, length)));
        projects.refresh_changed();
        assert_eq!(revision(&projects).as_deref(), Some("1"));
        let refused = projects.metrics.datafiles.with_label_values(&["refused"]);
        assert_eq!(refused.get(), 1);
    }

    #[test]
    fn files_that_stay_are_not_read_again_and_others_come_and_go() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["one", "two"].map(|name| folder.path().join(name));
        paths
            .iter()
            .for_each(|path| std::fs::write(path, datafile("1")).unwrap());
        let config = |projects: &[(&str, &PathBuf)]| {
            let tables = projects.iter().map(|(key, path)| {
                format!("[[decisions.projects]]\nsdk_key = {key:?}\ndatafile = {path:?}\n")
            });
            let text = format!("[decisions]\n{}", tables.collect::<String>());
            let name = "weirgate.toml".into();
            let source = crate::config::Source::Text { name, text };
            let loaded = crate::config::load(&source, []).unwrap();
            loaded.config.decisions.unwrap()
        };
        let metrics = Arc::new(Metrics::new().unwrap());
        let load = |projects: &[(&str, &PathBuf)], previous: Option<&LocalDatafiles>| {
            LocalDatafiles::load(&config(projects), &metrics, Announcer::default(), previous)
        };
        let found = |projects: &LocalDatafiles, key| match projects.find(key) {
            ProjectLookup::Project(loaded) => Some(loaded),
            _ => None,
        };
        let old = load(&[("a", &paths[0]), ("b", &paths[0])], None);
        let new = load(&[("a", &paths[0]), ("c", &paths[1])], Some(&old));
        let kept = (found(&old, "a").unwrap(), found(&new, "a").unwrap());
        assert!(Arc::ptr_eq(&kept.0, &kept.1));
        assert!(found(&new, "b").is_none() && found(&new, "c").is_some());
        let moved = load(&[("a", &paths[1])], Some(&new));
        assert!(!Arc::ptr_eq(&kept.1, &found(&moved, "a").unwrap()));
        std::fs::write(&paths[0], datafile("later")).unwrap();
        new.refresh_changed();
        let changed = found(&old, "a").unwrap();
        assert_eq!(&*changed.project.revision, "later");
    }

    #[tokio::test]
    async fn a_file_that_takes_long_to_read_holds_up_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flags.json");
        let projects = Arc::new(project(path.clone()));
        // A reader of a pipe waits for its writer.
        assert!(
            Command::new("mkfifo")
                .arg(&path)
                .status()
                .unwrap()
                .success()
        );
        let (_stop, asked) = watch::channel(false);
        let watched = Arc::clone(&projects);
        tokio::spawn(async move { DatafileWatch(watched).start(asked).await });
        let (opened, is_open) = oneshot::channel();
        let (go, wait) = mpsc::channel();
        let writing = std::thread::spawn(move || {
            let mut pipe = File::options().write(true).open(path).unwrap();
            opened.send(()).unwrap();
            let is_in_time = wait.recv_timeout(Duration::from_secs(5)).is_ok();
            pipe.write_all(datafile("1").as_bytes()).unwrap();
            is_in_time
        });
        is_open.await.unwrap();
        _ = go.send(());
        assert!(writing.join().unwrap(), "the runtime stood still");
    }
}
