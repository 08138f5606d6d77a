//! A TOML document as a tree in which every value has its position.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::walk::Finding;

/// The position of a value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum SourceSpan {
    Bytes(Range<usize>),
    Variable(String),
    /// No position.
    Nowhere,
}

/// A value and its position.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub value: Value,
    pub at: SourceSpan,
}

/// A TOML value.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Bool(bool),
    Integer(i128),
    /// The text of the number, because an amount of money must not pass through a float.
    Float(String),
    Text(String),
    Date(String),
    List(Vec<Node>),
    Table(Table),
}

/// A table: each key with its position and its value.
pub(super) type Table = BTreeMap<String, (SourceSpan, Node)>;

impl Value {
    /// Returns the name of the value's type, with an article.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Bool(_) => "a boolean",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Text(_) => "a string",
            Self::Date(_) => "a date",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

/// Parses a document. Unreadable parts are left out of the tree and reported.
pub(super) fn parse(text: &str) -> (Node, Vec<Finding>) {
    let (table, errors) = DeTable::parse_recoverable(text);
    let findings = errors
        .into_iter()
        .map(|error| Finding {
            key: String::new(),
            at: error.span().map_or(SourceSpan::Nowhere, SourceSpan::Bytes),
            message: format!("not valid TOML: {}", error.message()),
            cure: "mend the syntax; https://toml.io shows the forms".to_owned(),
        })
        .collect();
    let at = SourceSpan::Bytes(table.span());
    (
        Node {
            value: Value::Table(convert_table(table.into_inner(), None)),
            at,
        },
        findings,
    )
}

/// Merges the findings of broken syntax, one per line, with the others. Findings that only follow from broken syntax
/// are left out: the value of a broken line is a guess, and the keys below a broken heading belong to another table.
pub(super) fn without_echoes(
    text: &str,
    mut syntax: Vec<Finding>,
    others: Vec<Finding>,
) -> Vec<Finding> {
    let mut lines = BTreeSet::new();
    syntax.retain(|finding| match &finding.at {
        SourceSpan::Bytes(bytes) => lines.insert(count_lines(text, bytes.start)),
        _ => true,
    });
    let broken = syntax.iter().filter_map(|finding| match &finding.at {
        SourceSpan::Bytes(bytes) => Some(guessed_part(text, bytes.start)),
        _ => None,
    });
    let broken: Vec<Range<usize>> = broken.collect();
    let is_echo = |finding: &Finding| match &finding.at {
        SourceSpan::Bytes(bytes) => broken.iter().any(|part| part.contains(&bytes.start)),
        _ => false,
    };
    let others = others.into_iter().filter(|finding| !is_echo(finding));
    syntax.into_iter().chain(others).collect()
}

/// Returns the number of newlines before an offset.
fn count_lines(text: &str, at: usize) -> usize {
    let before = text.as_bytes().iter().take(at);
    before.filter(|byte| **byte == b'\n').count()
}

/// Returns the line around an offset, or everything up to the next heading if the line is a heading.
fn guessed_part(text: &str, at: usize) -> Range<usize> {
    let is_heading = |line: &str| line.trim_start().starts_with('[');
    let (mut start, mut part) = (0, 0..0);
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        if part.is_empty() && (start..=end).contains(&at) && (at < end || end == text.len()) {
            part = start..end;
            if !is_heading(line) {
                return part;
            }
        } else if !part.is_empty() {
            if is_heading(line) {
                return part;
            }
            part.end = end;
        }
        start = end;
    }
    part
}

/// Parses one value from a variable of the environment. Returns `None` if it is not TOML.
pub(super) fn parse_value(text: &str, variable: &str) -> Option<Node> {
    let value = DeValue::parse(text).ok()?;
    Some(convert_value(value, Some(variable)))
}

fn convert_value(value: Spanned<DeValue<'_>>, variable: Option<&str>) -> Node {
    let at = source_span(value.span(), variable);
    let value = match value.into_inner() {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) => Value::Integer(
            i128::from_str_radix(number.as_str(), number.radix()).unwrap_or(i128::MAX),
        ),
        DeValue::Float(number) => Value::Float(number.as_str().to_owned()),
        DeValue::Boolean(flag) => Value::Bool(flag),
        DeValue::Datetime(date) => Value::Date(date.to_string()),
        DeValue::Array(items) => Value::List(
            items
                .into_iter()
                .map(|item| convert_value(item, variable))
                .collect(),
        ),
        DeValue::Table(table) => Value::Table(convert_table(table, variable)),
    };
    Node { value, at }
}

fn convert_table(table: DeTable<'_>, variable: Option<&str>) -> Table {
    table
        .into_iter()
        .map(|(key, value)| {
            let at = source_span(key.span(), variable);
            (
                key.into_inner().into_owned(),
                (at, convert_value(value, variable)),
            )
        })
        .collect()
}

fn source_span(span: Range<usize>, variable: Option<&str>) -> SourceSpan {
    variable.map_or(SourceSpan::Bytes(span), |name| {
        SourceSpan::Variable(name.to_owned())
    })
}
