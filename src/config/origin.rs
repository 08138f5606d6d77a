//! The origin of each value.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::Value as Json;

use super::walk::{join_key, member_schema, schema_format};

/// The origin of one value.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueSource {
    Default,
    File {
        file: String,
        /// The line, from 1.
        line: usize,
    },
    Variable(String),
}

impl fmt::Display for ValueSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { file, line } => write!(f, "{file}:{line}"),
            Self::Variable(name) => write!(f, "env {name}"),
        }
    }
}

/// Every value of the effective configuration with its origin, by dotted key. Secrets are shown as references.
#[derive(Clone, Debug, Default)]
pub struct Origins(BTreeMap<String, (Json, ValueSource)>);

impl Origins {
    /// Returns the origin of one key such as `routing.attempts`, or `None` if the key has no value.
    pub fn find(&self, key: &str) -> Option<&ValueSource> {
        self.0.get(key).map(|(_, origin)| origin)
    }

    /// Returns the effective value of one key, with secrets hidden.
    pub fn value(&self, key: &str) -> Option<&Json> {
        self.0.get(key).map(|(value, _)| value)
    }

    /// Iterates over all keys in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json, &ValueSource)> {
        self.0
            .iter()
            .map(|(key, (value, origin))| (key.as_str(), value, origin))
    }

    /// Collects all values of `effective`, down to tables whose keys the schema does not name.
    pub(super) fn gather(
        effective: &Json,
        schema: &Json,
        origin: &dyn Fn(&str) -> Option<ValueSource>,
    ) -> Self {
        let mut origins = Self::default();
        origins.add(effective, schema, "", origin);
        origins
    }

    fn add(
        &mut self,
        value: &Json,
        schema: &Json,
        key: &str,
        origin: &dyn Fn(&str) -> Option<ValueSource>,
    ) {
        if let (Json::Object(members), "object") = (value, super::walk::schema_type(schema)) {
            for (name, member) in members {
                let inner = member_schema(schema, name);
                self.add(member, inner, &join_key(key, name), origin);
            }
        } else if !value.is_null() {
            let masked = mask(value, schema);
            self.0.insert(
                key.to_owned(),
                (masked, origin(key).unwrap_or(ValueSource::Default)),
            );
        }
    }
}

/// Formats a value as TOML on one line.
pub fn as_toml(value: &Json) -> String {
    toml::Value::try_from(value).map_or_else(|_| value.to_string(), |value| value.to_string())
}

/// Returns a value without the passwords of URLs. Literal secrets are already hidden.
pub(super) fn mask(value: &Json, schema: &Json) -> Json {
    match value {
        Json::String(text) if schema_format(schema).contains("url") => {
            without_password(text).into()
        }
        Json::Array(items) => {
            let inner = schema.get("items").unwrap_or(&Json::Null);
            items.iter().map(|item| mask(item, inner)).collect()
        }
        Json::Object(members) => {
            let members = members.iter().map(|(name, member)| {
                let inner = member_schema(schema, name);
                (name.clone(), mask(member, inner))
            });
            Json::Object(members.collect())
        }
        other => other.clone(),
    }
}

/// Replaces the password in a URL by `***`, in the user part and in the query.
pub(super) fn without_password(url: &str) -> String {
    let (url, query) = url.split_once('?').unwrap_or((url, ""));
    let hide = |pair: &str| match pair.split_once('=') {
        Some((name, _)) if name.contains("password") => format!("{name}=***"),
        _ => pair.to_owned(),
    };
    let query: Vec<String> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(hide)
        .collect();
    let separator = if query.is_empty() { "" } else { "?" };
    format!(
        "{}{separator}{}",
        without_user_password(url),
        query.join("&")
    )
}

fn without_user_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let Some((user, host)) = rest.rsplit_once('@') else {
        return url.to_owned();
    };
    match user.split_once(':') {
        Some((name, _)) => format!("{scheme}://{name}:***@{host}"),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_a_url_is_hidden_wherever_it_stands() {
        for (url, mask) in [
            ("postgres://u:pa/ss@h/db", "postgres://u:***@h/db"),
            (
                "postgres://h/db?password=x&a=b",
                "postgres://h/db?password=***&a=b",
            ),
            ("redis://:x@h:6379/0", "redis://:***@h:6379/0"),
            ("sqlite:var/w.db", "sqlite:var/w.db"),
            ("postgres://u@h/db", "postgres://u@h/db"),
        ] {
            assert_eq!(without_password(url), mask);
        }
    }
}
