//! Findings, and lists of findings that remain. Entries without a finding fail too.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::Source;

/// A violation of a rule in a file.
#[derive(Debug)]
pub struct Finding {
    /// The file.
    pub path: String,
    /// The module, name or package that stands for the finding in a list of leftovers.
    pub key: String,
    /// `path:line: message`.
    pub text: String,
}

impl Finding {
    /// A finding at a byte offset.
    pub fn new(file: &Source, at: usize, key: &str, message: impl AsRef<str>) -> Self {
        Self {
            path: file.path.clone(),
            key: key.to_owned(),
            text: file.finding(at, message.as_ref()),
        }
    }

    fn entry(&self) -> (&str, &str) {
        (&self.path, &self.key)
    }
}

/// Findings that remain: a file, and the keys of its findings, separated by spaces.
pub type Leftover = [(&'static str, &'static str)];

/// Returns the findings that the list does not name, and the entries without a finding.
pub fn beyond(findings: &[Finding], leftover: &Leftover) -> Vec<String> {
    let found: BTreeSet<(&str, &str)> = findings.iter().map(Finding::entry).collect();
    let listed: BTreeSet<(&str, &str)> = leftover.iter().flat_map(entries).collect();
    let unlisted = findings.iter().filter(|it| !listed.contains(&it.entry()));
    let stale = listed.difference(&found).map(|(path, key)| {
        format!("{path}:1: `{key}` is left over no longer: delete it in tests/tidy/leftover.rs")
    });
    unlisted.map(|it| it.text.clone()).chain(stale).collect()
}

fn entries(
    (path, keys): &(&'static str, &'static str),
) -> impl Iterator<Item = (&'static str, &'static str)> {
    let path = *path;
    keys.split(' ').map(move |key| (path, key))
}

/// Returns the list that names all these findings, as code.
pub fn listed(name: &str, findings: &[Finding]) -> String {
    let mut keys: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (path, key) in findings.iter().map(Finding::entry) {
        keys.entry(path).or_default().insert(key);
    }
    let line = |(path, keys): (&str, BTreeSet<&str>)| {
        let keys: Vec<&str> = keys.into_iter().collect();
        format!("    (\"{path}\", \"{}\"),\n", keys.join(" "))
    };
    let lines: String = keys.into_iter().map(line).collect();
    format!("pub const {name}: &Leftover = &[\n{lines}];\n")
}
