//! The 400 rules of a request to search the web, in one pass over its bytes. Source: docs/model-gateway.md 2.14.

use bytes::Bytes;

use super::SEARCH;
use crate::fault::Fault;
use crate::json::{Type, Walker};
use crate::models::check::read::{array, string};
use crate::models::check::reject::{Reject, other};
use crate::models::check::shape::{Field, U32, plain_request, read_body};
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

pub(super) static FIELDS: [Row; 15] = [
    Row::optional_model(|found, model| found.model = Some(model))
        .doc("The search; by default `web-search`."),
    Row::own("query", query).required(QUERY),
    Row::choice("search_type", &["web", "fast"], |found, word| {
        let mut kinds = SearchKind::ALL.into_iter();
        found.facts.kind = kinds.find(|kind| kind.as_str() == word);
    }),
    Row::integer("max_results", 1, MAX_RESULTS, |found, most| {
        found.facts.max_results = most;
    })
    .doc("By default 10."),
    Row::integer("max_tokens", 1, U32, |_, _| ()),
    Row::integer("max_tokens_per_page", 1, U32, |_, _| ()),
    Row::choice("search_context_size", &["low", "medium", "high"], |_, _| ()),
    Row::text("country", country),
    Row::own("search_language_filter", |walk, _| texts(walk, |_| Ok(()))),
    Row::own("search_domain_filter", domains),
    Row::choice(
        "search_recency_filter",
        &["hour", "day", "week", "month", "year"],
        |found, word| {
            found.facts.recency = Some(word);
        },
    ),
    Row::text("search_after_date_filter", |found, text| {
        day(text).map(|day| found.facts.after = Some(day))
    }),
    Row::text("search_before_date_filter", |found, text| {
        day(text).map(|day| found.facts.before = Some(day))
    }),
    Row::text("last_updated_after_filter", |_, text| day(text).map(|_| ())),
    Row::text("last_updated_before_filter", |_, text| {
        day(text).map(|_| ())
    }),
];

/// Checks a body.
///
/// Cost: one pass; allocates for keys and filters. Errors: 400 naming the field, what came and what is accepted.
pub(super) fn check(body: Bytes) -> Result<ModelRequest, Fault> {
    let (found, members): (Findings, _) = read_body(&[&FIELDS], &body)?;
    check_together(&found.facts).map_err(Reject::into_fault)?;
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

fn country(found: &mut Findings, code: &str) -> Result<(), Reject> {
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

fn day(text: &str) -> Result<Day, Reject> {
    Day::parse(text).ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        Reject::rule(format!("is {shown:?}; accepted is {DAY}"))
    })
}
