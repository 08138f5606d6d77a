//! The 400 rules of a chat completion request, in one pass over its bytes.
//!
//! Every field of the contract is checked for type, enum, bound and forbidden combination; a field whose behaviour is
//! not built yet is checked and then refused when set (docs/decisions.md 16). Unknown members are walked, so that they
//! are well formed, and passed on. Nothing the size of the body is copied.

mod asked;
mod hosted;
mod image_config;
mod media;
mod message;
mod safeguards;
mod tool;
pub(super) mod top;

#[cfg(test)]
mod hosted_tests;
#[cfg(test)]
mod tests;

use std::ops::Range;

use bytes::Bytes;

use crate::fault::Fault;
use crate::json::Walker;
use crate::models::chat::facts::ChatFacts;
use crate::models::chat::inlined::RemoteImage;
use crate::models::check::managed::Named;
use crate::models::check::read::Limit;
use crate::models::check::reject::Reject;
use crate::models::dialects::Dialect;
use crate::models::dialects::chat::find_parameter;
use crate::models::front::{Front, Received};
use crate::models::managed::ManagedRequest;
use crate::models::parameter::{AskedParameters, Parameter, ParameterSet};
use crate::models::request::{
    ModelRequest, Needs, Payload, RequestMember, SearchNeeds, Source, Strategy,
};
use crate::models::routing::resolve::AUTO;
use crate::money::{CostInputs, UnitCounts};

/// Parts of messages other than text. Their bytes say little about their tokens.
#[derive(Clone, Copy, Debug, Default)]
struct Media {
    images: u64,
    sounds: u64,
    files: u64,
    /// Bytes of images and audio inside the body.
    bytes: u64,
}

/// The findings of the pass.
#[derive(Debug, Default)]
pub(super) struct Findings {
    members: Vec<RequestMember>,
    /// The gateway does not know the member at hand.
    is_unknown: bool,
    special_messages: Vec<Range<usize>>,
    /// Parts, calls and items of all messages.
    items: usize,
    special_tools: bool,
    /// The message or tools at hand hold members beyond the plain convention.
    is_special: bool,
    /// What `model` and `prompt` name.
    named: Named,
    /// The number of messages.
    messages: Option<usize>,
    stream: bool,
    include_usage: bool,
    heals: bool,
    choices: Option<u32>,
    strategy: Option<Strategy>,
    cache_key: Option<Box<str>>,
    user: Option<Box<str>>,
    max_tokens: Option<Limit>,
    max_completion_tokens: Option<Limit>,
    has_effort: bool,
    has_inner_effort: bool,
    needs: Needs,
    asked: AskedParameters,
    /// A message that is not an instruction has come.
    has_turn: bool,
    /// The message at hand holds images, audio or files.
    holds_media: bool,
    text_bytes: u64,
    media: Media,
    /// The indexes of the message and the part at hand.
    place: (usize, usize),
    remote_images: Vec<RemoteImage>,
    tool_breakpoints: u32,
    functions: Vec<Box<str>>,
    /// Functions that are strict.
    strict_tools: u32,
    /// The schema that the answer has to fit.
    schema: Option<Range<usize>>,
    /// Tools so far.
    tools: usize,
    /// The first tool that the model does not see at once.
    deferred: Option<usize>,
    has_tool_search: bool,
    search_tool: Option<SearchNeeds>,
    search_options: ParameterSet,
    search_flag: bool,
    demands_search: bool,
    /// The choice of tools is `none`.
    calls_nothing: bool,
    chosen: Option<Box<str>>,
}

/// Checks a body of `front`.
///
/// Cost: one pass; allocates for keys and names, never for content. Errors: 400 naming the field, what came and
/// what is accepted.
pub(super) fn check(body: Bytes, front: &'static dyn Front) -> Result<Received, Fault> {
    let found = pass(&body).map_err(Reject::into_fault)?;
    if found.named.is_managed() {
        let request = managed(body, found).map_err(Reject::into_fault)?;
        return Ok(Received::Managed(Box::new(request)));
    }
    Ok(Received::Complete(complete(body, front, found)))
}

fn complete(body: Bytes, front: &'static dyn Front, found: Findings) -> ModelRequest {
    let bytes = body.len() as u64;
    let choices = found.choices.unwrap_or(1);
    let wanted_images = wanted_images(&found.asked);
    let wants_json = found.needs.json_object || found.needs.json_schema;
    let limit = found.max_completion_tokens.or(found.max_tokens);
    ModelRequest {
        front,
        model: found.named.model.unwrap_or_else(|| AUTO.into()),
        is_stream: found.stream,
        strategy: found.strategy,
        session: found
            .cache_key
            .filter(|key| !key.is_empty())
            .or(found.user.filter(|user| !user.is_empty())),
        needs: Needs {
            choices,
            max_tokens: limit.as_ref().map(|limit| limit.count),
            odd_max_tokens: limit.and_then(|limit| limit.odd),
            // Four bytes a token is the usual estimate; only what is far beyond the window is turned away.
            context_tokens: found.text_bytes / 8,
            ..found.needs
        },
        asked: found.asked,
        cost_inputs: CostInputs {
            bytes: bytes.saturating_sub(found.media.bytes),
            images: found.media.images,
            audio: found.media.sounds,
            files: found.media.files,
            max_tokens: None,
            choices: u64::from(choices),
            wanted_images,
            ..CostInputs::default()
        },
        text_bytes: found.text_bytes,
        units: UnitCounts::default(),
        source: Source::new(body, found.members),
        managed: None,
        promise: None,
        own_headers: Vec::new(),
        payload: Payload::Chat(ChatFacts {
            special_messages: found.special_messages,
            special_tools: found.special_tools,
            includes_usage: found.include_usage,
            // Of several choices none is repaired. Source: docs/facts/model-gateway.md 11.1.
            heals: found.heals && wants_json && choices == 1,
            remote_images: found.remote_images,
            schema: found.schema,
            ..ChatFacts::default()
        }),
    }
}

/// Checks one member of a request alone. Null breaks no rule.
///
/// Errors: the first rule that it breaks, with the place. Returns whether the gateway knows the member.
pub(super) fn check_member(key: &str, value: &str) -> Result<bool, Reject> {
    let mut found = Findings::default();
    let mut walk = Walker::over(value);
    let checked = top::member(&mut walk, key, &mut found);
    if value != "null" {
        checked.map_err(|reject| reject.within(key))?;
        walk.end()?;
    }
    Ok(!found.is_unknown || find_parameter(key).is_some())
}

/// Checks what holds between the members of a request.
///
/// Errors: the first rule that they break.
pub(super) fn check_together(body: &Bytes) -> Result<(), Reject> {
    pass(body).map(|_| ())
}

/// Returns the request of a body that names a prompt or a flag.
fn managed(body: Bytes, found: Findings) -> Result<ManagedRequest, Reject> {
    let source = Source::new(body, found.members);
    let filled = |text: Option<Box<str>>| text.filter(|text| !text.is_empty());
    Ok(ManagedRequest {
        user: filled(found.user),
        session: filled(found.cache_key),
        has_inner_effort: found.has_inner_effort,
        ..found.named.into_request(Dialect::Chat, source)?
    })
}

fn wanted_images(asked: &AskedParameters) -> u64 {
    asked
        .number(Parameter::ImageCount)
        .map_or(0, |count| count as u64)
}

fn pass(body: &Bytes) -> Result<Findings, Reject> {
    let mut found = top::top(body)?;
    if found.named.is_managed() {
        // Its prompt may complete it.
        return Ok(found);
    }
    top::together(&found)?;
    asked::note_asked(body, &mut found);
    hosted::note_search(&mut found)?;
    Ok(found)
}
