//! The 400 rules of a request to search the web, in one pass over its bytes. Source: docs/model-gateway.md 2.14.

use bytes::Bytes;

use super::Search;
use crate::fault::Fault;
use crate::json::{Type, Walker};
use crate::models::check::read::{array, integer, nullable_one_of, required, string};
use crate::models::check::reject::{Reject, other};
use crate::models::check::top::{members, model};
use crate::models::parameter::AskedParameters;
use crate::models::request::{ModelRequest, Needs, Payload, RequestMember, Source};
use crate::models::search::{Day, SearchFacts, SearchKind};
use crate::money::{CostInputs, Unit, UnitCounts};

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
const RECENCIES: [&str; 5] = ["hour", "day", "week", "month", "year"];

/// The findings of the pass.
#[derive(Debug, Default)]
struct Findings {
    model: Option<Box<str>>,
    query_bytes: u64,
    facts: SearchFacts,
}

/// Checks a body.
///
/// Cost: one pass; allocates for keys and filters. Errors: 400 naming the field, what came and what is accepted.
pub(super) fn check(body: Bytes) -> Result<ModelRequest, Fault> {
    let mut found = Findings::default();
    let members = pass(&body, &mut found).map_err(Reject::into_fault)?;
    // Some bill what they read of each page.
    let units = UnitCounts::ZERO
        .with(Unit::Search, 1)
        .with(Unit::Document, found.facts.max_results);
    Ok(ModelRequest {
        front: &Search,
        model: found.model.unwrap_or_else(|| DEFAULT_MODEL.into()),
        is_stream: false,
        strategy: None,
        session: None,
        needs: Needs {
            choices: 1,
            ..Needs::default()
        },
        cost_inputs: CostInputs {
            bytes: body.len() as u64,
            choices: 1,
            draws: Some(false),
            units,
            ..CostInputs::default()
        },
        text_bytes: found.query_bytes,
        units,
        asked: AskedParameters::default(),
        source: Source::new(body, members),
        managed: None,
        payload: Payload::Search(found.facts),
    })
}

fn pass(body: &Bytes, found: &mut Findings) -> Result<Vec<RequestMember>, Reject> {
    let mut walk = Walker::new(body)?;
    let members = members(&mut walk, |walk, key| member(walk, key, found))?;
    walk.end()?;
    required((found.facts.queries > 0).then_some(()), "query", QUERY)?;
    let facts = &found.facts;
    if let (Some(after), Some(before)) = (facts.after, facts.before)
        && after > before
    {
        let said = "is later than `search_before_date_filter`; accepted is a day before it";
        return Err(Reject::rule(said).within("search_after_date_filter"));
    }
    Ok(members)
}

fn member(walk: &mut Walker<'_>, key: &str, found: &mut Findings) -> Result<(), Reject> {
    let facts = &mut found.facts;
    if key != "query" && walk.null()? {
        return Ok(());
    }
    match key {
        "model" => found.model = Some(model(walk)?),
        "query" => found.query_bytes = query(walk, facts)?,
        "search_type" => facts.kind = kind(walk)?,
        "max_results" => facts.max_results = integer(walk, 1, MAX_RESULTS)?,
        "max_tokens" | "max_tokens_per_page" => _ = integer(walk, 1, u32::MAX.into())?,
        "search_context_size" => _ = nullable_one_of(walk, &["low", "medium", "high"])?,
        "country" => facts.country = Some(country(walk)?),
        "search_language_filter" => texts(walk, |_| Ok(()))?,
        "search_domain_filter" => domains(walk, facts)?,
        "search_recency_filter" => facts.recency = nullable_one_of(walk, &RECENCIES)?,
        "search_after_date_filter" => facts.after = Some(day(walk)?),
        "search_before_date_filter" => facts.before = Some(day(walk)?),
        "last_updated_after_filter" | "last_updated_before_filter" => _ = day(walk)?,
        _ => _ = walk.skip()?,
    }
    Ok(())
}

/// The queries; returns their bytes.
fn query(walk: &mut Walker<'_>, facts: &mut SearchFacts) -> Result<u64, Reject> {
    let mut bytes = 0;
    match walk.peek()? {
        Type::String => {
            bytes = text(walk)?.len() as u64;
            facts.queries = 1;
        }
        Type::Array => {
            facts.queries = array(walk, |walk, index| {
                if index >= MAX_QUERIES {
                    let said = format!("is one of more than {MAX_QUERIES} queries");
                    return Err(Reject::rule(said));
                }
                bytes += text(walk)?.len() as u64;
                Ok(())
            })?;
        }
        _ => return Err(other(walk, QUERY)),
    }
    match facts.queries {
        0 => Err(Reject::rule(format!("is empty; accepted is {QUERY}"))),
        _ => Ok(bytes),
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

fn kind(walk: &mut Walker<'_>) -> Result<Option<SearchKind>, Reject> {
    let word = nullable_one_of(walk, &SearchKind::ALL.map(SearchKind::as_str))?;
    let mut kinds = SearchKind::ALL.into_iter();
    Ok(kinds.find(|kind| Some(kind.as_str()) == word))
}

fn country(walk: &mut Walker<'_>) -> Result<Box<str>, Reject> {
    let code = string(walk)?.unescaped();
    if code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return Ok(code.to_ascii_uppercase().into());
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
fn domains(walk: &mut Walker<'_>, facts: &mut SearchFacts) -> Result<(), Reject> {
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
