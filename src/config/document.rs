//! A TOML document as a tree in which every value knows where it stands.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::walk::Finding;

/// Where a value stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum At {
    /// These bytes of the file.
    Bytes(Range<usize>),
    /// This variable of the environment.
    Variable(String),
    /// Nowhere.
    Nowhere,
}

/// A value and its place.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub value: Value,
    pub at: At,
}

/// A value as TOML says it.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Bool(bool),
    Integer(i128),
    /// The text of the number: an amount of money must not pass through a float.
    Float(String),
    Text(String),
    Date,
    List(Vec<Node>),
    Table(Table),
}

/// A table: each key with its place and its value.
pub(super) type Table = BTreeMap<String, (At, Node)>;

impl Value {
    /// The name of its type, with an article.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Bool(_) => "a boolean",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Text(_) => "a string",
            Self::Date => "a date",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

/// Reads a document; what cannot be read is left out of the tree and reported.
pub(super) fn parse(text: &str) -> (Node, Vec<Finding>) {
    let (table, errors) = DeTable::parse_recoverable(text);
    let findings = errors
        .into_iter()
        .map(|error| Finding {
            key: String::new(),
            at: error.span().map_or(At::Nowhere, At::Bytes),
            message: format!("not valid TOML: {}", error.message()),
            cure: "mend the syntax; https://toml.io shows the forms".to_owned(),
        })
        .collect();
    let at = At::Bytes(table.span());
    (
        Node {
            value: Value::Table(entries(table.into_inner(), None)),
            at,
        },
        findings,
    )
}

/// Reads one value, as a variable of the environment holds it; none if it is not TOML.
pub(super) fn parse_value(text: &str, variable: &str) -> Option<Node> {
    let value = DeValue::parse(text).ok()?;
    Some(node(value, Some(variable)))
}

fn node(value: Spanned<DeValue<'_>>, variable: Option<&str>) -> Node {
    let at = place(value.span(), variable);
    let value = match value.into_inner() {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) => Value::Integer(
            i128::from_str_radix(number.as_str(), number.radix()).unwrap_or(i128::MAX),
        ),
        DeValue::Float(number) => Value::Float(number.as_str().to_owned()),
        DeValue::Boolean(flag) => Value::Bool(flag),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(items) => {
            Value::List(items.into_iter().map(|item| node(item, variable)).collect())
        }
        DeValue::Table(table) => Value::Table(entries(table, variable)),
    };
    Node { value, at }
}

fn entries(table: DeTable<'_>, variable: Option<&str>) -> Table {
    table
        .into_iter()
        .map(|(key, value)| {
            let at = place(key.span(), variable);
            (key.into_inner().into_owned(), (at, node(value, variable)))
        })
        .collect()
}

fn place(span: Range<usize>, variable: Option<&str>) -> At {
    variable.map_or(At::Bytes(span), |name| At::Variable(name.to_owned()))
}
