//! Checks for the log line whether an answer fits the requested JSON schema.
//!
//! The schema comes from the caller, and a check could take any time: references that double at each step,
//! expressions. So the visits of a check are counted first, and a check with more than [`MAX_VISITS`] is not made.

use filters::models::healing::is_valid;
use serde_json::Value;

use crate::json_schema::JsonSchema;

/// The maximum bytes of a checked schema or answer.
const MAX_SCHEMA_BYTES: usize = 64 << 10;
const MAX_TEXT_BYTES: usize = 1 << 20;
/// The maximum number of visits of a value by a part of the schema. A visit takes some 50 ns.
const MAX_VISITS: usize = 1 << 20;
/// The maximum depth of a schema's parts, with references. Each level takes a piece of the stack.
const MAX_LEVELS: usize = 256;

/// Returns whether a text is JSON that fits a schema. Returns `None` without a check, if the schema is invalid,
/// refers to other documents, has expressions, or would take too long.
///
/// Cost: 0.1 ms and more, so call this after the response was sent.
pub(super) fn fits(schema: &str, text: &str) -> Option<bool> {
    if schema.len() > MAX_SCHEMA_BYTES || text.len() > MAX_TEXT_BYTES {
        return None;
    }
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        // JSON that is nested too deep to be parsed may fit.
        return (!is_valid(text)).then_some(false);
    };
    let schema: Value = serde_json::from_str(schema).ok()?;
    let size = Size::measure(&value);
    let mut visits = Visits {
        root: &schema,
        left: MAX_VISITS / size.values,
        depth: size.depth,
        levels: 0,
        followed: Vec::new(),
    };
    visits.spend(&schema)?;
    let schema = JsonSchema::compile(schema).ok()?;
    Some(schema.validate(&value).is_ok())
}

/// The size of a value.
#[derive(Clone, Copy)]
struct Size {
    /// The number of values: this one and all inside.
    values: usize,
    depth: usize,
}

impl Size {
    fn measure(value: &Value) -> Self {
        let fold = |values: &mut dyn Iterator<Item = &Value>| {
            values.map(Self::measure).fold(
                Self {
                    values: 1,
                    depth: 1,
                },
                |all, one| Self {
                    values: all.values + one.values,
                    depth: all.depth.max(one.depth + 1),
                },
            )
        };
        match value {
            Value::Array(items) => fold(&mut items.iter()),
            Value::Object(members) => fold(&mut members.values()),
            _ => Self {
                values: 1,
                depth: 1,
            },
        }
    }
}

/// Counts how many parts of the schema may visit one value. References are followed as often as the value's depth
/// needs.
///
/// A part without references visits a value at most once, because only one way leads to it. A reference is another
/// way. One that leads back to its own place goes one level deeper into the value, or nowhere.
struct Visits<'s> {
    root: &'s Value,
    left: usize,
    depth: usize,
    levels: usize,
    followed: Vec<&'s Value>,
}

impl<'s> Visits<'s> {
    fn spend(&mut self, part: &'s Value) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        self.levels += 1;
        if self.levels > MAX_LEVELS {
            return None;
        }
        match part {
            Value::Array(items) => items.iter().try_for_each(|item| self.spend(item))?,
            Value::Object(members) => {
                for (key, member) in members {
                    if member.is_string() {
                        self.keyword(key, member.as_str()?)?;
                    }
                    if key == "patternProperties" {
                        return None;
                    }
                    self.spend(member)?;
                }
            }
            _ => {}
        }
        self.levels -= 1;
        Some(())
    }

    /// Counts a keyword whose value is a text.
    fn keyword(&mut self, key: &str, text: &'s str) -> Option<()> {
        match key {
            "$ref" | "$dynamicRef" | "$recursiveRef" => self.follow(text),
            // Expressions may take any time.
            "pattern" => None,
            // Another base changes the documents of references, except at the root.
            "$id" | "id" if self.levels > 1 => None,
            _ => Some(()),
        }
    }

    fn follow(&mut self, reference: &str) -> Option<()> {
        let pointer = reference.strip_prefix('#')?;
        let target = self.root.pointer(pointer)?;
        let again = self
            .followed
            .iter()
            .filter(|known| std::ptr::eq(**known, target));
        if again.count() > self.depth {
            return Some(());
        }
        self.followed.push(target);
        self.spend(target)?;
        self.followed.pop();
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: &Value, value: &Value) -> Option<bool> {
        fits(&schema.to_string(), &value.to_string())
    }

    #[test]
    fn what_a_strict_schema_says_is_checked() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://a.example/schema",
            "type": "object", "required": ["name", "tags"], "additionalProperties": false,
            "properties": {
                "name": {"type": "string"},
                "kind": {"enum": ["a", "b"]},
                "size": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}}},
            "$defs": {"tag": {"type": "string"}}});
        let good = json!({"name": "x", "kind": "a", "size": 1, "tags": ["y"]});
        assert_eq!(check(&schema, &good), Some(true));
        let changes = [
            json!({"name": 1}),
            json!({"kind": "c"}),
            json!({"size": "1"}),
            json!({"tags": [1]}),
            json!({"more": 1}),
        ];
        for change in changes {
            let mut wrong = good.clone();
            let members = change.as_object().unwrap().clone();
            wrong.as_object_mut().unwrap().extend(members);
            assert_eq!(check(&schema, &wrong), Some(false), "{wrong}");
        }
        assert_eq!(check(&schema, &json!({"name": "x"})), Some(false));
        assert_eq!(check(&schema, &json!([])), Some(false));
        assert_eq!(fits(&schema.to_string(), "{\"name\": \"x"), Some(false));
    }

    #[test]
    fn a_schema_of_trees_is_followed_as_deep_as_the_answer() {
        let schema = json!({"$ref": "#/$defs/node", "$defs": {"node": {
            "type": "object", "required": ["children"],
            "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}}});
        let tree = |leaf: Value| (0..10).fold(leaf, |tree, _| json!({"children": [tree]}));
        assert_eq!(check(&schema, &tree(json!({"children": []}))), Some(true));
        assert_eq!(check(&schema, &tree(json!({}))), Some(false));
    }

    #[test]
    fn what_names_other_documents_or_would_take_long_is_not_checked() {
        let doubling = |at: usize| {
            let next = json!({"$ref": format!("#/$defs/{}", at + 1)});
            (at.to_string(), json!({"allOf": [next, next]}))
        };
        let mut parts: serde_json::Map<String, Value> = (0..60).map(doubling).collect();
        parts.insert("60".to_owned(), json!({"type": "object"}));
        let deep = (0..300).fold(json!({}), |inner, _| json!({"not": inner}));
        let schemas = [
            json!({"$ref": "#/$defs/0", "$defs": parts}),
            json!({"$ref": "file:///etc/passwd"}),
            json!({"$ref": "https://a.example/schema"}),
            json!({"$ref": "other.json"}),
            json!({"$ref": "#nowhere"}),
            json!({"$ref": "#/nowhere"}),
            json!({"properties": {"a": {"type": "string", "pattern": "(a+)+$"}}}),
            json!({"patternProperties": {"a": {}}}),
            json!({"properties": {"a": {"$id": "https://b.example/schema"}}}),
            json!({"type": "no type"}),
            json!({"required": 5}),
            json!([]),
            deep,
        ];
        for schema in schemas {
            let shown: String = schema.to_string().chars().take(80).collect();
            assert_eq!(check(&schema, &json!({"a": "b"})), None, "{shown}");
        }
        let long = json!({"description": "a".repeat(MAX_SCHEMA_BYTES)});
        assert_eq!(check(&long, &json!({})), None);
        assert_eq!(check(&json!({}), &json!("a".repeat(MAX_TEXT_BYTES))), None);
    }

    #[test]
    fn a_schema_that_leads_back_to_itself_ends() {
        let schema = json!({"$ref": "#"});
        assert_ne!(check(&schema, &json!({"a": 1})), Some(true));
        let schema = json!({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}});
        assert_ne!(check(&schema, &json!({"a": 1})), Some(true));
    }
}
