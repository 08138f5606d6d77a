//! The 400 rules of a request to rank documents, in one pass over its bytes. Source: docs/model-gateway.md 2.10.

use std::ops::Range;

use bytes::Bytes;

use super::Rerank;
use crate::fault::Fault;
use crate::json::{Type, Walker};
use crate::models::check::read::{array, boolean, integer, object, required, string};
use crate::models::check::reject::{Reject, other};
use crate::models::check::top::{MODEL, members, model};
use crate::models::parameter::AskedParameters;
use crate::models::request::{ModelRequest, Needs, Payload, RequestMember, Source};
use crate::models::rerank::RerankFacts;
use crate::money::{CostInputs, Unit, UnitCounts};

/// How many documents a request may have. Our choice: ten times as many as providers recommend.
const MAX_DOCUMENTS: usize = 10_000;
/// Documents of one search. Source: docs/facts/wire-formats.md 6.5.
const SEARCH_DOCUMENTS: u64 = 100;
/// Bytes from which on a document counts as another one in the most that a search may cost: as many as there are tokens
/// at which providers split documents, and a token has a byte at the least.
const SPLIT_BYTES: u64 = 500;

const DOCUMENTS: &str = "an array of strings, or of objects with a `text`";
const QUERY: &str = "a string";

/// The findings of the pass.
#[derive(Debug, Default)]
struct Findings {
    model: Option<Box<str>>,
    query_bytes: u64,
    has_query: bool,
    documents: Vec<Range<usize>>,
    has_objects: bool,
    document_bytes: u64,
    /// The documents as they count at most, where long ones are split.
    split_documents: u64,
    top_n: Option<usize>,
    returns_documents: bool,
}

impl Findings {
    /// Returns the bytes of all texts as providers of tokens count them: the query once for each document.
    fn text_bytes(&self) -> u64 {
        let queries = self.query_bytes.saturating_mul(self.count());
        queries.saturating_add(self.document_bytes)
    }

    fn count(&self) -> u64 {
        self.documents.len() as u64
    }

    /// Returns the units for so many documents in searches.
    fn units(&self, in_searches: u64) -> UnitCounts {
        UnitCounts::default()
            .with(Unit::Search, in_searches.div_ceil(SEARCH_DOCUMENTS))
            .with(Unit::Document, self.count())
    }
}

/// Checks a body.
///
/// Cost: one pass; allocates for keys and the places of documents. Errors: 400 naming the field, what came and what is
/// accepted.
pub(super) fn check(body: Bytes) -> Result<ModelRequest, Fault> {
    let mut found = Findings::default();
    let members = pass(&body, &mut found).map_err(Reject::into_fault)?;
    let text_bytes = found.text_bytes();
    Ok(ModelRequest {
        front: &Rerank,
        is_stream: false,
        strategy: None,
        session: None,
        needs: Needs {
            choices: 1,
            ..Needs::default()
        },
        cost_inputs: CostInputs {
            bytes: text_bytes.saturating_add(body.len() as u64),
            choices: 1,
            draws: Some(false),
            units: found.units(found.split_documents),
            ..CostInputs::default()
        },
        text_bytes,
        units: found.units(found.count()),
        asked: AskedParameters::default(),
        source: Source::new(body, members),
        managed: None,
        payload: Payload::Rerank(RerankFacts {
            documents: found.documents.into(),
            has_objects: found.has_objects,
            top_n: found.top_n,
            returns_documents: found.returns_documents,
        }),
        model: found.model.unwrap_or_default(),
    })
}

fn pass(body: &Bytes, found: &mut Findings) -> Result<Vec<RequestMember>, Reject> {
    let mut walk = Walker::new(body)?;
    let members = members(&mut walk, |walk, key| member(walk, key, found))?;
    walk.end()?;
    required(found.model.as_ref(), "model", MODEL)?;
    required(found.has_query.then_some(()), "query", QUERY)?;
    required((found.count() > 0).then_some(()), "documents", DOCUMENTS)?;
    Ok(members)
}

fn member(walk: &mut Walker<'_>, key: &str, found: &mut Findings) -> Result<(), Reject> {
    match key {
        "model" => found.model = Some(model(walk)?),
        "query" => {
            found.query_bytes = text(walk)?;
            found.has_query = true;
        }
        "documents" => documents(walk, found)?,
        "top_n" => {
            let most = nullable_integer(walk)?;
            found.top_n = most.and_then(|most| usize::try_from(most).ok());
        }
        "max_tokens_per_doc" | "max_chunks_per_doc" => _ = nullable_integer(walk)?,
        "return_documents" if walk.null()? => {}
        "return_documents" => found.returns_documents = boolean(walk)?,
        _ => _ = walk.skip()?,
    }
    Ok(())
}

fn documents(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    if walk.peek()? != Type::Array {
        return Err(other(walk, DOCUMENTS));
    }
    let count = array(walk, |walk, index| {
        if index >= MAX_DOCUMENTS {
            let said = format!("is one of more than {MAX_DOCUMENTS} documents");
            return Err(Reject::rule(said));
        }
        let kind = walk.peek()?;
        let start = walk.at();
        let bytes = document(walk, kind)?;
        found.documents.push(start..walk.at());
        found.has_objects |= kind == Type::Object;
        found.document_bytes = found.document_bytes.saturating_add(bytes);
        found.split_documents += bytes.div_ceil(SPLIT_BYTES);
        Ok(())
    })?;
    match count {
        0 => Err(Reject::rule("is empty; accepted is at least one document")),
        _ => Ok(()),
    }
}

/// A document; returns the bytes of its text.
fn document(walk: &mut Walker<'_>, kind: Type) -> Result<u64, Reject> {
    match kind {
        Type::String => text(walk),
        Type::Object => {
            let mut bytes = None;
            object(walk, &["text"], |walk, _| {
                bytes = Some(text(walk)?);
                Ok(())
            })?;
            required(bytes, "text", "a string")
        }
        _ => Err(other(walk, "a string, or an object with a `text`")),
    }
}

/// A text that is not empty; returns its bytes.
fn text(walk: &mut Walker<'_>) -> Result<u64, Reject> {
    match string(walk)?.len() as u64 {
        0 => Err(Reject::rule("is empty; accepted is a text")),
        bytes => Ok(bytes),
    }
}

fn nullable_integer(walk: &mut Walker<'_>) -> Result<Option<u64>, Reject> {
    match walk.null()? {
        true => Ok(None),
        false => integer(walk, 1, u32::MAX.into()).map(Some),
    }
}
