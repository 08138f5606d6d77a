//! The 400 rules of a request, in one pass over its bytes. Keys may be written in both spellings of the vendor. What only the
//! vendor knows is walked, so that it is well formed, and goes to hosts of its dialect. Source: docs/facts/contents.md.

mod config;
mod content;
mod part;
mod tool;
pub(super) mod top;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;

use crate::fault::Fault;
use crate::json::Walker;
use crate::models::chat::facts::ChatFacts;
use crate::models::chat::inlined::RemoteImage;
use crate::models::check::read::{Limit, twice};
use crate::models::check::reject::Reject;
use crate::models::check::shape::read_member;
use crate::models::check::top::members;
use crate::models::dialects::Dialect;
use crate::models::dialects::contents::canonical;
use crate::models::front::Front;
use crate::models::parameter::{AskedParameters, Parameter, ParameterSet};
use crate::models::request::{
    Effort, ModelRequest, NativeNeed, Needs, Payload, RequestMember, SearchNeeds, Source, Strategy,
};
use crate::money::{CostInputs, UnitCounts};

/// The findings of the pass.
#[derive(Debug, Default)]
pub(in super::super) struct Findings {
    model: Option<Box<str>>,
    is_stream: bool,
    strategy: Option<Strategy>,
    max_tokens: Option<Limit>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    /// What `thinkingConfig` asks for.
    effort: Option<Effort>,
    /// The number of contents that say something.
    contents: Option<usize>,
    /// Parts of all contents.
    parts: usize,
    /// The indexes of the content at hand, and of its part.
    place: (usize, usize),
    /// Parts with state so far, and files that are named by an address.
    special_parts: usize,
    /// Contents that hold some.
    special: Vec<Range<usize>>,
    needs: Needs,
    set: ParameterSet,
    tools: usize,
    functions: Vec<Box<str>>,
    /// Names that `toolConfig` lists, and where.
    allowed: Vec<Box<str>>,
    calls_nothing: bool,
    has_search: bool,
    is_json: bool,
    /// The first tool, part or member that only hosts of the dialect know.
    native: Option<NativeNeed>,
    schema: Option<Range<usize>>,
    remote_images: Vec<RemoteImage>,
    images: u64,
    sounds: u64,
    files: u64,
    media_bytes: u64,
    text_bytes: u64,
    /// A content that is no instruction has come.
    has_turn: bool,
}

impl Findings {
    /// Notes what only hosts of the dialect know.
    fn note_native(&mut self, member: &'static str, what: impl FnOnce() -> String) {
        let need = || NativeNeed::new(Dialect::Contents, member, what());
        self.native.get_or_insert_with(need);
    }
}

/// Checks a body of `front`, in which model and form of the answer stand, too.
///
/// Cost: one pass; allocates for names, never for content. Errors: 400 naming the field, what came and what is accepted.
pub(super) fn check(body: Bytes, front: &'static dyn Front) -> Result<ModelRequest, Fault> {
    let (found, members) = read(&body).map_err(Reject::into_fault)?;
    top::together(&found).map_err(Reject::into_fault)?;
    Ok(complete(found, front, Source::new(body, members)))
}

fn read(body: &Bytes) -> Result<(Findings, Vec<RequestMember>), Reject> {
    let mut walk = Walker::new(body)?;
    let mut found = Findings::default();
    let members = top_level(&mut walk, &mut found)?;
    walk.end()?;
    Ok((found, members))
}

/// Walks the top-level object. Returns where the members stand, each with its canonical key.
fn top_level(walk: &mut Walker<'_>, found: &mut Findings) -> Result<Vec<RequestMember>, Reject> {
    let mut all = members(walk, |walk, key| {
        let key = canonical(key);
        match read_member(&[&top::FIELDS], walk, &key, found)? {
            true => Ok(()),
            false => top::unknown(walk, &key, found),
        }
    })?;
    for member in &mut all {
        if let Cow::Owned(key) = canonical(&member.key) {
            member.key = key.into();
        }
    }
    let mut keys: Vec<&str> = all.iter().map(|member| &*member.key).collect();
    keys.sort_unstable();
    let same = keys.windows(2).find_map(|pair| match pair {
        [one, other] if one == other => Some(*one),
        _ => None,
    });
    match same {
        Some(key) => Err(twice().within(key)),
        None => Ok(all),
    }
}

fn complete(found: Findings, front: &'static dyn Front, source: Source) -> ModelRequest {
    let asked = asked(&found);
    let bytes = source.body.len() as u64;
    let limit = found.max_tokens;
    let choices = found.needs.choices.max(1);
    let search = found.has_search && !found.calls_nothing;
    ModelRequest {
        front,
        model: found.model.unwrap_or_default(),
        is_stream: found.is_stream,
        strategy: found.strategy,
        session: None,
        needs: Needs {
            choices,
            max_tokens: limit.as_ref().map(|limit| limit.count),
            odd_max_tokens: limit.and_then(|limit| limit.odd),
            context_tokens: found.text_bytes / 8,
            effort: found.effort,
            web_search: search.then_some(SearchNeeds {
                is_tool: true,
                is_demanded: false,
                max_uses: None,
            }),
            json_schema: found.schema.is_some(),
            json_object: found.is_json && found.schema.is_none(),
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
            choices: choices.into(),
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

/// Returns the parameters that a mapping's table treats.
fn asked(found: &Findings) -> AskedParameters {
    let mut asked = AskedParameters {
        set: found.set,
        ..AskedParameters::default()
    };
    let numbers = [
        (Parameter::Temperature, found.temperature),
        (Parameter::TopP, found.top_p),
        (
            Parameter::MaxTokens,
            found.max_tokens.as_ref().map(|limit| limit.number),
        ),
    ];
    for (parameter, number) in numbers {
        if let Some(number) = number {
            asked.add_number(parameter, number);
        }
    }
    let flags = [
        (Parameter::Tools, found.needs.tools),
        (Parameter::ToolChoice, found.needs.forced_tools),
        (
            Parameter::ResponseFormat,
            found.is_json || found.schema.is_some(),
        ),
        (
            Parameter::WebSearch,
            found.has_search && !found.calls_nothing,
        ),
    ];
    for (parameter, is_asked) in flags {
        if is_asked {
            asked.set.insert(parameter);
        }
    }
    asked
}
