//! A request of the same dialect: most of it stays as it came, so that what the vendor adds passes and its own state comes back byte
//! by byte. Replaced are a limit beyond the model's and what this mapping does not take; model and form of the answer stand in the
//! path; state goes to its maker alone, unsealed.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::value::RawValue;

use super::request::{has_levels, thinking};
use crate::fault::Fault;
use crate::json::{Error, Walker, quoted};
use crate::models::chat::facts::ChatFacts;
use crate::models::dialects::Dialect;
use crate::models::dialects::contents::{GATEWAY_MEMBERS, NO_SIGNATURE, canonical, find_parameter};
use crate::models::dialects::state::is_sealed;
use crate::models::parameter::Parameter;
use crate::models::request::ModelRequest;
use crate::models::wires::codec::BodySlice;
use crate::models::wires::splice::{Splice, internal};
use crate::models::wires::wire::Target;

const CONFIG: &str = "generationConfig";

/// A member with its key as it was written, and where its value stands.
type Member = (String, Range<usize>);

/// Encodes a request whose front speaks Contents.
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
        if GATEWAY_MEMBERS.contains(&key) || is_tier(key) && !target.body.tier_headers.is_empty() {
            continue;
        }
        match key {
            "contents" => {
                splice.write_name(key, &mut is_first);
                contents(&mut splice, member.value.clone(), facts, target).map_err(internal)?;
            }
            CONFIG if !request.source.is_null(member) => {
                splice.write_name(key, &mut is_first);
                let members = splice.members(member.value.clone()).map_err(internal)?;
                config(&mut splice, members, request, target);
            }
            CONFIG => {}
            _ => {
                splice.separate(&mut is_first);
                splice.slice(member.whole.clone());
            }
        }
    }
    let config_member = request.source.member(CONFIG);
    let has_config = config_member.is_some_and(|it| !request.source.is_null(it));
    if !has_config && target.max_tokens(request).is_some() {
        splice.write_name(CONFIG, &mut is_first);
        config(&mut splice, Vec::new(), request, target);
    }
    splice.new_bytes(b"}");
    Ok(splice.finish())
}

/// Returns whether a member asks for a tier.
fn is_tier(key: &str) -> bool {
    canonical(key) == "serviceTier"
}

/// Writes `generationConfig` as the mapping takes it.
fn config(
    splice: &mut Splice<'_>,
    members: Vec<Member>,
    request: &ModelRequest,
    target: &Target<'_>,
) {
    let mut is_first = true;
    splice.new_bytes(b"{");
    for (said, value) in members {
        let key = canonical(&said);
        let text = splice.text(value.clone());
        if text == "null" || key == "maxOutputTokens" {
            continue;
        }
        let new = match find_parameter(&key) {
            Some(parameter) => treated(text, parameter, request, target),
            None if key == "thinkingConfig" => thinking_config(text, request, target),
            None => Some(Cow::Borrowed(text)),
        };
        let Some(new) = new else { continue };
        splice.write_name(&said, &mut is_first);
        match new {
            Cow::Borrowed(_) => splice.slice(value),
            Cow::Owned(new) => splice.new_bytes(new.as_bytes()),
        }
    }
    let most = target.max_tokens(request);
    if let Some(most) = most.and_then(|most| target.said_limit(most, request)) {
        splice.write_name("maxOutputTokens", &mut is_first);
        splice.new_bytes(most.to_string().as_bytes());
    }
    splice.new_bytes(b"}");
}

fn treated<'a>(
    text: &'a str,
    parameter: Parameter,
    request: &ModelRequest,
    target: &Target<'_>,
) -> Option<Cow<'a, str>> {
    let raw: &RawValue = serde_json::from_str(text).ok()?;
    let treated = target.treated(raw, parameter, request)?;
    Some(match treated.get() == text {
        true => Cow::Borrowed(text),
        false => Cow::Owned(treated.get().to_owned()),
    })
}

/// Returns what the request says of thinking: nothing to a model that does not think, and a budget to one that takes no levels.
fn thinking_config<'a>(
    text: &'a str,
    request: &ModelRequest,
    target: &Target<'_>,
) -> Option<Cow<'a, str>> {
    if target.thinking.reasons == Some(false) {
        return None;
    }
    let (mut has_level, mut shows) = (false, None);
    let walked = Walker::over(text).object(|walk, key| {
        let value = walk.skip()?;
        match &*canonical(&key) {
            "thinkingLevel" => has_level = value != "null",
            "includeThoughts" => shows = Some(value == "true"),
            _ => {}
        }
        Ok::<(), Error>(())
    });
    let asked = request.needs.effort;
    let is_taken = has_levels(target) && target.thinking.effort(&request.needs) == asked;
    if walked.is_err() || !has_level || is_taken {
        return Some(Cow::Borrowed(text));
    }
    let mut said = thinking(request, target)?;
    if let (Some(said), Some(shows)) = (said.as_object_mut(), shows) {
        said.insert("includeThoughts".to_owned(), shows.into());
    }
    Some(Cow::Owned(said.to_string()))
}

/// Writes `contents`. State of others stays behind.
fn contents(
    splice: &mut Splice<'_>,
    value: Range<usize>,
    facts: &ChatFacts,
    target: &Target<'_>,
) -> Result<(), Error> {
    if facts.special_messages.is_empty() {
        splice.slice(value);
        return Ok(());
    }
    let items = match splice.text(value.clone()).starts_with('[') {
        true => splice.items(value)?,
        false => vec![value],
    };
    splice.new_bytes(b"[");
    let mut is_first = true;
    let mut special = facts.special_messages.iter().peekable();
    for range in items {
        if special.next_if(|it| **it == range).is_none() {
            splice.separate(&mut is_first);
            splice.slice(range);
            continue;
        }
        content(splice, range, target, &mut is_first)?;
    }
    splice.new_bytes(b"]");
    Ok(())
}

/// Writes a content of which some parts hold state, or the address of an image. One without parts is left out.
fn content(
    splice: &mut Splice<'_>,
    range: Range<usize>,
    target: &Target<'_>,
    is_first: &mut bool,
) -> Result<(), Error> {
    let members = splice.members(range)?;
    let mut parts = Vec::new();
    for (key, value) in &members {
        if canonical(key) != "parts" {
            continue;
        }
        let items = match splice.text(value.clone()).starts_with('[') {
            true => splice.items(value.clone())?,
            false => vec![value.clone()],
        };
        let mut lacks_signature = has_levels(target);
        for item in items {
            parts.extend(part(splice, item, target, &mut lacks_signature)?);
        }
    }
    if parts.is_empty() {
        return Ok(());
    }
    splice.separate(is_first);
    splice.new_bytes(b"{");
    let mut is_first = true;
    for (key, value) in members {
        splice.write_name(&key, &mut is_first);
        if canonical(&key) != "parts" {
            splice.slice(value);
            continue;
        }
        splice.new_bytes(b"[");
        let mut is_first = true;
        for part in std::mem::take(&mut parts) {
            splice.separate(&mut is_first);
            match part {
                SplicedPart::AsItCame(range) => splice.slice(range),
                SplicedPart::New(members) => write_part(splice, members),
            }
        }
        splice.new_bytes(b"]");
    }
    splice.new_bytes(b"}");
    Ok(())
}

/// A part on its way out.
enum SplicedPart {
    AsItCame(Range<usize>),
    /// The members of a part, with new values in place of some.
    New(Vec<(String, Result<Range<usize>, String>)>),
}

fn write_part(splice: &mut Splice<'_>, members: Vec<(String, Result<Range<usize>, String>)>) {
    splice.new_bytes(b"{");
    let mut is_first = true;
    for (key, value) in members {
        splice.write_name(&key, &mut is_first);
        match value {
            Ok(range) => splice.slice(range),
            Err(new) => splice.new_bytes(new.as_bytes()),
        }
    }
    splice.new_bytes(b"}");
}

/// Returns a part as it goes out; `None`: nothing is left of it. `lacks_signature`: the first call of the content needs one.
fn part(
    splice: &Splice<'_>,
    range: Range<usize>,
    target: &Target<'_>,
    lacks_signature: &mut bool,
) -> Result<Option<SplicedPart>, Error> {
    let members = splice.members(range.clone())?;
    let (mut is_changed, mut has_call, mut says_nothing) = (false, false, true);
    let mut written = Vec::with_capacity(members.len());
    for (key, value) in members {
        let text = splice.text(value.clone());
        match &*canonical(&key) {
            "thoughtSignature" => match signature(text, target)? {
                Opened::Bare => written.push((key, Ok(value))),
                Opened::State(state) => {
                    is_changed = true;
                    written.push((key, Err(quoted(&state))));
                }
                Opened::Foreign => {
                    is_changed = true;
                    target.left_out_state.add();
                    continue;
                }
            },
            "fileData" => match fetched(text, target) {
                Some(inline) => {
                    is_changed = true;
                    written.push(("inlineData".to_owned(), Err(inline)));
                }
                None => written.push((key, Ok(value))),
            },
            canonical => {
                has_call |= canonical == "functionCall";
                says_nothing &= canonical == "text" && text == "\"\"" || canonical == "thought";
                written.push((key, Ok(value)));
                continue;
            }
        }
        says_nothing = false;
    }
    if has_call && is_changed && *lacks_signature {
        let has_one = written
            .iter()
            .any(|(key, _)| canonical(key) == "thoughtSignature");
        if !has_one {
            let none = quoted(NO_SIGNATURE);
            written.push(("thoughtSignature".to_owned(), Err(none)));
        }
    }
    *lacks_signature &= !has_call;
    Ok(match (is_changed, says_nothing) {
        (false, _) => Some(SplicedPart::AsItCame(range)),
        (true, true) => None,
        (true, false) => Some(SplicedPart::New(written)),
    })
}

/// What a signature is to a host.
enum Opened {
    /// It goes back as it came.
    Bare,
    /// The host has made it, under the seal.
    State(String),
    /// Somebody else has made it, or it is damaged.
    Foreign,
}

fn signature(json: &str, target: &Target<'_>) -> Result<Opened, Error> {
    if !json.starts_with('"') {
        return Ok(Opened::Bare);
    }
    let said = Walker::over(json).text()?;
    if said.is_empty() || said == NO_SIGNATURE {
        return Ok(Opened::Bare);
    }
    if target.refuses_state {
        return Ok(Opened::Foreign);
    }
    if !is_sealed(&said) {
        // Bare state is the vendor's.
        return Ok(match target.is_vendor {
            true => Opened::Bare,
            false => Opened::Foreign,
        });
    }
    let opened = target.maker.open(Dialect::Contents, &said);
    Ok(match opened.filter(|state| !state.is_empty()) {
        Some(state) => Opened::State(state.into_owned()),
        None => Opened::Foreign,
    })
}

/// Returns an image that was fetched as data, in place of its address; `None`: it was not.
fn fetched(json: &str, target: &Target<'_>) -> Option<String> {
    let mut uri = None;
    let walked = Walker::over(json).object(|walk, key| {
        match &*canonical(&key) {
            "fileUri" => uri = walk.text().ok(),
            _ => _ = walk.skip()?,
        }
        Ok::<(), Error>(())
    });
    let image = target.inlined.find(&uri.filter(|_| walked.is_ok())?)?;
    Some(format!(
        "{{\"mimeType\":{},\"data\":{}}}",
        quoted(image.media_type),
        quoted(image.data())
    ))
}
