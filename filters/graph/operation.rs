//! Which operation a request is: method and normalised path, looked up in one table.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::table::{ANY, CATEGORIES, DATA, METHODS, OTHER, ROWS};
use super::tiers::Category;
use crate::limits::RowId;
use crate::proxy::normalise;

/// One operation of one method: what a counter belongs to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Operation {
    /// `METHOD pattern`, as metrics, logs and `graph.tenants[].limits` name it.
    pub name: Box<str>,
    /// What its windows are counted under.
    pub id: RowId,
    /// What it allows.
    pub category: Category,
    /// Whether public keys are credentials here. Elsewhere they are not, or anyone who reads a tenant's page could use
    /// up the windows of its management.
    pub takes_single_key: bool,
    /// Whether its bodies are content rather than queries or settings, and so larger.
    pub takes_data: bool,
}

/// A row of the configuration.
#[derive(Clone, Copy, Debug)]
pub struct OperationRow<'a> {
    /// Its methods; each is an operation.
    pub methods: &'a [String],
    /// Its path: `{name}` is one segment, `*` at the end any number of them.
    pub path: &'a str,
    /// The name of its category.
    pub category: &'a str,
}

/// Why a row of the configuration is none.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum BadRow {
    /// No category of this name.
    Category(String),
    /// The path cannot be normalised, or has `*` before its end.
    Path(String),
    /// Two names have one number.
    Collision(String),
}

/// Where a request belongs.
#[derive(Clone, Copy, Debug)]
pub struct OperationMatch<'t> {
    /// The operation, whose limit goes into the answer.
    pub operation: &'t Arc<Operation>,
    /// Whether a row names the path and method; else it is for `graph.unknown_paths` to say.
    pub is_known: bool,
    /// Whether it takes a unit of a window: not for `OPTIONS`, which carries no credential.
    pub is_counted: bool,
}

/// The table of operations.
#[derive(Clone, Debug)]
pub struct Operations {
    entries: Vec<OperationEntry>,
    unknown: Vec<OperationEntry>,
    any: Arc<Operation>,
}

#[derive(Clone, Debug)]
struct OperationEntry {
    method: Box<str>,
    pattern: Pattern,
    operation: Arc<Operation>,
}

impl Operations {
    /// The rows of the configuration, then the built-in ones; `categories` are added to the built-in ones, or replace
    /// them. Errors: [`BadRow`].
    pub fn parse<'a>(
        rows: impl IntoIterator<Item = OperationRow<'a>>,
        categories: &BTreeMap<String, Category>,
    ) -> Result<Self, BadRow> {
        let mut entries = Vec::new();
        for row in rows {
            let category = category(row.category, categories)?;
            // Queries are what public keys are for.
            let takes = (row.category == "query", row.category == DATA);
            for method in row.methods {
                entries.push(entry(method, row.path, None, category, takes)?);
            }
        }
        for row in ROWS {
            let category = category(row.category, categories)?;
            for (method, path) in row.methods.iter().flat_map(|method| {
                let paths = std::iter::once(&row.path).chain(row.also);
                paths.map(move |path| (method, path))
            }) {
                let takes = (row.takes_single_key, row.category == DATA);
                entries.push(entry(method, path, Some(row.path), category, takes)?);
            }
        }
        let other = category(OTHER, categories)?;
        let unknown = METHODS
            .iter()
            .map(|method| entry(method, "/*", None, other, (false, false)));
        let unknown = unknown.collect::<Result<Vec<_>, _>>()?;
        let any = entry(ANY, "/*", None, other, (false, false))?.operation;
        distinct(entries.iter().chain(&unknown))?;
        Ok(Self {
            entries,
            unknown,
            any,
        })
    }

    /// Where a request belongs. `path` is [`normalise`]d; methods are compared without case, since who stands behind us
    /// may do so. Cost: no allocation. Source: docs/graph-limits.md 8.1.2; docs/facts/graph-service.md 1.2.
    pub fn find(&self, method: &str, path: &str) -> OperationMatch<'_> {
        if method.eq_ignore_ascii_case("OPTIONS") {
            return self.preflight(path);
        }
        let method = if method.eq_ignore_ascii_case("HEAD") {
            "GET"
        } else {
            method
        };
        let is_method = |entry: &&OperationEntry| entry.method.eq_ignore_ascii_case(method);
        let row = self.entries.iter().filter(is_method);
        let row = row.into_iter().find(|entry| entry.pattern.matches(path));
        let operation = row.map(|entry| &entry.operation);
        OperationMatch {
            operation: operation.unwrap_or_else(|| self.pathless(method)),
            is_known: row.is_some(),
            is_counted: true,
        }
    }

    /// Where a request belongs whose path cannot be read: on the row of unknown paths.
    pub fn pathless(&self, method: &str) -> &Arc<Operation> {
        let is_method = |entry: &&OperationEntry| entry.method.eq_ignore_ascii_case(method);
        let unknown = self.unknown.iter().find(is_method);
        unknown.map_or(&self.any, |entry| &entry.operation)
    }

    fn preflight(&self, path: &str) -> OperationMatch<'_> {
        let row = self
            .entries
            .iter()
            .find(|entry| entry.pattern.matches(path));
        OperationMatch {
            operation: row.map_or(&self.any, |entry| &entry.operation),
            is_known: row.is_some(),
            is_counted: false,
        }
    }

    /// The operation of a name such as `POST /content/v2`. Method and path are compared as requests are.
    pub fn named(&self, name: &str) -> Option<&Arc<Operation>> {
        let (method, path) = name.split_once(' ')?;
        let name = title(method, &normalise(path.trim()).ok()?);
        self.all().find(|operation| *operation.name == *name)
    }

    /// Every operation, some under several paths.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Operation>> {
        let entries = self.entries.iter().chain(&self.unknown);
        entries.map(|entry| &entry.operation).chain([&self.any])
    }
}

fn category(name: &str, configured: &BTreeMap<String, Category>) -> Result<Category, BadRow> {
    let built_in = || CATEGORIES.iter().find(|(known, _)| *known == name);
    configured
        .get(name)
        .or_else(|| built_in().map(|(_, category)| category))
        .copied()
        .ok_or_else(|| BadRow::Category(name.to_owned()))
}

/// `counted_as` is the path that names it, where that is another; `takes`: public keys, data.
fn entry(
    method: &str,
    path: &str,
    counted_as: Option<&str>,
    category: Category,
    takes: (bool, bool),
) -> Result<OperationEntry, BadRow> {
    let bad = |path: &str| BadRow::Path(path.to_owned());
    let normal = normalise(path).map_err(|_| bad(path))?;
    let named = normalise(counted_as.unwrap_or(path)).map_err(|_| bad(path))?;
    let name = title(method, &named);
    Ok(OperationEntry {
        method: method.to_ascii_uppercase().into(),
        pattern: Pattern::parse(&normal).ok_or_else(|| bad(path))?,
        operation: Arc::new(Operation {
            id: RowId::from_name(&name),
            name: name.into(),
            category,
            takes_single_key: takes.0,
            takes_data: takes.1,
        }),
    })
}

fn title(method: &str, path: &str) -> String {
    format!("{} {path}", method.to_ascii_uppercase())
}

fn distinct<'a>(entries: impl Iterator<Item = &'a OperationEntry>) -> Result<(), BadRow> {
    let mut names = BTreeMap::new();
    for OperationEntry { operation, .. } in entries {
        let first = names.insert(operation.id, &operation.name);
        if first.is_some_and(|first| *first != operation.name) {
            return Err(BadRow::Collision(operation.name.to_string()));
        }
    }
    Ok(())
}

#[derive(Clone, Debug)]
struct Pattern {
    segments: Vec<Segment>,
    /// Whether more segments may follow.
    is_open: bool,
}

#[derive(Clone, Debug)]
enum Segment {
    Literal(Box<str>),
    Any,
}

impl Pattern {
    fn parse(path: &str) -> Option<Self> {
        let mut segments = Vec::new();
        let mut is_open = false;
        for segment in path.split('/').filter(|segment| !segment.is_empty()) {
            if is_open {
                return None;
            }
            let is_variable = segment.starts_with('{') && segment.ends_with('}');
            match segment {
                "*" => is_open = true,
                _ if is_variable => segments.push(Segment::Any),
                _ => segments.push(Segment::Literal(segment.into())),
            }
        }
        Some(Self { segments, is_open })
    }

    fn matches(&self, path: &str) -> bool {
        let mut rest = path.split('/').filter(|segment| !segment.is_empty());
        let begins = self
            .segments
            .iter()
            .all(|wanted| match (wanted, rest.next()) {
                (_, None) => false,
                (Segment::Any, Some(_)) => true,
                (Segment::Literal(wanted), Some(segment)) => **wanted == *segment,
            });
        begins && (self.is_open || rest.next().is_none())
    }
}

#[cfg(test)]
#[path = "operation_tests.rs"]
mod tests;
