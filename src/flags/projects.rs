//! Projects by SDK key, read from files and read again when they change.
//!
//! A datafile that cannot be read leaves the one before in force: a metric and a message say so. Reading,
//! indexing and freeing happen on threads of their own, never on a worker.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use bytes::Bytes;
use filters::flags::notice::{self, Topic};
use filters::flags::{Compat, Project};
use pingora::server::ShutdownWatch;
use pingora::services::background::BackgroundService;

use super::notices::Notices;
use crate::config::{Datafile, Decisions};
use crate::metrics::Metrics;

/// The built-in datafile.
const SANDBOX: &[u8] = include_bytes!("../../conf/flags.json");
/// How often files are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A datafile in force.
pub struct Loaded {
    /// Indexed.
    pub project: Project,
    /// As it came.
    pub text: Bytes,
}

/// See the module.
pub struct Projects {
    slots: HashMap<Box<str>, Slot>,
    compat: Compat,
    max_bytes: u64,
    metrics: Arc<Metrics>,
    notices: Option<Notices>,
}

struct Slot {
    datafile: Datafile,
    current: ArcSwapOption<Loaded>,
}

/// What an SDK key stands for.
pub enum Found {
    /// A project.
    Project(Arc<Loaded>),
    /// A project whose datafile has never been usable.
    Unusable,
    /// Nothing.
    Unknown,
}

impl Projects {
    /// Reads all datafiles; one that cannot be read is looked at again later.
    pub fn load(decisions: &Decisions, metrics: &Arc<Metrics>, notices: Option<Notices>) -> Self {
        let slots = decisions.projects.iter().map(|(key, datafile)| {
            let slot = Slot {
                datafile: datafile.clone(),
                current: ArcSwapOption::empty(),
            };
            (key.clone(), slot)
        });
        let projects = Self {
            slots: slots.collect(),
            compat: decisions.compat,
            max_bytes: decisions.datafile_max_bytes,
            metrics: Arc::clone(metrics),
            notices,
        };
        for (key, slot) in &projects.slots {
            projects.refresh(key, slot);
        }
        projects
    }

    /// What an SDK key stands for. Cost: no lock.
    pub fn find(&self, sdk_key: &str) -> Found {
        let Some(slot) = self.slots.get(sdk_key) else {
            return Found::Unknown;
        };
        slot.current
            .load_full()
            .map_or(Found::Unusable, Found::Project)
    }

    /// The SDK key of the built-in datafile, where one has it.
    pub fn sandbox_key(&self) -> Option<&str> {
        let mut slots = self.slots.iter();
        slots
            .find(|(_, slot)| slot.datafile == Datafile::Sandbox)
            .map(|(key, _)| &**key)
    }

    /// Reads a datafile; answers the one that was in force, whose end takes time.
    fn refresh(&self, key: &str, slot: &Slot) -> Option<Arc<Loaded>> {
        match self.read(&slot.datafile) {
            Ok(loaded) => {
                self.metrics.datafile("loaded");
                tell(self.notices.as_ref(), key, &loaded);
                slot.current.swap(Some(Arc::new(loaded)))
            }
            Err(why) => {
                self.metrics.datafile("refused");
                let stays = if slot.current.load().is_some() {
                    ": the one before stays"
                } else {
                    ""
                };
                log::warn!("datafile of {}: {why}{stays}", shown(key));
                None
            }
        }
    }

    fn read(&self, datafile: &Datafile) -> Result<Loaded, String> {
        let text = match datafile {
            Datafile::Sandbox => Bytes::from_static(SANDBOX),
            Datafile::File(path) => self.read_file(path)?.into(),
        };
        let project = Project::parse(&text, self.compat).map_err(|error| error.to_string())?;
        Ok(Loaded { project, text })
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
pub(super) fn tell(notices: Option<&Notices>, sdk_key: &str, loaded: &Loaded) {
    if let Some(notices) = notices {
        notices.tell(sdk_key, Topic::Project, || notice::project(&loaded.project));
    }
}

/// What tells keys apart in messages without being one.
pub(super) fn shown(sdk_key: &str) -> String {
    let head: String = sdk_key.chars().take(4).collect();
    format!("SDK key {head}…")
}

/// How a file looks from outside: when it was written, and how long it is.
fn look(datafile: &Datafile) -> Option<(SystemTime, u64)> {
    let Datafile::File(path) = datafile else {
        return None;
    };
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// Reads files again when they have changed.
pub struct Watch(pub Arc<Projects>);

#[async_trait]
impl BackgroundService for Watch {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        let slots = self.0.slots.iter();
        let mut seen: HashMap<&str, _> = slots
            .map(|(key, slot)| (&**key, look(&slot.datafile)))
            .collect();
        // Whoever decides may still hold the one before; it is freed here, a look later.
        let mut retired: Vec<Arc<Loaded>> = Vec::new();
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                _ = shutdown.changed() => return,
            }
            retired.retain(|one| Arc::strong_count(one) > 1);
            for (key, slot) in &self.0.slots {
                let now = look(&slot.datafile);
                if now.is_some() && seen.get(&**key) != Some(&now) {
                    seen.insert(key, now);
                    retired.extend(self.0.refresh(key, slot));
                }
            }
        }
    }
}
