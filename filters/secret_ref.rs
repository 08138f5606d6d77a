//! Where a secret is, as a file says it.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};

/// Where a secret is. Readers decide whether a literal is let through.
#[derive(Clone, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(untagged)]
pub enum SecretRef {
    /// A variable of the environment.
    Env { env: String },
    /// A file.
    File { file: String },
    /// The text itself.
    Literal(#[serde(serialize_with = "hidden")] String),
}

fn hidden<S: Serializer>(_: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str("(hidden)")
}

impl fmt::Debug for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env { env } => write!(f, "{{ env = {env:?} }}"),
            Self::File { file } => write!(f, "{{ file = {file:?} }}"),
            Self::Literal(_) => f.write_str("(hidden)"),
        }
    }
}

impl JsonSchema for SecretRef {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "format": "secret",
            "oneOf": [
                { "type": "object", "properties": { "env": { "type": "string" } }, "required": ["env"],
                  "additionalProperties": false },
                { "type": "object", "properties": { "file": { "type": "string" } }, "required": ["file"],
                  "additionalProperties": false },
                { "type": "string", "description": "only for providers of kind sandbox" },
            ],
        })
    }
}
