//! The 400 rules of a request, in one pass over its bytes. What only the vendor knows is walked, so that it is well formed, and
//! goes to hosts of its dialect. Source: docs/facts/messages.md.

mod block;
mod tool;
pub(super) mod top;

#[cfg(test)]
mod tests;

use std::ops::Range;

use bytes::Bytes;

use crate::fault::Fault;
use crate::models::chat::facts::ChatFacts;
use crate::models::chat::inlined::RemoteImage;
use crate::models::check::managed::Named;
use crate::models::check::read::Limit;
use crate::models::check::reject::Reject;
use crate::models::check::shape::read_all;
use crate::models::dialects::Dialect;
use crate::models::front::{Front, Received};
use crate::models::parameter::{AskedParameters, Parameter, ParameterSet};
use crate::models::request::{
    Effort, ModelRequest, NativeNeed, Needs, Payload, SearchNeeds, Source, Strategy,
};
use crate::money::{CostInputs, UnitCounts};

/// What `thinking` asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Thinking {
    Off,
    /// With this budget.
    Budget(u64),
    /// As the model sees fit.
    Adaptive,
}

/// The findings of the pass.
#[derive(Debug, Default)]
pub(in super::super) struct Findings {
    /// What `model` and `prompt` name.
    named: Named,
    is_stream: bool,
    strategy: Option<Strategy>,
    free_models_only: bool,
    no_reasoning: bool,
    max_tokens: Option<Limit>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    thinking: Option<Thinking>,
    effort: Option<Effort>,
    /// The number of messages.
    messages: Option<usize>,
    /// Blocks of all messages.
    items: usize,
    /// The indexes of the message at hand, of its block, and of a block in that.
    place: Vec<usize>,
    /// Blocks with state so far.
    states: usize,
    /// Messages that hold some.
    special: Vec<Range<usize>>,
    needs: Needs,
    set: ParameterSet,
    tools: usize,
    functions: Vec<Box<str>>,
    strict_tools: u32,
    chosen: Option<Box<str>>,
    calls_nothing: bool,
    is_serial: bool,
    search: Option<SearchNeeds>,
    /// The first tool or block that only hosts of the dialect know.
    native: Option<NativeNeed>,
    schema: Option<Range<usize>>,
    remote_images: Vec<RemoteImage>,
    images: u64,
    files: u64,
    media_bytes: u64,
    text_bytes: u64,
    /// Whether the message that is no instruction has come.
    has_turn: bool,
}

/// Checks a body of `front`. `counts`: its tokens are counted, so that nothing is answered.
///
/// Cost: one pass; allocates for names, never for content. Errors: 400 naming the field, what came and what is accepted.
pub(super) fn check(
    body: Bytes,
    front: &'static dyn Front,
    counts: bool,
) -> Result<Received, Fault> {
    let reject = |reject: Reject| reject.in_dialect(Dialect::Messages).into_fault();
    let (found, members) = read_all(&[&top::FIELDS], &body, top::unknown).map_err(reject)?;
    if found.named.is_managed() {
        let source = Source::new(body, members);
        let request = found.named.into_request(Dialect::Messages, source);
        return Ok(Received::Managed(Box::new(request.map_err(reject)?)));
    }
    top::together(&found, counts).map_err(reject)?;
    let request = complete(found, front, Source::new(body, members));
    Ok(Received::Complete(request))
}

fn complete(found: Findings, front: &'static dyn Front, source: Source) -> ModelRequest {
    let asked = asked(&found);
    let effort = effort(&found);
    let bytes = source.body.len() as u64;
    let limit = found.max_tokens;
    ModelRequest {
        front,
        model: found.named.model.unwrap_or_default(),
        is_stream: found.is_stream,
        strategy: found.strategy,
        session: None,
        needs: Needs {
            choices: 1,
            max_tokens: limit.as_ref().map(|limit| limit.count),
            odd_max_tokens: limit.and_then(|limit| limit.odd),
            context_tokens: found.text_bytes / 8,
            free_models_only: found.free_models_only,
            no_reasoning: found.no_reasoning,
            effort,
            web_search: found.search.filter(|_| !found.calls_nothing),
            adapts: true,
            native: found.native,
            ..found.needs
        },
        asked,
        cost_inputs: CostInputs {
            bytes: bytes.saturating_sub(found.media_bytes),
            images: found.images,
            files: found.files,
            choices: 1,
            ..CostInputs::default()
        },
        text_bytes: found.text_bytes,
        units: UnitCounts::default(),
        source,
        managed: None,
        promise: None,
        own_headers: Vec::new(),
        payload: Payload::Chat(ChatFacts {
            special_messages: found.special,
            remote_images: found.remote_images,
            schema: found.schema,
            ..ChatFacts::default()
        }),
    }
}

/// Returns how much the model shall reason.
fn effort(found: &Findings) -> Option<Effort> {
    match found.thinking {
        Some(Thinking::Off) => Some(Effort::None),
        // Hosts of the dialect get the budget as it came.
        Some(Thinking::Budget(budget)) => Some(effort_of(budget)),
        Some(Thinking::Adaptive) | None => found.effort,
    }
}

/// Returns the effort that a budget stands for. Our choice.
fn effort_of(budget: u64) -> Effort {
    match budget {
        ..4096 => Effort::Low,
        4096..16_384 => Effort::Medium,
        _ => Effort::High,
    }
}

/// Returns the parameters that a mapping's table treats.
fn asked(found: &Findings) -> AskedParameters {
    let numbers = [
        (Parameter::Temperature, found.temperature),
        (Parameter::TopP, found.top_p),
        (
            Parameter::MaxTokens,
            found.max_tokens.as_ref().map(|limit| limit.number),
        ),
        (
            Parameter::StrictTools,
            (found.strict_tools > 0).then(|| f64::from(found.strict_tools)),
        ),
    ];
    let flags = [
        (Parameter::Tools, found.needs.tools),
        (Parameter::ToolChoice, found.needs.forced_tools),
        (
            Parameter::ParallelToolCalls,
            found.is_serial && found.needs.tools,
        ),
        (Parameter::ResponseFormat, found.needs.json_schema),
        (
            Parameter::WebSearch,
            found.search.is_some() && !found.calls_nothing,
        ),
    ];
    AskedParameters::new(found.set, numbers, flags)
}
