//! From a checked request to the body for a provider: most members stay slices, few are replaced.

use bytes::Bytes;

use super::messages;
use super::splice::Splice;
use crate::fault::Fault;
use crate::json::{Str, Walker};
use crate::models::chat::facts::ChatFacts;
use crate::models::request::{Effort, ModelRequest, RequestMember};
use crate::models::wires::quirks::{Quirks, StreamUsage};
use crate::models::wires::wire::Target;

/// Members that speak to the gateway and never reach a provider. Source: docs/model-gateway.md 2.1.
const OURS: [&str; 12] = [
    "routing",
    "free_models_only",
    "onboarding",
    "no_reasoning",
    "prompt",
    "plugins",
    "web_search",
    "image_config",
    "sensitive_word_check",
    "vendor_safeguards",
    "prompt_cache_options",
    "effort",
];

/// Members of the convention; everything else is unknown to us, and the provider's quirks say what of it passes.
const KNOWN: [&str; 35] = [
    "messages",
    "model",
    "temperature",
    "max_tokens",
    "max_completion_tokens",
    "top_p",
    "frequency_penalty",
    "presence_penalty",
    "response_format",
    "stream",
    "stream_options",
    "n",
    "prompt_cache_key",
    "prompt_cache_retention",
    "user",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning_effort",
    "verbosity",
    "service_tier",
    "stop",
    "seed",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "modalities",
    "audio",
    "prediction",
    "store",
    "metadata",
    "safety_identifier",
    "functions",
    "function_call",
    "reasoning",
];

pub(super) fn encode(
    request: &ModelRequest,
    chat: &ChatFacts,
    target: &Target<'_>,
) -> Result<Vec<Bytes>, Fault> {
    let mut splice = Splice::new(&request.source.body);
    let mut is_first = true;
    for member in &request.source.members {
        let change = change(member, request, chat, target)?;
        if matches!(change, Change::Drop) {
            continue;
        }
        splice.new_bytes(if std::mem::take(&mut is_first) {
            b"{"
        } else {
            b","
        });
        match change {
            Change::Keep | Change::Drop => splice.slice(member.whole.clone()),
            Change::Replace(key, value) => new_member(&mut splice, key, &value),
            Change::Rename(key) => {
                new_member(&mut splice, key, b"");
                splice.slice(member.value.clone());
            }
            Change::Messages => messages::rewrite(chat, member, target, &mut splice)?,
            Change::Tools => messages::rewrite_tools(member, &mut splice)?,
        }
    }
    for (key, value) in additions(request, target.quirks) {
        splice.new_bytes(if std::mem::take(&mut is_first) {
            b"{"
        } else {
            b","
        });
        new_member(&mut splice, key, &value);
    }
    splice.new_bytes(if is_first { b"{}" } else { b"}" });
    Ok(splice.finish())
}

/// What happens to a top-level member.
enum Change {
    Keep,
    Drop,
    Replace(&'static str, Vec<u8>),
    Rename(&'static str),
    Messages,
    Tools,
}

fn change(
    member: &RequestMember,
    request: &ModelRequest,
    chat: &ChatFacts,
    target: &Target<'_>,
) -> Result<Change, Fault> {
    let quirks = target.quirks;
    let key = &*member.key;
    if quirks.drop.iter().any(|dropped| dropped == key)
        || OURS.iter().any(|ours| ours.eq_ignore_ascii_case(key))
        || !KNOWN.contains(&key) && !quirks.passes_unknown(key, &KNOWN)
    {
        return Ok(Change::Drop);
    }
    Ok(match key {
        "model" => Change::Replace("model", quoted(target.model)),
        "messages" if messages::must_rewrite(chat, quirks) => Change::Messages,
        "tools" if chat.special_tools => Change::Tools,
        "stream_options" => Change::Drop,
        "max_tokens" | "max_completion_tokens" => max_tokens(member, request, quirks),
        "temperature" => temperature(member, request, quirks),
        "tool_choice" if target.lower_tool_choice && request.needs.forced_tools => {
            Change::Replace("tool_choice", quoted("auto"))
        }
        "parallel_tool_calls" if !request.needs.tools => Change::Drop,
        "service_tier" if request.needs.service_tier.is_none() => Change::Drop,
        "reasoning" => reasoning(request)?,
        _ if request.source.is_null(member) => Change::Drop,
        _ => Change::Keep,
    })
}

/// The limit of tokens in the provider's spelling; where the client sent both, the newer one counts.
fn max_tokens(member: &RequestMember, request: &ModelRequest, quirks: &Quirks) -> Change {
    let theirs = if quirks.max_completion_tokens {
        "max_completion_tokens"
    } else {
        "max_tokens"
    };
    let is_overruled = &*member.key == "max_tokens"
        && request
            .source
            .member("max_completion_tokens")
            .is_some_and(|other| !request.source.is_null(other));
    if is_overruled || request.source.is_null(member) {
        Change::Drop
    } else if &*member.key == theirs {
        Change::Keep
    } else {
        Change::Rename(theirs)
    }
}

/// A temperature above the provider's highest becomes that. Source: docs/facts/wire-formats.md R17.
fn temperature(member: &RequestMember, request: &ModelRequest, quirks: &Quirks) -> Change {
    if request.source.is_null(member) {
        return Change::Drop;
    }
    let asked = std::str::from_utf8(request.source.value(member))
        .ok()
        .and_then(|value| value.parse::<f64>().ok());
    match (asked, quirks.max_temperature) {
        (Some(asked), Some(max)) if asked > max => {
            Change::Replace("temperature", max.to_string().into_bytes())
        }
        _ => Change::Keep,
    }
}

/// `reasoning` in this convention is `reasoning_effort`; an exact budget cannot be said on this wire.
fn reasoning(request: &ModelRequest) -> Result<Change, Fault> {
    if request.needs.reasoning_tokens.is_some() {
        return Err(Fault::invalid(
            "reasoning.max_tokens",
            "`reasoning.max_tokens` is an exact budget, which the chosen provider does not take; \
             `reasoning.effort` is accepted",
        ));
    }
    let has_own = request
        .source
        .member("reasoning_effort")
        .is_some_and(|own| !request.source.is_null(own));
    Ok(match request.needs.effort.map(Effort::as_str) {
        Some(effort) if !has_own => Change::Replace("reasoning_effort", quoted(effort)),
        _ => Change::Drop,
    })
}

fn additions(request: &ModelRequest, quirks: &Quirks) -> Vec<(&'static str, Vec<u8>)> {
    let asks = request.is_stream && quirks.stream_usage == StreamUsage::Ask;
    asks.then(|| ("stream_options", br#"{"include_usage":true}"#.to_vec()))
        .into_iter()
        .collect()
}

pub(super) fn quoted(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    Str::Plain(text).write(&mut out);
    out
}

pub(super) fn new_member(splice: &mut Splice<'_>, key: &str, value: &[u8]) {
    splice.new_bytes(b"\"");
    splice.new_bytes(key.as_bytes());
    splice.new_bytes(b"\":");
    splice.new_bytes(value);
}

/// A checked part of the body walked again does not fail; where it does all the same, that is ours.
pub(super) fn internal(error: crate::json::Error) -> Fault {
    Fault::new(
        crate::fault::FaultKind::Internal,
        "the request could not be rewritten",
    )
    .with_detail(format!("checked body does not walk: {error}"))
}

/// A walker over a range of the body, and where the range starts.
pub(super) fn walker<'a>(
    splice: &Splice<'a>,
    range: std::ops::Range<usize>,
) -> (Walker<'a>, usize) {
    (Walker::over(splice.text(range.clone())), range.start)
}
