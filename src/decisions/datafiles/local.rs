//! Projects by SDK key, read from files and read again when they change.
//!
//! A datafile that cannot be read leaves the one before in force: a metric and a message say so. Reading,
//! indexing and freeing happen on threads of their own, never on a worker.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use bytes::Bytes;
use filters::decisions::notice;
use filters::decisions::notice::Topic;
use filters::decisions::{EvaluationRules, Project};
use http::StatusCode;
use pingora::server::ShutdownWatch;
use pingora::services::background::BackgroundService;

use super::deferred_drop::drop_later;
use crate::config::{Datafile, DecisionsConfig};
use crate::decisions::lock;
use crate::decisions::notifications::Notifications;
use crate::telemetry::metrics::Metrics;

/// The built-in datafile.
const SANDBOX: &[u8] = include_bytes!("../../../conf/flags.json");
/// How often files are looked at.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);

/// A datafile in force.
pub struct LoadedDatafile {
    /// Indexed.
    pub project: Project,
    /// As it came.
    pub text: Bytes,
}

/// See the module.
pub struct LocalDatafiles {
    slots: HashMap<Box<str>, LocalSlot>,
    rules: EvaluationRules,
    max_bytes: u64,
    metrics: Arc<Metrics>,
    notices: Option<Notifications>,
}

struct LocalSlot {
    datafile: Datafile,
    current: ArcSwapOption<LoadedDatafile>,
    last: Mutex<Last>,
}

/// The last try to read a file.
#[derive(Default)]
struct Last {
    /// How it looked; none where it could not be read, which is tried again.
    seen: Option<Look>,
    /// Why it could not be used, as it was told.
    why: Option<String>,
}

/// When a file was written, and how long it is.
type Look = (SystemTime, u64);

/// What an SDK key stands for.
pub enum ProjectLookup {
    /// A project.
    Project(Arc<LoadedDatafile>),
    /// A project whose datafile has never been usable.
    Unusable,
    /// Nothing: no project names it, and no source was asked.
    Unknown,
    /// Nothing, says the source, with this status.
    Refused(StatusCode),
}

impl LocalDatafiles {
    /// Reads all datafiles; one that cannot be read is looked at again later.
    pub fn load(
        decisions: &DecisionsConfig,
        metrics: &Arc<Metrics>,
        notices: Option<Notifications>,
    ) -> Self {
        let slots = decisions.projects.iter().map(|(key, datafile)| {
            let slot = LocalSlot {
                datafile: datafile.clone(),
                current: ArcSwapOption::empty(),
                last: Mutex::default(),
            };
            (key.clone(), slot)
        });
        let projects = Self {
            slots: slots.collect(),
            rules: decisions.protocol.rules(),
            max_bytes: decisions.datafile_max_bytes,
            metrics: Arc::clone(metrics),
            notices,
        };
        projects.load_all();
        projects
    }

    fn load_all(&self) {
        for (key, slot) in &self.slots {
            self.refresh(key, slot);
        }
    }

    /// What an SDK key stands for. Cost: no lock.
    pub fn find(&self, sdk_key: &str) -> ProjectLookup {
        let Some(slot) = self.slots.get(sdk_key) else {
            return ProjectLookup::Unknown;
        };
        slot.current
            .load_full()
            .map_or(ProjectLookup::Unusable, ProjectLookup::Project)
    }

    /// The SDK key of the built-in datafile, where one has it.
    pub fn sandbox_key(&self) -> Option<&str> {
        let mut slots = self.slots.iter();
        slots
            .find(|(_, slot)| slot.datafile == Datafile::Sandbox)
            .map(|(key, _)| &**key)
    }

    /// Reads the files that have changed; answers what was in force, whose end takes time.
    fn look_again(&self) -> Vec<Arc<LoadedDatafile>> {
        let changed = self.slots.iter().filter(|(_, slot)| {
            let now = look(&slot.datafile);
            now.is_some() && lock(&slot.last).seen != now
        });
        changed
            .filter_map(|(key, slot)| self.refresh(key, slot))
            .collect()
    }

    /// Reads a datafile; answers the one that was in force.
    fn refresh(&self, key: &str, slot: &LocalSlot) -> Option<Arc<LoadedDatafile>> {
        let mut last = lock(&slot.last);
        // Before it is read: what is written meanwhile looks different afterwards.
        let now = look(&slot.datafile);
        let text = self.text(&slot.datafile);
        let is_read = text.is_ok();
        last.seen = now.filter(|_| is_read);
        match text.and_then(|text| self.parse(text)) {
            Ok(loaded) => {
                last.why = None;
                self.metrics.datafile("loaded");
                tell(self.notices.as_ref(), key, &loaded);
                slot.current.swap(Some(Arc::new(loaded)))
            }
            Err(why) => {
                // What cannot be read is tried with every look, and told once.
                if is_read || last.why.as_ref() != Some(&why) {
                    self.refused(key, slot, &why);
                }
                last.why = Some(why);
                None
            }
        }
    }

    fn refused(&self, key: &str, slot: &LocalSlot, why: &str) {
        self.metrics.datafile("refused");
        let stays = if slot.current.load().is_some() {
            ": the one before stays"
        } else {
            ""
        };
        log::warn!("datafile of {}: {why}{stays}", shown(key));
    }

    fn text(&self, datafile: &Datafile) -> Result<Bytes, String> {
        match datafile {
            Datafile::Sandbox => Ok(Bytes::from_static(SANDBOX)),
            Datafile::File(path) => self.read_file(path).map(Bytes::from),
        }
    }

    fn parse(&self, text: Bytes) -> Result<LoadedDatafile, String> {
        let project = Project::parse(&text, self.rules).map_err(|error| error.to_string())?;
        Ok(LoadedDatafile { project, text })
    }

    fn read_file(&self, path: &Path) -> Result<Vec<u8>, String> {
        let told = |error: std::io::Error| format!("{}: {error}", path.display());
        let length = std::fs::metadata(path).map_err(told)?.len();
        if length > self.max_bytes {
            return Err(format!(
                "{} has {length} bytes, more than {}",
                path.display(),
                self.max_bytes
            ));
        }
        std::fs::read(path).map_err(told)
    }
}

/// Tells who listens that a datafile is in force.
pub(super) fn tell(notices: Option<&Notifications>, sdk_key: &str, loaded: &LoadedDatafile) {
    if let Some(notices) = notices {
        notices.publish(sdk_key, Topic::Project, || notice::project(&loaded.project));
    }
}

/// What tells keys apart in messages without being one.
pub(super) fn shown(sdk_key: &str) -> String {
    let head: String = sdk_key.chars().take(4).collect();
    format!("SDK key {head}…")
}

/// How a file looks from outside.
fn look(datafile: &Datafile) -> Option<Look> {
    let Datafile::File(path) = datafile else {
        return None;
    };
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// Reads files again when they have changed.
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
            let looked = tokio::task::spawn_blocking(move || projects.look_again());
            looked
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
        let slot = LocalSlot {
            datafile: Datafile::File(path),
            current: ArcSwapOption::empty(),
            last: Mutex::default(),
        };
        let projects = LocalDatafiles {
            slots: HashMap::from([("key".into(), slot)]),
            rules: Document.rules(),
            max_bytes: 1 << 20,
            metrics: Arc::new(Metrics::new().unwrap()),
            notices: None,
        };
        projects.load_all();
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
        assert_eq!(projects.look_again().len(), 1);
        assert_eq!(revision(&projects).as_deref(), Some("later"));
        assert!(projects.look_again().is_empty());
    }

    #[test]
    fn what_could_not_be_read_is_tried_again_though_it_looks_the_same_and_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flags.json");
        // To its owner a folder looks like a file, and cannot be read.
        std::fs::create_dir(&path).unwrap();
        let projects = project(path.clone());
        projects.look_again();
        let (at, length) = look(&Datafile::File(path.clone())).unwrap();
        std::fs::remove_dir(&path).unwrap();
        let width = usize::try_from(length).unwrap();
        std::fs::write(&path, format!("{:width$}", datafile("1"))).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(at).unwrap();
        assert_eq!(look(&Datafile::File(path)), Some((at, length)));
        projects.look_again();
        assert_eq!(revision(&projects).as_deref(), Some("1"));
        let refused = projects.metrics.datafiles.with_label_values(&["refused"]);
        assert_eq!(refused.get(), 1);
    }

    #[tokio::test]
    async fn a_file_that_takes_long_to_read_holds_up_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flags.json");
        let projects = Arc::new(project(path.clone()));
        // Whoever reads a pipe waits for what is written into it.
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
