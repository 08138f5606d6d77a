//! Checks the arguments of a tool against its schema.

use boon::ValidationError;
use filters::fault::{Fault, quoted};
use serde_json::Value;

use crate::json_schema::JsonSchema;

/// The schema of a tool's arguments.
pub(super) struct ArgumentSchema(JsonSchema);

impl ArgumentSchema {
    /// Compiles a schema.
    ///
    /// Errors: the value is not a schema.
    pub(super) fn new(schema: Value) -> Result<Self, String> {
        JsonSchema::compile(schema).map(Self)
    }

    /// Checks arguments.
    ///
    /// Errors: 400 that names the argument, the received value and the accepted ones.
    pub(super) fn check(&self, arguments: &Value) -> Result<(), Fault> {
        self.0
            .validate(arguments)
            .map_err(|error| fault(innermost(&error)))
    }
}

fn innermost<'e, 's, 'v>(error: &'e ValidationError<'s, 'v>) -> &'e ValidationError<'s, 'v> {
    error.causes.first().map_or(error, innermost)
}

fn fault(error: &ValidationError<'_, '_>) -> Fault {
    let place = error.instance_location.to_string();
    let mut param = String::new();
    for part in place.split('/').skip(1) {
        match part.parse::<usize>() {
            Ok(number) => param.push_str(&format!("[{number}]")),
            Err(_) if param.is_empty() => param.push_str(part),
            Err(_) => param.push_str(&format!(".{part}")),
        }
    }
    let kind = error.kind.to_string();
    let kind = quoted(&kind);
    if param.is_empty() {
        return Fault::new(
            filters::fault::FaultKind::Invalid,
            format!("arguments: {kind}"),
        );
    }
    Fault::invalid(param.clone(), format!("`{}`: {kind}", quoted(&param)))
}
