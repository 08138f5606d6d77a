//! The YAML of another gateway's configuration, as a tree whose values know their lines.
//!
//! It may come from a stranger. So its size, its depth and what its aliases may grow to are bounded, and an error shows none of
//! its values, which may be secrets.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Error, Spanned};

/// The most bytes of a file.
pub(super) const MAX_BYTES: usize = 8 << 20;
/// The most values, those that aliases repeat among them.
const MAX_VALUES: usize = 250_000;
/// The most tables and lists inside each other.
const MAX_DEPTH: usize = 64;

/// A value and the line on which it begins.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct YamlNode {
    pub line: u64,
    pub value: YamlValue,
}

/// What a value is. Tables keep the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum YamlValue {
    Null,
    Bool(bool),
    /// A number, as JSON writes it.
    Number(String),
    Text(String),
    List(Vec<YamlNode>),
    Table(Vec<(String, YamlNode)>),
}

impl YamlValue {
    /// Returns the word for what it is.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Number(_) => "number",
            Self::Text(_) => "string",
            Self::List(_) => "list",
            Self::Table(_) => "table",
        }
    }
}

/// A text that cannot be read, and what helps.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct YamlProblem {
    /// The line, from 1; `None`: the whole file.
    pub line: Option<u64>,
    pub message: String,
    pub cure: &'static str,
}

/// Reads one document. Errors: no UTF-8, too large, no YAML, a key twice, several documents, aliases that grow without bound.
pub(super) fn read(bytes: &[u8]) -> Result<YamlNode, YamlProblem> {
    if bytes.len() > MAX_BYTES {
        return Err(YamlProblem {
            line: None,
            message: format!("has more than {MAX_BYTES} bytes"),
            cure: "split it, and import each part",
        });
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let lines = memchr::memchr_iter(b'\n', before).count();
        YamlProblem {
            line: Some(lines as u64 + 1),
            message: "is not UTF-8 text".to_owned(),
            cure: "save the file as UTF-8",
        }
    })?;
    let budget = serde_saphyr::budget! {
        max_depth: MAX_DEPTH,
        max_nodes: MAX_VALUES,
        max_documents: 2,
    };
    let mut options = serde_saphyr::options! {
        budget: budget,
        null_as_string: true,
        with_snippet: false,
    };
    options.alias_limits.max_total_replayed_events = MAX_VALUES;
    serde_saphyr::from_str_with_options(text, options).map_err(|error| to_problem(&error))
}

fn to_problem(error: &Error) -> YamlProblem {
    let mut error = error.without_snippet();
    let line = error.location().map(|at| at.line());
    // What goes wrong behind an alias is told with the alias around it.
    while let Error::AliasError { error: inner, .. } = error {
        error = inner.without_snippet();
    }
    let (message, cure) = match error {
        Error::DuplicateMappingKey { key, .. } => (
            match key {
                Some(key) => format!("the key {key:?} is there twice"),
                None => "a key is there twice".to_owned(),
            },
            "take one out: the other gateway uses the last one without a word",
        ),
        Error::MultipleDocuments { .. } => (
            "holds several documents".to_owned(),
            "import each as a file of its own",
        ),
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => (
            format!(
                "is too much: more than {MAX_VALUES} values, more than {MAX_DEPTH} of them inside each other, or aliases that \
                 repeat others over and over"
            ),
            "write out what the aliases stand for",
        ),
        Error::UnknownAnchor { .. } => (
            "an alias names an anchor that is not there".to_owned(),
            "define the anchor before its alias",
        ),
        Error::MergeValueNotMapOrSeqOfMaps { .. } => (
            "`<<` stands before what is no table".to_owned(),
            "give it an alias of a table, or a list of such",
        ),
        _ => (
            "is no YAML".to_owned(),
            "compare indentation, quotes and brackets there with what the other gateway accepts",
        ),
    };
    YamlProblem {
        line: line.filter(|line| *line > 0),
        message,
        cure,
    }
}

impl<'de> Deserialize<'de> for YamlNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<YamlValue>::deserialize(deserializer)?;
        Ok(Self {
            line: spanned.referenced.line(),
            value: spanned.value,
        })
    }
}

impl<'de> Deserialize<'de> for YamlValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = YamlValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of YAML")
    }

    fn visit_unit<E>(self) -> Result<YamlValue, E> {
        Ok(YamlValue::Null)
    }

    fn visit_none<E>(self) -> Result<YamlValue, E> {
        Ok(YamlValue::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<YamlValue, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<YamlValue, E> {
        Ok(YamlValue::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<YamlValue, E> {
        Ok(YamlValue::Number(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<YamlValue, E> {
        Ok(YamlValue::Number(value.to_string()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<YamlValue, E> {
        Ok(YamlValue::Number(value.to_string()))
    }

    fn visit_u128<E>(self, value: u128) -> Result<YamlValue, E> {
        Ok(YamlValue::Number(value.to_string()))
    }

    /// The shortest digits that make the same double are those of the file, up to the fifteenth.
    fn visit_f64<E>(self, value: f64) -> Result<YamlValue, E> {
        Ok(match value.is_finite() {
            true => YamlValue::Number(format!("{value:?}")),
            false => YamlValue::Text(value.to_string()),
        })
    }

    fn visit_str<E>(self, value: &str) -> Result<YamlValue, E> {
        Ok(YamlValue::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<YamlValue, E> {
        Ok(YamlValue::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<YamlValue, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(YamlValue::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<YamlValue, A::Error> {
        let mut table: Vec<(String, YamlNode)> = Vec::new();
        let mut names = BTreeSet::new();
        while let Some((name, node)) = members.next_entry::<String, YamlNode>()? {
            // The parser compares keys as YAML does: `1` and `"1"` are two for it, and one here.
            if !names.insert(name.clone()) {
                return Err(A::Error::custom("a key is there twice"));
            }
            table.push((name, node));
        }
        Ok(YamlValue::Table(table))
    }
}
