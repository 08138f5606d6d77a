//! The 400 rules of a chat completion request, in one pass over its bytes.
//!
//! Every field of the contract is checked for type, enum, bound and forbidden combination; a field whose
//! behaviour is not built yet is checked and then refused when set (docs/decisions.md 16). Everything unknown is
//! walked,
//! so that it is well formed, and passed on. Nothing the size of the body is copied.

mod message;
mod read;
mod reject;
mod tool;
mod top;

#[cfg(test)]
mod tests;

use std::ops::Range;

use bytes::Bytes;

use self::reject::Reject;
use crate::fault::Fault;
use crate::json::Walker;
use crate::models::request::{Media, ModelRequest, Needs, RequestMember, ServiceTier, Strategy};

/// What the pass found.
#[derive(Debug, Default)]
struct Findings {
    members: Vec<RequestMember>,
    special_messages: Vec<Range<usize>>,
    special_tools: bool,
    /// The message or tools at hand hold members beyond the plain convention.
    is_special: bool,
    model: Option<Box<str>>,
    has_messages: bool,
    stream: bool,
    include_usage: bool,
    choices: Option<u32>,
    strategy: Option<Strategy>,
    free_models_only: bool,
    no_reasoning: bool,
    service_tier: Option<ServiceTier>,
    cache_key: Option<Box<str>>,
    user: Option<Box<str>>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    has_effort: bool,
    has_inner_effort: bool,
    needs: Needs,
    text_bytes: u64,
    media: Media,
    tool_breakpoints: u32,
    functions: Vec<Box<str>>,
    chosen: Option<Box<str>>,
}

/// Checks a body.
///
/// Cost: one pass; allocates for keys and names, never for content. Errors: 400 naming the field, what came and
/// what is accepted.
pub fn check(body: Bytes) -> Result<ModelRequest, Fault> {
    let found = pass(&body).map_err(Reject::into_fault)?;
    Ok(ModelRequest {
        model: found.model.unwrap_or_default(),
        members: found.members,
        special_messages: found.special_messages,
        special_tools: found.special_tools,
        stream: found.stream,
        include_usage: found.include_usage,
        choices: found.choices.unwrap_or(1),
        strategy: found.strategy,
        free_models_only: found.free_models_only,
        no_reasoning: found.no_reasoning,
        service_tier: found.service_tier,
        session: found
            .cache_key
            .or(found.user)
            .filter(|session| !session.is_empty()),
        max_tokens: found.max_completion_tokens.or(found.max_tokens),
        needs: found.needs,
        text_bytes: found.text_bytes,
        media: found.media,
        body,
    })
}

fn pass(body: &Bytes) -> Result<Findings, Reject> {
    let mut walk = Walker::new(body)?;
    let mut found = Findings::default();
    top::top(&mut walk, &mut found)?;
    walk.end()?;
    top::together(&found)?;
    Ok(found)
}
