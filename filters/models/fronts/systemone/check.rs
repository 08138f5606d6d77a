//! The 400 rules of a request for typed decisions, in one pass over its bytes. Source: docs/model-gateway.md 2.15.

use std::ops::Range;

use bytes::Bytes;

use super::SystemOne;
use super::questions::{QUESTIONS, questions};
use crate::fault::Fault;
use crate::json::{Type, Walker};
use crate::models::check::read::{required, string};
use crate::models::check::reject::{Reject, other};
use crate::models::check::top::{MODEL, members, model};
use crate::models::parameter::AskedParameters;
use crate::models::request::{ModelRequest, Needs, Payload, RequestMember, Source};
use crate::models::typed_decisions::{DecisionFacts, Question};
use crate::money::{CostInputs, UnitCounts};

const STATE: &str = "a string, an object or an array";

/// The findings of the pass.
#[derive(Debug, Default)]
struct Findings {
    model: Option<Box<str>>,
    state: Option<Range<usize>>,
    questions: Option<Vec<Question>>,
}

/// Checks a body.
///
/// Cost: one pass; allocates for keys and questions. Errors: 400 naming the field, what came and what is accepted.
pub(super) fn check(body: Bytes) -> Result<ModelRequest, Fault> {
    let mut found = Findings::default();
    let members = pass(&body, &mut found).map_err(Reject::into_fault)?;
    let bytes = body.len() as u64;
    Ok(ModelRequest {
        front: &SystemOne,
        model: found.model.unwrap_or_default(),
        is_stream: false,
        strategy: None,
        session: None,
        needs: Needs {
            choices: 1,
            ..Needs::default()
        },
        cost_inputs: CostInputs {
            bytes,
            choices: 1,
            draws: Some(false),
            ..CostInputs::default()
        },
        text_bytes: bytes,
        units: UnitCounts::ZERO,
        asked: AskedParameters::default(),
        source: Source::new(body, members),
        managed: None,
        payload: Payload::TypedDecisions(DecisionFacts {
            state: found.state.unwrap_or_default(),
            questions: found.questions.unwrap_or_default(),
        }),
    })
}

fn pass(body: &Bytes, found: &mut Findings) -> Result<Vec<RequestMember>, Reject> {
    let mut walk = Walker::new(body)?;
    let members = members(&mut walk, |walk, key| member(walk, key, found))?;
    walk.end()?;
    required(found.model.as_ref(), "model", MODEL)?;
    required(found.state.as_ref(), "state", STATE)?;
    required(found.questions.as_ref(), "questions", QUESTIONS)?;
    Ok(members)
}

fn member(walk: &mut Walker<'_>, key: &str, found: &mut Findings) -> Result<(), Reject> {
    match key {
        "model" => found.model = Some(model(walk)?),
        "state" => found.state = Some(state(walk)?),
        "questions" => found.questions = Some(questions(walk)?),
        _ => _ = walk.skip()?,
    }
    Ok(())
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
