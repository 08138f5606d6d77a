//! Finds the operation of a request: method and normalised path are looked up in one table.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::table::{ANY, CATEGORIES, DATA, METHODS, OTHER, ROWS};
use super::tiers::Category;
use crate::limits::RowId;
use crate::proxy::normalise;

/// An operation: one method on one row. It is the unit that windows count.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GraphOperation {
    /// `METHOD pattern`, the name in metrics, logs and `graph.tenants[].limits`.
    pub name: Box<str>,
    /// The row id under which its windows are counted.
    pub id: RowId,
    /// Its limits.
    pub category: Category,
    /// Whether public keys are credentials for this operation. For other operations they are not: anyone who reads a
    /// tenant's page could otherwise use up the windows of the tenant's management.
    pub accepts_single_key: bool,
    /// Whether its bodies are uploaded content, which has a higher size limit than queries and settings.
    pub accepts_data: bool,
}

/// A row of `graph.operations` in the configuration.
#[derive(Clone, Copy, Debug)]
pub struct OperationRow<'a> {
    pub methods: &'a [String],
    /// Path: `{name}` stands for one segment, `*` at the end for any number of segments.
    pub path: &'a str,
    pub category: &'a str,
}

/// Why a row of the configuration is invalid.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum InvalidRow {
    Category(String),
    /// The path cannot be normalised, or `*` is not its last segment.
    Path(String),
    /// Two names hash to one row id.
    Collision(String),
}

/// The operation that a request matches.
#[derive(Clone, Copy, Debug)]
pub struct OperationMatch<'t> {
    /// The operation; the response carries its limit.
    pub operation: &'t Arc<GraphOperation>,
    /// Whether a row names the path and method. If not, `graph.unknown_paths` decides.
    pub is_known: bool,
    /// Whether the request is an `OPTIONS`. It carries no credential and counts by address, on a row of its own.
    pub is_preflight: bool,
}

/// The table of operations.
#[derive(Clone, Debug)]
pub struct Operations {
    entries: Vec<OperationEntry>,
    unknown: Vec<OperationEntry>,
    any: Arc<GraphOperation>,
}

#[derive(Clone, Debug)]
struct OperationEntry {
    method: Box<str>,
    pattern: Pattern,
    operation: Arc<GraphOperation>,
}

impl Operations {
    /// Builds the table: rows of the configuration come before the built-in ones, and `categories` extend or replace
    /// the built-in categories. Errors: [`InvalidRow`].
    pub fn parse<'a>(
        rows: impl IntoIterator<Item = OperationRow<'a>>,
        categories: &BTreeMap<String, Category>,
    ) -> Result<Self, InvalidRow> {
        let mut entries = Vec::new();
        for row in rows {
            let category = find_category(row.category, categories)?;
            // Public keys are only for queries.
            let accepts = (row.category == "query", row.category == DATA);
            for method in row.methods {
                entries.push(operation_entry(method, row.path, None, category, accepts)?);
            }
        }
        for row in ROWS {
            let category = find_category(row.category, categories)?;
            for (method, path) in row.methods.iter().flat_map(|method| {
                let paths = std::iter::once(&row.path).chain(row.aliases);
                paths.map(move |path| (method, path))
            }) {
                let accepts = (row.accepts_single_key, row.category == DATA);
                entries.push(operation_entry(
                    method,
                    path,
                    Some(row.path),
                    category,
                    accepts,
                )?);
            }
        }
        let other = find_category(OTHER, categories)?;
        let unknown = METHODS
            .iter()
            .map(|method| operation_entry(method, "/*", None, other, (false, false)));
        let unknown = unknown.collect::<Result<Vec<_>, _>>()?;
        let any = operation_entry(ANY, "/*", None, other, (false, false))?.operation;
        check_distinct(entries.iter().chain(&unknown))?;
        Ok(Self {
            entries,
            unknown,
            any,
        })
    }

    /// Finds the operation of a request. `path` is [`normalise`]d. Methods are compared without case, because servers
    /// behind this one may do so too. Cost: no allocation. Source: docs/graph-limits.md 8.1.2;
    /// docs/facts/graph-service.md 1.2.
    pub fn find(&self, method: &str, path: &str) -> OperationMatch<'_> {
        if method.eq_ignore_ascii_case("OPTIONS") {
            return self.find_preflight(path);
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
            operation: operation.unwrap_or_else(|| self.unknown_path(method)),
            is_known: row.is_some(),
            is_preflight: false,
        }
    }

    /// Returns the operation of unknown paths. It also counts requests whose path cannot be normalised.
    pub fn unknown_path(&self, method: &str) -> &Arc<GraphOperation> {
        let is_method = |entry: &&OperationEntry| entry.method.eq_ignore_ascii_case(method);
        let unknown = self.unknown.iter().find(is_method);
        unknown.map_or(&self.any, |entry| &entry.operation)
    }

    fn find_preflight(&self, path: &str) -> OperationMatch<'_> {
        let row = self
            .entries
            .iter()
            .find(|entry| entry.pattern.matches(path));
        OperationMatch {
            operation: row.map_or(&self.any, |entry| &entry.operation),
            is_known: row.is_some(),
            is_preflight: true,
        }
    }

    /// Returns the operation on which preflight requests of browsers count, by address. They carry no credential, and
    /// take nothing from the windows of the requests that they announce.
    pub fn preflights(&self) -> &Arc<GraphOperation> {
        &self.any
    }

    /// Returns the operation with a name such as `POST /content/v2`. Method and path are compared as in requests.
    pub fn find_by_name(&self, name: &str) -> Option<&Arc<GraphOperation>> {
        let (method, path) = name.split_once(' ')?;
        let name = operation_name(method, &normalise(path.trim()).ok()?);
        self.all().find(|operation| *operation.name == *name)
    }

    /// Iterates over all operations. Operations with aliases occur several times.
    pub fn all(&self) -> impl Iterator<Item = &Arc<GraphOperation>> {
        let entries = self.entries.iter().chain(&self.unknown);
        entries.map(|entry| &entry.operation).chain([&self.any])
    }
}

fn find_category(
    name: &str,
    configured: &BTreeMap<String, Category>,
) -> Result<Category, InvalidRow> {
    let built_in = || CATEGORIES.iter().find(|(known, _)| *known == name);
    configured
        .get(name)
        .or_else(|| built_in().map(|(_, category)| category))
        .copied()
        .ok_or_else(|| InvalidRow::Category(name.to_owned()))
}

/// Makes the entry of an operation. `counted_as` is the path that names the operation, if it is not `path`; `accepts`
/// tells whether it takes public keys and data.
fn operation_entry(
    method: &str,
    path: &str,
    counted_as: Option<&str>,
    category: Category,
    accepts: (bool, bool),
) -> Result<OperationEntry, InvalidRow> {
    let invalid = |path: &str| InvalidRow::Path(path.to_owned());
    let normal = normalise(path).map_err(|_| invalid(path))?;
    let named = normalise(counted_as.unwrap_or(path)).map_err(|_| invalid(path))?;
    let name = operation_name(method, &named);
    Ok(OperationEntry {
        method: method.to_ascii_uppercase().into(),
        pattern: Pattern::parse(&normal).ok_or_else(|| invalid(path))?,
        operation: Arc::new(GraphOperation {
            id: RowId::from_name(&name),
            name: name.into(),
            category,
            accepts_single_key: accepts.0,
            accepts_data: accepts.1,
        }),
    })
}

fn operation_name(method: &str, path: &str) -> String {
    format!("{} {path}", method.to_ascii_uppercase())
}

fn check_distinct<'a>(entries: impl Iterator<Item = &'a OperationEntry>) -> Result<(), InvalidRow> {
    let mut names = BTreeMap::new();
    for OperationEntry { operation, .. } in entries {
        let first = names.insert(operation.id, &operation.name);
        if first.is_some_and(|first| *first != operation.name) {
            return Err(InvalidRow::Collision(operation.name.to_string()));
        }
    }
    Ok(())
}

#[derive(Clone, Debug)]
struct Pattern {
    segments: Vec<PatternSegment>,
    /// Whether more segments may follow.
    is_prefix: bool,
}

#[derive(Clone, Debug)]
enum PatternSegment {
    Literal(Box<str>),
    Any,
}

impl Pattern {
    fn parse(path: &str) -> Option<Self> {
        let mut segments = Vec::new();
        let mut is_prefix = false;
        for segment in path.split('/').filter(|segment| !segment.is_empty()) {
            if is_prefix {
                return None;
            }
            let is_variable = segment.starts_with('{') && segment.ends_with('}');
            match segment {
                "*" => is_prefix = true,
                _ if is_variable => segments.push(PatternSegment::Any),
                _ => segments.push(PatternSegment::Literal(segment.into())),
            }
        }
        Some(Self {
            segments,
            is_prefix,
        })
    }

    fn matches(&self, path: &str) -> bool {
        let mut rest = path.split('/').filter(|segment| !segment.is_empty());
        let begins = self
            .segments
            .iter()
            .all(|wanted| match (wanted, rest.next()) {
                (_, None) => false,
                (PatternSegment::Any, Some(_)) => true,
                (PatternSegment::Literal(wanted), Some(segment)) => **wanted == *segment,
            });
        begins && (self.is_prefix || rest.next().is_none())
    }
}

#[cfg(test)]
#[path = "operation_tests.rs"]
mod tests;
