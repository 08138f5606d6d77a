//! Texts that base models complete: the body goes out as it came, with few members replaced, and the reply is read as that of a
//! chat, whose choices have a text in place of a message.

use super::reply::{Reading, SaidIn, decoder_of};
use super::request::new_member;
use crate::fault::Fault;
use crate::models::chat::facts::ChatFacts;
use crate::models::dialects::{Dialect, completions};
use crate::models::parameter::Parameter;
use crate::models::request::{ModelRequest, RequestMember};
use crate::models::routing::parameters::Treatment;
use crate::models::routing::wire_limits::WireLimits;
use crate::models::wires::codec::{BodySlice, OperationCodec};
use crate::models::wires::quirks::StreamUsage;
use crate::models::wires::splice::Splice;
use crate::models::wires::wire::Target;

/// The most tokens of a text whose request does not say it: the vendor's default. Base models often have no end of their own.
const DEFAULT_TOKENS: u64 = 16;

pub(super) static CODEC: OperationCodec<ChatFacts> = OperationCodec {
    limits: WireLimits {
        dialect: Some(Dialect::Completions),
        translates: false,
        ..WireLimits::WIDEST
    },
    max_output: |request, _, target| match request.needs.max_tokens {
        Some(_) => target.max_tokens(request),
        None => Some(DEFAULT_TOKENS),
    },
    draws: |_, _| Some(false),
    ..OperationCodec::new("completions", encode, |_, _, target, head| {
        let reading = Reading {
            adds_reasoning: target.quirks.reasoning_excluded_from_completion,
            said_in: SaidIn::Text,
            ..Reading::default()
        };
        decoder_of(reading, head)
    })
};

fn encode(
    request: &ModelRequest,
    _: &ChatFacts,
    target: &Target<'_>,
) -> Result<Vec<BodySlice>, Fault> {
    let mut splice = Splice::new(&request.source.body);
    splice.new_bytes(b"{\"model\":");
    splice.new_string(target.model);
    let has_limit = request.needs.max_tokens.is_some();
    for member in &request.source.members {
        let key = &*member.key;
        let is_written_anew = matches!(key, "model" | "stream_options");
        if is_written_anew
            || completions::is_gateways(key)
            || !target.quirks.passes(key, &completions::KEYS)
            || request.source.is_null(member)
        {
            continue;
        }
        match completions::find_parameter(key) {
            None => {
                splice.new_bytes(b",");
                splice.slice(member.whole.clone());
            }
            Some(parameter) => write_treated(&mut splice, member, parameter, request, target),
        }
    }
    let mut add = |key: &str, value: &[u8]| {
        splice.new_bytes(b",");
        new_member(&mut splice, key, value);
    };
    if !has_limit {
        let name = target.parameters.name(Parameter::MaxTokens);
        add(name, DEFAULT_TOKENS.to_string().as_bytes());
    }
    if request.is_stream && target.quirks.stream_usage == StreamUsage::Ask {
        add("stream_options", br#"{"include_usage":true}"#);
    }
    splice.new_bytes(b"}");
    Ok(splice.finish())
}

/// Writes a member as the mapping's table wants it.
fn write_treated(
    splice: &mut Splice<'_>,
    member: &RequestMember,
    parameter: Parameter,
    request: &ModelRequest,
    target: &Target<'_>,
) {
    let name = target.parameters.name(parameter);
    match target.treat(parameter, request) {
        Treatment::Drop => {}
        Treatment::Number(number) => {
            splice.new_bytes(b",");
            new_member(splice, name, number.to_string().as_bytes());
        }
        Treatment::Pass if name == &*member.key => {
            splice.new_bytes(b",");
            splice.slice(member.whole.clone());
        }
        Treatment::Pass => {
            splice.new_bytes(b",");
            new_member(splice, name, b"");
            splice.slice(member.value.clone());
        }
    }
}

#[cfg(test)]
#[path = "completions_tests.rs"]
mod tests;
