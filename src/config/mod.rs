//! The configuration: read from TOML, checked once, used as typed values.
//!
//! `file` is the only table of keys: its types, documentation, bounds and defaults give the JSON Schema ([`schema()`]).
//! `walk` checks the `document` against that schema, so that every problem is found with its place. `rules` check
//! dependencies that a schema cannot express, and make the [`checked`] values. Nothing here opens a socket or a
//! database; files are read only if a secret or the catalogue refers to them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

mod accounts_file;
mod catalog;
mod document;
mod effective;
mod env;
mod file;
mod format;
mod prompt_file;
mod reporter;
mod rules;
mod schema;
mod suggest;
mod walk;

pub mod certificate;
pub mod changes;
pub mod checked;
pub mod file_watch;
pub mod origin;
pub mod problem;
pub mod restart;
pub mod secret;

pub use accounts_file::{AccountsFile, read_accounts};
pub use certificate::{CertificateError, CertificateFiles};
pub use changes::{ConfigChange, ConfigChanges};
pub use checked::*;
pub use effective::Effective;
pub use env::{ACTOR_VARIABLE, API_KEY_VARIABLE};
pub use filters::cidr::Cidr;
pub use origin::{Origins, ValueSource, as_toml};
pub use problem::{Location, Problem, Spot};
pub use prompt_file::{ReadPrompt, read_prompt};
pub use schema::schema;
pub use secret::{Secret, SecretBytes};
pub use suggest::nearest;

use catalog::CatalogDigest;
use document::SourceSpan;
use file::File;
use reporter::Reporter;
use rules::Rules;
use walk::{Finding, Walk};

/// The source of a configuration.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Source {
    File(PathBuf),
    Text {
        /// The name with which problems are reported.
        name: String,
        /// The TOML.
        text: String,
    },
    /// No file was found: every key has its default.
    Defaults,
}

impl Source {
    /// Returns the file given by `-c`, else `./conf/weirgate.toml`, else `/etc/weirgate/weirgate.toml`, else the
    /// defaults.
    pub fn find(given: Option<&Path>) -> Self {
        let defaults = ["conf/weirgate.toml", "/etc/weirgate/weirgate.toml"];
        match given {
            Some(path) => Self::File(path.to_owned()),
            None => defaults
                .iter()
                .map(PathBuf::from)
                // A file that may not be accessed is not absent. Reading it gives the reason.
                .find(|path| path.try_exists().unwrap_or(true))
                .map_or(Self::Defaults, Self::File),
        }
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Text { name, .. } => f.write_str(name),
            Self::Defaults => f.write_str("the built-in configuration"),
        }
    }
}

/// A valid configuration with its warnings and origins.
pub struct LoadedConfig {
    /// Where it was read.
    pub source: Source,
    /// The environment with which it was read. It has secrets.
    pub environment: BTreeMap<String, String>,
    pub config: Config,
    pub warnings: Vec<Problem>,
    pub origins: Origins,
    /// What it amounts to, for comparisons.
    pub effective: Effective,
}

/// Returns what a reload from one configuration to another changes.
pub fn changes(before: &LoadedConfig, after: &LoadedConfig) -> ConfigChanges {
    ConfigChanges::between(&before.effective, &after.effective)
}

/// Reads a configuration, applies overrides and checks it.
///
/// `env` is the process's environment: variables named `WEIRGATE_SECTION__KEY` are overrides, secrets may be in any
/// others.
///
/// Errors: all problems at once, in the order of the file.
pub fn load(
    source: &Source,
    env: impl IntoIterator<Item = (String, String)>,
) -> Result<LoadedConfig, Vec<Problem>> {
    let (name, text) = read_source(source)?;
    let env: BTreeMap<String, String> = env.into_iter().collect();
    let schema = schema();
    let (mut root, syntax) = document::parse(&text);
    let mut walk = Walk {
        findings: env::apply_overrides(&mut root, &env, &schema),
        ..Walk::default()
    };
    walk.hide_in_broken_lines(&text, &syntax);
    let checked = walk.check_document(&root, &schema);
    let mut rules = Rules {
        walk: &mut walk,
        warnings: env::find_ineffective(&root, &env, &schema),
        catalog_warnings: Vec::new(),
        catalog_digest: CatalogDigest::default(),
        env: &env,
    };
    let file = to_file(checked.clone(), &mut rules);
    let values = serde_json::to_value(&file).unwrap_or_default();
    // Read before the rules read the same files: what changes in between is another configuration, which a reload takes in.
    let mut effective = Effective::read((&checked, &values), &schema, &env);
    let config = rules.apply(&file);
    effective.catalog = std::mem::take(&mut rules.catalog_digest);
    let (mut warnings, catalog_warnings) = (rules.warnings, rules.catalog_warnings);
    if *source == Source::Defaults {
        warnings.push(no_file_finding());
    }
    let reporter = Reporter {
        name: &name,
        text: &text,
        hidden: &walk.hidden,
    };
    let findings = document::without_echoes(&text, syntax, walk.findings);
    if !findings.is_empty() {
        let mut problems = reporter.to_problems(findings);
        problems.extend(config.models.catalog.err().into_iter().flatten());
        return Err(problems);
    }
    let origin = |key: &str| walk.places.get(key).and_then(|at| reporter.find_origin(at));
    let origins = Origins::gather(&values, &schema, &origin);
    let mut warnings = reporter.to_problems(warnings);
    warnings.extend(catalog_warnings);
    Ok(LoadedConfig {
        source: source.clone(),
        environment: env,
        config,
        warnings,
        origins,
        effective,
    })
}

/// Converts the checked document to its typed form. Checking has left out invalid values.
fn to_file(checked: Json, rules: &mut Rules<'_>) -> File {
    serde_json::from_value(checked).unwrap_or_else(|error| {
        let message = format!("cannot be used: {error}");
        rules.walk.refuse(
            "",
            &SourceSpan::Nowhere,
            message,
            "please report this".to_owned(),
        );
        File::default()
    })
}

fn read_source(source: &Source) -> Result<(String, String), Vec<Problem>> {
    match source {
        Source::Defaults => Ok((source.to_string(), String::new())),
        Source::Text { name, text } => Ok((name.clone(), text.clone())),
        Source::File(path) => {
            let name = source.to_string();
            std::fs::read_to_string(path)
                .map(|text| (name.clone(), text))
                .map_err(|error| vec![unreadable_problem(&name, &error)])
        }
    }
}

fn unreadable_problem(name: &str, error: &std::io::Error) -> Problem {
    let cure = match error.kind() {
        std::io::ErrorKind::NotFound => "correct the path after -c",
        _ => rules::cure_of_unreadable(error),
    };
    Problem {
        key: String::new(),
        place: Location::Nowhere {},
        message: format!("{name} cannot be read: {error}"),
        cure: cure.to_owned(),
    }
}

fn no_file_finding() -> Finding {
    Finding {
        key: String::new(),
        at: SourceSpan::Nowhere,
        message: "no configuration file was found, so no provider is configured".to_owned(),
        cure: "give one with -c FILE, or write conf/weirgate.toml".to_owned(),
    }
}

/// Calls [`load`] with a text, for tests and benches.
///
/// Errors: as [`load`].
pub fn from_str(
    toml: &str,
    env: impl IntoIterator<Item = (String, String)>,
) -> Result<LoadedConfig, Vec<Problem>> {
    let source = Source::Text {
        name: "weirgate.toml".to_owned(),
        text: toml.to_owned(),
    };
    load(&source, env)
}

/// Returns the process's environment. Bytes that are not Unicode are replaced.
pub fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().map(|(name, value)| {
        (
            name.to_string_lossy().into_owned(),
            value.to_string_lossy().into_owned(),
        )
    })
}

#[cfg(test)]
mod tests;
