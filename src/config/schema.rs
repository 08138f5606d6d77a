//! The JSON Schema of the configuration, generated from the table of keys.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde_json::Value;

use super::file::File;

/// Returns the JSON Schema (2020-12) of the configuration.
///
/// Shape: the schema contains no references.
pub fn schema() -> Value {
    make_schema::<File>()
}

/// Returns the schema of a document in the same form.
pub(super) fn make_schema<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    let mut root = settings
        .with_transform(RecursiveTransform(simplify))
        .into_generator()
        .into_root_schema_for::<T>();
    root.remove("title");
    root.to_value()
}

/// Removes null, which TOML does not have, and the defaults of whole sections, which repeat the defaults of their
/// keys.
fn simplify(schema: &mut schemars::Schema) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    if let Some(Value::Array(members)) = object.get_mut("anyOf") {
        members.retain(|member| member.get("type") != Some(&Value::from("null")));
        if let [Value::Object(only)] = members.as_mut_slice() {
            let only = std::mem::take(only);
            object.remove("anyOf");
            for (key, value) in only {
                object.entry(key).or_insert(value);
            }
        }
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_mut_slice() {
            let only = only.take();
            object.insert("type".to_owned(), only);
        }
    }
    let is_section = object.contains_key("properties");
    if object
        .get("default")
        .is_some_and(|default| default.is_null() || is_section)
    {
        object.remove("default");
    }
}
