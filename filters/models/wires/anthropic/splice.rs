//! A request of the same dialect: most of it stays as it came, so that what the vendor adds passes and its own thinking comes
//! back byte by byte. Replaced are the model and a limit beyond the model's; state goes to its maker alone, unsealed.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;

use super::betas;
use super::deviations::{self, Member};
use super::request::max_tokens;
use crate::fault::Fault;
use crate::json::{Error, Walker, quoted};
use crate::models::chat::facts::ChatFacts;
use crate::models::chat::text::Text;
use crate::models::dialects::state::is_sealed;
use crate::models::dialects::{Dialect, GATEWAY_MEMBERS};
use crate::models::request::ModelRequest;
use crate::models::search_loop::OWN_ID;
use crate::models::wires::codec::BodySlice;
use crate::models::wires::splice::{Splice, internal};
use crate::models::wires::wire::Target;

/// Encodes a request whose front speaks Messages.
pub(super) fn encode(
    request: &ModelRequest,
    facts: &ChatFacts,
    target: &Target<'_>,
) -> Result<Vec<BodySlice>, Fault> {
    let mut splice = Splice::new(&request.source.body);
    let mut is_first = true;
    splice.new_bytes(b"{");
    for member in &request.source.members {
        let key = &*member.key;
        if GATEWAY_MEMBERS.contains(&key) || !betas::passes(key, target.is_vendor) {
            continue;
        }
        if key == "model"
            && let Some(version) = target.body.version_for_model
        {
            splice.write_name("anthropic_version", &mut is_first);
            splice.new_string(version);
            continue;
        }
        match key {
            "model" => {
                splice.write_name("model", &mut is_first);
                splice.new_string(target.model);
            }
            "max_tokens" if is_beyond(request, target) => {
                splice.write_name("max_tokens", &mut is_first);
                splice.new_bytes(max_tokens(request, target).to_string().as_bytes());
            }
            "messages" if !facts.special_messages.is_empty() => {
                splice.write_name("messages", &mut is_first);
                let messages = splice.items(member.value.clone());
                let written = messages
                    .and_then(|messages| write_messages(&mut splice, messages, facts, target));
                written.map_err(internal)?;
            }
            _ => {
                let value = splice.text(member.value.clone());
                match deviations::member(key, value, target.body).map_err(internal)? {
                    Member::Same => {
                        splice.separate(&mut is_first);
                        splice.slice(member.whole.clone());
                    }
                    Member::Changed(json) => {
                        splice.write_name(key, &mut is_first);
                        splice.new_bytes(json.as_bytes());
                    }
                    Member::Gone => {}
                }
            }
        }
    }
    if let Some(region) = target.region.filter(|_| !has(request, "inference_geo")) {
        splice.write_name("inference_geo", &mut is_first);
        splice.new_string(region);
    }
    splice.new_bytes(b"}");
    Ok(splice.finish())
}

fn has(request: &ModelRequest, key: &str) -> bool {
    request.source.member(key).is_some()
}

/// Returns whether the request allows more tokens than the model can say.
fn is_beyond(request: &ModelRequest, target: &Target<'_>) -> bool {
    let asked = request.needs.max_tokens;
    asked.is_some_and(|asked| asked < u64::MAX && max_tokens(request, target) < asked)
}

fn write_messages(
    splice: &mut Splice<'_>,
    messages: Vec<Range<usize>>,
    facts: &ChatFacts,
    target: &Target<'_>,
) -> Result<(), Error> {
    splice.new_bytes(b"[");
    let mut is_first = true;
    for range in messages {
        let blocks = match facts.special_messages.contains(&range) {
            true => kept_blocks(splice, range.clone(), target)?,
            false => None,
        };
        // A message of which nothing is left would be refused.
        if blocks.as_ref().is_some_and(|(_, blocks)| blocks.is_empty()) {
            continue;
        }
        splice.separate(&mut is_first);
        let Some((content, blocks)) = blocks else {
            splice.slice(range);
            continue;
        };
        splice.slice(range.start..content.start);
        splice.new_bytes(b"[");
        for (at, block) in blocks.into_iter().enumerate() {
            splice.new_bytes(if at > 0 { b"," } else { b"" });
            match block.replaced {
                None => splice.slice(block.range),
                Some((place, json)) => {
                    splice.slice(block.range.start..place.start);
                    splice.new_bytes(json.as_bytes());
                    splice.slice(place.end..block.range.end);
                }
            }
        }
        splice.new_bytes(b"]");
        splice.slice(content.end..range.end);
    }
    splice.new_bytes(b"]");
    Ok(())
}

/// Where the content of a message stands, and the blocks of it that stay.
type KeptContent = (Range<usize>, Vec<KeptBlock>);

/// A block that stays.
struct KeptBlock {
    range: Range<usize>,
    /// Where its state or its citations stand, and the JSON that takes their place.
    replaced: Option<(Range<usize>, String)>,
}

/// Returns where the content of a message stands, and the blocks of it that this host takes; `None`: it takes the message as it
/// is.
fn kept_blocks(
    splice: &Splice<'_>,
    message: Range<usize>,
    target: &Target<'_>,
) -> Result<Option<KeptContent>, Error> {
    let members = splice.members(message)?;
    let content = members.into_iter().find(|(key, _)| key == "content");
    let Some((_, content)) = content else {
        return Ok(None);
    };
    let mut kept = Vec::new();
    let mut has_changed = false;
    for range in splice.items(content.clone())? {
        match state(splice, range.clone(), target)? {
            State::None => kept.push(KeptBlock {
                range,
                replaced: None,
            }),
            State::Replaced(place, json) => {
                has_changed = true;
                let replaced = Some((place, json));
                kept.push(KeptBlock { range, replaced });
            }
            State::Foreign => {
                has_changed = true;
                target.left_out_state.add();
            }
        }
    }
    Ok(has_changed.then_some((content, kept)))
}

/// What the state or the citations of a block mean to a host.
enum State {
    /// It has none, or they go back as they are.
    None,
    /// The host has made the state under the seal, or the gateway the citations: this JSON takes their place.
    Replaced(Range<usize>, String),
    /// Somebody else has made it, or it is damaged, so the block stays behind.
    Foreign,
}

/// Returns what a block of a search with this id means to a host: what the gateway has run stays behind.
fn of_search(id: Option<Result<Cow<'_, str>, Error>>) -> Result<State, Error> {
    let id = id.transpose()?;
    Ok(match id.is_some_and(|id| id.starts_with(OWN_ID)) {
        true => State::Foreign,
        false => State::None,
    })
}

fn state(splice: &Splice<'_>, block: Range<usize>, target: &Target<'_>) -> Result<State, Error> {
    let members = splice.members(block)?;
    let value = |wanted: &str| members.iter().find(|(key, _)| key == wanted);
    let text = |range: &Range<usize>| -> Result<Cow<'_, str>, Error> {
        Ok(Walker::over(splice.text(range.clone()))
            .string()?
            .unescaped())
    };
    let kind = value("type").map(|(_, range)| text(range)).transpose()?;
    let key = match kind.as_deref() {
        Some("thinking") => "signature",
        Some("redacted_thinking") => "data",
        Some("server_tool_use") => return of_search(value("id").map(|(_, id)| text(id))),
        Some(kind) if kind.ends_with("_tool_result") => {
            return of_search(value("tool_use_id").map(|(_, id)| text(id)));
        }
        Some("text") => {
            let list = value("citations").map(|(_, place)| place.clone());
            let own = list.filter(|place| are_own(splice.text(place.clone())));
            return Ok(own.map_or(State::None, |place| {
                State::Replaced(place, "null".to_owned())
            }));
        }
        _ => return Ok(State::None),
    };
    let Some((_, place)) = value(key) else {
        return Ok(State::Foreign);
    };
    let said = text(place)?;
    if target.refuses_state {
        return Ok(State::Foreign);
    }
    if !is_sealed(&said) {
        // Bare state is the vendor's.
        return Ok(match target.is_vendor {
            true => State::None,
            false => State::Foreign,
        });
    }
    Ok(match target.maker.open(Dialect::Messages, &said) {
        Some(opened) => State::Replaced(place.clone(), quoted(&opened)),
        None => State::Foreign,
    })
}

/// A citation, as far as it tells its maker.
#[derive(Deserialize)]
struct Citation<'a> {
    #[serde(borrow, default)]
    encrypted_index: Option<Text<'a>>,
}

/// Returns whether citations are of our making: those of the vendor find their place in a page by an index that is not empty.
fn are_own(list: &str) -> bool {
    let citations: Vec<Citation<'_>> = serde_json::from_str(list).unwrap_or_default();
    let indexes = citations.iter().map(|citation| &citation.encrypted_index);
    indexes.flatten().any(|index| index.is_empty())
}
