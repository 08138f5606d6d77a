//! The declared shape of a request: one table of its members checks a body and describes it in the OpenAPI document.
//!
//! A member is of a plain kind, whose check and schema follow from the table, or it is read by a function of its front; then its
//! schema stands in the front's description.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::read::{boolean, integer, nullable_string, one_of, required, string};
use super::reject::Reject;
use super::top::{members, model};
use crate::json::Walker;
use crate::models::front::Front;
use crate::models::parameter::AskedParameters;
use crate::models::request::{ModelRequest, Needs, Payload, RequestMember, Source};
use crate::money::{CostInputs, UnitCounts};

/// The largest number of a member that has no bound of its own.
pub(crate) const U32: u64 = u32::MAX as u64;

/// A member of a request whose findings are an `F`.
pub(crate) struct Field<F: 'static> {
    key: &'static str,
    is: Is<F>,
    is_nullable: bool,
    /// What is accepted, if the member has to be there.
    required: Option<&'static str>,
    doc: &'static str,
}

/// The kind of a member, and what notes its value.
pub(crate) enum Is<F: 'static> {
    /// The id of a model, of an operation without prompts.
    Model(fn(&mut F, Box<str>)),
    /// A string that the gateway does not read.
    Text,
    Word(&'static [&'static str], fn(&mut F, &'static str)),
    /// An integer of this range.
    Integer(u64, u64, fn(&mut F, u64)),
    Boolean(fn(&mut F, bool)),
    /// What this function accepts; the schema stands in the description.
    Own(fn(&mut Walker<'_>, &mut F) -> Result<(), Reject>),
}

impl<F> Field<F> {
    pub(crate) const fn new(key: &'static str, is: Is<F>) -> Self {
        Self {
            key,
            is,
            is_nullable: false,
            required: None,
            doc: "",
        }
    }

    /// Null counts as absent.
    pub(crate) const fn nullable(mut self) -> Self {
        self.is_nullable = true;
        self
    }

    pub(crate) const fn required(mut self, accepted: &'static str) -> Self {
        self.required = Some(accepted);
        self
    }

    pub(crate) const fn doc(mut self, doc: &'static str) -> Self {
        self.doc = doc;
        self
    }

    fn read(&self, walk: &mut Walker<'_>, found: &mut F) -> Result<(), Reject> {
        match self.is {
            Is::Text if self.is_nullable => return nullable_string(walk).map(|_| ()),
            _ if self.is_nullable && walk.null()? => {}
            Is::Model(note) => note(found, model(walk)?),
            Is::Text => _ = string(walk)?,
            Is::Word(words, note) => note(found, one_of(walk, words)?),
            Is::Integer(least, most, note) => note(found, integer(walk, least, most)?),
            Is::Boolean(note) => note(found, boolean(walk)?),
            Is::Own(read) => return read(walk, found),
        }
        Ok(())
    }

    /// Returns the schema, unless the description has it.
    fn schema(&self) -> Option<Value> {
        let mut schema = Map::new();
        let mut set = |key: &str, value: Value| schema.insert(key.to_owned(), value);
        let mut set_type = |name: &str| match self.is_nullable {
            true => _ = set("type", json!([name, "null"])),
            false => _ = set("type", name.into()),
        };
        match self.is {
            Is::Model(_) => {
                let id = "#/components/schemas/ModelId";
                match self.is_nullable {
                    true => set("anyOf", json!([{"$ref": id}, {"type": "null"}])),
                    false => set("$ref", id.into()),
                };
            }
            Is::Text => set_type("string"),
            Is::Word(words, _) => {
                let words = words.iter().map(|word| Value::from(*word));
                let null = self.is_nullable.then_some(Value::Null);
                set("enum", words.chain(null).collect());
            }
            Is::Integer(least, most, _) => {
                set_type("integer");
                set("minimum", least.into());
                set("maximum", most.into());
            }
            Is::Boolean(_) => set_type("boolean"),
            Is::Own(_) => return None,
        }
        if !self.doc.is_empty() {
            schema.insert("description".to_owned(), self.doc.into());
        }
        Some(schema.into())
    }
}

/// Walks a body once, and returns where its members stand. Members of other names are skipped.
pub(crate) fn read_members<F>(
    fields: &[Field<F>],
    body: &Bytes,
    found: &mut F,
) -> Result<Vec<RequestMember>, Reject> {
    let mut walk = Walker::new(body)?;
    let mut seen = 0_u64;
    let members = members(&mut walk, |walk, key| {
        let field = fields.iter().position(|field| field.key == key);
        match field.and_then(|at| Some((at, fields.get(at)?))) {
            Some((at, field)) => {
                seen |= 1 << at;
                field.read(walk, found)
            }
            None => Ok(walk.skip().map(|_| ())?),
        }
    })?;
    walk.end()?;
    for (at, field) in fields.iter().enumerate() {
        if let Some(accepted) = field.required {
            let is_there = seen & (1 << at) != 0;
            required(is_there.then_some(()), field.key, accepted)?;
        }
    }
    Ok(members)
}

/// Returns a front's description, in which a schema of that name has only the members that are read by functions, with the whole
/// schema.
pub(crate) fn describe<F>(description: &str, schema: &str, fields: &[Field<F>]) -> String {
    let mut told: Value = serde_json::from_str(description).unwrap_or_default();
    if let Some(schema) = told.pointer_mut(&format!("/schemas/{schema}")) {
        let is_required = |field: &&Field<F>| field.required.is_some();
        let required: Vec<&str> = fields.iter().filter(is_required).map(|it| it.key).collect();
        let own = schema.take();
        let properties: Map<String, Value> = fields
            .iter()
            .filter_map(|field| {
                let own = || own.get(field.key).cloned();
                Some((field.key.to_owned(), field.schema().or_else(own)?))
            })
            .collect();
        *schema = json!({"type": "object", "required": required, "properties": properties});
    }
    told.to_string()
}

/// Returns a request that is answered once, and whose body is all that it costs.
pub(crate) fn plain_request(
    front: &'static dyn Front,
    model: Option<Box<str>>,
    source: Source,
    payload: Payload,
) -> ModelRequest {
    ModelRequest {
        front,
        model: model.unwrap_or_default(),
        is_stream: false,
        strategy: None,
        session: None,
        needs: Needs {
            choices: 1,
            ..Needs::default()
        },
        asked: AskedParameters::default(),
        cost_inputs: CostInputs {
            bytes: source.body.len() as u64,
            choices: 1,
            draws: Some(false),
            ..CostInputs::default()
        },
        text_bytes: 0,
        units: UnitCounts::ZERO,
        source,
        managed: None,
        payload,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct Found(Option<Box<str>>, u64, &'static str);

    type Row = Field<Found>;

    static FIELDS: [Row; 5] = [
        Row::new("model", Is::Model(|found, model| found.0 = Some(model))).required("an id"),
        Row::new("n", Is::Integer(1, 9, |found, n| found.1 = n))
            .nullable()
            .doc("How many."),
        Row::new("form", Is::Word(&["a", "b"], |found, word| found.2 = word)).nullable(),
        Row::new("note", Is::Text).nullable(),
        Row::new(
            "own",
            Is::Own(|walk, found| integer(walk, 0, 5).map(|n| found.1 = n)),
        ),
    ];

    fn read(body: &'static str) -> Result<Found, String> {
        let mut found = Found::default();
        match read_members(&FIELDS, &Bytes::from(body), &mut found) {
            Ok(_) => Ok(found),
            Err(reject) => Err(reject.into_fault().message.into_owned()),
        }
    }

    #[test]
    fn a_body_is_checked_by_its_table() {
        let found = Found(Some("m".into()), 3, "b");
        assert_eq!(read(r#"{"model":"m","n":3,"form":"b","x":[]}"#), Ok(found));
        let nulls = r#"{"model":"m","n":null,"form":null,"note":null,"own":4}"#;
        assert_eq!(read(nulls), Ok(Found(Some("m".into()), 4, "")));
        for (body, said) in [
            (r#"{"n":3}"#, "`model` is missing; accepted is an id"),
            (r#"{"model":null}"#, "`model` is null; accepted is a string"),
            (
                r#"{"model":"m","n":10}"#,
                "`n` is 10; accepted is an integer from 1 to 9",
            ),
            (
                r#"{"model":"m","form":"c"}"#,
                "`form` is \"c\"; accepted is one of a, b",
            ),
            (
                r#"{"model":"m","note":1}"#,
                "`note` is a number (1); accepted is a string or null",
            ),
            (
                r#"{"model":"m","own":null}"#,
                "`own` is null; accepted is an integer from 0 to 5",
            ),
        ] {
            assert_eq!(read(body), Err(said.to_owned()), "{body}");
        }
    }

    #[test]
    fn a_description_gets_the_schema_of_its_table() {
        let told = describe(
            r#"{"schemas":{"A":{"own":{"const":0}},"B":1}}"#,
            "A",
            &FIELDS,
        );
        let expected = r##"{"schemas":{"A":{"type":"object","required":["model"],"properties":{"model":{"$ref":"#/components/schemas/ModelId"},"n":{"type":["integer","null"],"minimum":1,"maximum":9,"description":"How many."},"form":{"enum":["a","b",null]},"note":{"type":["string","null"]},"own":{"const":0}}},"B":1}}"##;
        assert_eq!(told, expected);
    }
}
