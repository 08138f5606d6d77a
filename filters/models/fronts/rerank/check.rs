//! The 400 rules of a request to rank documents, in one pass over its bytes. Source: docs/model-gateway.md 2.10.

use std::ops::Range;

use bytes::Bytes;

use super::RERANK;
use crate::fault::Fault;
use crate::json::{Type, Walker};
use crate::models::check::read::{array, object, required, string};
use crate::models::check::reject::{Reject, other};
use crate::models::check::shape::{Field, U32, plain_request, read_body};
use crate::models::request::{ModelRequest, Payload, Source};
use crate::models::rerank::RerankFacts;
use crate::money::{Unit, UnitCounts};

/// How many documents a request may have. Our choice: ten times as many as providers recommend.
const MAX_DOCUMENTS: usize = 10_000;
/// Documents of one search. Source: docs/facts/wire-formats.md 6.5.
const SEARCH_DOCUMENTS: u64 = 100;
/// Bytes from which on a document counts as another one in the most that a search may cost: as many as there are tokens
/// at which providers split documents, and a token has a byte at the least.
const SPLIT_BYTES: u64 = 500;

const DOCUMENTS: &str = "an array of strings, or of objects with a `text`";

/// The findings of the pass.
#[derive(Debug, Default)]
pub(super) struct Findings {
    model: Option<Box<str>>,
    query_bytes: u64,
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

type Row = Field<Findings>;

pub(super) static FIELDS: [Row; 7] = [
    Row::model(|found, model| found.model = Some(model)),
    Row::own("query", |walk, found| {
        text(walk).map(|bytes| found.query_bytes = bytes)
    })
    .required("a string"),
    Row::own("documents", documents).required(DOCUMENTS),
    Row::integer("top_n", 1, U32, |found, most| {
        found.top_n = usize::try_from(most).ok();
    })
    .doc("The most results."),
    Row::flag("return_documents", |found, returns| {
        found.returns_documents = returns;
    }),
    Row::integer("max_tokens_per_doc", 1, U32, |_, _| ()),
    Row::integer("max_chunks_per_doc", 1, U32, |_, _| ()),
];

/// Checks a body.
///
/// Cost: one pass; allocates for keys and the places of documents. Errors: 400 naming the field, what came and what is
/// accepted.
pub(super) fn check(body: Bytes) -> Result<ModelRequest, Fault> {
    let (found, members): (Findings, _) = read_body(&[&FIELDS], &body)?;
    let text_bytes = found.text_bytes();
    let (units, most_units) = (
        found.units(found.count()),
        found.units(found.split_documents),
    );
    let payload = Payload::Rerank(RerankFacts {
        documents: found.documents.into(),
        has_objects: found.has_objects,
        top_n: found.top_n,
        returns_documents: found.returns_documents,
    });
    let source = Source::new(body, members);
    let mut request = plain_request(&RERANK, found.model, source, payload);
    let cost_inputs = &mut request.cost_inputs;
    cost_inputs.bytes = cost_inputs.bytes.saturating_add(text_bytes);
    cost_inputs.units = most_units;
    Ok(ModelRequest {
        text_bytes,
        units,
        ..request
    })
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
