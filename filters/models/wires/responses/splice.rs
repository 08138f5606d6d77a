//! A request of the same dialect: most of it stays as it came, so that what the vendor adds passes and its own reasoning comes back
//! byte by byte. Replaced are the model, a limit beyond the model's and what this mapping does not take; state goes to its maker
//! alone, unsealed, and nothing is stored. Histories are summarized by the vendor's hosts alone, so that others are asked for it as for
//! any answer.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::value::RawValue;

use super::request::max_output;
use crate::fault::Fault;
use crate::json::{Error, Walker, quoted};
use crate::models::chat::facts::ChatFacts;
use crate::models::dialects::Dialect;
use crate::models::dialects::compaction::{self, Compaction};
use crate::models::dialects::responses::{GATEWAY_MEMBERS, find_parameter, is_own_id};
use crate::models::dialects::state::is_sealed;
use crate::models::parameter::Parameter;
use crate::models::request::{Effort, ModelRequest, Payload, RequestMember};
use crate::models::wires::codec::BodySlice;
use crate::models::wires::splice::{Splice, internal};
use crate::models::wires::wire::Target;

/// What an answer includes so that its reasoning can go back, because nothing is stored.
const ENCRYPTED: &str = "\"reasoning.encrypted_content\"";

/// What asks a host of the vendor for a summary of the history.
const TRIGGER: &[u8] = br#"{"type":"compaction_trigger"}"#;

/// Returns what is known of a request that goes as it came; `None`: it does not.
pub(super) fn facts(request: &ModelRequest, is_vendor: bool) -> Option<&ChatFacts> {
    let speaks = request.front.row().dialect == Some(Dialect::Responses);
    match &request.payload {
        Payload::Chat(facts) if speaks => {
            (is_vendor || facts.compaction == Compaction::No).then_some(facts)
        }
        _ => None,
    }
}

/// Encodes a request whose front speaks Responses.
pub(super) fn encode(
    request: &ModelRequest,
    facts: &ChatFacts,
    target: &Target<'_>,
) -> Result<Vec<BodySlice>, Fault> {
    let reasons = target.thinking.reasons != Some(false);
    let mut splice = Splice::new(&request.source.body);
    let mut is_first = true;
    splice.new_bytes(b"{");
    for member in &request.source.members {
        let key = &*member.key;
        if GATEWAY_MEMBERS.contains(&key) {
            continue;
        }
        match key {
            "model" => {
                splice.write_name(key, &mut is_first);
                splice.new_string(target.model);
            }
            "store" | "include" => {}
            "reasoning" => reasoning(&mut splice, member, request, target, &mut is_first),
            "input" => {
                splice.write_name(key, &mut is_first);
                input(&mut splice, member.value.clone(), facts, target)?;
            }
            _ => passed(&mut splice, member, request, target, &mut is_first),
        }
    }
    splice.write_name("store", &mut is_first);
    splice.new_bytes(b"false");
    let included = included(request, reasons);
    if !included.is_empty() {
        splice.write_name("include", &mut is_first);
        splice.new_bytes(["[", &included, "]"].concat().as_bytes());
    }
    splice.new_bytes(b"}");
    Ok(splice.finish())
}

/// Writes a member as the mapping takes it.
fn passed(
    splice: &mut Splice<'_>,
    member: &RequestMember,
    request: &ModelRequest,
    target: &Target<'_>,
    is_first: &mut bool,
) {
    let text = splice.text(member.value.clone());
    let parameter = find_parameter(&member.key).filter(|_| text != "null");
    let value = match parameter {
        None => None,
        Some(Parameter::MaxTokens) => {
            let most = max_output(request, target);
            let said = most.and_then(|most| target.said_limit(most, request));
            Some(said.map(|said| Cow::Owned(said.to_string())))
        }
        // It bounds the calls of all tools that the provider runs, which searches are some of.
        Some(Parameter::SearchMaxUses | Parameter::Tools | Parameter::ToolChoice) => None,
        Some(parameter) => serde_json::from_str::<&RawValue>(text).ok().map(|raw| {
            let treated = target.treated(raw, parameter, request);
            treated.map(|treated| Cow::Owned(treated.get().to_owned()))
        }),
    };
    match value {
        None => {
            splice.separate(is_first);
            splice.slice(member.whole.clone());
        }
        Some(None) => {}
        Some(Some(value)) if value == text => {
            splice.separate(is_first);
            splice.slice(member.whole.clone());
        }
        Some(Some(value)) => {
            splice.write_name(&member.key, is_first);
            splice.new_bytes(value.as_bytes());
        }
    }
}

/// Writes what the request says of reasoning: nothing to a model that does not reason, and the nearest effort that the model has.
fn reasoning(
    splice: &mut Splice<'_>,
    member: &RequestMember,
    request: &ModelRequest,
    target: &Target<'_>,
    is_first: &mut bool,
) {
    if target.thinking.reasons == Some(false) {
        return;
    }
    splice.separate(is_first);
    let asked = request.needs.effort;
    let told = target.thinking.effort(&request.needs).or(asked);
    if told == asked {
        return splice.slice(member.whole.clone());
    }
    let members = splice.members(member.value.clone()).unwrap_or_default();
    let place = members.into_iter().find(|(key, _)| key == "effort");
    let Some((_, place)) = place else {
        return splice.slice(member.whole.clone());
    };
    splice.slice(member.whole.start..place.start);
    splice.new_string(told.map_or("none", Effort::as_str));
    splice.slice(place.end..member.whole.end);
}

/// Returns the inside of the array of what the answer includes.
fn included(request: &ModelRequest, reasons: bool) -> String {
    let source = &request.source;
    let member = source.member("include").map(|it| source.value(it));
    let list: Option<Vec<&RawValue>> = member.and_then(|it| serde_json::from_slice(it).ok());
    let mut words: Vec<&str> = list.iter().flatten().map(|word| word.get()).collect();
    words.retain(|word| *word != ENCRYPTED);
    if reasons {
        words.push(ENCRYPTED);
    }
    words.join(",")
}

/// Writes `input` as a list. Items that hold state of others stay behind.
fn input(
    splice: &mut Splice<'_>,
    value: Range<usize>,
    facts: &ChatFacts,
    target: &Target<'_>,
) -> Result<(), Fault> {
    let is_text = splice.text(value.clone()).starts_with('"');
    let adds_trigger = facts.compaction == Compaction::Path;
    if !is_text && !adds_trigger && facts.special_messages.is_empty() {
        splice.slice(value);
        return Ok(());
    }
    splice.new_bytes(b"[");
    let mut is_first = true;
    if is_text {
        // Not all hosts take a bare text.
        splice.separate(&mut is_first);
        splice.new_bytes(br#"{"type":"message","role":"user","content":"#);
        splice.slice(value);
        splice.new_bytes(b"}");
    } else {
        items(splice, value, facts, target, &mut is_first)?;
    }
    if adds_trigger {
        splice.separate(&mut is_first);
        splice.new_bytes(TRIGGER);
    }
    splice.new_bytes(b"]");
    Ok(())
}

/// Writes the items of a list. A summary that the host cannot read is the history, which is not left out.
fn items(
    splice: &mut Splice<'_>,
    list: Range<usize>,
    facts: &ChatFacts,
    target: &Target<'_>,
    is_first: &mut bool,
) -> Result<(), Fault> {
    for range in splice.items(list).map_err(internal)? {
        if !facts.special_messages.contains(&range) {
            splice.separate(is_first);
            splice.slice(range);
            continue;
        }
        let start = range.start;
        if !item(splice, range, target, is_first).map_err(internal)? {
            return Err(compaction::unreadable(splice.whole(), start));
        }
    }
    Ok(())
}

/// Writes an item that may hold state, or an id that the gateway has made. Returns whether it was, or may be left out.
fn item(
    splice: &mut Splice<'_>,
    range: Range<usize>,
    target: &Target<'_>,
    is_first: &mut bool,
) -> Result<bool, Error> {
    let members = splice.members(range)?;
    let text = |wanted: &str| -> Result<Option<Cow<'_, str>>, Error> {
        let member = members.iter().find(|(key, _)| key == wanted);
        let Some((_, place)) = member else {
            return Ok(None);
        };
        let json = splice.text(place.clone());
        match json.starts_with('"') {
            true => Walker::over(json).text().map(Some),
            false => Ok(None),
        }
    };
    let kind = text("type")?.unwrap_or_default();
    let is_own = text("id")?.is_some_and(|id| is_own_id(&id));
    // The searches that the gateway has run, the images that others have drawn.
    if is_own && matches!(&*kind, "web_search_call" | "image_generation_call") {
        return Ok(true);
    }
    let mut state = None;
    let is_compaction = kind == "compaction";
    if is_compaction || kind == "reasoning" {
        let said = text("encrypted_content")?;
        let summary = said.as_deref().filter(|_| is_compaction);
        if let Some(summary) = summary.and_then(compaction::open) {
            splice.separate(is_first);
            splice.new_bytes(br#"{"type":"message","role":"user","content":"#);
            splice.new_string(&summary);
            splice.new_bytes(b"}");
            return Ok(true);
        }
        match opened(said.as_deref(), target) {
            Opened::Foreign => {
                target.left_out_state.add();
                return Ok(!is_compaction);
            }
            Opened::Item(item) => {
                splice.separate(is_first);
                splice.new_bytes(item.as_bytes());
                return Ok(true);
            }
            Opened::State(text) => state = Some(text),
            Opened::Bare => {}
        }
    }
    splice.separate(is_first);
    rewritten(splice, members, is_own, state.as_deref());
    Ok(true)
}

/// Writes an item without an id of the gateway's making, and with this state where it was sealed.
fn rewritten(
    splice: &mut Splice<'_>,
    members: Vec<(String, Range<usize>)>,
    is_own: bool,
    state: Option<&str>,
) {
    splice.new_bytes(b"{");
    let mut is_first = true;
    for (key, value) in members {
        match (&*key, state) {
            ("id", _) if is_own => {}
            ("encrypted_content", Some(state)) => {
                splice.write_name(&key, &mut is_first);
                splice.new_string(state);
            }
            _ => {
                splice.write_name(&key, &mut is_first);
                splice.slice(value);
            }
        }
    }
    splice.new_bytes(b"}");
}

/// What the state of an item is to a host.
enum Opened {
    /// It goes back as it came.
    Bare,
    /// The host has made it, under the seal.
    State(String),
    /// The host has made the whole item, under the seal.
    Item(String),
    /// Somebody else has made it, or it is damaged, so the item stays behind.
    Foreign,
}

fn opened(said: Option<&str>, target: &Target<'_>) -> Opened {
    let Some(said) = said.filter(|said| !said.is_empty()) else {
        // Reasoning that is shown and has no state is of a host that keeps none.
        return if target.is_vendor {
            Opened::Foreign
        } else {
            Opened::Bare
        };
    };
    if target.refuses_state {
        return Opened::Foreign;
    }
    if !is_sealed(said) {
        // Bare state is the vendor's.
        return match target.is_vendor {
            true => Opened::Bare,
            false => Opened::Foreign,
        };
    }
    match target.maker.open(Dialect::Responses, said) {
        Some(state) if state.is_empty() => Opened::Foreign,
        Some(state) if state.starts_with('{') => Opened::Item(as_item(&state)),
        Some(state) => Opened::State(state.into_owned()),
        None => Opened::Foreign,
    }
}

/// Returns the item of reasoning that a state holds.
fn as_item(state: &str) -> String {
    let inside = state.strip_prefix('{').unwrap_or_default();
    [r#"{"type":"#, &quoted("reasoning"), ",", inside].concat()
}
