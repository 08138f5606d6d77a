//! The configuration: read as written, checked at once, used as typed values.
//!
//! [`file`] is the one table of keys: its types, documentation, bounds and defaults give the JSON Schema
//! ([`schema`]); the document ([`document`]) is walked against that schema ([`walk`]), so that every problem is
//! found with its place. [`rules`] adds what no schema can say and makes the [`checked`] values. Nothing here
//! opens a socket or a database; files are only read where a secret or the catalogue is named.

use std::path::{Path, PathBuf};

pub mod checked;
pub mod cidr;
pub mod origin;
pub mod problem;
pub mod secret;

pub use checked::*;
pub use cidr::Cidr;
pub use origin::{Origin, Origins};
pub use problem::{Place, Problem, Spot};
pub use secret::Secret;

/// Where a configuration comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Source {
    /// This file.
    File(PathBuf),
    /// This text, under this name.
    Text {
        /// The name problems are reported under.
        name: String,
        /// The TOML.
        text: String,
    },
    /// Nothing was found: every key has its default.
    Defaults,
}

impl Source {
    /// The file given by `-c`, else `./conf/weirgate.toml`, else `/etc/weirgate/weirgate.toml`, else defaults.
    pub fn find(given: Option<&Path>) -> Self {
        let usual = ["conf/weirgate.toml", "/etc/weirgate/weirgate.toml"];
        match given {
            Some(path) => Self::File(path.to_owned()),
            None => usual
                .iter()
                .map(PathBuf::from)
                .find(|path| path.exists())
                .map_or(Self::Defaults, Self::File),
        }
    }
}

/// A configuration that is good, and what there is to say about it.
pub struct Loaded {
    /// The configuration as used.
    pub config: Config,
    /// What is not wrong but worth knowing.
    pub warnings: Vec<Problem>,
    /// Every value with its origin.
    pub origins: Origins,
}

/// Reads, overrides and checks a configuration.
///
/// `env` is the process's environment: overrides are the variables `WEIRGATE_SECTION__KEY`, secrets any others.
///
/// Errors: every problem at once, in the order of the file.
pub fn load(
    source: &Source,
    env: impl IntoIterator<Item = (String, String)>,
) -> Result<Loaded, Vec<Problem>> {
    let _ = (source, env);
    Err(Vec::new())
}

/// [`load`] of a text, for tests and benches.
///
/// Errors: as [`load`].
pub fn from_str(
    toml: &str,
    env: impl IntoIterator<Item = (String, String)>,
) -> Result<Loaded, Vec<Problem>> {
    let source = Source::Text {
        name: "weirgate.toml".to_owned(),
        text: toml.to_owned(),
    };
    load(&source, env)
}

/// The process's environment; what is not Unicode is read as well as it can be.
pub fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().map(|(name, value)| {
        (
            name.to_string_lossy().into_owned(),
            value.to_string_lossy().into_owned(),
        )
    })
}
