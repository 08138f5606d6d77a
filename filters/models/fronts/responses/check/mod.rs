//! The 400 rules of a request, in one pass over its bytes. What only the vendor knows is walked, so that it is well formed, and
//! goes to hosts of its dialect. Source: docs/facts/responses.md.

mod item;
mod part;
mod state;
mod tool;
pub(super) mod top;

#[cfg(test)]
mod tests;

use std::ops::Range;

use bytes::Bytes;

use self::state::StateFindings;
use crate::fault::Fault;
use crate::models::chat::facts::ChatFacts;
use crate::models::chat::inlined::RemoteImage;
use crate::models::check::managed::Named;
use crate::models::check::read::Limit;
use crate::models::check::reject::Reject;
use crate::models::check::shape::read_all;
use crate::models::dialects::Dialect;
use crate::models::dialects::compaction::Compaction;
use crate::models::front::{Front, Received};
use crate::models::managed::ManagedRequest;
use crate::models::parameter::{AskedParameters, Parameter, ParameterSet};
use crate::models::request::{
    ModelRequest, NativeNeed, Needs, Payload, SearchNeeds, Source, Strategy,
};
use crate::money::{CostInputs, UnitCounts};

/// The findings of the pass.
#[derive(Debug, Default)]
pub(in super::super) struct Findings {
    /// What `model` and `prompt` name.
    named: Named,
    is_stream: bool,
    strategy: Option<Strategy>,
    cache_key: Option<Box<str>>,
    user: Option<Box<str>>,
    max_tokens: Option<Limit>,
    max_tool_calls: Option<Limit>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    has_effort: bool,
    /// `input` is there, and says something.
    has_input: bool,
    /// Parts of all items.
    parts: usize,
    /// The member of the item at hand that parts stand in, and the indexes of the item and the part.
    place: (&'static str, usize, usize),
    /// Items and parts with state, or with ids of the gateway's making, so far.
    states: usize,
    /// Items that hold some.
    special: Vec<Range<usize>>,
    needs: Needs,
    set: ParameterSet,
    tools: usize,
    /// The names of what may be called, those in a namespace with it.
    functions: Vec<Box<str>>,
    strict_tools: u32,
    /// What `tool_choice` names, and the path of the name.
    chosen: Option<(Box<str>, &'static str)>,
    calls_nothing: bool,
    demands_search: bool,
    is_serial: bool,
    search: Option<SearchNeeds>,
    /// The first tool, item or member that only hosts of the dialect know.
    native: Option<NativeNeed>,
    schema: Option<Range<usize>>,
    remote_images: Vec<RemoteImage>,
    images: u64,
    sounds: u64,
    files: u64,
    media_bytes: u64,
    text_bytes: u64,
    /// Whether the history is to be summarized.
    compaction: Compaction,
    /// An item that is no instruction has come.
    has_turn: bool,
    /// What needs kept responses.
    state: StateFindings,
    /// The id that the item at hand refers to.
    reference: Option<Box<str>>,
}

impl Findings {
    /// Notes what only hosts of the dialect know.
    fn note_native(&mut self, member: &'static str, what: impl FnOnce() -> String) {
        let need = || NativeNeed::new(Dialect::Responses, member, what());
        self.native.get_or_insert_with(need);
    }

    /// Forgets what shapes an answer, because a summary is a text.
    fn answer_with_text(&mut self) {
        self.calls_nothing = true;
        self.demands_search = false;
        self.needs.forced_tools = false;
        self.needs.json_schema = false;
        self.needs.json_object = false;
        self.schema = None;
    }
}

/// Checks a body of `front`, which asks for a summary of the history if it is for `compaction`.
///
/// Cost: one pass; allocates for names, never for content. Errors: 400 naming the field, what came and what is accepted.
pub(super) fn check(
    body: Bytes,
    front: &'static dyn Front,
    compaction: Compaction,
) -> Result<Received, Fault> {
    let (mut found, members) =
        read_all(&[&top::FIELDS], &body, top::unknown).map_err(Reject::into_fault)?;
    if found.compaction == Compaction::No {
        found.compaction = compaction;
    }
    let source = Source::new(body, members);
    if found.state.is_needed() {
        let request = found.state.into_request(source, found.is_stream);
        return Ok(Received::Stateful(Box::new(request)));
    }
    if found.named.is_managed() {
        let request = managed(found, source).map_err(Reject::into_fault)?;
        return Ok(Received::Managed(Box::new(request)));
    }
    top::together(&found).map_err(Reject::into_fault)?;
    Ok(Received::Complete(complete(found, front, source)))
}

/// Returns the request of a body that names a prompt or a flag.
fn managed(found: Findings, source: Source) -> Result<ManagedRequest, Reject> {
    Ok(ManagedRequest {
        user: filled(found.user),
        session: filled(found.cache_key),
        has_inner_effort: found.has_effort,
        ..found.named.into_request(Dialect::Responses, source)?
    })
}

fn filled(text: Option<Box<str>>) -> Option<Box<str>> {
    text.filter(|text| !text.is_empty())
}

fn complete(mut found: Findings, front: &'static dyn Front, source: Source) -> ModelRequest {
    if found.compaction != Compaction::No {
        found.answer_with_text();
    }
    let search = found.search.filter(|_| !found.calls_nothing);
    let limit = found.max_tool_calls.take().filter(|_| search.is_some());
    let search = search.map(|search| SearchNeeds {
        is_demanded: found.demands_search,
        max_uses: limit.as_ref().map(|limit| limit.count),
        ..search
    });
    found.needs.odd_max_uses = limit.and_then(|limit| limit.odd);
    found.needs.web_search = search;
    let asked = asked(&found);
    let bytes = source.body.len() as u64;
    let limit = found.max_tokens;
    ModelRequest {
        front,
        model: found.named.model.unwrap_or_default(),
        is_stream: found.is_stream,
        strategy: found.strategy,
        session: filled(found.cache_key).or(filled(found.user)),
        needs: Needs {
            choices: 1,
            max_tokens: limit.as_ref().map(|limit| limit.count),
            odd_max_tokens: limit.and_then(|limit| limit.odd),
            context_tokens: found.text_bytes / 8,
            adapts: true,
            native: found.native,
            ..found.needs
        },
        asked,
        cost_inputs: CostInputs {
            bytes: bytes.saturating_sub(found.media_bytes),
            images: found.images,
            audio: found.sounds,
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
            compaction: found.compaction,
            ..ChatFacts::default()
        }),
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
    let needs = &found.needs;
    let searches = needs.web_search.is_some();
    let flags = [
        (Parameter::Tools, needs.tools),
        (
            Parameter::ToolChoice,
            needs.forced_tools || searches && found.demands_search,
        ),
        (Parameter::ParallelToolCalls, found.is_serial && needs.tools),
        (
            Parameter::ResponseFormat,
            needs.json_schema || needs.json_object,
        ),
        (Parameter::WebSearch, searches),
        (
            Parameter::SearchMaxUses,
            needs
                .web_search
                .is_some_and(|search| search.max_uses.is_some()),
        ),
    ];
    let mut asked = AskedParameters::new(found.set, numbers, flags);
    if !searches {
        for option in [
            Parameter::AllowedDomains,
            Parameter::BlockedDomains,
            Parameter::SearchLocation,
            Parameter::SearchContextSize,
        ] {
            asked.set.remove(option);
        }
    }
    asked
}
