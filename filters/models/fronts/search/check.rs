//! The 400 rules of a request to search the web, in one pass over its bytes. Source: docs/model-gateway.md 2.14.

use bytes::Bytes;

use super::SEARCH;
use crate::fault::Fault;
use crate::json::{Type, Walker};
use crate::models::check::read::{array, string};
use crate::models::check::reject::{Reject, other};
use crate::models::check::shape::{Field, Is, U32, plain_request, read_members};
use crate::models::request::{ModelRequest, Payload, Source};
use crate::models::search::{Day, SearchFacts, SearchKind};
use crate::money::{Unit, UnitCounts};

/// The model of a request that names none. Our choice: all searches that the catalogue knows.
const DEFAULT_MODEL: &str = "web-search";
/// Bounds. Source: docs/facts/wire-formats.md 6.7.
const MAX_QUERIES: usize = 5;
const MAX_RESULTS: u64 = 50;
const MAX_FILTERS: usize = 20;
/// How many bytes a query, a domain or a language may have. Our choice.
const MAX_BYTES: usize = 8192;

const QUERY: &str = "a string, or an array of 1 to 5 strings";
const COUNTRY: &str = "a code of two letters, such as US";
const DAY: &str = "a day as MM/DD/YYYY";

/// The findings of the pass.
#[derive(Debug, Default)]
pub(super) struct Findings {
    model: Option<Box<str>>,
    query_bytes: u64,
    facts: SearchFacts,
}

type Row = Field<Findings>;

type Take<T> = fn(&mut Findings, T);

const fn number(key: &'static str, most: u64, take: Take<u64>) -> Row {
    Row::new(key, Is::Integer(1, most, take)).nullable()
}

const fn choice(
    key: &'static str,
    words: &'static [&'static str],
    take: Take<&'static str>,
) -> Row {
    Row::new(key, Is::Word(words, take)).nullable()
}

pub(super) static FIELDS: [Row; 15] = [
    Row::new("model", Is::Model(|found, model| found.model = Some(model)))
        .nullable()
        .doc("The search; by default `web-search`."),
    Row::new("query", Is::Own(query)).required(QUERY),
    choice("search_type", &["web", "fast"], |found, word| {
        let mut kinds = SearchKind::ALL.into_iter();
        found.facts.kind = kinds.find(|kind| kind.as_str() == word);
    }),
    number("max_results", MAX_RESULTS, |found, most| {
        found.facts.max_results = most;
    })
    .doc("By default 10."),
    number("max_tokens", U32, |_, _| ()),
    number("max_tokens_per_page", U32, |_, _| ()),
    choice("search_context_size", &["low", "medium", "high"], |_, _| ()),
    Row::new("country", Is::Own(country)).nullable(),
    Row::new(
        "search_language_filter",
        Is::Own(|walk, _| texts(walk, |_| Ok(()))),
    )
    .nullable(),
    Row::new("search_domain_filter", Is::Own(domains)).nullable(),
    choice(
        "search_recency_filter",
        &["hour", "day", "week", "month", "year"],
        |found, word| found.facts.recency = Some(word),
    ),
    Row::new(
        "search_after_date_filter",
        Is::Own(|walk, found| day(walk).map(|day| found.facts.after = Some(day))),
    )
    .nullable(),
    Row::new(
        "search_before_date_filter",
        Is::Own(|walk, found| day(walk).map(|day| found.facts.before = Some(day))),
    )
    .nullable(),
    Row::new(
        "last_updated_after_filter",
        Is::Own(|walk, _| day(walk).map(|_| ())),
    )
    .nullable(),
    Row::new(
        "last_updated_before_filter",
        Is::Own(|walk, _| day(walk).map(|_| ())),
    )
    .nullable(),
];

/// Checks a body.
///
/// Cost: one pass; allocates for keys and filters. Errors: 400 naming the field, what came and what is accepted.
pub(super) fn check(body: Bytes) -> Result<ModelRequest, Fault> {
    let mut found = Findings::default();
    let members = read_members(&FIELDS, &body, &mut found)
        .and_then(|members| check_together(&found.facts).map(|()| members))
        .map_err(Reject::into_fault)?;
    // Some bill what they read of each page.
    let units = UnitCounts::ZERO
        .with(Unit::Search, 1)
        .with(Unit::Document, found.facts.max_results);
    let model = found.model.unwrap_or_else(|| DEFAULT_MODEL.into());
    let source = Source::new(body, members);
    let mut request = plain_request(&SEARCH, Some(model), source, Payload::Search(found.facts));
    request.cost_inputs.units = units;
    request.text_bytes = found.query_bytes;
    request.units = units;
    Ok(request)
}

fn check_together(facts: &SearchFacts) -> Result<(), Reject> {
    match (facts.after, facts.before) {
        (Some(after), Some(before)) if after > before => {
            let said = "is later than `search_before_date_filter`; accepted is a day before it";
            Err(Reject::rule(said).within("search_after_date_filter"))
        }
        _ => Ok(()),
    }
}

fn query(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let (facts, bytes) = (&mut found.facts, &mut found.query_bytes);
    match walk.peek()? {
        Type::String => {
            *bytes = text(walk)?.len() as u64;
            facts.queries = 1;
        }
        Type::Array => {
            facts.queries = array(walk, |walk, index| {
                if index >= MAX_QUERIES {
                    let said = format!("is one of more than {MAX_QUERIES} queries");
                    return Err(Reject::rule(said));
                }
                *bytes += text(walk)?.len() as u64;
                Ok(())
            })?;
        }
        _ => return Err(other(walk, QUERY)),
    }
    match facts.queries {
        0 => Err(Reject::rule(format!("is empty; accepted is {QUERY}"))),
        _ => Ok(()),
    }
}

/// A text that is not blank.
fn text(walk: &mut Walker<'_>) -> Result<Box<str>, Reject> {
    let text = string(walk)?.unescaped();
    match text.len() {
        _ if text.trim().is_empty() => Err(Reject::rule("is empty; accepted is a text")),
        bytes if bytes > MAX_BYTES => {
            let said = format!("has {bytes} bytes; accepted are at most {MAX_BYTES}");
            Err(Reject::rule(said))
        }
        _ => Ok(text.into()),
    }
}

fn country(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let code = string(walk)?.unescaped();
    if code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        found.facts.country = Some(code.to_ascii_uppercase().into());
        return Ok(());
    }
    let shown: String = code.chars().take(40).collect();
    Err(Reject::rule(format!("is {shown:?}; accepted is {COUNTRY}")))
}

/// An array of 1 to 20 texts, each of which `each` checks.
fn texts(
    walk: &mut Walker<'_>,
    mut each: impl FnMut(Box<str>) -> Result<(), Reject>,
) -> Result<(), Reject> {
    if walk.peek()? != Type::Array {
        return Err(other(walk, "an array of strings"));
    }
    array(walk, |walk, index| {
        if index >= MAX_FILTERS {
            let said = format!("is one of more than {MAX_FILTERS} values");
            return Err(Reject::rule(said));
        }
        each(text(walk)?)
    })?;
    Ok(())
}

/// Domains, which are included or, behind a minus, excluded.
fn domains(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let facts = &mut found.facts;
    texts(walk, |domain| {
        match domain.strip_prefix('-') {
            Some("") => return Err(Reject::rule("is empty; accepted is a domain")),
            Some(domain) => facts.excluded.push(domain.into()),
            None => facts.included.push(domain),
        }
        Ok(())
    })
}

fn day(walk: &mut Walker<'_>) -> Result<Day, Reject> {
    let text = string(walk)?.unescaped();
    Day::parse(&text).ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        Reject::rule(format!("is {shown:?}; accepted is {DAY}"))
    })
}
