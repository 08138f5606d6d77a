//! Values with a form of their own: references to secrets, amounts of money.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// Where a secret is; a literal is only let through for the sandbox.
#[derive(Clone, Deserialize, Eq, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum SecretRef {
    Env { env: String },
    File { file: String },
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

/// An amount of USD, as its decimal text: never a float.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct Usd(pub String);

impl Default for Usd {
    fn default() -> Self {
        Self("0".to_owned())
    }
}

impl JsonSchema for Usd {
    fn schema_name() -> Cow<'static, str> {
        "Usd".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "format": "usd", "type": ["string", "number"] })
    }
}
