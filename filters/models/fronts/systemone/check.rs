//! The 400 rules of a request for typed decisions, in one pass over its bytes. Source: docs/model-gateway.md 2.15.

use std::ops::Range;

use bytes::Bytes;

use super::SYSTEM_ONE;
use super::questions::{QUESTIONS, questions};
use crate::fault::Fault;
use crate::json::{Type, Walker};
use crate::models::check::read::string;
use crate::models::check::reject::{Reject, other};
use crate::models::check::shape::{Field, plain_request, read_body};
use crate::models::request::{ModelRequest, Payload, Source};
use crate::models::typed_decisions::{DecisionFacts, Question};

const STATE: &str = "a string, an object or an array";

/// The findings of the pass.
#[derive(Debug, Default)]
pub(super) struct Findings {
    model: Option<Box<str>>,
    state: Range<usize>,
    questions: Vec<Question>,
}

type Row = Field<Findings>;

pub(super) static FIELDS: [Row; 3] = [
    Row::model(|found, model| found.model = Some(model)),
    Row::own("state", |walk, found| {
        state(walk).map(|place| found.state = place)
    })
    .required(STATE),
    Row::own("questions", |walk, found| {
        questions(walk).map(|all| found.questions = all)
    })
    .required(QUESTIONS),
];

/// Checks a body.
///
/// Cost: one pass; allocates for keys and questions. Errors: 400 naming the field, what came and what is accepted.
pub(super) fn check(body: Bytes) -> Result<ModelRequest, Fault> {
    let (found, members): (Findings, _) = read_body(&[&FIELDS], &body)?;
    let payload = Payload::TypedDecisions(DecisionFacts {
        state: found.state,
        questions: found.questions,
    });
    let source = Source::new(body, members);
    let request = plain_request(&SYSTEM_ONE, found.model, source, payload);
    Ok(ModelRequest {
        text_bytes: request.cost_inputs.bytes,
        ..request
    })
}

/// What is decided about; returns where it stands.
fn state(walk: &mut Walker<'_>) -> Result<Range<usize>, Reject> {
    let kind = walk.peek()?;
    if !matches!(kind, Type::String | Type::Object | Type::Array) {
        return Err(other(walk, STATE));
    }
    let start = walk.at();
    let is_empty = match kind {
        // Blanks are blanks, escaped or not.
        Type::String => string(walk)?.unescaped().trim().is_empty(),
        _ => {
            let text = walk.skip()?;
            let inside = text.get(1..text.len().saturating_sub(1));
            inside.unwrap_or_default().trim().is_empty()
        }
    };
    match is_empty {
        true => Err(Reject::rule(format!("is empty; accepted is {STATE}"))),
        false => Ok(start..walk.at()),
    }
}
