//! What is known of the datafiles in memory, for people who look.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::disk_cache::digest;
use super::loaded::LoadedDatafile;
use super::local::key_hint;

/// What is known of the datafile of an SDK key.
pub struct DatafileState {
    sdk_key: Box<str>,
    pub origin: DatafileOrigin,
    pub refresh: DatafileRefresh,
    /// The datafile in force.
    pub loaded: Option<Arc<LoadedDatafile>>,
}

/// Where a datafile comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum DatafileOrigin {
    BuiltIn,
    File(PathBuf),
    /// The host of `decisions.datafile_url`.
    Host(String),
}

/// How a datafile is kept current.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DatafileRefresh {
    /// Whether it is being read or fetched.
    pub is_running: bool,
    /// Why the last attempt brought no usable datafile.
    pub error: Option<String>,
    /// The time since the last fetch has ended.
    pub age: Option<Duration>,
    /// The time between two attempts, or `None` for a datafile that never changes.
    pub interval: Option<Duration>,
}

impl DatafileState {
    pub(super) fn new(
        sdk_key: &str,
        (origin, refresh): (DatafileOrigin, DatafileRefresh),
        loaded: Option<Arc<LoadedDatafile>>,
    ) -> Self {
        Self {
            sdk_key: sdk_key.into(),
            origin,
            refresh,
            loaded,
        }
    }

    /// Returns a name for addresses of pages, which does not reveal the SDK key.
    pub fn id(&self) -> String {
        let digest = u128::from_be_bytes(digest(&self.sdk_key));
        format!("{digest:032x}")
    }

    /// Returns the words for the SDK key that the log has too.
    pub fn hint(&self) -> String {
        key_hint(&self.sdk_key)
    }

    pub(in crate::decisions) fn sdk_key(&self) -> &str {
        &self.sdk_key
    }
}
