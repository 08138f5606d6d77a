//! JSON schemas that name no other document: nothing is ever loaded from anywhere.

use boon::{Compiler, SchemaIndex, Schemas, UrlLoader, ValidationError};
use serde_json::Value;

/// Where a schema stands for itself.
const URL: &str = "urn:weirgate:schema";

/// A schema that values can be held against.
pub struct JsonSchema {
    schemas: Schemas,
    index: SchemaIndex,
}

impl JsonSchema {
    /// Compiles a schema.
    ///
    /// Errors: it is none, or names another document.
    pub fn compile(schema: Value) -> Result<Self, String> {
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler.use_loader(Box::new(Nowhere));
        let added = compiler.add_resource(URL, schema);
        added.map_err(|error| error.to_string())?;
        let index = compiler.compile(URL, &mut schemas);
        let index = index.map_err(|error| error.to_string())?;
        Ok(Self { schemas, index })
    }

    /// Holds a value against it.
    ///
    /// Errors: what does not fit.
    pub fn validate<'s, 'v>(
        &'s self,
        value: &'v Value,
    ) -> Result<(), Box<ValidationError<'s, 'v>>> {
        let held = self.schemas.validate(value, self.index);
        held.map_err(Box::new)
    }
}

/// Loads nothing.
struct Nowhere;

impl UrlLoader for Nowhere {
    fn load(&self, _: &str) -> Result<Value, Box<dyn std::error::Error>> {
        Err("schemas name no other documents".into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_that_names_another_document_is_none() {
        let schema = JsonSchema::compile(json!({"type": "string"})).unwrap();
        assert!(schema.validate(&json!("a")).is_ok());
        assert!(schema.validate(&json!(1)).is_err());
        for reference in [
            "file:///etc/passwd",
            "https://a.example/schema",
            "other.json",
        ] {
            assert!(
                JsonSchema::compile(json!({"$ref": reference})).is_err(),
                "{reference}"
            );
        }
    }
}
