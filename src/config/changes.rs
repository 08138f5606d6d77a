//! What a reload changes: the keys, with their values before and after. Secrets are compared, and never shown.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;
use serde_json::Value as Json;

use super::effective::{Effective, entry_key, identities};
use super::origin::{as_toml, mask};
use super::problem::{Location, Problem};
use super::restart;
use super::schema::schema;
use super::walk::{join_key, member_schema, schema_format, schema_type};

/// The key of the catalogue's file.
const CATALOG: &str = "models.file";
/// The most characters of a value that are shown.
const MAX_SHOWN_CHARS: usize = 400;

/// A key whose value differs.
///
/// Shape: `{"key", "before"?, "after"?, "details"?, "restart"?}`.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct ConfigChange {
    /// The key, such as `routing.attempts` or `graph.tenants["acme"].allocation_qps`.
    pub key: String,
    /// The value before as TOML, without secrets; `None`: there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The value after as TOML, without secrets; `None`: there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// What differs beside the text of the value: a secret, the content of a file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
    /// Why the change needs a restart; `None`: a reload puts it in force.
    #[serde(rename = "restart", skip_serializing_if = "Option::is_none")]
    pub restart_reason: Option<&'static str>,
}

/// All that differs between two configurations.
///
/// Shape: a list of [`ConfigChange`]. As text: a line for each, and lines with two spaces before them for details.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct ConfigChanges(pub Vec<ConfigChange>);

impl ConfigChanges {
    /// Compares two configurations.
    pub(super) fn between(before: &Effective, after: &Effective) -> Self {
        let schema = schema();
        let mut comparison = Comparison {
            schema: &schema,
            before,
            after,
            found: Vec::new(),
        };
        let values = (Some(&before.values), Some(&after.values));
        comparison.compare("", values, &schema);
        Self(comparison.found)
    }

    /// Returns whether the configurations are equal.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a problem for each change that needs a restart. A reload with any of them is refused whole.
    pub fn refusals(&self) -> Vec<Problem> {
        let refused = self.0.iter().filter_map(|change| {
            let why = change.restart_reason?;
            Some(Problem {
                key: change.key.clone(),
                place: Location::Nowhere {},
                message: format!("{} needs a restart: {why}", change.summary()),
                cure: "`weirgate upgrade` takes it in and cuts nothing; a restart takes it in, too"
                    .to_owned(),
            })
        });
        refused.collect()
    }
}

impl ConfigChange {
    /// Returns both values in one line.
    fn summary(&self) -> String {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) if before == after => before.clone(),
            (Some(before), Some(after)) => format!("{before} -> {after}"),
            (None, Some(after)) => format!("added {after}"),
            (Some(before), None) => format!("removed {before}"),
            (None, None) => "changed".to_owned(),
        }
    }
}

impl fmt::Display for ConfigChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for change in &self.0 {
            writeln!(f, "{}: {}", change.key, change.summary())?;
            for detail in &change.details {
                writeln!(f, "  {detail}")?;
            }
            if let Some(why) = change.restart_reason {
                writeln!(f, "  needs a restart: {why}")?;
            }
        }
        Ok(())
    }
}

/// A comparison of two configurations.
struct Comparison<'a> {
    schema: &'a Json,
    before: &'a Effective,
    after: &'a Effective,
    found: Vec<ConfigChange>,
}

/// A value before and after.
type Pair<'j> = (Option<&'j Json>, Option<&'j Json>);

impl Comparison<'_> {
    fn compare(&mut self, key: &str, pair: Pair<'_>, schema: &Json) {
        match pair {
            (None, None) => {}
            (Some(Json::Object(before)), Some(Json::Object(after)))
                if schema_type(schema) == "object" =>
            {
                let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
                for name in names {
                    let pair = (before.get(name), after.get(name));
                    self.compare(&join_key(key, name), pair, member_schema(schema, name));
                }
            }
            (Some(Json::Array(before)), Some(Json::Array(after))) => {
                self.compare_lists(key, (before, after), schema);
            }
            (Some(_), Some(_)) => self.compare_values(key, pair, schema),
            _ => {
                self.compare_restart_keys(key);
                self.add(key, pair, schema, Vec::new());
            }
        }
    }

    fn compare_lists(&mut self, key: &str, (before, after): (&[Json], &[Json]), schema: &Json) {
        let inner = schema.get("items").unwrap_or(&Json::Null);
        let names = identities(before, schema).zip(identities(after, schema));
        if let Some((names_before, names_after)) = names {
            let names: BTreeSet<&String> = names_before.iter().chain(&names_after).collect();
            for name in names {
                let find = |names: &[String], items| find_entry(names, items, name);
                let pair = (find(&names_before, before), find(&names_after, after));
                self.compare(&entry_key(key, name), pair, inner);
            }
        } else if before == after {
            // The secrets that the entries name may differ.
            for (index, (before, after)) in before.iter().zip(after).enumerate() {
                let pair = (Some(before), Some(after));
                self.compare(&format!("{key}[{index}]"), pair, inner);
            }
        } else {
            let (before, after) = (Json::from(before), Json::from(after));
            self.add(key, (Some(&before), Some(&after)), schema, Vec::new());
        }
    }

    /// Compares two values that are no tables, with the secret or the file that they name.
    fn compare_values(&mut self, key: &str, pair: Pair<'_>, schema: &Json) {
        let mut details = Vec::new();
        if schema_format(schema) == "secret" {
            let secrets = (self.before.secrets.get(key), self.after.secrets.get(key));
            match secrets {
                (None, Some(_)) => details.push("the secret is there now".to_owned()),
                (Some(_), None) => details.push("the secret is no longer there".to_owned()),
                (before, after) if before != after => {
                    details.push("the secret has changed".to_owned());
                }
                _ => {}
            }
        }
        if self.before.files.get(key) != self.after.files.get(key) {
            details.push("the content of the file has changed".to_owned());
        }
        if key == CATALOG {
            details = self.before.catalog.differences(&self.after.catalog);
        }
        if pair.0 != pair.1 || !details.is_empty() {
            self.add(key, pair, schema, details);
        }
    }

    /// Adds the keys below a table that is there on one side alone, and of which a change needs a restart.
    fn compare_restart_keys(&mut self, table: &str) {
        for key in restart::restart_keys(table) {
            let schema = key.split('.').fold(self.schema, member_schema);
            let default = schema.get("default").filter(|default| !default.is_null());
            let before = find_value(&self.before.values, key).or(default);
            let after = find_value(&self.after.values, key).or(default);
            if before != after {
                self.add(key, (before, after), schema, Vec::new());
            }
        }
    }

    fn add(&mut self, key: &str, pair: Pair<'_>, schema: &Json, mut details: Vec<String>) {
        let show = |value: &Json| shorten(as_toml(&mask(value, schema)));
        let (before, after) = (pair.0.map(show), pair.1.map(show));
        if before == after && details.is_empty() {
            details.push("a part that is not shown has changed".to_owned());
        }
        self.found.push(ConfigChange {
            key: key.to_owned(),
            before,
            after,
            details,
            restart_reason: restart::reason(key),
        });
    }
}

fn find_entry<'j>(names: &[String], items: &'j [Json], name: &str) -> Option<&'j Json> {
    let index = names.iter().position(|other| other == name)?;
    items.get(index)
}

/// Returns the value at a key of tables without special names.
fn find_value<'j>(values: &'j Json, key: &str) -> Option<&'j Json> {
    key.split('.')
        .try_fold(values, |value, name| value.get(name))
}

fn shorten(text: String) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
