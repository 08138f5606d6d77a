//! The declared shape of a request: one table of its members checks a body or a form, and describes both in the OpenAPI document
//! (`describe.rs`).
//!
//! A member is of a plain kind, whose check and schema follow from the table, or it is read by a function of its front; then its
//! schema stands in the front's description.

use bytes::Bytes;

use super::read::{array, boolean, expect, integer, number, one_of, required, string, twice};
use super::reject::Reject;
use super::top::{MODEL, members, model, plain_model};
use crate::fault::{Fault, quoted};
use crate::json::{Type, Walker};
use crate::models::front::Front;
use crate::models::parameter::AskedParameters;
use crate::models::request::{ModelRequest, Needs, Payload, RequestMember, Source};
use crate::money::{CostInputs, UnitCounts};

/// The largest number of a member that has no bound of its own.
pub(crate) const U32: u64 = u32::MAX as u64;

/// A member of a request whose findings are an `F`. Null counts as absent, unless the member is strict.
pub(crate) struct Field<F: 'static> {
    pub(in crate::models) key: Key,
    pub(super) is: Is<F>,
    pub(super) is_nullable: bool,
    /// What is accepted, if the member has to be there.
    pub(super) required: Option<&'static str>,
    pub(super) doc: &'static str,
}

/// The members of a request, in groups of which several fronts may share one.
pub(crate) type Table<F> = [&'static [Field<F>]];

type Key = &'static str;
type Words = &'static [&'static str];
/// Notes a value.
type Take<F, T> = fn(&mut F, T);
/// Checks a text, and notes it.
type Check<F> = fn(&mut F, &str) -> Result<(), Reject>;
type Read<F> = fn(&mut Walker<'_>, &mut F) -> Result<(), Reject>;

/// The kind of a member, and what notes its value.
pub(super) enum Is<F: 'static> {
    Model(Take<F, Box<str>>),
    Text(Check<F>),
    Word(Words, Take<F, &'static str>),
    Integer(u64, u64, Take<F, u64>),
    Number(Take<F, f64>),
    Boolean(Take<F, bool>),
    Object(&'static [Field<F>]),
    List(&'static Field<F>, Take<F, usize>),
    Nothing(&'static str),
    Own(Read<F>),
}

impl<F> Field<F> {
    const fn new(key: Key, is: Is<F>) -> Self {
        Self {
            key,
            is,
            is_nullable: true,
            required: None,
            doc: "",
        }
    }

    /// The id of a model, of an operation without prompts.
    pub(crate) const fn model(take: Take<F, Box<str>>) -> Self {
        let field = Self::optional_model(take).doc("The model.");
        field.required(MODEL)
    }

    /// The same where the operation has a model by default.
    pub(crate) const fn optional_model(take: Take<F, Box<str>>) -> Self {
        Self::new("model", Is::Model(take))
    }

    pub(crate) const fn text(key: Key, check: Check<F>) -> Self {
        Self::new(key, Is::Text(check))
    }

    /// One word of a closed list.
    pub(crate) const fn choice(key: Key, words: Words, take: Take<F, &'static str>) -> Self {
        Self::new(key, Is::Word(words, take))
    }

    /// An integer of this range.
    pub(crate) const fn integer(key: Key, least: u64, most: u64, take: Take<F, u64>) -> Self {
        Self::new(key, Is::Integer(least, most, take))
    }

    /// A finite number.
    pub(crate) const fn number(key: Key, take: Take<F, f64>) -> Self {
        Self::new(key, Is::Number(take))
    }

    pub(crate) const fn flag(key: Key, take: Take<F, bool>) -> Self {
        Self::new(key, Is::Boolean(take))
    }

    pub(crate) const fn object(key: Key, fields: &'static [Self]) -> Self {
        Self::new(key, Is::Object(fields))
    }

    /// An array of such items, which are counted.
    pub(crate) const fn list(key: Key, item: &'static Self, take: Take<F, usize>) -> Self {
        Self::new(key, Is::List(item, take))
    }

    /// A member of other APIs, which is refused for this reason.
    pub(crate) const fn nothing(key: Key, said: &'static str) -> Self {
        Self::new(key, Is::Nothing(said))
    }

    /// What this function accepts; the schema stands in the description.
    pub(crate) const fn own(key: Key, read: Read<F>) -> Self {
        Self::new(key, Is::Own(read))
    }

    /// Null is refused.
    pub(crate) const fn strict(mut self) -> Self {
        self.is_nullable = false;
        self
    }

    /// The member has to be there, and is this.
    pub(crate) const fn required(mut self, accepted: &'static str) -> Self {
        self.required = Some(accepted);
        self.strict()
    }

    pub(crate) const fn doc(mut self, doc: &'static str) -> Self {
        self.doc = doc;
        self
    }

    fn read(&self, walk: &mut Walker<'_>, found: &mut F) -> Result<(), Reject> {
        if self.is_nullable && walk.null()? {
            return Ok(());
        }
        match self.is {
            Is::Model(take) => take(found, model(walk)?),
            Is::Text(check) => check(found, &string(walk)?.unescaped())?,
            Is::Word(words, take) => take(found, one_of(walk, words)?),
            Is::Integer(least, most, take) => take(found, integer(walk, least, most)?),
            Is::Number(take) => take(found, number(walk)?),
            Is::Boolean(take) => take(found, boolean(walk)?),
            Is::Object(fields) => read_object(&[fields], walk, found)?,
            Is::List(item, take) => {
                let count = array(walk, |walk, _| item.read(walk, found))?;
                take(found, count);
            }
            Is::Nothing(said) => return Err(Reject::rule(said)),
            Is::Own(read) => read(walk, found)?,
        }
        Ok(())
    }

    /// Returns whether a form may have several of it.
    pub(crate) const fn is_list(&self) -> bool {
        matches!(self.key.as_bytes(), [.., b'[', b']'])
    }

    /// Reads a text of a form. Forms have members of some kinds alone.
    pub(crate) fn read_text(&self, text: &str, found: &mut F) -> Result<(), Reject> {
        match self.is {
            Is::Model(take) => take(found, plain_model(text)?),
            Is::Text(check) => check(found, text)?,
            Is::Word(words, take) => match words.iter().find(|word| **word == text) {
                Some(word) => take(found, word),
                None => return Err(is_none_of(text, &words.join(", "))),
            },
            Is::Boolean(take) => match text {
                "true" | "True" => take(found, true),
                "false" | "False" => take(found, false),
                _ => return Err(is_none_of(text, "true or false")),
            },
            Is::Nothing(said) => return Err(Reject::rule(said)),
            _ => {}
        }
        Ok(())
    }

    /// Returns whether a text of a form is a value of JSON that is not a string.
    pub(super) fn is_unquoted(&self, text: &str) -> bool {
        match self.is {
            Is::Boolean(_) => matches!(text, "true" | "false"),
            // A leading zero is not a number in JSON.
            Is::Integer(..) => {
                let is_short = text == "0" || !text.starts_with('0') && text.len() < 10;
                is_short && !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
            }
            _ => false,
        }
    }
}

/// A text of a form that is not what is accepted.
pub(crate) fn is_none_of(text: &str, accepted: &str) -> Reject {
    let came = quoted(text);
    Reject::rule(format!("is \"{came}\"; accepted is {accepted}"))
}

/// Returns the rows of a table.
pub(super) fn rows<F>(table: &Table<F>) -> impl Iterator<Item = &'static Field<F>> {
    table.iter().flat_map(|rows| rows.iter())
}

/// Returns the row of a member, and its place in the table.
pub(crate) fn find<F>(table: &Table<F>, key: &str) -> Option<(usize, &'static Field<F>)> {
    let mut fields = rows(table).enumerate();
    fields.find(|(_, field)| field.key == key)
}

/// Returns the row of a field of a form, which names lists with or without brackets.
pub(crate) fn find_text<F>(table: &Table<F>, name: &str) -> Option<&'static Field<F>> {
    let name = name.strip_suffix("[]").unwrap_or(name);
    let is_named = |key: &str| key.strip_suffix("[]").unwrap_or(key) == name;
    rows(table).find(|field| is_named(field.key))
}

/// Reads a member, if the table has a row of it. Returns whether it has.
pub(crate) fn read_member<F>(
    table: &Table<F>,
    walk: &mut Walker<'_>,
    key: &str,
    found: &mut F,
) -> Result<bool, Reject> {
    find(table, key).map_or(Ok(false), |(_, field)| {
        field.read(walk, found).map(|()| true)
    })
}

/// Walks a body once, and returns the findings with where its members stand. Members of other names are skipped.
pub(crate) fn read_body<F: Default>(
    table: &Table<F>,
    body: &Bytes,
) -> Result<(F, Vec<RequestMember>), Fault> {
    read_all(table, body, |walk, _, _| Ok(walk.skip().map(|_| ())?)).map_err(Reject::into_fault)
}

/// Walks a body as [`read_body`] does; `unknown` reads members of other names.
pub(crate) fn read_all<F: Default>(
    table: &Table<F>,
    body: &Bytes,
    unknown: fn(&mut Walker<'_>, &str, &mut F) -> Result<(), Reject>,
) -> Result<(F, Vec<RequestMember>), Reject> {
    let mut walk = Walker::new(body)?;
    let (mut found, mut seen) = (F::default(), 0_u64);
    let members = members(&mut walk, |walk, key| match find(table, key) {
        Some((at, field)) => {
            seen |= 1 << at;
            field.read(walk, &mut found)
        }
        None => unknown(walk, key, &mut found),
    })?;
    walk.end()?;
    check_required(table, seen)?;
    Ok((found, members))
}

/// Reads an object, in which null counts as absent.
fn read_object<F>(table: &Table<F>, walk: &mut Walker<'_>, found: &mut F) -> Result<(), Reject> {
    expect(walk, Type::Object, "an object")?;
    let (mut seen, mut set) = (0_u64, 0_u64);
    walk.object(|walk, key| match find(table, &key) {
        Some((at, _)) if seen & (1 << at) != 0 => Err(twice().within(&key)),
        Some((at, field)) => {
            seen |= 1 << at;
            if walk.null()? {
                return Ok(());
            }
            set |= 1 << at;
            field
                .read(walk, found)
                .map_err(|reject| reject.within(&key))
        }
        None => Ok(walk.skip().map(|_| ())?),
    })?;
    check_required(table, set)
}

fn check_required<F>(table: &Table<F>, seen: u64) -> Result<(), Reject> {
    for (at, field) in rows(table).enumerate() {
        if let Some(accepted) = field.required {
            let is_there = seen & (1 << at) != 0;
            required(is_there.then_some(()), field.key, accepted)?;
        }
    }
    Ok(())
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
        promise: None,
        own_headers: Vec::new(),
        payload,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    pub(crate) struct Found(Option<Box<str>>, u64, &'static str);

    type Row = Field<Found>;

    static ITEM: Row = Row::object("", &INSIDE).strict();
    static INSIDE: [Row; 2] = [
        Row::number("x", |found, x| found.1 += x as u64),
        Row::flag("y", |_, _| ()).required("a boolean"),
    ];
    pub(crate) static FIELDS: [Row; 7] = [
        Row::model(|found, model| found.0 = Some(model)),
        Row::integer("n", 1, 9, |found, n| found.1 = n).doc("How many."),
        Row::choice("form", &["a", "b"], |found, word| found.2 = word),
        Row::text("note", |_, _| Ok(())).strict(),
        Row::own("own", |walk, found| {
            integer(walk, 0, 5).map(|n| found.1 = n)
        })
        .strict(),
        Row::list("items", &ITEM, |found, count| found.1 += 10 * count as u64),
        Row::nothing("mask", "is of others"),
    ];

    fn read(body: &'static str) -> Result<Found, String> {
        match read_body(&[&FIELDS], &Bytes::from(body)) {
            Ok((found, _)) => Ok(found),
            Err(fault) => Err(fault.message.into_owned()),
        }
    }

    #[test]
    fn a_body_is_checked_by_its_table() {
        let found = Found(Some("m".into()), 3, "b");
        assert_eq!(read(r#"{"model":"m","n":3,"form":"b","x":[]}"#), Ok(found));
        let nulls = r#"{"model":"m","n":null,"form":null,"mask":null,"own":4}"#;
        assert_eq!(read(nulls), Ok(Found(Some("m".into()), 4, "")));
        let items = r#"{"model":"m","items":[{"y":true,"x":2},{"y":false,"z":[]}]}"#;
        assert_eq!(read(items), Ok(Found(Some("m".into()), 22, "")));
        for (body, said) in [
            (
                r#"{"n":3}"#,
                "`model` is missing; accepted is a model id; `GET /v1/models` lists them",
            ),
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
                "`note` is a number (1); accepted is a string",
            ),
            (
                r#"{"model":"m","own":null}"#,
                "`own` is null; accepted is an integer from 0 to 5",
            ),
            (
                r#"{"model":"m","items":[{"y":true},{}]}"#,
                "`items[1].y` is missing; accepted is a boolean",
            ),
            (
                r#"{"model":"m","items":[{"x":1,"x":2}]}"#,
                "`items[0].x` came twice in the same object; accepted is once",
            ),
            (r#"{"model":"m","mask":1}"#, "`mask` is of others"),
        ] {
            assert_eq!(read(body), Err(said.to_owned()), "{body}");
        }
    }
}
