//! Echoes a query: the reply is made of the query's own names and arguments.
//!
//! Every field of the reply has the shape that the query gives it: an object if it has a selection, else a text. The
//! text is the field's name, or the value of its argument if it has exactly one: the reply to `{ say(text: "Hi") }` is
//! `{"say":"Hi"}`.

use std::collections::HashMap;

use graphql_parser::query::{
    Definition, Document, Field, OperationDefinition, Selection, SelectionSet, Value as QueryValue,
};
use serde_json::{Map, Value};

use super::budget::Budget;

/// Maximum nesting of brackets. The parser recurses for each.
const MAX_DEPTH: usize = 64;
/// The maximum size of a reply. Fragments inside fragments double the size with each level.
const MAX_BYTES: usize = 2 << 20;

/// Returns the `data` of the reply. Errors: a message about the query.
pub(super) fn echo_query(
    query: &str,
    operation: Option<&str>,
    variables: &Map<String, Value>,
) -> Result<Value, String> {
    if max_nesting(query) > MAX_DEPTH {
        return Err(format!("The query is nested more than {MAX_DEPTH} deep."));
    }
    let document = graphql_parser::parse_query::<&str>(query).map_err(|e| e.to_string())?;
    let (root, chosen) = choose_operation(&document, operation)?;
    let fragments = document
        .definitions
        .iter()
        .filter_map(|definition| match definition {
            Definition::Fragment(fragment) => Some((fragment.name, &fragment.selection_set)),
            Definition::Operation(_) => None,
        });
    let mut echo = Echo {
        fragments: fragments.collect(),
        variables,
        budget: Budget::new(MAX_BYTES),
    };
    let mut data = Map::new();
    echo.add_fields(chosen, root, MAX_DEPTH, &mut data)?;
    Ok(Value::Object(data))
}

/// Returns the maximum number of open brackets. Brackets inside texts count too, because an upper bound suffices.
fn max_nesting(query: &str) -> usize {
    let (mut open, mut max) = (0_usize, 0);
    for byte in query.bytes() {
        match byte {
            b'{' | b'[' | b'(' => open += 1,
            b'}' | b']' | b')' => open = open.saturating_sub(1),
            _ => {}
        }
        max = max.max(open);
    }
    max
}

type EchoedField<'d, 'q> = (&'static str, &'d SelectionSet<'q, &'q str>);

/// Returns the operation of this name, or the only one.
fn choose_operation<'d, 'q>(
    document: &'d Document<'q, &'q str>,
    operation_name: Option<&str>,
) -> Result<EchoedField<'d, 'q>, String> {
    let operations = document
        .definitions
        .iter()
        .filter_map(|definition| match definition {
            Definition::Operation(operation) => Some(name_and_root(operation)),
            Definition::Fragment(_) => None,
        });
    let mut matching =
        operations.filter(|(name, _)| operation_name.is_none() || *name == operation_name);
    match (matching.next(), matching.next()) {
        (Some((_, chosen)), None) => Ok(chosen),
        (None, _) => Err("There is no such operation.".to_owned()),
        (Some(_), Some(_)) => Err("There are several operations: name one.".to_owned()),
    }
}

fn name_and_root<'d, 'q>(
    operation: &'d OperationDefinition<'q, &'q str>,
) -> (Option<&'q str>, EchoedField<'d, 'q>) {
    match operation {
        OperationDefinition::SelectionSet(fields) => (None, ("Query", fields)),
        OperationDefinition::Query(operation) => {
            (operation.name, ("Query", &operation.selection_set))
        }
        OperationDefinition::Mutation(operation) => {
            (operation.name, ("Mutation", &operation.selection_set))
        }
        OperationDefinition::Subscription(operation) => {
            (operation.name, ("Subscription", &operation.selection_set))
        }
    }
}

struct Echo<'d, 'q> {
    fragments: HashMap<&'q str, &'d SelectionSet<'q, &'q str>>,
    variables: &'d Map<String, Value>,
    /// The bytes that the reply may still take: fragments and variables repeat names and values.
    budget: Budget,
}

impl<'d, 'q> Echo<'d, 'q> {
    /// Adds the fields of a selection. `depth` limits fragments that contain themselves.
    fn add_fields(
        &mut self,
        selection: &'d SelectionSet<'q, &'q str>,
        type_name: &str,
        depth: usize,
        out: &mut Map<String, Value>,
    ) -> Result<(), String> {
        let depth = depth
            .checked_sub(1)
            .ok_or("Fragments contain themselves.")?;
        for item in &selection.items {
            match item {
                Selection::Field(field) => {
                    let value = self.echo_field(field, type_name, depth)?;
                    out.insert(field.alias.unwrap_or(field.name).to_owned(), value);
                }
                Selection::InlineFragment(inline) => {
                    self.add_fields(&inline.selection_set, type_name, depth, out)?;
                }
                Selection::FragmentSpread(spread) => {
                    let name = spread.fragment_name;
                    let fragment = self.fragments.get(name).copied();
                    let fragment =
                        fragment.ok_or_else(|| format!("There is no fragment {name}."))?;
                    self.add_fields(fragment, type_name, depth, out)?;
                }
            }
        }
        Ok(())
    }

    fn echo_field(
        &mut self,
        field: &'d Field<'q, &'q str>,
        type_name: &str,
        depth: usize,
    ) -> Result<Value, String> {
        let name = field.alias.unwrap_or(field.name);
        self.budget.spend_values(1)?;
        self.budget.spend_text(name.len() + field.name.len())?;
        if field.name == "__typename" {
            return Ok(type_name.into());
        }
        if !field.selection_set.items.is_empty() {
            let mut inner = Map::new();
            self.add_fields(&field.selection_set, field.name, depth, &mut inner)?;
            return Ok(Value::Object(inner));
        }
        match field.arguments.as_slice() {
            [(_, value)] => self.echo_value(value),
            _ => Ok(field.name.into()),
        }
    }

    fn echo_value(&mut self, value: &QueryValue<'q, &'q str>) -> Result<Value, String> {
        self.budget.spend_values(1)?;
        Ok(match value {
            QueryValue::Variable(name) => {
                let value = self.variables.get(*name).unwrap_or(&Value::Null);
                self.budget.copy(value)?
            }
            QueryValue::Int(number) => number.as_i64().into(),
            QueryValue::Float(number) => (*number).into(),
            QueryValue::String(text) => {
                self.budget.spend_text(text.len())?;
                text.as_str().into()
            }
            QueryValue::Boolean(flag) => (*flag).into(),
            QueryValue::Null => Value::Null,
            QueryValue::Enum(name) => {
                self.budget.spend_text(name.len())?;
                (*name).into()
            }
            QueryValue::List(items) => {
                let items = items.iter().map(|item| self.echo_value(item));
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            QueryValue::Object(members) => {
                let mut object = Map::new();
                for (name, value) in members {
                    self.budget.spend_text(name.len())?;
                    object.insert((*name).to_owned(), self.echo_value(value)?);
                }
                Value::Object(object)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    fn echoed(query: &str) -> Value {
        echo_query(query, None, &Map::new()).unwrap()
    }

    fn refuse(query: &str) -> String {
        echo_query(query, None, &Map::new()).unwrap_err()
    }

    #[test]
    fn an_answer_has_the_shape_of_its_query() {
        assert_eq!(
            echoed("{ Content(limit: 1, skip: 0) { items { Name first: Url } total __typename } }"),
            json!({"Content": {"items": {"Name": "Name", "first": "Url"}, "total": "total", "__typename": "Content"}})
        );
    }

    #[test]
    fn a_single_argument_is_the_answer() {
        assert_eq!(
            echoed("{ a(x: \"Hi\") b(x: [1, {y: TRUE}]) c(x: null) d(x: 1.5) e(x: $v) }"),
            json!({"a": "Hi", "b": [1, {"y": "TRUE"}], "c": null, "d": 1.5, "e": null})
        );
    }

    #[test]
    fn fragments_are_part_of_the_answer() {
        assert_eq!(
            echoed("query { ...F ... on X { b } } fragment F on Query { a }"),
            json!({"a": "a", "b": "b"})
        );
    }

    #[test]
    fn a_value_that_is_repeated_counts_each_time() {
        let variables = json!({"v": "x".repeat(100_000)});
        let variables = variables.as_object().unwrap();
        let query = |count: usize| {
            let fields: String = (0..count).map(|at| format!("f{at}: a(v: $v) ")).collect();
            format!("query Q($v: String) {{ {fields} }}")
        };
        assert!(echo_query(&query(9), None, variables).is_ok());
        let refused = echo_query(&query(30), None, variables).unwrap_err();
        assert!(refused.contains("too large"), "{refused}");
    }

    #[test]
    fn hostile_queries_are_refused() {
        assert!(refuse(&"{a".repeat(100_000)).contains("nested"));
        assert!(refuse("{ ...F } fragment F on Q { ...F }").contains("contain themselves"));
        assert!(refuse("{ ...F }").contains("no fragment F"));
        assert!(refuse("query A { a } query B { b }").contains("several"));
        assert!(refuse("fragment F on Q { a }").contains("no such operation"));
        let doubling: String = (0..25)
            .map(|n| {
                format!(
                    "fragment F{n} on Q {{ a{n}: x {{ ...F{0} }} b{n}: x {{ ...F{0} }} }} ",
                    n + 1
                )
            })
            .collect();
        assert!(
            refuse(&format!("{{ ...F0 }} {doubling} fragment F25 on Q {{ a }}"))
                .contains("too large")
        );
    }
}
