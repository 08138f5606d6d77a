//! A query's own words as its answer.
//!
//! Every field of an answer has the shape that the query gives it: with fields below it an object, else a text. That
//! text is the field's name, or the value of its argument where it has exactly one: `{ say(text: "Hi") }` is answered
//! `{"say":"Hi"}`.

use std::collections::HashMap;

use graphql_parser::query::{
    Definition, Document, Field, OperationDefinition, Selection, SelectionSet, Value as Written,
};
use serde_json::{Map, Value};

/// How deep brackets may stand in each other: the parser calls itself for each.
const DEEPEST: usize = 64;
/// How many fields an answer may have: fragments in fragments double with each.
const MOST_FIELDS: usize = 10_000;

/// The `data` of an answer, or what is wrong with the query.
pub(super) fn echo(
    query: &str,
    operation: Option<&str>,
    variables: &Map<String, Value>,
) -> Result<Value, String> {
    if depth(query) > DEEPEST {
        return Err(format!("The query is nested more than {DEEPEST} deep."));
    }
    let document = graphql_parser::parse_query::<&str>(query).map_err(|e| e.to_string())?;
    let (root, chosen) = choose(&document, operation)?;
    let fragments = document.definitions.iter().filter_map(|it| match it {
        Definition::Fragment(fragment) => Some((fragment.name, &fragment.selection_set)),
        Definition::Operation(_) => None,
    });
    let mut echo = Echo {
        fragments: fragments.collect(),
        variables,
        left: MOST_FIELDS,
    };
    let mut data = Map::new();
    echo.fields(chosen, root, DEEPEST, &mut data)?;
    Ok(Value::Object(data))
}

/// The most brackets open at once, in texts too: an upper bound is all that is asked for.
fn depth(query: &str) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    for byte in query.bytes() {
        match byte {
            b'{' | b'[' | b'(' => open += 1,
            b'}' | b']' | b')' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}

type EchoedField<'d, 'q> = (&'static str, &'d SelectionSet<'q, &'q str>);

/// The operation of this name, or the only one.
fn choose<'d, 'q>(
    document: &'d Document<'q, &'q str>,
    wanted: Option<&str>,
) -> Result<EchoedField<'d, 'q>, String> {
    let operations = document.definitions.iter().filter_map(|it| match it {
        Definition::Operation(operation) => Some(parts(operation)),
        Definition::Fragment(_) => None,
    });
    let mut fitting = operations.filter(|(name, _)| wanted.is_none() || *name == wanted);
    match (fitting.next(), fitting.next()) {
        (Some((_, chosen)), None) => Ok(chosen),
        (None, _) => Err("There is no such operation.".to_owned()),
        (Some(_), Some(_)) => Err("There are several operations: name one.".to_owned()),
    }
}

fn parts<'d, 'q>(
    operation: &'d OperationDefinition<'q, &'q str>,
) -> (Option<&'q str>, EchoedField<'d, 'q>) {
    match operation {
        OperationDefinition::SelectionSet(fields) => (None, ("Query", fields)),
        OperationDefinition::Query(it) => (it.name, ("Query", &it.selection_set)),
        OperationDefinition::Mutation(it) => (it.name, ("Mutation", &it.selection_set)),
        OperationDefinition::Subscription(it) => (it.name, ("Subscription", &it.selection_set)),
    }
}

struct Echo<'d, 'q> {
    fragments: HashMap<&'q str, &'d SelectionSet<'q, &'q str>>,
    variables: &'d Map<String, Value>,
    /// How many fields there may still be.
    left: usize,
}

impl<'d, 'q> Echo<'d, 'q> {
    /// Adds the fields of a selection; `depth` bounds fragments that contain themselves.
    fn fields(
        &mut self,
        selection: &'d SelectionSet<'q, &'q str>,
        around: &str,
        depth: usize,
        out: &mut Map<String, Value>,
    ) -> Result<(), String> {
        let depth = depth
            .checked_sub(1)
            .ok_or("Fragments contain themselves.")?;
        for item in &selection.items {
            match item {
                Selection::Field(field) => {
                    let value = self.field(field, around, depth)?;
                    out.insert(field.alias.unwrap_or(field.name).to_owned(), value);
                }
                Selection::InlineFragment(inline) => {
                    self.fields(&inline.selection_set, around, depth, out)?;
                }
                Selection::FragmentSpread(spread) => {
                    let name = spread.fragment_name;
                    let fragment = self.fragments.get(name).copied();
                    let fragment =
                        fragment.ok_or_else(|| format!("There is no fragment {name}."))?;
                    self.fields(fragment, around, depth, out)?;
                }
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        field: &'d Field<'q, &'q str>,
        around: &str,
        depth: usize,
    ) -> Result<Value, String> {
        self.left = self.left.checked_sub(1).ok_or("The answer is too large.")?;
        if field.name == "__typename" {
            return Ok(around.into());
        }
        if !field.selection_set.items.is_empty() {
            let mut inner = Map::new();
            self.fields(&field.selection_set, field.name, depth, &mut inner)?;
            return Ok(Value::Object(inner));
        }
        match field.arguments.as_slice() {
            [(_, value)] => Ok(self.value(value)),
            _ => Ok(field.name.into()),
        }
    }

    fn value(&self, written: &Written<'q, &'q str>) -> Value {
        match written {
            Written::Variable(name) => self.variables.get(*name).cloned().unwrap_or(Value::Null),
            Written::Int(number) => number.as_i64().into(),
            Written::Float(number) => (*number).into(),
            Written::String(text) => text.as_str().into(),
            Written::Boolean(truth) => (*truth).into(),
            Written::Null => Value::Null,
            Written::Enum(name) => (*name).into(),
            Written::List(items) => items.iter().map(|item| self.value(item)).collect(),
            Written::Object(members) => {
                let members = members.iter();
                let members = members.map(|(name, value)| ((*name).to_owned(), self.value(value)));
                Value::Object(members.collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    fn said(query: &str) -> Value {
        echo(query, None, &Map::new()).unwrap()
    }

    fn refused(query: &str) -> String {
        echo(query, None, &Map::new()).unwrap_err()
    }

    #[test]
    fn an_answer_has_the_shape_of_its_query() {
        assert_eq!(
            said("{ Content(limit: 1, skip: 0) { items { Name first: Url } total __typename } }"),
            json!({"Content": {"items": {"Name": "Name", "first": "Url"}, "total": "total", "__typename": "Content"}})
        );
    }

    #[test]
    fn a_single_argument_is_the_answer() {
        assert_eq!(
            said("{ a(x: \"Hi\") b(x: [1, {y: TRUE}]) c(x: null) d(x: 1.5) e(x: $v) }"),
            json!({"a": "Hi", "b": [1, {"y": "TRUE"}], "c": null, "d": 1.5, "e": null})
        );
    }

    #[test]
    fn fragments_are_part_of_the_answer() {
        assert_eq!(
            said("query { ...F ... on X { b } } fragment F on Query { a }"),
            json!({"a": "a", "b": "b"})
        );
    }

    #[test]
    fn hostile_queries_are_refused() {
        assert!(refused(&"{a".repeat(100_000)).contains("nested"));
        assert!(refused("{ ...F } fragment F on Q { ...F }").contains("contain themselves"));
        assert!(refused("{ ...F }").contains("no fragment F"));
        assert!(refused("query A { a } query B { b }").contains("several"));
        assert!(refused("fragment F on Q { a }").contains("no such operation"));
        let doubling: String = (0..25)
            .map(|n| {
                format!(
                    "fragment F{n} on Q {{ a{n}: x {{ ...F{0} }} b{n}: x {{ ...F{0} }} }} ",
                    n + 1
                )
            })
            .collect();
        assert!(
            refused(&format!("{{ ...F0 }} {doubling} fragment F25 on Q {{ a }}"))
                .contains("too large")
        );
    }
}
