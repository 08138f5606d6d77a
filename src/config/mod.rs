//! The configuration: read as written, checked at once, used as typed values.
//!
//! `file` is the one table of keys: its types, documentation, bounds and defaults give the JSON Schema
//! ([`schema()`]); the `document` is walked against that schema (`walk`), so that every problem is found with
//! its place. `rules` add what no schema can say and make the [`checked`] values. Nothing here opens a socket
//! or a database; files are only read where a secret or the catalogue is named.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

mod document;
mod env;
mod file;
mod format;
mod rules;
mod schema;
mod suggest;
mod walk;

pub mod checked;
pub mod origin;
pub mod problem;
pub mod secret;

pub use checked::*;
pub use filters::cidr::Cidr;
pub use origin::{Origins, ValueSource};
pub use problem::{Location, Problem, Spot};
pub use schema::schema;
pub use secret::{Secret, SecretBytes};

use document::At;
use file::File;
use rules::Rules;
use walk::{Finding, Walk};

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

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Text { name, .. } => f.write_str(name),
            Self::Defaults => f.write_str("the built-in configuration"),
        }
    }
}

/// A configuration that is good, and what there is to say about it.
pub struct LoadedConfig {
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
) -> Result<LoadedConfig, Vec<Problem>> {
    let (name, text) = read(source)?;
    let env: BTreeMap<String, String> = env.into_iter().collect();
    let schema = schema();
    let (mut root, mut findings) = document::parse(&text);
    findings.extend(env::lay_over(&mut root, &env, &schema));
    let mut walk = Walk {
        findings,
        ..Walk::default()
    };
    let good = walk.document(&root, &schema);
    let mut rules = Rules {
        walk: &mut walk,
        warnings: Vec::new(),
        env: &env,
    };
    let file = typed(good, &mut rules);
    let config = rules.apply(&file);
    let mut warnings = rules.warnings;
    if *source == Source::Defaults {
        warnings.push(nothing_found());
    }
    let told = Reporter {
        name: &name,
        text: &text,
        hidden: &walk.hidden,
    };
    if !walk.findings.is_empty() {
        return Err(told.problems(walk.findings));
    }
    let effective = serde_json::to_value(&file).unwrap_or_default();
    let origin = |key: &str| walk.places.get(key).and_then(|at| told.origin(at));
    let origins = Origins::gather(&effective, &schema, &origin);
    Ok(LoadedConfig {
        config,
        warnings: told.problems(warnings),
        origins,
    })
}

/// The document as written; the walk has left out whatever does not fit.
fn typed(good: Json, rules: &mut Rules<'_>) -> File {
    serde_json::from_value(good).unwrap_or_else(|error| {
        let message = format!("cannot be used: {error}");
        rules
            .walk
            .refuse("", &At::Nowhere, message, "please report this".to_owned());
        File::default()
    })
}

fn read(source: &Source) -> Result<(String, String), Vec<Problem>> {
    match source {
        Source::Defaults => Ok((source.to_string(), String::new())),
        Source::Text { name, text } => Ok((name.clone(), text.clone())),
        Source::File(path) => {
            let name = source.to_string();
            std::fs::read_to_string(path)
                .map(|text| (name.clone(), text))
                .map_err(|error| vec![unreadable(&name, &error)])
        }
    }
}

fn unreadable(name: &str, error: &std::io::Error) -> Problem {
    let cure = match error.kind() {
        std::io::ErrorKind::InvalidData => "save the file as UTF-8 text",
        _ => "correct the path after -c, or the file's permissions",
    };
    Problem {
        key: String::new(),
        place: Location::Nowhere {},
        message: format!("{name} cannot be read: {error}"),
        cure: cure.to_owned(),
    }
}

fn nothing_found() -> Finding {
    Finding {
        key: String::new(),
        at: At::Nowhere,
        message: "no configuration file was found, so no provider is configured".to_owned(),
        cure: "give one with -c FILE, or write conf/weirgate.toml".to_owned(),
    }
}

/// The text that findings are told about.
struct Reporter<'a> {
    name: &'a str,
    text: &'a str,
    hidden: &'a [Range<usize>],
}

impl Reporter<'_> {
    /// Findings as problems, in the order of the file; then those of variables, then the rest.
    fn problems(&self, mut findings: Vec<Finding>) -> Vec<Problem> {
        findings.sort_by_key(|finding| match &finding.at {
            At::Bytes(bytes) => (0, bytes.start),
            At::Variable(_) => (1, 0),
            At::Nowhere => (2, 0),
        });
        findings
            .into_iter()
            .map(|finding| self.problem(finding))
            .collect()
    }

    fn problem(&self, finding: Finding) -> Problem {
        let place = match finding.at {
            At::Bytes(bytes) => Location::File(self.spot(&bytes)),
            At::Variable(variable) => Location::Variable { variable },
            At::Nowhere => Location::Nowhere {},
        };
        Problem {
            key: finding.key,
            place,
            message: finding.message,
            cure: finding.cure,
        }
    }

    fn spot(&self, bytes: &Range<usize>) -> Spot {
        let spot = Spot::of(self.name, self.text, bytes.start, bytes.end);
        self.hidden
            .iter()
            .fold(spot, |spot, hidden| spot.without(self.text, hidden))
    }

    fn origin(&self, at: &At) -> Option<ValueSource> {
        match at {
            At::Bytes(bytes) => {
                let line = Spot::of(self.name, self.text, bytes.start, bytes.end).line;
                Some(ValueSource::File {
                    file: self.name.to_owned(),
                    line,
                })
            }
            At::Variable(name) => Some(ValueSource::Variable(name.clone())),
            At::Nowhere => None,
        }
    }
}

/// [`load`] of a text, for tests and benches.
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

/// A value as TOML writes it on one line.
pub fn as_toml(value: &Json) -> String {
    toml::Value::try_from(value).map_or_else(|_| value.to_string(), |value| value.to_string())
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

#[cfg(test)]
mod tests;
