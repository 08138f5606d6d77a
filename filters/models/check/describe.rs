//! What the OpenAPI document tells of a table of members.

use serde_json::{Map, Value, json};

use super::shape::{Field, Is, Table, rows};

/// Returns a front's description with the schemas of its table. Where it has schemas of members itself, they complete those of
/// the table; one that names a type replaces it.
pub(crate) fn describe<F>(description: &str, table: &Table<F>) -> String {
    let mut told: Value = serde_json::from_str(description).unwrap_or_default();
    let reference = told.pointer("/body/application~1json/$ref");
    let reference = reference.and_then(|it| it.as_str()?.rsplit('/').next());
    let schema = reference.map(|name| format!("/schemas/{name}"));
    if let Some(schema) = schema.and_then(|place| told.pointer_mut(&place)) {
        *schema = of_object(table, Some(schema), Field::schema);
    }
    if let Some(form) = told.pointer_mut("/body/multipart~1form-data") {
        let files = form.get_mut("required").map(Value::take);
        *form = of_object(table, form.get("properties"), Field::form_schema);
        if let (Some(Value::Array(required)), Some(Value::Array(files))) =
            (form.get_mut("required"), files)
        {
            required.extend(files);
        }
    }
    told.to_string()
}

/// Returns the schema of an object with these members; `own` has what the description says of them, and of others.
fn of_object<F>(
    table: &Table<F>,
    own: Option<&Value>,
    schema: fn(&Field<F>, Option<&Value>) -> Option<Value>,
) -> Value {
    let mut properties: Map<String, Value> = rows(table)
        .filter_map(|field| {
            let schema = schema(field, own.and_then(|own| own.get(field.key)))?;
            Some((field.key.to_owned(), schema))
        })
        .collect();
    for (key, schema) in own.and_then(Value::as_object).into_iter().flatten() {
        properties.entry(key).or_insert_with(|| schema.clone());
    }
    let required = rows(table).filter(|field| field.required.is_some());
    let required: Vec<&str> = required
        .map(|field| field.key)
        .filter(|key| properties.contains_key(*key))
        .collect();
    let schema = json!({"type": "object", "properties": properties});
    match required.is_empty() {
        true => schema,
        false => with(schema, &json!({"required": required})),
    }
}

impl<F> Field<F> {
    /// Returns the schema in JSON, unless only the description would have it.
    fn schema(&self, own: Option<&Value>) -> Option<Value> {
        let named = |name: &str| match self.is_nullable {
            true => json!({"type": [name, "null"]}),
            false => json!({"type": name}),
        };
        let of_kind = match self.is {
            Is::Own(_) => return own.cloned(),
            Is::Model(_) => {
                let id = json!({"$ref": "#/components/schemas/ModelId"});
                match self.is_nullable {
                    true => json!({"anyOf": [id, {"type": "null"}]}),
                    false => id,
                }
            }
            Is::Text(_) => named("string"),
            Is::Word(words, _) => {
                let words = words.iter().map(|word| Value::from(*word));
                let null = self.is_nullable.then_some(Value::Null);
                json!({"enum": words.chain(null).collect::<Value>()})
            }
            Is::Integer(least, most, _) => with(
                named("integer"),
                &json!({"minimum": least, "maximum": most}),
            ),
            Is::Number(_) => named("number"),
            Is::Boolean(_) => named("boolean"),
            Is::Object(fields) => with(of_object(&[fields], None, Self::schema), &named("object")),
            Is::List(item, _) => with(named("array"), &json!({"items": item.schema(None)})),
            Is::Nothing(_) if self.is_nullable => json!({"type": "null"}),
            Is::Nothing(_) => json!({"not": {}}),
        };
        Some(self.complete(of_kind, own))
    }

    /// Returns the schema in a form, whose values are texts.
    fn form_schema(&self, own: Option<&Value>) -> Option<Value> {
        let of_kind = match self.is {
            Is::Model(_) => json!({"type": "string", "minLength": 1, "maxLength": 512}),
            Is::Text(_) | Is::Integer(..) | Is::Number(_) => json!({"type": "string"}),
            Is::Word(words, _) => json!({"enum": words}),
            Is::Boolean(_) => json!({"enum": ["true", "false"]}),
            _ => return own.cloned(),
        };
        let schema = match self.is_list() {
            true => json!({"type": "array", "items": of_kind}),
            false => of_kind,
        };
        Some(self.complete(schema, own))
    }

    /// Adds the table's words, and what the description says.
    fn complete(&self, schema: Value, own: Option<&Value>) -> Value {
        let has_type = |own: &&Value| {
            ["type", "enum", "anyOf", "$ref"]
                .iter()
                .any(|key| own.get(key).is_some())
        };
        if let Some(own) = own.filter(has_type) {
            return own.clone();
        }
        let schema = match self.doc {
            "" => schema,
            doc => with(schema, &json!({"description": doc})),
        };
        own.map_or(schema.clone(), |own| with(schema, own))
    }
}

/// Adds members to a schema.
fn with(mut schema: Value, members: &Value) -> Value {
    if let (Value::Object(schema), Value::Object(members)) = (&mut schema, members) {
        schema.extend(members.clone());
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::super::shape::tests::FIELDS;
    use super::*;

    #[test]
    fn a_description_gets_the_schema_of_its_table() {
        let told = describe(
            r##"{"body":{"application/json":{"$ref":"#/x/A"},"multipart/form-data":{"required":["file"],"properties":{"file":{"type":"string"},"note":{"minLength":1}}}},"schemas":{"A":{"own":{"const":0},"n":{"maximum":8},"note":{"type":"null"},"more":{}},"B":1}}"##,
            &[&FIELDS],
        );
        let told: Value = serde_json::from_str(&told).unwrap_or_default();
        let item = json!({"type": "object", "required": ["y"], "properties": {"x": {"type": ["number", "null"]}, "y": {"type": "boolean"}}});
        let a = json!({"type": "object", "required": ["model"], "properties": {
            "model": {"$ref": "#/components/schemas/ModelId", "description": "The model."},
            "n": {"type": ["integer", "null"], "minimum": 1, "maximum": 8, "description": "How many."},
            "form": {"enum": ["a", "b", null]},
            "note": {"type": "null"},
            "own": {"const": 0},
            "items": {"type": ["array", "null"], "items": item},
            "mask": {"type": "null"},
            "more": {},
        }});
        let form = json!({"type": "object", "required": ["model", "file"], "properties": {
            "model": {"type": "string", "minLength": 1, "maxLength": 512, "description": "The model."},
            "n": {"type": "string", "description": "How many."},
            "form": {"enum": ["a", "b"]},
            "note": {"type": "string", "minLength": 1},
            "file": {"type": "string"},
        }});
        assert_eq!(told.pointer("/schemas"), Some(&json!({"A": a, "B": 1})));
        assert_eq!(told.pointer("/body/multipart~1form-data"), Some(&form));
    }
}
